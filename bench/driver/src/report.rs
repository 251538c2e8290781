//! Ratios, with the absolute values beside.

use std::fmt::Write;

use crate::load::Rate;
use crate::memory::Costs;
use crate::ordered::Ordered;
use crate::points::Cell;
use crate::slow_region::{LEARNING, Outage};
use crate::telemetry::TelemetryCosts;

/// Everything that was measured.
#[derive(Clone, Debug, Default)]
pub struct Results {
    /// Reads and creates.
    pub points: Vec<Cell>,
    /// The same, when the server takes 50 ms.
    pub distance: Option<Cell>,
    /// The drivers alone.
    pub memory: Option<Costs>,
    /// Telemetry that nobody listens to.
    pub telemetry: Option<TelemetryCosts>,
    /// The ordered query.
    pub ordered: Option<Ordered>,
    /// The slow region.
    pub outages: Vec<Outage>,
}

/// One thing that has to be so.
#[derive(Clone, Debug)]
pub struct Bar {
    what: String,
    value: f64,
    /// At least this much if true, at most this much otherwise.
    at_least: bool,
    bound: f64,
}

impl Bar {
    /// Whether it is.
    pub fn holds(&self) -> bool {
        if self.at_least { self.value >= self.bound } else { self.value <= self.bound }
    }
}

/// The bars that the results can be held against.
pub fn bars(results: &Results) -> Vec<Bar> {
    let mut bars = Vec::new();
    let mut bar = |what: String, value: f64, at_least: bool, bound: f64| {
        bars.push(Bar { what, value, at_least, bound });
    };
    let (rate, processor) = (|rate: Rate| rate.per_second, |rate: Rate| rate.processor_us);
    for cell in results.points.iter().filter(|cell| cell.shape.in_flight >= 16) {
        let name = |what: &str| {
            let shape = cell.shape;
            format!("{}, {}, {} in flight: {what}", shape.work.name(), shape.wire.name(), shape.in_flight)
        };
        bar(name("operations, of the published driver"), cell.ratio(1, rate), true, 2.5);
        bar(name("processor, of the published driver"), cell.ratio(1, processor), false, 0.4);
        bar(name("processor, of the bare loop"), cell.ratio(2, processor), false, 2.0);
        bar(name("operations, of the bare loop"), cell.ratio(2, rate), true, 0.5);
    }
    if let Some(cell) = &results.distance {
        bar(
            "50 ms away, 256 in flight: operations, of the bare loop".into(),
            cell.ratio(2, rate),
            true,
            0.95,
        );
    }
    if let Some(costs) = &results.memory {
        let [ours, theirs] = costs.allocations;
        bar("allocations, of the published driver".into(), ours / theirs, false, 1.0 / 3.0);
        if let Some([ours, theirs]) = costs.instructions {
            bar("instructions, of the published driver".into(), ours / theirs, false, 1.0 / 3.0);
        }
    }
    if let Some(costs) = &results.telemetry {
        let name = "instructions with telemetry that nobody listens to, of without".into();
        bar(name, costs.ratio(), false, 1.02);
    }
    for outage in &results.outages {
        if outage.name.starts_with("slow") {
            bar("a slow region: P99 with hedging, of without".into(), outage.p99_ratio(), false, 0.2);
        } else {
            for (at, hedging) in ["with", "without"].into_iter().enumerate() {
                let name = format!("a {} {hedging} hedging: median read, of a healthy region's", outage.name);
                bar(name, outage.median_ratio(at), false, 1.25);
            }
        }
    }
    bars
}

/// The tables, as Markdown.
pub fn tables(results: &Results) -> String {
    let mut text = String::new();
    points(&mut text, results);
    memory(&mut text, results);
    telemetry(&mut text, results);
    rest(&mut text, results);
    text
}

/// Which bars were missed, a line each.
pub fn missed(bars: &[Bar]) -> String {
    let mut text = String::new();
    for bar in bars.iter().filter(|bar| !bar.holds()) {
        let than = if bar.at_least { "at least" } else { "at most" };
        line(&mut text, format!("missed: {} is {:.2}, not {than} {:.2}", bar.what, bar.value, bar.bound));
    }
    text
}

/// One of the values of a rate.
type Value = fn(Rate) -> f64;
/// One of the values of the ordered query, of a subject.
type OrderedValue = fn(&Ordered, usize) -> f64;

fn line(text: &mut String, line: String) {
    writeln!(text, "{line}").expect("a string takes everything");
}

fn points(text: &mut String, results: &Results) {
    let cells = || {
        results
            .points
            .iter()
            .map(|cell| (cell, false))
            .chain(results.distance.iter().map(|cell| (cell, true)))
    };
    if cells().next().is_none() {
        return;
    }
    let label = |cell: &Cell, far: bool| {
        let shape = cell.shape;
        let far = if far { ", server takes 50 ms" } else { "" };
        format!("{}, {}{far} | {}", shape.work.name(), shape.wire.name(), shape.in_flight)
    };
    let heads: [(&str, usize, Value); 2] = [
        ("operations/s", 0, |rate| rate.per_second),
        ("processor µs per operation", 1, |rate| rate.processor_us),
    ];
    for (head, digits, value) in heads {
        line(
            text,
            format!("| {head} | in flight | Perihelion | published | bare hyper | of published | of bare |"),
        );
        line(text, "|---|---:|---:|---:|---:|---:|---:|".to_owned());
        for (cell, far) in cells() {
            let values = [0, 1, 2].map(|subject| format!("{:.digits$}", cell.median(subject, value)));
            let ratios = [1, 2].map(|other| format!("**{:.2}×**", cell.ratio(other, value)));
            line(text, format!("| {} | {} | {} |", label(cell, far), values.join(" | "), ratios.join(" | ")));
        }
        line(text, String::new());
    }
    line(text, "| latency, P50 / P99 in ms | in flight | Perihelion | published | bare hyper |".to_owned());
    line(text, "|---|---:|---:|---:|---:|".to_owned());
    for (cell, far) in cells() {
        let values = [0, 1, 2].map(|subject| {
            let ms = |value: fn(Rate) -> f64| cell.median(subject, value) / 1e3;
            format!("{:.2} / {:.2}", ms(|rate| rate.p50_us), ms(|rate| rate.p99_us))
        });
        line(text, format!("| {} | {} |", label(cell, far), values.join(" | ")));
    }
    line(text, String::new());
}

fn memory(text: &mut String, results: &Results) {
    let Some(costs) = &results.memory else { return };
    line(text, "| a point read in memory | Perihelion | published | ratio |".to_owned());
    line(text, "|---|---:|---:|---:|".to_owned());
    let mut row = |what: &str, [ours, theirs]: [f64; 2], ratio: f64| {
        line(text, format!("| {what} | {ours:.1} | {theirs:.1} | **{ratio:.2}×** |"));
    };
    row("time, µs", costs.nanoseconds.map(|nanoseconds| nanoseconds / 1e3), costs.time_ratio);
    if let Some(counts) = costs.instructions {
        row("instructions, thousands", counts.map(|count| count / 1e3), counts[0] / counts[1]);
    }
    row("allocations", costs.allocations, costs.allocations[0] / costs.allocations[1]);
    line(text, String::new());
}

fn telemetry(text: &mut String, results: &Results) {
    let Some(costs) = &results.telemetry else { return };
    line(
        text,
        "| a point read in memory, no subscriber | with telemetry | telemetry removed | ratio |".to_owned(),
    );
    line(text, "|---|---:|---:|---:|".to_owned());
    line(
        text,
        format!(
            "| instructions, thousands | {:.2} | {:.2} | **{:.4}×** |",
            costs.unheard / 1e3,
            costs.removed / 1e3,
            costs.ratio()
        ),
    );
    line(text, String::new());
}

fn rest(text: &mut String, results: &Results) {
    if let Some(ordered) = &results.ordered {
        let items = ordered.items;
        line(
            text,
            format!("| cross-partition ORDER BY, all {items} items | Perihelion | published | ratio |"),
        );
        line(text, "|---|---:|---:|---:|".to_owned());
        let values: [(&str, OrderedValue); 2] =
            [("seconds", Ordered::seconds), ("processor seconds", Ordered::processor)];
        for (what, value) in values {
            let (ours, theirs) = (value(ordered, 0), value(ordered, 1));
            let (theirs, ratio) = match &ordered.refusal {
                Some(refusal) => {
                    (format!("refused: {}", refusal.lines().next().unwrap_or_default()), "–".into())
                }
                None => (format!("{theirs:.2}"), format!("**{:.2}×**", ours / theirs)),
            };
            line(text, format!("| {what} | {ours:.2} | {theirs} | {ratio} |"));
        }
        line(text, String::new());
    }
    for outage in &results.outages {
        let (seconds, learning) = (outage.duration.as_secs(), LEARNING.as_secs());
        line(
            text,
            format!(
                "| point reads, first region of three {}, {seconds} s | before | first {learning} s | from then on |",
                outage.name
            ),
        );
        line(text, "|---|---:|---:|---:|".to_owned());
        for (run, hedging) in outage.runs.iter().zip(["hedging on", "hedging off"]) {
            let values: [(&str, Value); 2] =
                [("P50, ms", |rate| rate.p50_us), ("P99, ms", |rate| rate.p99_us)];
            for (what, value) in values {
                let [before, first, rest] =
                    [run.healthy, run.learning, run.outage].map(|rate| value(rate) / 1e3);
                line(text, format!("| {hedging}, {what} | {before:.1} | {first:.1} | **{rest:.1}** |"));
            }
        }
        line(text, String::new());
    }
}
