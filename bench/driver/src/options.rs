//! What the command line asks for.

use std::path::PathBuf;
use std::time::Duration;

use crate::load::Work;
use crate::subject::{Kind, Wire};

/// The text of `--help`.
pub const HELP: &str = "\
Measures the driver beside the published one and a bare hyper loop, against one peri, and prints ratios.

  driver-bench [--quick] [--rounds N] [--slot MILLISECONDS] [--in-flight 1,16,64,256]
               [--only http1,http2] [--work read,create] [--parts points,distance,memory,telemetry,ordered,hedging]
               [--apart] [--markdown FILE] [--enforce] [--profile perihelion|published|bare]

--apart gives the server one core and the client another, so that neither waits for the other's work to be done;
without it they share all there are, and what the server needs is part of every operation (needs taskset).

PERI=/path/to/peri measures against a build of your own; without it, the repository's is built in release mode.

Examples:
  driver-bench --quick                                  # about three minutes
  driver-bench --parts points --only http2 --in-flight 64 --work read   # one cell
  driver-bench --markdown table.md                      # the table of the project's README
  perf record -g driver-bench --profile perihelion --only http2 --in-flight 16 --work read   # one of them alone";

/// One part of the comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// Reads and creates.
    Points,
    /// A server that takes 50 ms.
    Distance,
    /// No network.
    Memory,
    /// Telemetry that nobody listens to.
    Telemetry,
    /// An ordered query over all partitions.
    Ordered,
    /// One slow region.
    Hedging,
}

impl Part {
    /// All of them.
    pub const ALL: [Part; 6] =
        [Part::Points, Part::Distance, Part::Memory, Part::Telemetry, Part::Ordered, Part::Hedging];

    /// Whether it is measured against a server.
    pub fn needs_server(self) -> bool {
        !matches!(self, Part::Memory | Part::Telemetry)
    }
}

/// Everything a run needs to know.
#[derive(Clone, Debug)]
pub struct Options {
    /// How often each cell is measured, for each subject.
    pub rounds: usize,
    /// For how long, each time.
    pub slot: Duration,
    /// Fewer of everything that is counted rather than timed.
    pub quick: bool,
    /// How many operations are in flight.
    pub in_flight: Vec<usize>,
    /// How they are sent.
    pub wires: Vec<Wire>,
    /// What they are.
    pub works: Vec<Work>,
    /// What is measured.
    pub parts: Vec<Part>,
    /// Where to write the tables.
    pub markdown: Option<PathBuf>,
    /// A missed bar fails the run.
    pub enforce: bool,
    /// Server and client have a core each.
    pub apart: bool,
    /// One subject alone, for a profiler to look at.
    pub profile: Option<Kind>,
}

impl Options {
    /// Reads the arguments after the program's name. `Ok(None)` asks for help.
    pub fn parse(mut arguments: impl Iterator<Item = String>) -> Result<Option<Options>, String> {
        let mut options = Options {
            rounds: 20,
            slot: Duration::from_millis(250),
            quick: false,
            in_flight: vec![1, 16, 64, 256],
            wires: Wire::ALL.to_vec(),
            works: vec![Work::Read, Work::Create],
            parts: Part::ALL.to_vec(),
            markdown: None,
            enforce: false,
            apart: false,
            profile: None,
        };
        while let Some(argument) = arguments.next() {
            let mut value = || arguments.next().ok_or_else(|| format!("{argument} needs a value"));
            match argument.as_str() {
                "--quick" => {
                    (options.rounds, options.slot, options.quick) = (6, Duration::from_millis(150), true);
                }
                "--rounds" => options.rounds = number(&value()?)?.max(1),
                "--slot" => options.slot = Duration::from_millis(number(&value()?)? as u64),
                "--in-flight" => options.in_flight = list(&value()?, number)?,
                "--only" => options.wires = list(&value()?, wire)?,
                "--work" => options.works = list(&value()?, work)?,
                "--parts" => options.parts = list(&value()?, part)?,
                "--markdown" => options.markdown = Some(value()?.into()),
                "--enforce" => options.enforce = true,
                "--apart" => options.apart = true,
                "--profile" => options.profile = Some(kind(&value()?)?),
                "--help" | "-h" => return Ok(None),
                _ => return Err(format!("{argument} is not understood: see --help")),
            }
        }
        Ok(Some(options))
    }
}

fn list<T>(text: &str, one: fn(&str) -> Result<T, String>) -> Result<Vec<T>, String> {
    text.split(',').map(one).collect()
}

fn number(text: &str) -> Result<usize, String> {
    text.parse().map_err(|_| format!("'{text}' is not a number"))
}

fn kind(text: &str) -> Result<Kind, String> {
    match text {
        "perihelion" => Ok(Kind::Perihelion),
        "published" => Ok(Kind::Published),
        "bare" => Ok(Kind::Bare),
        _ => Err(format!("'{text}' is not one of perihelion, published, bare")),
    }
}

fn wire(text: &str) -> Result<Wire, String> {
    match text {
        "http1" => Ok(Wire::Http1),
        "http2" => Ok(Wire::Http2),
        _ => Err(format!("'{text}' is not one of http1, http2")),
    }
}

fn work(text: &str) -> Result<Work, String> {
    match text {
        "read" => Ok(Work::Read),
        "create" => Ok(Work::Create),
        _ => Err(format!("'{text}' is not one of read, create")),
    }
}

fn part(text: &str) -> Result<Part, String> {
    match text {
        "points" => Ok(Part::Points),
        "distance" => Ok(Part::Distance),
        "memory" => Ok(Part::Memory),
        "telemetry" => Ok(Part::Telemetry),
        "ordered" => Ok(Part::Ordered),
        "hedging" => Ok(Part::Hedging),
        _ => Err(format!("'{text}' is not one of points, distance, memory, telemetry, ordered, hedging")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(line: &str) -> Result<Option<Options>, String> {
        Options::parse(line.split_whitespace().map(str::to_owned))
    }

    #[test]
    fn lists_are_read_and_nonsense_is_named() {
        let options = parse("--quick --in-flight 16,64 --only http2 --parts memory,telemetry,ordered")
            .expect("it is fine");
        let options = options.expect("it is no call for help");
        assert_eq!((options.in_flight, options.wires), (vec![16, 64], vec![Wire::Http2]));
        assert_eq!(options.parts, [Part::Memory, Part::Telemetry, Part::Ordered]);
        assert!(Part::Ordered.needs_server() && !Part::Telemetry.needs_server());
        assert!(parse("--parts memory,disk").is_err_and(|error| error.contains("disk")));
        assert!(parse("--rounds").is_err());
        assert!(parse("--help").is_ok_and(|options| options.is_none()));
    }
}
