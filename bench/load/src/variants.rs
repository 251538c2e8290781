//! Perihelion against itself: what several regions, a data directory, request units and fault rules cost.
//!
//! The plain form and its variants run side by side and are asked in turn, as the peers are.

use std::path::PathBuf;
use std::thread;
use std::time::Duration;

use crate::clock;
use crate::figures::{median, median_ratio, milliseconds};
use crate::generator::{self, Stop, Target};
use crate::options::Budget;
use crate::request::Request;
use crate::server::{Kind, Programs, Server};
use crate::subject::{Subject, create_database, fill_container};
use crate::workload::{self, Row};

/// Connections that ask at once.
const CONNECTIONS: usize = 16;
/// Time for a server to let go of the container that was just deleted.
const CLEAN_UP: Duration = Duration::from_millis(150);
/// Request units that nobody here can spend: the cost of counting them is measured, not the waiting.
const PLENTY: &str = "1000000";
/// A rule that is looked at for every request and strikes none.
const IDLE_RULE: &str = r#"{"match":{"container":"nobody-asks"},"effect":{"status":503}}"#;
/// How long a directory of many items may take to open.
pub(crate) const OPEN_SECONDS_MAX: f64 = 5.0;

/// A way to run `peri up`.
struct Variant {
    name: &'static str,
    arguments: Vec<String>,
    /// Which of its regions is asked.
    region: usize,
    /// The least share of the plain form's rate that is good enough.
    bar: Option<f64>,
    /// A fault rule to set before anything is asked.
    rule: Option<&'static str>,
}

impl Variant {
    /// Asked where it writes, without a bar.
    fn new(name: &'static str, arguments: Vec<String>) -> Variant {
        Variant { name, arguments, region: 0, bar: None, rule: None }
    }
}

/// A variant beside the plain form.
#[derive(Clone, Debug)]
pub(crate) struct Comparison {
    pub(crate) row: Row,
    pub(crate) name: &'static str,
    pub(crate) plain_rate: f64,
    pub(crate) rate: f64,
    pub(crate) ratio: f64,
    pub(crate) bar: Option<f64>,
}

/// Opening a directory.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Opening {
    pub(crate) items: u64,
    pub(crate) seconds: f64,
}

/// A folder of its own, which goes with this value.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Folder {
        Folder(std::env::temp_dir().join(format!("perihelion-bench-{}-{name}", std::process::id())))
    }

    fn argument(&self) -> String {
        self.0.display().to_string()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Point reads and creates in one region and in three.
pub(crate) fn regions(
    programs: &Programs,
    budget: Budget,
    progress: &mut dyn FnMut(&str),
) -> Result<Vec<Comparison>, String> {
    let one = || arguments(&["--regions", "West US"]);
    let three = || arguments(&["--regions", "3"]);
    let variant = |name, region| Variant { region, bar: Some(0.9), ..Variant::new(name, three()) };
    let variants = [
        Variant::new("one region", one()),
        variant("three regions, where it writes", 0),
        variant("three regions, where it does not", 1),
    ];
    let mut found = compare(programs, Row::PointRead, &variants, budget, progress)?;
    let writing = [Variant::new("one region", one()), Variant::new("three regions", three())];
    found.extend(compare(programs, Row::Create, &writing, budget, progress)?);
    Ok(found)
}

/// Creates in memory and with a data directory.
pub(crate) fn durability(
    programs: &Programs,
    budget: Budget,
    progress: &mut dyn FnMut(&str),
) -> Result<Vec<Comparison>, String> {
    let folders = ["interval", "never", "always"].map(Folder::new);
    let kept = |at: usize, name, fsync: &str, bar| {
        let folder = folders[at].argument();
        Variant { bar, ..Variant::new(name, arguments(&["--data-dir", &folder, "--fsync", fsync])) }
    };
    let variants = [
        Variant::new("in memory", Vec::new()),
        kept(0, "--data-dir, --fsync interval", "interval", Some(0.5)),
        kept(1, "--data-dir, --fsync never", "never", None),
        kept(2, "--data-dir, --fsync always", "always", None),
    ];
    compare(programs, Row::Create, &variants, budget, progress)
}

/// Point reads and creates with request units stated only, counted, and enforced.
pub(crate) fn request_units(
    programs: &Programs,
    budget: Budget,
    progress: &mut dyn FnMut(&str),
) -> Result<Vec<Comparison>, String> {
    let mode = |name, mode| Variant::new(name, arguments(&["--partitions", "4", "--ru", mode]));
    let variants =
        [mode("--ru off", "off"), mode("--ru account", "account"), mode("--ru enforce", "enforce")];
    let mut found = compare(programs, Row::PointRead, &variants, budget, progress)?;
    found.extend(compare(programs, Row::Create, &variants, budget, progress)?);
    Ok(found)
}

/// Point reads without fault rules, and with one that is about something else.
pub(crate) fn faults(
    programs: &Programs,
    budget: Budget,
    progress: &mut dyn FnMut(&str),
) -> Result<Vec<Comparison>, String> {
    let idle =
        Variant { rule: Some(IDLE_RULE), ..Variant::new("a fault rule that strikes nobody", Vec::new()) };
    let variants = [Variant::new("no fault rule", Vec::new()), idle];
    compare(programs, Row::PointRead, &variants, budget, progress)
}

fn set_rule(server: &Server, rule: &str) -> Result<(), String> {
    let request = Request {
        verb: "POST",
        path: "/faults".to_owned(),
        kind: "",
        link: String::new(),
        headers: vec![("content-type", "application/json".to_owned())],
        body: rule.to_owned(),
    };
    server.control()?.send(&request)?.expect(&[200]).map(|_| ())
}

/// Fills a directory, kills the server, and times another one up to its first right answer.
pub(crate) fn opening(programs: &Programs, items: u64) -> Result<Opening, String> {
    let folder = Folder::new("opening");
    let options = arguments(&["--data-dir", &folder.argument()]);
    let server = programs.start_with(Kind::Perihelion, &options)?;
    create_database(&mut server.client()?)?;
    let container = fill_container(&server, "opening", items)?;
    // Killed: whatever a clean end would have put in order is still to be done.
    drop(server);
    let start = clock::now();
    let server = programs.start_with(Kind::Perihelion, &options)?;
    let item = crate::item::Item { number: items / 2, count: items };
    server.client()?.send(&container.point_read(item))?.expect(&[200])?;
    Ok(Opening { items, seconds: milliseconds(clock::now() - start) / 1e3 })
}

fn arguments(list: &[&str]) -> Vec<String> {
    list.iter().map(|argument| (*argument).to_owned()).collect()
}

/// The first variant is the plain form.
fn compare(
    programs: &Programs,
    row: Row,
    variants: &[Variant],
    budget: Budget,
    progress: &mut dyn FnMut(&str),
) -> Result<Vec<Comparison>, String> {
    let mut subjects = Vec::new();
    for variant in variants {
        progress(&format!("preparing {}", variant.name));
        let server = programs.start_with(Kind::Perihelion, &variant.arguments)?;
        let fixed = variant.arguments.iter().any(|argument| argument == "--partitions");
        let subject = if fixed { Subject::with_throughput(server, PLENTY)? } else { Subject::on(server)? };
        subject.check(row)?;
        if let Some(rule) = variant.rule {
            set_rule(&subject.server, rule)?;
        }
        subjects.push(subject);
    }
    // What was just written has to arrive in the other regions first.
    thread::sleep(CLEAN_UP);
    let mut rates: Vec<Vec<f64>> = vec![Vec::new(); variants.len()];
    let mut first_id = 0;
    for round in 0..=budget.variant_rounds {
        progress(&format!("{}: round {round} of {}", row.name(), budget.variant_rounds));
        for turn in 0..variants.len() {
            let at = (turn + round) % variants.len();
            first_id += 100_000_000;
            let rate = measure(&mut subjects[at], row, &variants[at], budget, first_id)?;
            if round > 0 {
                rates[at].push(rate);
            }
        }
    }
    let nothing = || format!("{}: nothing was measured", row.name());
    let compared = variants.iter().zip(&rates).skip(1).map(|(variant, found)| {
        Ok(Comparison {
            row,
            name: variant.name,
            plain_rate: median(&rates[0]).ok_or_else(nothing)?,
            rate: median(found).ok_or_else(nothing)?,
            ratio: median_ratio(found, &rates[0]).ok_or_else(nothing)?,
            bar: variant.bar,
        })
    });
    compared.collect()
}

fn measure(
    subject: &mut Subject,
    row: Row,
    variant: &Variant,
    budget: Budget,
    first_id: u64,
) -> Result<f64, String> {
    if row == Row::Create {
        subject.empty_creates()?;
        thread::sleep(CLEAN_UP);
    }
    let server = &subject.server;
    let account = server.account_in(variant.region)?;
    let (date, ordering) = (clock::date(), server.kind.ordering());
    let mut script = workload::script(row, &account, &date, subject.container(row), ordering, first_id);
    let stop = Stop::After { warm_up: budget.warm_up, window: budget.window };
    let target = Target { address: account.address, ..server.target() };
    let outcome = generator::run(target, CONNECTIONS, stop, script.as_mut())?;
    match outcome.first_error {
        None => Ok(outcome.rate()),
        Some(error) => Err(format!("{}: {error}", variant.name)),
    }
}
