//! How far a long command has come: a bar on a terminal, a line now and then elsewhere.

use std::io::IsTerminal as _;

use indicatif::{ProgressBar, ProgressStyle};

use super::message;

/// Without a terminal, a line is written every so many items.
const LINE_EVERY: u64 = 10_000;

/// Items that are on their way from one place to another.
#[derive(Debug)]
pub(crate) struct Progress {
    bar: Option<ProgressBar>,
    /// What is done to them: `imported`.
    done: &'static str,
    items: u64,
}

impl Progress {
    /// `bytes` is the length of the file, where there is one and it is known.
    pub(crate) fn new(done: &'static str, bytes: Option<u64>) -> Progress {
        let bar = std::io::stderr().is_terminal().then(|| match bytes {
            Some(bytes) => {
                let form = "{bar:30} {percent:>3} %  {bytes}/{total_bytes}  {msg}  {elapsed}, {eta} left";
                ProgressBar::new(bytes).with_style(style(form))
            }
            None => ProgressBar::no_length().with_style(style("{spinner} {msg}  {elapsed}")),
        });
        Progress { bar, done, items: 0 }
    }

    /// One more item, and how many bytes of the file have been read.
    pub(crate) fn step(&mut self, bytes_read: Option<u64>) {
        self.items += 1;
        match &self.bar {
            Some(bar) => {
                if let Some(bytes) = bytes_read {
                    bar.set_position(bytes);
                }
                bar.set_message(items(self.items));
            }
            None if self.items.is_multiple_of(LINE_EVERY) => {
                message(&format!("{} {} items", self.done, self.items))
            }
            None => {}
        }
    }

    /// Writes a line without breaking the bar.
    pub(crate) fn line(&self, text: &str) {
        match &self.bar {
            Some(bar) => bar.suspend(|| message(text)),
            None => message(text),
        }
    }

    /// How many there were.
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

/// `1 item`, `2 items`.
pub(crate) fn items(count: u64) -> String {
    if count == 1 { "1 item".to_owned() } else { format!("{count} items") }
}

fn style(form: &str) -> ProgressStyle {
    ProgressStyle::with_template(form).expect("the form is well-formed").progress_chars("█▉▊▋▌▍▎▏ ")
}
