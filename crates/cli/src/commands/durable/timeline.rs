//! Draws what an execution has waited for over time.

use durable::operator::{Outcome, Timeline, TimelineSpan, WaitKind};

use super::format::{cut, duration};
use crate::output::{Table, printable};

/// The longest name of a wait.
const NAME_MAX: usize = 36;
/// The least width of the drawing.
const DRAWING_MIN: usize = 16;
/// The largest number of waits that are drawn.
const SPANS_MAX: usize = 400;

/// A line for each wait, whose bar shows when it began and ended. Waits that go on end now.
pub(super) fn draw(timeline: &Timeline, now: u64, width: usize) -> String {
    let start = timeline.started_at;
    let end = timeline.ended_at.unwrap_or(now).max(start + 1);
    let rows: Vec<[String; 3]> = timeline
        .spans
        .iter()
        .take(SPANS_MAX)
        .map(|span| labels(span, end, NAME_MAX.min(width / 3)))
        .collect();
    let headings = ["EVENT", "WAITS FOR", "DURATION"];
    let taken: usize =
        headings.iter().enumerate().map(|(at, heading)| column_width(heading, at, &rows)).sum();
    // The mark at the end of a bar and the gap after the last column are not part of the scale.
    let drawing = width.saturating_sub(taken + 3).max(DRAWING_MIN);
    let axis = axis(&duration(end - start), drawing);
    let mut table = Table::new(&[headings[0], headings[1], headings[2], &axis]);
    for ([event, name, took], span) in rows.into_iter().zip(&timeline.spans) {
        table.row(vec![event, name, took, bar(span, start, end, drawing)]);
    }
    let mut text = table.to_string();
    if timeline.spans.is_empty() {
        text = format!("it has waited for nothing, for {}", duration(end - start));
    }
    if timeline.spans.len() > SPANS_MAX {
        text += &format!("\n… and {} more, which --json has", timeline.spans.len() - SPANS_MAX);
    }
    text
}

/// The cells of a wait before its bar.
fn labels(span: &TimelineSpan, end: u64, name_max: usize) -> [String; 3] {
    let name = match (&span.kind, span.fires_at) {
        (WaitKind::Timer, Some(fires_at)) => duration(fires_at.saturating_sub(span.started_at)),
        _ => span.name.clone(),
    };
    let took = duration(span.ended_at.unwrap_or(end).saturating_sub(span.started_at));
    let took = if span.outcome == Outcome::Open { format!("{took} …") } else { took };
    [span.event_id.to_string(), cut(&printable(&format!("{} {name}", span.kind.name())), name_max), took]
}

/// The width of a column with its gap. Characters beyond ASCII may take two cells.
fn column_width(heading: &str, column: usize, rows: &[[String; 3]]) -> usize {
    let width =
        |text: &str| text.chars().map(|c| if c.is_ascii() || c == '…' { 1 } else { 2 }).sum::<usize>();
    rows.iter().map(|row| width(&row[column])).chain([heading.len()]).max().unwrap_or_default() + 2
}

/// The heading of the drawing: where it begins and ends.
fn axis(total: &str, width: usize) -> String {
    let line = width.saturating_sub(total.chars().count() + 4);
    format!("0 {} {total}", "─".repeat(line.max(1)))
}

fn bar(span: &TimelineSpan, start: u64, end: u64, width: usize) -> String {
    let scale = |time: u64| {
        let share = (time.clamp(start, end) - start) as f64 / (end - start) as f64;
        (share * width as f64).round() as usize
    };
    let from = scale(span.started_at).min(width.saturating_sub(1));
    let to = scale(span.ended_at.unwrap_or(end)).clamp(from + 1, width);
    let fill = match span.kind {
        WaitKind::Activity => "█",
        WaitKind::Timer => "▒",
        WaitKind::SubOrchestration => "▓",
        _ => "░",
    };
    let mark = match span.outcome {
        Outcome::Failed => "✗",
        Outcome::Cancelled => "○",
        Outcome::Open => "→",
        _ => "",
    };
    // A no-break space is kept at the beginning of a cell.
    format!("{}{}{mark}", "\u{a0}".repeat(from), fill.repeat(to - from))
}

#[cfg(test)]
mod tests {
    use durable::duroxide::{Event, EventKind};

    use super::*;

    fn event(id: u64, at: u64, source: Option<u64>, kind: EventKind) -> Event {
        let mut event = Event::with_event_id(id, "i", 1, source, kind);
        event.timestamp_ms = 1_000 + at;
        event
    }

    fn timeline() -> Timeline {
        let started = EventKind::OrchestrationStarted {
            name: "Order".to_owned(),
            version: "1.0.0".to_owned(),
            input: String::new(),
            parent_instance: None,
            parent_id: None,
            parent_execution_id: None,
            carry_forward_events: None,
            initial_custom_status: None,
        };
        let scheduled = EventKind::ActivityScheduled {
            name: "charge\u{1b}[31m".to_owned(),
            input: String::new(),
            session_id: None,
            tag: None,
        };
        let events = [
            event(1, 0, None, started),
            event(2, 0, None, scheduled),
            event(3, 250, Some(2), EventKind::ActivityCompleted { result: String::new() }),
            event(4, 250, None, EventKind::TimerCreated { fire_at_ms: 1_750 }),
            event(5, 750, Some(4), EventKind::TimerFired { fire_at_ms: 1_750 }),
            event(6, 750, None, EventKind::ExternalSubscribed { name: "Approved".to_owned() }),
        ];
        Timeline::new(&events)
    }

    #[test]
    fn bars_show_when_waits_began_and_ended() {
        let drawn = draw(&timeline(), 2_000, 66).replace('\u{a0}', " ");
        let expected = "\
EVENT  WAITS FOR                DURATION  0 ─────────── 1.00 s
    2  activity charge\\u{1b}[…  250 ms    █████
    4  timer 500 ms             500 ms         ▒▒▒▒▒▒▒▒▒▒▒
    6  event Approved           250 ms …                  ░░░░░→";
        assert_eq!(drawn, expected);
    }

    #[test]
    fn a_drawing_fits_the_terminal() {
        for width in [60, 80, 200] {
            let drawn = draw(&timeline(), 60_000, width);
            assert!(drawn.lines().all(|line| line.chars().count() < width), "{drawn}");
        }
        assert!(draw(&Timeline::default(), 5, 80).starts_with("it has waited for nothing"));
    }
}
