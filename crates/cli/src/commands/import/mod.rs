//! `peri import`: a thread reads the file, the client's bulk sends the items, and a loop counts the results.

mod operations;

use std::fs::File;
use std::io::{BufReader, Read};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use futures::StreamExt as _;
use perihelion::{
    BulkOptions, ContainerClient, ContainerProperties, CosmosClient, Error, ErrorKind, PartitionKeyDefinition,
};
use tokio::sync::{mpsc, oneshot};

use crate::account;
use crate::arguments::{Import, OnError};
use crate::exit::CommandError;
use crate::fixtures::{Format, Reader, with_id};
use crate::output::{self, Progress};
use operations::{ImportEntry, LineNumbers, OperationStream};

/// How many items are read ahead.
const READ_AHEAD: usize = 256;
/// How long an item waits for others of its partition before its request is sent.
const LINGER: Duration = Duration::from_millis(50);
const FILE_BUFFER_BYTES: usize = 256 * 1024;

/// Imports every item of the file.
pub(crate) fn run(import: &Import) -> Result<(), CommandError> {
    let format = format_of(import)?;
    let client = account::client(&import.account.connection_string())?;
    let container = account::container(&client, &import.container);
    let source = Source::open(&import.file)?;
    let runtime = super::runtime()?;
    let outcome = runtime.block_on(async {
        let key = container_key(&client, &container, import).await?;
        send_all(import, source, format, &container, key).await
    });
    // The thread that reads may still wait for stdin.
    runtime.shutdown_background();
    let Outcome { imported, failed, unread } = outcome?;
    output::message(&format!("imported {} into {}", output::items(imported), import.container));
    match failed {
        0 => Ok(()),
        failed => {
            let rest = if unread { "; the rest of the file was not read" } else { "" };
            let error = CommandError::partial(format!("not imported: {}{rest}", output::items(failed)));
            Err(match import.on_error {
                OnError::Stop => {
                    error.hint("--on-error skip continues after an item that cannot be imported")
                }
                OnError::Skip => error,
            })
        }
    }
}

fn format_of(import: &Import) -> Result<Format, CommandError> {
    let format = import.format.or_else(|| Format::of(&import.file)).ok_or_else(|| {
        CommandError::usage(format!("'{}' has no known extension", import.file.display()))
            .hint("set the format with --format json, ndjson or csv")
    })?;
    match (format, import.delimiter) {
        (Format::Json | Format::Ndjson, Some(_)) => {
            Err(CommandError::usage("--delimiter is for CSV, and this file is not CSV".to_owned()))
        }
        _ => Ok(format),
    }
}

/// The partition key of the container, which is created first with `--create`.
async fn container_key(
    client: &CosmosClient,
    container: &ContainerClient,
    import: &Import,
) -> Result<PartitionKeyDefinition, CommandError> {
    if import.create {
        let paths: Vec<&str> = import.partition_key.iter().map(String::as_str).collect();
        let key = match paths.as_slice() {
            [path] => PartitionKeyDefinition::hash(path),
            several => PartitionKeyDefinition::multi_hash(several),
        };
        let key = key.map_err(|error| CommandError::usage(format!("--partition-key: {error}")))?;
        ignore_conflict(client.create_database(&import.container.database).await)?;
        let properties = ContainerProperties::new(&import.container.container, key);
        let database = client.database(&import.container.database);
        ignore_conflict(database.create_container(&properties).await)?;
    }
    let properties = account::properties(container).await?.ok_or_else(|| {
        CommandError::rejected(&format!("there is no container {}", import.container))
            .hint("--create --partition-key /path creates it")
    })?;
    Ok(properties.partition_key)
}

/// Treats a resource that exists already as created.
fn ignore_conflict<T>(created: perihelion::Result<T>) -> Result<(), CommandError> {
    match created {
        Err(error) if error.kind() != ErrorKind::Conflict => Err(account::command_error(&error)),
        _ => Ok(()),
    }
}

/// The file or stdin, with the number of bytes that were read.
struct Source {
    input: Box<dyn Read + Send>,
    name: String,
    length: Option<u64>,
    read: Arc<AtomicU64>,
}

impl Source {
    fn open(path: &Path) -> Result<Source, CommandError> {
        let read = Arc::new(AtomicU64::new(0));
        if path == Path::new("-") {
            return Ok(Source {
                input: Box::new(std::io::stdin()),
                name: "stdin".to_owned(),
                length: None,
                read,
            });
        }
        let name = path.display().to_string();
        let cannot = |error: std::io::Error| CommandError::other(format!("{name} cannot be read: {error}"));
        let file = File::open(path).map_err(cannot)?;
        let metadata = file.metadata().map_err(cannot)?;
        if metadata.is_dir() {
            return Err(CommandError::usage(format!("{name} is a directory")));
        }
        let length = metadata.is_file().then_some(metadata.len());
        Ok(Source { input: Box::new(file), name, length, read })
    }
}

impl Read for Source {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let count = self.input.read(buffer)?;
        // Only the progress display reads the counter, so its order does not matter.
        self.read.fetch_add(count as u64, Ordering::Relaxed);
        Ok(count)
    }
}

/// The result of an import.
#[derive(Debug, Default)]
struct Outcome {
    imported: u64,
    failed: u64,
    /// Whether the file was not read to its end.
    unread: bool,
}

async fn send_all(
    import: &Import,
    source: Source,
    format: Format,
    container: &ContainerClient,
    key: PartitionKeyDefinition,
) -> Result<Outcome, CommandError> {
    let (name, read) = (source.name.clone(), Arc::clone(&source.read));
    let mut progress = Progress::new("imported", source.length);
    let (entries_in, entries) = mpsc::channel(READ_AHEAD);
    let layout =
        FileLayout { format, delimiter: import.delimiter.unwrap_or(b','), generate_ids: import.generate_ids };
    let reading = tokio::task::spawn_blocking(move || read_all(source, layout, &key, &entries_in));
    let lines = Arc::new(LineNumbers::default());
    let (stop, stopped) = oneshot::channel::<()>();
    // Taken when it is used; dropping the sender would stop the stream as well.
    let mut stop = Some(stop);
    let operations = OperationStream::new(entries, import.on_error, Arc::clone(&lines));
    // An upsert of the same item is idempotent, so one whose response is lost is sent again.
    let options = BulkOptions::new().with_requests_max(import.concurrency).with_linger(LINGER);
    let bulk = container.bulk().repeatable().options(options);
    let mut results = bulk.execute_stream(operations.stream().take_until(stopped));
    let mut failed = 0;
    while let Some(item) = results.next().await {
        let line = lines.take(item.index);
        match item.outcome {
            Ok(_) => progress.step(Some(read.load(Ordering::Relaxed))),
            Err(error) if is_about_the_item(&error) => {
                progress.line(&format!("{name}:{line}: {}", account::reason(&error)));
                failed += 1;
                if import.on_error == OnError::Stop {
                    // The stream may have ended already, at the end of the file.
                    let _already_ended = stop.take().map(|stop| stop.send(()));
                }
            }
            Err(error) => return Err(account::command_error(&error)),
        }
    }
    tracing::info!(summary = ?results.summary(), "sent");
    let at_end = lines.at_end();
    if at_end {
        let end = reading.await.expect("reading does not panic");
        end.map_err(|error| CommandError::other(format!("{name} cannot be read: {error}")))?;
    }
    Ok(Outcome { imported: progress.items(), failed, unread: !at_end })
}

/// Whether an error concerns one item only, and not all items.
fn is_about_the_item(error: &Error) -> bool {
    matches!(
        error.kind(),
        ErrorKind::BadRequest
            | ErrorKind::TooLarge
            | ErrorKind::Conflict
            | ErrorKind::PreconditionFailed
            | ErrorKind::Throttled
    )
}

/// How the items of a file are read.
#[derive(Clone, Copy, Debug)]
struct FileLayout {
    format: Format,
    delimiter: u8,
    generate_ids: bool,
}

/// Reads until the end of the file, or until the import stops.
fn read_all(
    source: Source,
    layout: FileLayout,
    key: &PartitionKeyDefinition,
    entries: &mpsc::Sender<ImportEntry>,
) -> std::io::Result<()> {
    let source = BufReader::with_capacity(FILE_BUFFER_BYTES, source);
    let mut reader = Reader::new(layout.format, layout.delimiter, source)?;
    while let Some(mut entry) = reader.next()? {
        if layout.generate_ids {
            entry.text = entry.text.map(with_id);
        }
        if entries.blocking_send(ImportEntry::of(entry, key)).is_err() {
            break;
        }
    }
    Ok(())
}
