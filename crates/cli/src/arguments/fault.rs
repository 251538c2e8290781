//! `peri fault`.

use emulator::clock::HumanDuration;
use emulator::faults::Delay;

use super::{Control, Struck};

const EXAMPLES: &str = "\
Examples:
  peri fault status 429 --sub-status 3200 --operation read --share 0.3 --for 30s
  peri fault status 503 --region \"East US\" --container shop/carts --count 10
  peri fault delay 200ms --operation query           every query waits
  peri fault delay p50=20ms,p99=800ms                latencies as they are on a bad day
  peri fault delay 10s --answer --operation create   written, but the answer is late
  peri fault close after --operation create          written, but the client never hears of it
  peri fault stall --every-nth 100                   half an answer, and then silence
  peri fault go-away                                 GOAWAY; in HTTP/1.1 connection: close
  peri fault add rule.json                           a whole rule; - reads it from stdin
  peri fault list                                    what is in force, and what it struck
  peri fault rm storm                                or clear, for all of them

A request walks the rules in the order in which they were added. Every rule that strikes adds its
delay; the first that answers or breaks the connection ends the walk. Answers made by a rule name it
in the header x-ms-perihelion-fault. Whole regions: see `peri region --help`.";

/// Make requests fail on purpose: wait, answer, break connections
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Fault {
    #[command(subcommand)]
    pub(crate) action: FaultAction,

    #[command(flatten)]
    pub(crate) control: Control,
}

#[derive(Debug, clap::Subcommand)]
pub(crate) enum FaultAction {
    /// Show the rules in force and those that ended
    List,
    /// Answer with a status; the operation is not carried out
    Status {
        /// The status, 400 to 599
        status: u16,
        /// Its x-ms-substatus
        #[arg(long, value_name = "CODE")]
        sub_status: Option<u32>,
        /// Its x-ms-retry-after-ms
        #[arg(long, value_name = "TIME")]
        retry_after: Option<HumanDuration>,
        /// What the error says
        #[arg(long, value_name = "TEXT")]
        message: Option<String>,
        /// Wait first
        #[arg(long, value_name = "TIME")]
        delay: Option<Delay>,
        #[command(flatten)]
        struck: Struck,
    },
    /// Make requests wait
    Delay {
        /// How long: 200ms, a range 10ms..50ms, or a distribution p50=20ms,p99=200ms
        delay: Delay,
        /// Hold up the answer instead of the request: the operation is carried out at once
        #[arg(long)]
        answer: bool,
        #[command(flatten)]
        struck: Struck,
    },
    /// Close the connection instead of answering
    Close {
        /// Before or after the operation is carried out
        #[arg(value_enum)]
        when: When,
        /// Wait first
        #[arg(long, value_name = "TIME")]
        delay: Option<Delay>,
        #[command(flatten)]
        struck: Struck,
    },
    /// Send half of the answer, and then nothing
    Stall {
        #[command(flatten)]
        struck: Struck,
    },
    /// Answer, and take no more requests on that connection
    GoAway {
        #[command(flatten)]
        struck: Struck,
    },
    /// Add a rule written as JSON
    Add {
        /// The file; - reads standard input
        file: String,
    },
    /// Remove a rule
    Rm {
        /// Its id, as `peri fault list` shows it
        id: String,
    },
    /// Remove every rule, and bring every region up
    Clear,
    /// Start chance anew: the same requests meet the same faults
    Seed {
        /// Where it starts from
        seed: u64,
    },
}

/// Before or after the operation is carried out.
#[derive(Clone, Copy, Debug, clap::ValueEnum)]
pub(crate) enum When {
    /// The operation is not carried out
    Before,
    /// The operation has been carried out
    After,
}
