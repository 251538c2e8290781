//! The command line of `peri import`.

use std::num::NonZeroUsize;
use std::path::PathBuf;

use super::{AccountOptions, ContainerPath};
use crate::fixtures::Format;

const EXAMPLES: &str = "\
Examples:
  peri import shop/items items.json                            import a JSON array of objects
  peri import shop/items items.csv --create --partition-key /category
  peri import shop/items - --format ndjson < items.ndjson      import from stdin
  peri import shop/items items.ndjson --on-error skip          continue after an invalid line
  peri import shop/items items.csv --delimiter ';'             columns are separated by semicolons
  peri import shop/items log.ndjson --generate-ids             items without an id get a random one

Items are upserted, so importing a file twice changes nothing, unless ids are generated. The account sets the system properties (_rid, _ts,
_etag and others) again. In CSV, a field is read as JSON if it is a number, true, false, null, an array or an object,
and as text otherwise; an empty field is no property. The exit code is 7 if some items were not imported.";

/// Import the items of a JSON, NDJSON or CSV file into a container
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Import {
    /// The container, like shop/items
    #[arg(value_name = "DATABASE/CONTAINER")]
    pub(crate) container: ContainerPath,

    /// File to read, or - for stdin
    pub(crate) file: PathBuf,

    /// Format of the file [default: from its extension]
    #[arg(long, value_enum)]
    pub(crate) format: Option<Format>,

    /// Character between the columns of CSV; \\t or tab for a tab [default: a comma]
    #[arg(long, value_name = "CHARACTER", value_parser = delimiter)]
    pub(crate) delimiter: Option<u8>,

    /// Give items without an id a random one
    #[arg(long)]
    pub(crate) generate_ids: bool,

    /// Create the database and the container if they do not exist
    #[arg(long, requires = "partition_key")]
    pub(crate) create: bool,

    /// Partition key of the new container: a path, or several separated by commas
    #[arg(long, value_name = "PATH", value_delimiter = ',', requires = "create")]
    pub(crate) partition_key: Vec<String>,

    /// What to do after an item that cannot be imported
    #[arg(long, value_enum, default_value = "stop")]
    pub(crate) on_error: OnError,

    /// Number of parallel requests, of up to 100 items each
    #[arg(long, default_value = "8", value_name = "N")]
    pub(crate) concurrency: NonZeroUsize,

    #[command(flatten)]
    pub(crate) account: AccountOptions,
}

/// What to do after an item that cannot be imported.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum OnError {
    /// Stop the import after it
    Stop,
    /// Report the item and continue
    Skip,
}

/// One character of ASCII that cannot be part of a quoted field or of a line end.
fn delimiter(text: &str) -> Result<u8, String> {
    match text {
        "tab" | "\\t" => Ok(b'\t'),
        _ => match text.as_bytes() {
            [b'"' | b'\n' | b'\r'] => Err("it cannot separate columns".to_owned()),
            [byte] if byte.is_ascii() => Ok(*byte),
            _ => Err("expected one character, or tab".to_owned()),
        },
    }
}
