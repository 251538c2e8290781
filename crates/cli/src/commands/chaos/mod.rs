//! `peri chaos`: runs scenarios, shows their reports, and fails if a guarantee was violated.

mod text;

use std::path::Path;
use std::time::Duration;

use chaos::scenario::Variant;
use chaos::schedule::RunOptions;
use chaos::{Progress, Report, RunError, Scenario, Schedule, TargetAccount, TargetError, built_in};
use control_client::ControlClient;
use indicatif::{ProgressBar, ProgressStyle};

use crate::arguments::{Chaos, Switch};
use crate::control;
use crate::exit::CommandError;
use crate::output;
use crate::shutdown::Signals;

/// The longest scenario file.
const FILE_BYTES_MAX: u64 = 1024 * 1024;

/// How long the cleanup after an interrupted run may take.
const CLEAN_UP_MAX: Duration = Duration::from_secs(15);

/// Runs the scenarios of the command line.
pub(crate) fn run(chaos: &Chaos) -> Result<(), CommandError> {
    if chaos.list {
        output::data(&text::list(&built_in::all()));
        return Ok(());
    }
    let typed: Vec<&str> = match &chaos.scenarios[..] {
        [] => built_in::names().collect(),
        names => names.iter().map(String::as_str).collect(),
    };
    let options = RunOptions { time_scale: chaos.scale, duration: chaos.duration.map(|span| span.0) };
    let runtime = super::runtime()?;
    // An account that runs already has one kind of write regions; runs for the other kind are skipped.
    let only = match chaos.attach {
        true => Some(runtime.block_on(TargetAccount::write_regions_of(&control_client(chaos)?))?),
        false => None,
    };
    let mut schedules = Vec::new();
    for typed in typed {
        let mut scenario = scenario(typed)?;
        scenario.writes.retain(|writes| only.is_none_or(|only| only == *writes));
        // What the command line chooses takes the place of the choices of the scenario.
        if let Some(hedging) = chaos.hedging {
            scenario.hedging = vec![hedging == Switch::On];
        }
        if let Some(deadline) = chaos.deadline {
            scenario.deadlines = vec![deadline.0];
        }
        let schedule = |variant: Variant| (typed, Schedule::new(&scenario, variant, chaos.seed, options));
        schedules.extend(scenario.variants().into_iter().map(schedule));
    }
    if chaos.show {
        for (_, schedule) in &schedules {
            output::data(&text::schedule(schedule));
        }
        return Ok(());
    }
    if schedules.is_empty() {
        let message = "the scenario does not support the write regions of this account";
        return Err(CommandError::usage(message.to_owned())
            .hint("compare 'writes' in the scenario with --multi-write of `peri up`"));
    }
    // Before anything is created, so that an interruption always cleans up.
    let mut signals = {
        let _within = runtime.enter();
        Signals::listen()
            .map_err(|error| CommandError::other(format!("cannot listen for signals: {error}")))?
    };
    let mut violated = Vec::new();
    for (number, (typed, schedule)) in schedules.iter().enumerate() {
        let report =
            runtime.block_on(execute(chaos, schedule, (number + 1, schedules.len()), &mut signals))?;
        if chaos.json {
            let line = serde_json::to_string(&report);
            output::json_text(&line.map_err(|error| CommandError::other(format!("no JSON: {error}")))?);
        } else {
            output::data(&text::report(&report));
        }
        if !report.all_hold() {
            violated.push(*typed);
        }
    }
    if violated.is_empty() {
        output::message(&format!("{} runs, all guarantees held", schedules.len()));
        return Ok(());
    }
    violated.dedup();
    let hint = format!("repeat it with: peri chaos {}{}", violated.join(" "), options_to_repeat(chaos));
    let message = format!("a guarantee was violated in {}", violated.join(", "));
    Err(CommandError::guarantee_violated(message).hint(&hint))
}

/// The options that decide what a run does, as they are typed.
fn options_to_repeat(chaos: &Chaos) -> String {
    let mut options = format!(" --seed {}", chaos.seed);
    if let Some(duration) = chaos.duration {
        options.push_str(&format!(" --for '{duration}'"));
    }
    if chaos.scale != RunOptions::default().time_scale {
        options.push_str(&format!(" --scale {}", chaos.scale));
    }
    match chaos.hedging {
        Some(Switch::On) => options.push_str(" --hedging on"),
        Some(Switch::Off) => options.push_str(" --hedging off"),
        None => {}
    }
    if let Some(deadline) = chaos.deadline {
        options.push_str(&format!(" --deadline '{deadline}'"));
    }
    options
}

/// A built-in scenario, or the scenario of a file.
fn scenario(name: &str) -> Result<Scenario, CommandError> {
    if let Some(scenario) = built_in::find(name) {
        return Ok(scenario);
    }
    let path = Path::new(name);
    if !path.is_file() {
        let known: Vec<String> = built_in::all().into_iter().map(|scenario| scenario.name).collect();
        return Err(CommandError::usage(format!("there is no scenario and no file '{name}'"))
            .hint(&format!("the built-in scenarios are {}", known.join(", "))));
    }
    let unreadable =
        |reason: String| CommandError::usage(format!("the scenario '{name}' is invalid: {reason}"));
    match std::fs::metadata(path) {
        Ok(about) if about.len() > FILE_BYTES_MAX => return Err(unreadable("it is too long".to_owned())),
        _ => {}
    }
    let text = std::fs::read_to_string(path).map_err(|error| unreadable(error.to_string()))?;
    let stem = path.file_stem().unwrap_or_default().to_string_lossy();
    Scenario::read(&stem, &text).map_err(|error| unreadable(error.to_string()))
}

/// A client of the control port of the account that runs already.
fn control_client(chaos: &Chaos) -> Result<ControlClient, CommandError> {
    control::client(&chaos.control, chaos.control_token.as_deref())
}

/// Executes one schedule; `position` is its number and the number of all.
async fn execute(
    chaos: &Chaos,
    schedule: &Schedule,
    position: (usize, usize),
    signals: &mut Signals,
) -> Result<Report, CommandError> {
    let account = if chaos.attach {
        let connection = chaos.account.connection_string();
        TargetAccount::attach(&connection, control_client(chaos)?, schedule).await?
    } else {
        TargetAccount::start(schedule).await?
    };
    let mut line = ProgressLine::new(schedule, position);
    let mut show = |progress: &Progress| line.show(progress);
    let report = tokio::select! {
        report = chaos::run(&account, schedule, &mut show) => Some(report),
        () = signals.stop_requested() => None,
    };
    drop(line);
    match report {
        Some(Ok(report)) => {
            account.clean_up().await?;
            Ok(report)
        }
        Some(Err(error)) => {
            clean_up(account, schedule).await;
            Err(error.into())
        }
        None => {
            output::message("stopping; another signal exits at once");
            if let Ok(next) = Signals::listen() {
                next.exit_on_next();
            }
            clean_up(account, schedule).await;
            Err(CommandError::interrupted(
                "the run was interrupted, so its guarantees were not checked".to_owned(),
            ))
        }
    }
}

/// Ends the faults and deletes the database of a run that did not finish, and reports whether that worked.
async fn clean_up(account: TargetAccount, schedule: &Schedule) {
    let database = account.database().to_owned();
    let problem = match tokio::time::timeout(CLEAN_UP_MAX, account.abort(schedule)).await {
        Ok(Ok(())) => {
            output::message(&format!("its faults were ended and its database {database} was deleted"));
            return;
        }
        Ok(Err(error)) => error.to_string(),
        Err(_) => format!("not done after {CLEAN_UP_MAX:?}"),
    };
    output::message(&format!(
        "the cleanup failed ({problem}): remove its rules with `peri fault`, and delete the database {database}"
    ));
}

/// The progress of a run: a line that changes on a terminal, otherwise one line at the beginning.
struct ProgressLine {
    bar: ProgressBar,
}

impl ProgressLine {
    fn new(schedule: &Schedule, (number, of): (usize, usize)) -> ProgressLine {
        let title = title(&schedule.name, &schedule.variant.to_string());
        let bar = ProgressBar::new(u64::try_from(schedule.end.as_millis()).unwrap_or(u64::MAX));
        let style = ProgressStyle::with_template("{prefix} {bar:20} {msg}").expect("the form is well-formed");
        bar.set_style(style);
        bar.set_prefix(format!("{number}/{of} {title}"));
        if bar.is_hidden() {
            output::message(&format!("{number}/{of} {title}, {} seconds", schedule.end.as_secs_f64().ceil()));
        }
        ProgressLine { bar }
    }

    fn show(&mut self, progress: &Progress) {
        let Progress { elapsed, done, failed, faults, .. } = progress;
        self.bar.set_position(u64::try_from(elapsed.as_millis()).unwrap_or(u64::MAX));
        let active = if faults.is_empty() { "no fault".to_owned() } else { faults.join(", ") };
        let active = output::printable(&active);
        self.bar.set_message(format!("{done} operations, {failed} failed; {active}"));
    }
}

impl Drop for ProgressLine {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}

/// The title of a run: `region-down, one region writes`.
fn title(name: &str, variant: &str) -> String {
    output::printable(&format!("{name}, {variant}")).into_owned()
}

impl From<TargetError> for CommandError {
    fn from(error: TargetError) -> CommandError {
        match error {
            TargetError::Start(error) => error.into(),
            TargetError::Mismatch(reason) => CommandError::usage(reason),
            TargetError::Control(error) => error.into(),
            other => CommandError::other(other.to_string()),
        }
    }
}

impl From<RunError> for CommandError {
    fn from(error: RunError) -> CommandError {
        match error {
            RunError::Target(error) => error.into(),
            RunError::Control(error) => error.into(),
            other => CommandError::other(other.to_string()),
        }
    }
}
