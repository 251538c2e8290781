//! `peri import`.

use std::num::NonZeroUsize;
use std::path::PathBuf;

use super::{Account, ContainerPath};
use crate::fixtures::Format;

const EXAMPLES: &str = "\
Examples:
  peri import shop/items items.json                            a list of objects
  peri import shop/items items.csv --create --partition-key /category
  peri import shop/items - --format ndjson < items.ndjson      from another program
  peri import shop/items items.ndjson --on-error skip          go on after a bad line

Items are upserted: importing a file twice changes nothing. What an account adds to items (_rid, _ts,
_etag and so on) is made anew. In CSV, text stands for itself, and numbers, true, false, null, lists and
objects are JSON; an empty field is no property. Exits with 7 if some items were not imported.";

/// Put the items of a JSON, NDJSON or CSV file into a container
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Import {
    /// The container, like shop/items
    #[arg(value_name = "DATABASE/CONTAINER")]
    pub(crate) container: ContainerPath,

    /// The file, or - for stdin
    pub(crate) file: PathBuf,

    /// The file's format, when its name does not say it
    #[arg(long, value_enum)]
    pub(crate) format: Option<Format>,

    /// Make the database and the container if they are not there
    #[arg(long, requires = "partition_key")]
    pub(crate) create: bool,

    /// The new container's partition key: a path, or several between commas
    #[arg(long, value_name = "PATH", value_delimiter = ',', requires = "create")]
    pub(crate) partition_key: Vec<String>,

    /// What to do about an item that cannot be imported
    #[arg(long, value_enum, default_value = "stop")]
    pub(crate) on_error: OnError,

    /// How many requests are on their way at a time, of up to 100 items each
    #[arg(long, default_value = "8", value_name = "N")]
    pub(crate) concurrency: NonZeroUsize,

    #[command(flatten)]
    pub(crate) account: Account,
}

/// What to do about an item that cannot be imported.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum OnError {
    /// Read no further
    Stop,
    /// Say so and go on
    Skip,
}
