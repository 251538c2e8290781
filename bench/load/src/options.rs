//! What the command line asks for.

use std::path::PathBuf;
use std::time::Duration;

use crate::server::Kind;
use crate::workload::Row;

/// One part of the comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Part {
    Startup,
    Memory,
    Throughput,
    Scaling,
    Lists,
    Regions,
    Snapshots,
    Durability,
    RequestUnits,
    Faults,
}

impl Part {
    const ALL: [Part; 10] = [
        Part::Startup,
        Part::Memory,
        Part::Throughput,
        Part::Scaling,
        Part::Lists,
        Part::Regions,
        Part::Snapshots,
        Part::Durability,
        Part::RequestUnits,
        Part::Faults,
    ];

    fn name(self) -> &'static str {
        match self {
            Part::Startup => "startup",
            Part::Memory => "memory",
            Part::Throughput => "throughput",
            Part::Scaling => "scaling",
            Part::Lists => "lists",
            Part::Regions => "regions",
            Part::Snapshots => "snapshots",
            Part::Durability => "durability",
            Part::RequestUnits => "ru",
            Part::Faults => "faults",
        }
    }
}

/// Everything a run needs to know.
#[derive(Clone, Debug)]
pub(crate) struct Options {
    pub(crate) quick: bool,
    pub(crate) servers: Vec<Kind>,
    pub(crate) parts: Vec<Part>,
    pub(crate) rows: Vec<Row>,
    pub(crate) connections: Vec<usize>,
    pub(crate) rounds: usize,
    /// The report as Markdown, for the README.
    pub(crate) markdown: Option<PathBuf>,
    /// Shows the servers' own messages.
    pub(crate) logs: bool,
    /// A missed bar fails the run.
    pub(crate) enforce: bool,
}

/// How long things are measured; `--quick` measures less of everything.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Budget {
    pub(crate) starts: usize,
    pub(crate) warm_up: Duration,
    pub(crate) window: Duration,
    /// No further round of throughputs is begun when it would end after this.
    pub(crate) throughput_max: Duration,
    pub(crate) idle: Duration,
    pub(crate) small: u64,
    pub(crate) large: u64,
    pub(crate) scaling_rounds: usize,
    pub(crate) variant_rounds: usize,
}

/// The text of `--help`.
pub(crate) const HELP: &str = "\
Measures Perihelion and its peers side by side and prints ratios.

  bench [--quick] [--rounds N] [--markdown FILE] [--enforce] [--logs]
        [--only perihelion,vercel,in-memory,canned]
        [--parts startup,memory,throughput,scaling,lists,regions,snapshots,durability,ru,faults]
        [--rows \"point read,create,…\"] [--connections 1,16,64]

PERI names the `peri` to measure; without it, the one of the repository is built.";

impl Options {
    /// Reads the arguments after the program's name. `Ok(None)` asks for help.
    pub(crate) fn parse(mut arguments: impl Iterator<Item = String>) -> Result<Option<Options>, String> {
        let mut options = Options {
            quick: false,
            servers: Kind::ALL.to_vec(),
            parts: Part::ALL.to_vec(),
            rows: Row::ALL.to_vec(),
            connections: vec![1, 16, 64],
            rounds: 0,
            markdown: None,
            logs: false,
            enforce: false,
        };
        while let Some(argument) = arguments.next() {
            let mut value = || arguments.next().ok_or_else(|| format!("{argument} needs a value"));
            match argument.as_str() {
                "--help" | "-h" => return Ok(None),
                "--quick" => options.quick = true,
                "--logs" => options.logs = true,
                "--enforce" => options.enforce = true,
                "--rounds" => options.rounds = parse_number(&value()?)?,
                "--markdown" => options.markdown = Some(value()?.into()),
                "--only" => options.servers = choose(&value()?, &Kind::ALL, Kind::name)?,
                "--parts" => options.parts = choose(&value()?, &Part::ALL, Part::name)?,
                "--rows" => options.rows = choose(&value()?, &Row::ALL, Row::name)?,
                "--connections" => {
                    options.connections = value()?.split(',').map(parse_number).collect::<Result<_, _>>()?;
                }
                other => return Err(format!("unknown option {other}; --help lists the known ones")),
            }
        }
        if options.rounds == 0 {
            options.rounds = if options.quick { 2 } else { 5 };
        }
        Ok(Some(options))
    }

    /// How much to measure.
    pub(crate) fn budget(&self) -> Budget {
        let milliseconds = Duration::from_millis;
        if self.quick {
            Budget {
                starts: 5,
                warm_up: milliseconds(80),
                window: milliseconds(250),
                throughput_max: milliseconds(50_000),
                idle: milliseconds(2_000),
                small: 10_000,
                large: 100_000,
                scaling_rounds: 3,
                variant_rounds: 5,
            }
        } else {
            Budget {
                starts: 15,
                warm_up: milliseconds(250),
                window: milliseconds(1_000),
                throughput_max: milliseconds(480_000),
                idle: milliseconds(5_000),
                small: 10_000,
                large: 1_000_000,
                scaling_rounds: 7,
                variant_rounds: 9,
            }
        }
    }
}

fn parse_number(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(number) if number > 0 => Ok(number),
        _ => Err(format!("{text} is not a number above zero")),
    }
}

/// The members of `all` whose names are in a comma list, in the order of `all`.
fn choose<T: Copy>(list: &str, all: &[T], name: fn(T) -> &'static str) -> Result<Vec<T>, String> {
    let wanted: Vec<&str> = list.split(',').map(str::trim).collect();
    for text in &wanted {
        if !all.iter().any(|one| name(*one).eq_ignore_ascii_case(text)) {
            let known: Vec<&str> = all.iter().map(|one| name(*one)).collect();
            return Err(format!("{text} is none of {}", known.join(", ")));
        }
    }
    let chosen = |one: &T| wanted.iter().any(|text| name(*one).eq_ignore_ascii_case(text));
    Ok(all.iter().copied().filter(chosen).collect())
}

#[cfg(test)]
mod tests {
    use super::{Options, Part};
    use crate::server::Kind;

    fn parse(text: &str) -> Result<Option<Options>, String> {
        Options::parse(text.split_whitespace().map(str::to_owned))
    }

    #[test]
    fn lists_choose_by_name_in_the_order_of_the_table() {
        let options = parse("--only vercel,PERIHELION --parts memory --connections 2,4");
        let options = options.expect("valid options").expect("not a call for help");
        assert_eq!(options.servers, [Kind::Perihelion, Kind::Vercel]);
        assert_eq!(options.parts, [Part::Memory]);
        assert_eq!(options.connections, [2, 4]);
    }

    #[test]
    fn what_is_unknown_is_named() {
        for (text, named) in [("--fast", "--fast"), ("--only mongo", "mongo"), ("--rounds 0", "0")] {
            assert!(parse(text).expect_err(text).contains(named), "{text}");
        }
    }
}
