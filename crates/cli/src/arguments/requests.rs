//! `peri requests`.

use super::Control;

const EXAMPLES: &str = "\
Examples:
  peri requests                                the last twenty
  peri requests --follow                       and those to come, until Ctrl+C
  peri requests --status 4xx --limit 100       what was refused
  peri requests --region \"East US\" --container shop/items
  peri requests --follow --json                one line of JSON for each

`peri up --keep-requests N` says how many are kept.";

/// Show the last requests: where, what, how long, and what they cost
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Requests {
    /// Go on with those to come, until Ctrl+C
    #[arg(long, short)]
    pub(crate) follow: bool,

    /// How many at the most
    #[arg(long, value_name = "N", default_value_t = 20)]
    pub(crate) limit: usize,

    /// Only in this region
    #[arg(long, value_name = "NAME")]
    pub(crate) region: Option<String>,

    /// Only with this status, 404, or of this class, 4xx
    #[arg(long, value_name = "STATUS")]
    pub(crate) status: Option<String>,

    /// Only about this container, by its name or DATABASE/CONTAINER
    #[arg(long, value_name = "CONTAINER")]
    pub(crate) container: Option<String>,

    /// Only this operation, as the list calls it: read_item, query_items
    #[arg(long, value_name = "OPERATION")]
    pub(crate) operation: Option<String>,

    #[command(flatten)]
    pub(crate) control: Control,
}
