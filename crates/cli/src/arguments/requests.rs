//! The command line of `peri requests`.

use super::ControlOptions;

const EXAMPLES: &str = "\
Examples:
  peri requests                                show the last twenty requests
  peri requests --follow                       also show new requests, until Ctrl+C
  peri requests --status 4xx --limit 100       show requests that failed with a 4xx status
  peri requests --region \"East US\" --container shop/items
  peri requests --follow --json                print one line of JSON for each request

`peri up --keep-requests N` sets the size of the request log.";

/// Show the request log: region, operation, status, charge and duration of the last requests
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Requests {
    /// Also show new requests, until Ctrl+C or until the reader of the output ends
    #[arg(long, short)]
    pub(crate) follow: bool,

    /// Largest number of requests
    #[arg(long, value_name = "N", default_value_t = 20)]
    pub(crate) limit: usize,

    /// Only in this region
    #[arg(long, value_name = "NAME")]
    pub(crate) region: Option<String>,

    /// Only with this status (404) or status class (4xx)
    #[arg(long, value_name = "STATUS")]
    pub(crate) status: Option<String>,

    /// Only for this container: its name or DATABASE/CONTAINER
    #[arg(long, value_name = "CONTAINER")]
    pub(crate) container: Option<String>,

    /// Only this operation, as the output names it: read_item, query_items
    #[arg(long, value_name = "OPERATION")]
    pub(crate) operation: Option<String>,

    #[command(flatten)]
    pub(crate) control: ControlOptions,
}
