//! The text format that Prometheus reads.

use std::fmt::Write as _;

/// What a family of samples is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Counter,
    Gauge,
    Histogram,
    Summary,
}

/// A label and its value.
pub(super) type Label<'a> = (&'a str, &'a str);

/// Text in the making. Families are written one after the other, each whole.
#[derive(Debug, Default)]
pub(super) struct Exposition(String);

impl Exposition {
    /// Begins a family. Every sample of it follows before the next one begins.
    pub(super) fn family(&mut self, name: &str, kind: Kind, help: &str) {
        let kind = match kind {
            Kind::Counter => "counter",
            Kind::Gauge => "gauge",
            Kind::Histogram => "histogram",
            Kind::Summary => "summary",
        };
        let help = help.replace('\\', r"\\").replace('\n', r"\n");
        self.line(format_args!("# HELP {name} {help}"));
        self.line(format_args!("# TYPE {name} {kind}"));
    }

    /// One sample.
    pub(super) fn sample(&mut self, name: &str, labels: &[Label<'_>], value: f64) {
        let mut shown = String::new();
        for (label, value) in labels {
            let comma = if shown.is_empty() { "" } else { "," };
            let value = value.replace('\\', r"\\").replace('"', "\\\"").replace('\n', r"\n");
            let _ = write!(shown, "{comma}{label}=\"{value}\"");
        }
        let labels = if shown.is_empty() { shown } else { format!("{{{shown}}}") };
        self.line(format_args!("{name}{labels} {value}"));
    }

    /// The text.
    pub(super) fn finish(self) -> String {
        self.0
    }

    fn line(&mut self, line: std::fmt::Arguments<'_>) {
        let _ = writeln!(self.0, "{line}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_follow_their_family_and_labels_are_escaped() {
        let mut text = Exposition::default();
        text.family("a_total", Kind::Counter, "Back\\slash\nand line");
        text.sample("a_total", &[], 3.0);
        text.sample("a_total", &[("l", "a\"b\\c\nd"), ("m", "West US")], 0.25);
        let expected = "# HELP a_total Back\\\\slash\\nand line\n# TYPE a_total counter\na_total 3\n\
                        a_total{l=\"a\\\"b\\\\c\\nd\",m=\"West US\"} 0.25\n";
        assert_eq!(text.finish(), expected);
    }
}
