//! The results as tables, and the bars the project has set itself.

use std::collections::BTreeMap;

use crate::figures::{Table, median, median_ratio, number, times};
use crate::generator::Outcome;
use crate::lists::Lists;
use crate::memory::Memory;
use crate::scaling::Scaling;
use crate::server::Kind;
use crate::snapshots::Snapshots;
use crate::throughput::Cells;
use crate::variants::{Comparison, OPEN_SECONDS_MAX, Opening};
use crate::workload::Row;

/// Everything a run found.
#[derive(Default)]
pub(crate) struct Report {
    pub(crate) startup: BTreeMap<Kind, Vec<f64>>,
    pub(crate) memory: BTreeMap<Kind, Memory>,
    pub(crate) cells: Cells,
    /// The share of the machine that other work took while the cells were measured.
    pub(crate) others: f64,
    pub(crate) scaling: Vec<Scaling>,
    /// The sizes of the two containers of `scaling`.
    pub(crate) scaling_counts: (u64, u64),
    /// Queries for lists of items.
    pub(crate) lists: Option<Lists>,
    /// Perihelion against itself.
    pub(crate) variants: Vec<Comparison>,
    pub(crate) snapshots: Vec<Snapshots>,
    pub(crate) opening: Option<Opening>,
    pub(crate) failures: Vec<String>,
}

/// One promise of the project and whether this run kept it.
#[derive(Debug)]
pub(crate) struct Bar {
    pub(crate) text: String,
    pub(crate) kept: bool,
}

const PEERS: [Kind; 2] = [Kind::Vercel, Kind::InMemory];

impl Report {
    /// Tables of ratios with absolute values beside; also valid Markdown.
    pub(crate) fn render(&self) -> String {
        let sections = [
            self.single_figures(),
            self.rates(),
            self.processor(),
            self.scaling_table(),
            self.lists_table(),
            self.variants_table(),
            self.snapshots_table(),
        ];
        sections.into_iter().flatten().collect::<Vec<_>>().join("\n")
    }

    /// Start, memory and idle processor time: one figure per server.
    fn single_figures(&self) -> Option<String> {
        if self.startup.is_empty() && self.memory.is_empty() {
            return None;
        }
        let mut table = Table::new(&["", "Perihelion", "vercel", "less by", "in-memory", "less by"]);
        let starts: BTreeMap<Kind, f64> =
            self.startup.iter().filter_map(|(kind, values)| Some((*kind, median(values)?))).collect();
        let of_memory = |value: fn(&Memory) -> f64| -> BTreeMap<Kind, f64> {
            self.memory.iter().map(|(kind, memory)| (*kind, value(memory))).collect()
        };
        let rows = [
            ("start to first answer, ms", starts),
            ("resident memory idle, MB", of_memory(|memory| memory.idle_bytes as f64 / 1e6)),
            ("resident with 100,000 items of 1 KB, MB", of_memory(|memory| memory.loaded_bytes as f64 / 1e6)),
            ("processor while idle, %", of_memory(|memory| memory.idle_processor * 100.0)),
        ];
        for (name, values) in rows {
            if values.is_empty() {
                continue;
            }
            let mut cells = vec![name.to_owned(), shown(values.get(&Kind::Perihelion).copied(), number)];
            for peer in PEERS {
                let ratio =
                    values.get(&peer).zip(values.get(&Kind::Perihelion)).map(|(peer, own)| peer / own);
                // Two idle processes differ by chance only.
                let ratio = ratio.filter(|_| !name.starts_with("processor"));
                cells.extend([shown(values.get(&peer).copied(), number), shown(ratio, times)]);
            }
            table.row(cells);
        }
        Some(table.render())
    }

    /// Operations per second.
    fn rates(&self) -> Option<String> {
        if self.cells.is_empty() {
            return None;
        }
        let mut table = Table::new(&[
            "operations per second",
            "connections",
            "Perihelion",
            "vercel",
            "more by",
            "in-memory",
            "more by",
            "canned",
            "of it",
        ]);
        for (row, connections) in self.lines() {
            let rate = |kind| self.median_of(row, connections, kind, Outcome::rate);
            let mut cells =
                vec![row.name().to_owned(), connections.to_string(), shown(rate(Kind::Perihelion), number)];
            for peer in PEERS {
                cells.extend([shown(rate(peer), number), shown(self.ratio(row, connections, peer), times)]);
            }
            let share = self.ratio(row, connections, Kind::Canned).map(|ratio| ratio * 100.0);
            cells.extend([shown(rate(Kind::Canned), number), shown(share, |share| format!("{share:.0} %"))]);
            table.row(cells);
        }
        let others = self.others * 100.0;
        Some(format!("{}\nOther work on the machine took {others:.0} % of it meanwhile.\n", table.render()))
    }

    /// Processor time per operation: what the rates mean once a machine has nothing else to do.
    fn processor(&self) -> Option<String> {
        if self.cells.is_empty() {
            return None;
        }
        let mut table = Table::new(&[
            "server's processor time per operation, µs",
            "connections",
            "Perihelion",
            "vercel",
            "in-memory",
            "canned",
            "generator's own",
        ]);
        for (row, connections) in self.lines() {
            let mut cells = vec![row.name().to_owned(), connections.to_string()];
            for kind in Kind::ALL {
                cells.push(shown(self.median_of(row, connections, kind, Outcome::server_micros), number));
            }
            let own = |kind| self.median_of(row, connections, kind, Outcome::generator_micros);
            cells.push(shown(Kind::ALL.into_iter().find_map(own), number));
            table.row(cells);
        }
        Some(table.render())
    }

    fn scaling_table(&self) -> Option<String> {
        if self.scaling.is_empty() {
            return None;
        }
        let (small, large) = self.scaling_counts;
        let titles = [
            "indexed query returning 100 items".to_owned(),
            format!("of {}, ms", number(small as f64)),
            format!("of {}, ms", number(large as f64)),
            "ratio".to_owned(),
        ];
        let mut table = Table::new(&titles.each_ref().map(String::as_str));
        for Scaling { name, small_millis, large_millis, ratio } in &self.scaling {
            let name = format!("`{name}`");
            table.row(vec![name, number(*small_millis), number(*large_millis), times(*ratio)]);
        }
        Some(table.render())
    }

    fn lists_table(&self) -> Option<String> {
        let Lists { short_millis, long_millis, ratio } = self.lists?;
        let titles =
            ["query for a list of 3,000 items", "100 pairs, ms", "1,000 pairs, ms", "ratio per pair"];
        let mut table = Table::new(&titles);
        let name = "`(c.id = … AND c.pk = …) OR …`".to_owned();
        table.row(vec![name, number(short_millis), number(long_millis), times(ratio)]);
        Some(table.render())
    }

    fn variants_table(&self) -> Option<String> {
        if self.variants.is_empty() {
            return None;
        }
        let mut table =
            Table::new(&["operations per second, 16 connections", "variant", "plain", "variant's", "ratio"]);
        for Comparison { row, name, plain_rate, rate, ratio, .. } in &self.variants {
            let (row, name) = (row.name().to_owned(), (*name).to_owned());
            table.row(vec![row, name, number(*plain_rate), number(*rate), times(*ratio)]);
        }
        Some(table.render())
    }

    fn snapshots_table(&self) -> Option<String> {
        if self.snapshots.is_empty() {
            return None;
        }
        let mut table = Table::new(&["the whole account", "save, ms", "restore, ms"]);
        for Snapshots { items, save_millis, restore_millis } in &self.snapshots {
            let name = format!("{} items", number(*items as f64));
            table.row(vec![name, number(*save_millis), number(*restore_millis)]);
        }
        Some(table.render())
    }

    /// The rows and numbers of connections that were measured, in the order of the table.
    fn lines(&self) -> Vec<(Row, usize)> {
        let mut lines: Vec<(Row, usize)> =
            self.cells.keys().map(|(row, connections, _)| (*row, *connections)).collect();
        lines.dedup();
        lines
    }

    fn values(&self, row: Row, connections: usize, kind: Kind, value: fn(&Outcome) -> f64) -> Vec<f64> {
        let outcomes = self.cells.get(&(row, connections, kind));
        outcomes.into_iter().flatten().map(value).collect()
    }

    fn median_of(&self, row: Row, connections: usize, kind: Kind, value: fn(&Outcome) -> f64) -> Option<f64> {
        median(&self.values(row, connections, kind, value))
    }

    /// Perihelion's rate over a peer's, round by round.
    fn ratio(&self, row: Row, connections: usize, peer: Kind) -> Option<f64> {
        let rates = |kind| self.values(row, connections, kind, Outcome::rate);
        median_ratio(&rates(Kind::Perihelion), &rates(peer))
    }

    /// The promises this run has evidence for.
    pub(crate) fn bars(&self) -> Vec<Bar> {
        let mut bars = Vec::new();
        let mut add = |text: String, kept: bool| bars.push(Bar { text, kept });
        if let Some(start) = self.startup.get(&Kind::Perihelion).and_then(|values| median(values)) {
            add(format!("ready in under 100 ms: {} ms", number(start)), start < 100.0);
        }
        if let Some(memory) = self.memory.get(&Kind::Perihelion) {
            let percent = memory.idle_processor * 100.0;
            add(format!("idle processor time under 1 %: {percent:.2} %"), percent < 1.0);
        }
        for row in [Row::PointRead, Row::Create] {
            if let Some(ratio) = self.ratio(row, 16, Kind::Vercel) {
                add(format!("4× vercel, {} at 16 connections: {}", row.name(), times(ratio)), ratio >= 4.0);
            }
        }
        for (row, connections) in self.lines() {
            if let Some(ratio) = self.ratio(row, connections, Kind::InMemory) {
                let text = format!("ahead of in-memory, {} at {connections}: {}", row.name(), times(ratio));
                add(text, ratio > 1.0);
            }
            if let Some(ratio) = self.ratio(row, connections, Kind::Canned) {
                let text = format!("80 % of canned, {} at {connections}: {:.0} %", row.name(), ratio * 100.0);
                add(text, ratio >= 0.8);
            }
        }
        for Scaling { name, ratio, .. } in &self.scaling {
            add(format!("within 3× of the small container, {name}: {}", times(*ratio)), *ratio <= 3.0);
        }
        if let Some(Lists { long_millis, ratio, .. }) = self.lists {
            let text = format!("a list of 1,000 pairs under 30 ms: {} ms", number(long_millis));
            add(text, long_millis < 30.0);
            add(format!("a pair of a long list within 2× of a short one's: {}", times(ratio)), ratio <= 2.0);
        }
        for Comparison { row, name, ratio, bar, .. } in &self.variants {
            if let Some(bar) = bar {
                let text =
                    format!("{} of the plain form, {}, {name}: {}", times(*bar), row.name(), times(*ratio));
                add(text, ratio >= bar);
            }
        }
        if let [few, many] = self.snapshots.as_slice() {
            for (what, few, many) in [
                ("saving", few.save_millis, many.save_millis),
                ("restoring", few.restore_millis, many.restore_millis),
            ] {
                let text =
                    format!("{what} a snapshot under 1 ms and within 3× of a small one: {} ms", number(many));
                add(text, many < 1.0 && many <= 3.0 * few);
            }
        }
        if let Some(Opening { items, seconds }) = self.opening {
            let items = number(items as f64);
            let text = format!("opening {items} items of 1 KB within {OPEN_SECONDS_MAX} s: {seconds:.1} s");
            add(text, seconds < OPEN_SECONDS_MAX);
        }
        bars
    }
}

/// A figure, or a dash where there is none.
fn shown(value: Option<f64>, show: impl Fn(f64) -> String) -> String {
    value.map_or_else(|| "–".to_owned(), show)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::Report;
    use crate::generator::Outcome;
    use crate::server::Kind;
    use crate::workload::Row;

    fn rate(operations: f64) -> Outcome {
        Outcome { operations, elapsed: Duration::from_secs(1), ..Outcome::default() }
    }

    fn report(own: f64, vercel: f64) -> Report {
        let mut report = Report::default();
        report.cells.insert((Row::PointRead, 16, Kind::Perihelion), vec![rate(own)]);
        report.cells.insert((Row::PointRead, 16, Kind::Vercel), vec![rate(vercel)]);
        report
    }

    #[test]
    fn a_ratio_stands_beside_its_absolute_values() {
        let text = report(40_000.0, 8_000.0).render();
        assert!(text.contains("40,000") && text.contains("8,000") && text.contains("5.00×"), "{text}");
    }

    #[test]
    fn a_bar_is_kept_or_missed_by_its_ratio_and_absent_without_evidence() {
        for (own, kept) in [(40.0, true), (39.0, false)] {
            let bars = report(own, 10.0).bars();
            assert_eq!(bars.len(), 1, "{bars:?}");
            assert_eq!(bars[0].kept, kept, "{bars:?}");
        }
    }
}
