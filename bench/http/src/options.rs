//! The options of the command line.

use std::path::PathBuf;
use std::time::Duration;

use crate::subject::{Kind, Protocol};

/// The text of `--help`.
pub const HELP: &str = "\
Measures the HTTP client beside reqwest and hyper-util's, over loopback, and prints ratios.

  http-bench [--quick] [--rounds N] [--slot MILLISECONDS] [--in-flight 1,16,64,256]
             [--only http1,http2,plain] [--markdown FILE] [--enforce]
             [--profile perihelion|reqwest|hyper-util]

Examples:
  http-bench --quick                     # about a minute
  http-bench --only http2 --in-flight 64 # one cell
  http-bench --markdown table.md         # the table of the crate's README
  perf record -g http-bench --profile perihelion --only http1 --in-flight 1   # one client alone";

/// The options of one run.
#[derive(Clone, Debug)]
pub struct Options {
    /// How often each cell is measured, for each client.
    pub rounds: usize,
    /// How long each measurement takes.
    pub slot: Duration,
    /// The numbers of requests in flight to measure.
    pub in_flight: Vec<usize>,
    /// The protocols to measure.
    pub protocols: Vec<Protocol>,
    /// The file to write the tables to.
    pub markdown: Option<PathBuf>,
    /// Whether a missed limit fails the run.
    pub enforce: bool,
    /// The client to run alone, for a profiler.
    pub profile: Option<Kind>,
}

impl Options {
    /// Parses the arguments after the program's name. Returns `Ok(None)` for `--help`.
    pub fn parse(mut arguments: impl Iterator<Item = String>) -> Result<Option<Options>, String> {
        let mut options = Options {
            rounds: 60,
            slot: Duration::from_millis(150),
            in_flight: vec![1, 16, 64, 256],
            protocols: Protocol::ALL.to_vec(),
            markdown: None,
            enforce: false,
            profile: None,
        };
        while let Some(argument) = arguments.next() {
            let mut value = || arguments.next().ok_or_else(|| format!("{argument} needs a value"));
            match argument.as_str() {
                "--quick" => (options.rounds, options.slot) = (15, Duration::from_millis(100)),
                "--rounds" => options.rounds = number(&value()?)?.max(1),
                "--slot" => options.slot = Duration::from_millis(number(&value()?)? as u64),
                "--in-flight" => {
                    options.in_flight = value()?.split(',').map(number).collect::<Result<_, _>>()?
                }
                "--only" => {
                    options.protocols = value()?.split(',').map(protocol).collect::<Result<_, _>>()?
                }
                "--markdown" => options.markdown = Some(value()?.into()),
                "--enforce" => options.enforce = true,
                "--profile" => options.profile = Some(kind(&value()?)?),
                "--help" | "-h" => return Ok(None),
                _ => return Err(format!("{argument} is not understood: see --help")),
            }
        }
        Ok(Some(options))
    }
}

fn number(text: &str) -> Result<usize, String> {
    text.parse().map_err(|_| format!("'{text}' is not a number"))
}

fn kind(text: &str) -> Result<Kind, String> {
    match text {
        "perihelion" => Ok(Kind::Perihelion),
        "reqwest" => Ok(Kind::Reqwest),
        "hyper-util" => Ok(Kind::HyperUtil),
        _ => Err(format!("'{text}' is not one of perihelion, reqwest, hyper-util")),
    }
}

fn protocol(text: &str) -> Result<Protocol, String> {
    match text {
        "http1" => Ok(Protocol::Http1),
        "http2" => Ok(Protocol::Http2),
        "plain" => Ok(Protocol::Plain),
        _ => Err(format!("'{text}' is not one of http1, http2, plain")),
    }
}
