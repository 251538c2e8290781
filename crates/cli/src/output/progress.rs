//! The progress of an import, export or purge: a bar on a terminal, otherwise a line for every 10,000 items, or 1,000 instances.

use std::io::IsTerminal as _;

use indicatif::{ProgressBar, ProgressStyle};

use super::message;

/// The number of items after which a line is written without a terminal.
const LINE_EVERY: u64 = 10_000;
/// The number of items after which a line is written if each of them takes several requests.
const SLOW_LINE_EVERY: u64 = 1_000;

/// The progress of an import, export or purge.
#[derive(Debug)]
pub(crate) struct Progress {
    bar: Option<ProgressBar>,
    /// The participle for the output: `imported`.
    done: &'static str,
    items: u64,
    /// The number of items after which a line is written without a terminal.
    line_every: u64,
}

impl Progress {
    /// Progress without items so far; `bytes` is the length of the file, if it is known.
    pub(crate) fn new(done: &'static str, bytes: Option<u64>) -> Progress {
        let bar = std::io::stderr().is_terminal().then(|| match bytes {
            Some(bytes) => {
                let form = "{bar:30} {percent:>3} %  {bytes}/{total_bytes}  {msg}  {elapsed}, {eta} left";
                ProgressBar::new(bytes).with_style(style(form))
            }
            None => ProgressBar::no_length().with_style(style("{spinner} {msg}  {elapsed}")),
        });
        Progress { bar, done, items: 0, line_every: LINE_EVERY }
    }

    /// Progress towards a number of items that is known.
    pub(crate) fn towards(done: &'static str, items: u64) -> Progress {
        let bar = std::io::stderr().is_terminal().then(|| {
            let form = "{bar:30} {percent:>3} %  {pos}/{len}  {elapsed}, {eta} left";
            ProgressBar::new(items).with_style(style(form))
        });
        Progress { bar, done, items: 0, line_every: SLOW_LINE_EVERY }
    }

    /// Counts one more item of those that are known.
    pub(crate) fn advance(&mut self) {
        self.step(Some(self.items + 1));
    }

    /// Counts one more item; `bytes_read` is the number of bytes that were read from the file.
    pub(crate) fn step(&mut self, bytes_read: Option<u64>) {
        self.items += 1;
        match &self.bar {
            Some(bar) => {
                if let Some(bytes) = bytes_read {
                    bar.set_position(bytes);
                }
                bar.set_message(items(self.items));
            }
            None if self.items.is_multiple_of(self.line_every) => {
                message(&format!("{} {} items", self.done, self.items))
            }
            None => {}
        }
    }

    /// Writes a line above the bar.
    pub(crate) fn line(&self, text: &str) {
        match &self.bar {
            Some(bar) => bar.suspend(|| message(text)),
            None => message(text),
        }
    }

    /// The number of items so far.
    pub(crate) fn items(&self) -> u64 {
        self.items
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}

/// The number of items as text: `1 item`, `2 items`.
pub(crate) fn items(count: u64) -> String {
    if count == 1 { "1 item".to_owned() } else { format!("{count} items") }
}

fn style(form: &str) -> ProgressStyle {
    ProgressStyle::with_template(form).expect("the form is well-formed").progress_chars("█▉▊▋▌▍▎▏ ")
}
