//! The command line of `peri fault`.

use emulator::clock::HumanDuration;
use emulator::faults::Delay;

use super::{ControlOptions, RequestFilter};

const EXAMPLES: &str = "\
Examples:
  peri fault status 429 --sub-status 3200 --operation read --share 0.3 --for 30s
  peri fault status 503 --region \"East US\" --container shop/carts --count 10
  peri fault delay 200ms --operation query           delay every query
  peri fault delay p50=20ms,p99=800ms                delay requests by a distribution
  peri fault delay 10s --answer --operation create   execute creates at once and delay their responses
  peri fault close after --operation create          execute creates and close the connection without a response
  peri fault stall --every-nth 100                   send half of a response, then nothing
  peri fault go-away                                 send GOAWAY; in HTTP/1.1 connection: close
  peri fault add rule.json                           add a rule from a file; - reads it from stdin
  peri fault list                                    list the rules and how many requests they affected
  peri fault rm storm                                remove one rule; clear removes all

A request is matched with the rules in the order in which they were added. Every rule that matches adds its delay; the
first one that sends a response or breaks the connection ends the matching. Responses that a rule made name it in the
header x-ms-perihelion-fault. For faults of whole regions see `peri region --help`.";

/// Inject faults: delay requests, respond with errors, break connections
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Fault {
    #[command(subcommand)]
    pub(crate) action: FaultAction,

    #[command(flatten)]
    pub(crate) control: ControlOptions,
}

#[derive(Debug, clap::Subcommand)]
pub(crate) enum FaultAction {
    /// List the rules, active and ended
    List,
    /// Respond with an error status; the operation is not executed
    Status {
        /// Status of the response, 400 to 599
        status: u16,
        /// Value of the header x-ms-substatus
        #[arg(long, value_name = "CODE")]
        sub_status: Option<u32>,
        /// Value of the header x-ms-retry-after-ms
        #[arg(long, value_name = "TIME")]
        retry_after: Option<HumanDuration>,
        /// Message of the error
        #[arg(long, value_name = "TEXT")]
        message: Option<String>,
        /// Delay before the response
        #[arg(long, value_name = "TIME")]
        delay: Option<Delay>,
        #[command(flatten)]
        filter: RequestFilter,
    },
    /// Delay requests or their responses
    Delay {
        /// Delay: 200ms, a range 10ms..50ms, or a distribution p50=20ms,p99=200ms
        delay: Delay,
        /// Delay the response instead of the request: the operation is executed at once
        #[arg(long = "answer")]
        delay_response: bool,
        #[command(flatten)]
        filter: RequestFilter,
    },
    /// Close the connection instead of responding
    Close {
        /// Before or after the operation is executed
        #[arg(value_enum)]
        when: CloseTime,
        /// Delay before the connection is closed
        #[arg(long, value_name = "TIME")]
        delay: Option<Delay>,
        #[command(flatten)]
        filter: RequestFilter,
    },
    /// Send half of the response, then nothing
    Stall {
        #[command(flatten)]
        filter: RequestFilter,
    },
    /// Respond, and accept no more requests on that connection
    GoAway {
        #[command(flatten)]
        filter: RequestFilter,
    },
    /// Add a rule from JSON
    Add {
        /// File with the rule; - reads standard input
        file: String,
    },
    /// Remove a rule by its id
    Rm {
        /// Id of the rule, as `peri fault list` shows it
        id: String,
    },
    /// Remove all rules and bring all regions up
    Clear,
    /// Set the seed of random choices: the same requests then get the same faults
    Seed {
        /// Seed of all random choices
        seed: u64,
    },
}

/// Whether a connection is closed before or after the operation is executed.
#[derive(Clone, Copy, Debug, clap::ValueEnum)]
pub(crate) enum CloseTime {
    /// The operation is not executed
    Before,
    /// The operation has been executed
    After,
}
