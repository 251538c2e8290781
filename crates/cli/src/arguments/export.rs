//! The command line of `peri export`.

use std::path::PathBuf;

use super::{AccountOptions, ContainerPath};
use crate::fixtures::Format;

const EXAMPLES: &str = "\
Examples:
  peri export shop/items items.json                     write all items as a JSON array
  peri export shop/items items.csv --columns id,price   write these columns as CSV
  peri export shop/items | grep blue                    write one item per line to stdout
  peri export shop/items blue.ndjson --query \"SELECT * FROM c WHERE c.colour = 'blue' ORDER BY c.price\"

The file is created only when the export is complete. Without --columns, the columns of CSV are the properties of the
first 1,000 items.";

/// Write the items of a container to a JSON, NDJSON or CSV file
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Export {
    /// The container, like shop/items
    #[arg(value_name = "DATABASE/CONTAINER")]
    pub(crate) container: ContainerPath,

    /// File to write, or - for stdout
    #[arg(default_value = "-")]
    pub(crate) file: PathBuf,

    /// Format of the file [default: from its extension; NDJSON for stdout]
    #[arg(long, value_enum)]
    pub(crate) format: Option<Format>,

    /// Columns of CSV, separated by commas
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    pub(crate) columns: Vec<String>,

    /// Query that selects the items
    #[arg(long, value_name = "SQL", default_value = "SELECT * FROM c")]
    pub(crate) query: String,

    /// Include the system properties _rid, _self, _etag, _attachments and _ts
    #[arg(long)]
    pub(crate) system_properties: bool,

    #[command(flatten)]
    pub(crate) account: AccountOptions,
}
