//! `peri export`.

use std::path::PathBuf;

use super::{Account, ContainerPath};
use crate::fixtures::Format;

const EXAMPLES: &str = "\
Examples:
  peri export shop/items items.json                     every item, in a list
  peri export shop/items items.csv --columns id,price   as a table, with these columns
  peri export shop/items | grep blue                    one item per line on stdout
  peri export shop/items blue.ndjson --query \"SELECT * FROM c WHERE c.colour = 'blue' ORDER BY c.price\"

The file appears when it is complete, or not at all. CSV has the properties of the first 1,000 items as
its columns unless --columns names them.";

/// Write the items of a container to a JSON, NDJSON or CSV file
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Export {
    /// The container, like shop/items
    #[arg(value_name = "DATABASE/CONTAINER")]
    pub(crate) container: ContainerPath,

    /// The file, or - for stdout
    #[arg(default_value = "-")]
    pub(crate) file: PathBuf,

    /// The file's format, when its name does not say it; stdout gets NDJSON
    #[arg(long, value_enum)]
    pub(crate) format: Option<Format>,

    /// The columns of CSV, between commas
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    pub(crate) columns: Vec<String>,

    /// Which items, and in which order
    #[arg(long, value_name = "SQL", default_value = "SELECT * FROM c")]
    pub(crate) query: String,

    /// Keep what the account added: _rid, _self, _etag, _attachments, _ts
    #[arg(long)]
    pub(crate) system_properties: bool,

    #[command(flatten)]
    pub(crate) account: Account,
}
