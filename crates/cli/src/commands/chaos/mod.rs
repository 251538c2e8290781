//! `peri chaos`: play scenarios, show what came of them, and fail when a promise was broken.

mod shown;

use std::path::Path;
use std::time::Duration;

use chaos::scenario::Writes;
use chaos::schedule::Pace;
use chaos::{Progress, Report, RunError, Scenario, Schedule, World, WorldError, built_in};
use indicatif::{ProgressBar, ProgressStyle};

use crate::arguments::Chaos;
use crate::exit::Failure;
use crate::output;
use crate::shutdown::Signals;

/// No scenario is longer.
const FILE_BYTES_MAX: u64 = 1024 * 1024;

/// How long may be spent on removing what a run has left that was cut short.
const CLEAN_UP_MAX: Duration = Duration::from_secs(15);

/// Plays what was asked for.
pub(crate) fn run(chaos: &Chaos) -> Result<(), Failure> {
    if chaos.list {
        output::data(&shown::list(&built_in::all()));
        return Ok(());
    }
    let typed: Vec<&str> = match &chaos.scenarios[..] {
        [] => built_in::names().collect(),
        names => names.iter().map(String::as_str).collect(),
    };
    let pace = Pace { lasting: chaos.lasting.map(|span| span.0), ..Pace::default() };
    let runtime = super::runtime()?;
    // An account that runs already is of one kind, and what is about the other one is left out.
    let only = match chaos.attach {
        true => Some(runtime.block_on(World::writes_of(&chaos.control))?),
        false => None,
    };
    let mut schedules = Vec::new();
    for typed in typed {
        let mut scenario = scenario(typed)?;
        scenario.writes.retain(|writes| only.is_none_or(|only| only == *writes));
        let schedule = |writes: &Writes| (typed, Schedule::new(&scenario, *writes, chaos.seed, pace));
        schedules.extend(scenario.writes.iter().map(schedule));
    }
    if chaos.show {
        for (_, schedule) in &schedules {
            output::data(&shown::plan(schedule));
        }
        return Ok(());
    }
    if schedules.is_empty() {
        return Err(Failure::usage("the scenario is not for an account of this kind".to_owned())
            .hint("see 'writes' in the scenario, and --multi-write of `peri up`"));
    }
    // Before anything is made, so that nothing is left behind.
    let mut signals = {
        let _within = runtime.enter();
        Signals::listen().map_err(|error| Failure::other(format!("cannot listen for signals: {error}")))?
    };
    let mut broken = Vec::new();
    for (number, (typed, schedule)) in schedules.iter().enumerate() {
        let report = runtime.block_on(play(chaos, schedule, (number + 1, schedules.len()), &mut signals))?;
        if chaos.json {
            let line = serde_json::to_string(&report);
            output::data(&line.map_err(|error| Failure::other(format!("no JSON: {error}")))?);
        } else {
            output::data(&shown::report(&report));
        }
        if !report.holds() {
            broken.push(*typed);
        }
    }
    if broken.is_empty() {
        output::message(&format!("{} runs, every promise held", schedules.len()));
        return Ok(());
    }
    broken.dedup();
    let lasting = chaos.lasting.map_or(String::new(), |span| format!(" --for '{span}'"));
    let again = format!("the same again: peri chaos {} --seed {}{lasting}", broken.join(" "), chaos.seed);
    Err(Failure::broken(format!("a promise was broken in {}", broken.join(", "))).hint(&again))
}

/// One that comes with it, or a file.
fn scenario(name: &str) -> Result<Scenario, Failure> {
    if let Some(scenario) = built_in::find(name) {
        return Ok(scenario);
    }
    let path = Path::new(name);
    if !path.is_file() {
        let known: Vec<String> = built_in::all().into_iter().map(|scenario| scenario.name).collect();
        return Err(Failure::usage(format!("there is no scenario and no file '{name}'"))
            .hint(&format!("those that come with it are {}", known.join(", "))));
    }
    let unreadable = |reason: String| Failure::usage(format!("'{name}' cannot be played: {reason}"));
    match std::fs::metadata(path) {
        Ok(about) if about.len() > FILE_BYTES_MAX => return Err(unreadable("it is too long".to_owned())),
        _ => {}
    }
    let text = std::fs::read_to_string(path).map_err(|error| unreadable(error.to_string()))?;
    let stem = path.file_stem().unwrap_or_default().to_string_lossy();
    Scenario::read(&stem, &text).map_err(|error| unreadable(error.to_string()))
}

/// Plays one schedule; `place` is which of how many.
async fn play(
    chaos: &Chaos,
    schedule: &Schedule,
    place: (usize, usize),
    signals: &mut Signals,
) -> Result<Report, Failure> {
    let world = if chaos.attach {
        let connection = chaos.account.text();
        World::attach(&connection, &chaos.control, schedule).await?
    } else {
        World::start(schedule).await?
    };
    let mut line = Line::new(schedule, place);
    let mut show = |progress: &Progress| line.show(progress);
    let report = tokio::select! {
        report = chaos::run(&world, schedule, &mut show) => Some(report),
        () = signals.stop_requested() => None,
    };
    drop(line);
    match report {
        Some(Ok(report)) => {
            world.finish().await?;
            Ok(report)
        }
        Some(Err(error)) => {
            clean_up(world, schedule).await;
            Err(error.into())
        }
        None => {
            output::message("stopping; another signal leaves at once");
            if let Ok(next) = Signals::listen() {
                next.leave_at_once_on_the_next();
            }
            clean_up(world, schedule).await;
            Err(Failure::interrupted(
                "the run was cut short, so nothing is known about its promises".to_owned(),
            ))
        }
    }
}

/// Leaves the account of a run that did not come to its end as it was, and says whether that went well.
async fn clean_up(world: World, schedule: &Schedule) {
    let database = world.database().to_owned();
    let left = match tokio::time::timeout(CLEAN_UP_MAX, world.abandon(schedule)).await {
        Ok(Ok(())) => {
            output::message(&format!("its faults have been ended and its database {database} deleted"));
            return;
        }
        Ok(Err(error)) => error.to_string(),
        Err(_) => format!("not done after {CLEAN_UP_MAX:?}"),
    };
    output::message(&format!(
        "what it left could not be removed ({left}): see `peri fault list`, and delete the database {database}"
    ));
}

/// How far a run is: on a terminal, one line that changes; elsewhere, one line when it begins.
struct Line {
    bar: ProgressBar,
}

impl Line {
    fn new(schedule: &Schedule, (number, of): (usize, usize)) -> Line {
        let title = title(&schedule.name, schedule.writes);
        let bar = ProgressBar::new(u64::try_from(schedule.end.as_millis()).unwrap_or(u64::MAX));
        let style = ProgressStyle::with_template("{prefix} {bar:20} {msg}").expect("the form is well-formed");
        bar.set_style(style);
        bar.set_prefix(format!("{number}/{of} {title}"));
        if bar.is_hidden() {
            output::message(&format!("{number}/{of} {title}, {} seconds", schedule.end.as_secs_f64().ceil()));
        }
        Line { bar }
    }

    fn show(&mut self, progress: &Progress) {
        let Progress { elapsed, done, failed, faults, .. } = progress;
        self.bar.set_position(u64::try_from(elapsed.as_millis()).unwrap_or(u64::MAX));
        let wrong = if faults.is_empty() { "nothing is wrong".to_owned() } else { faults.join(", ") };
        self.bar.set_message(format!("{done} operations, {failed} failed; {wrong}"));
    }
}

impl Drop for Line {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}

/// `region-down, one region writes`.
fn title(name: &str, writes: Writes) -> String {
    format!("{name}, {writes}")
}

impl From<WorldError> for Failure {
    fn from(error: WorldError) -> Failure {
        match error {
            WorldError::Start(error) => error.into(),
            WorldError::Unfit(reason) => Failure::usage(reason),
            WorldError::Control(error) if !error.was_answered() => {
                Failure::not_running(error.authority(), error.reason())
            }
            WorldError::Control(error) => Failure::refused(&error.to_string()),
            other => Failure::other(other.to_string()),
        }
    }
}

impl From<RunError> for Failure {
    fn from(error: RunError) -> Failure {
        match error {
            RunError::World(error) => error.into(),
            other => Failure::other(other.to_string()),
        }
    }
}
