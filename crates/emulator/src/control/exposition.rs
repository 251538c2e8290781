//! The Prometheus text format, version 0.0.4.
//!
//! Written by hand: `prometheus-client` only writes OpenMetrics, which has another content type, other TYPE
//! lines for counters and no summaries, so that scrapers of today's format would lose them.

use std::fmt::Write as _;

/// The type of a metric family.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum MetricType {
    Counter,
    Gauge,
    Histogram,
    Summary,
}

/// A label name and its value.
pub(super) type Label<'a> = (&'a str, &'a str);

/// The text of a scrape. Families are written one after the other.
#[derive(Debug, Default)]
pub(super) struct Exposition(String);

impl Exposition {
    /// Begins a family. All its samples follow before the next family begins.
    pub(super) fn family(&mut self, name: &str, metric_type: MetricType, help: &str) {
        let metric_type = match metric_type {
            MetricType::Counter => "counter",
            MetricType::Gauge => "gauge",
            MetricType::Histogram => "histogram",
            MetricType::Summary => "summary",
        };
        let help = help.replace('\\', r"\\").replace('\n', r"\n");
        self.line(format_args!("# HELP {name} {help}"));
        self.line(format_args!("# TYPE {name} {metric_type}"));
    }

    /// Writes one sample of the current family.
    pub(super) fn sample(&mut self, name: &str, labels: &[Label<'_>], value: f64) {
        let mut text = String::new();
        for (label, value) in labels {
            let comma = if text.is_empty() { "" } else { "," };
            let value = value.replace('\\', r"\\").replace('"', "\\\"").replace('\n', r"\n");
            // Writing to a String cannot fail.
            let _ = write!(text, "{comma}{label}=\"{value}\"");
        }
        let labels = if text.is_empty() { text } else { format!("{{{text}}}") };
        self.line(format_args!("{name}{labels} {value}"));
    }

    /// The complete text of the scrape.
    pub(super) fn finish(self) -> String {
        self.0
    }

    fn line(&mut self, line: std::fmt::Arguments<'_>) {
        // Writing to a String cannot fail.
        let _ = writeln!(self.0, "{line}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_follow_their_family_and_labels_are_escaped() {
        let mut text = Exposition::default();
        text.family("a_total", MetricType::Counter, "Back\\slash\nand line");
        text.sample("a_total", &[], 3.0);
        text.sample("a_total", &[("l", "a\"b\\c\nd"), ("m", "West US")], 0.25);
        let expected = "# HELP a_total Back\\\\slash\\nand line\n# TYPE a_total counter\na_total 3\n\
                        a_total{l=\"a\\\"b\\\\c\\nd\",m=\"West US\"} 0.25\n";
        assert_eq!(text.finish(), expected);
    }
}
