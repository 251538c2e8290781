//! `peri import`: a thread reads the file, the client's bulk sends what it reads, one loop counts.

mod feed;

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
use crate::exit::Failure;
use crate::fixtures::{Format, Reader};
use crate::output::{self, Progress};
use feed::{Fed, Feed, Lines};

/// Items that are read ahead of being sent.
const READ_AHEAD: usize = 256;
/// How long an item waits for others of its partition when the file gives no more.
const LINGER: Duration = Duration::from_millis(50);
const FILE_BUFFER_BYTES: usize = 256 * 1024;

/// Sends every item of the file.
pub(crate) fn run(import: &Import) -> Result<(), Failure> {
    let format = format_of(import)?;
    let client = account::client(&import.account.text())?;
    let container = account::container(&client, &import.container);
    let source = Source::open(&import.file)?;
    let runtime = super::runtime()?;
    let outcome = runtime.block_on(async {
        let key = container_key(&client, &container, import).await?;
        send_all(import, source, format, &container, key).await
    });
    // The reader may be waiting for more of stdin.
    runtime.shutdown_background();
    let Outcome { imported, failed, unread } = outcome?;
    output::message(&format!("imported {} into {}", output::items(imported), import.container));
    match failed {
        0 => Ok(()),
        failed => {
            let rest = if unread { ", and what follows was left out" } else { "" };
            let failure = Failure::partial(format!("not imported: {}{rest}", output::items(failed)));
            Err(match import.on_error {
                OnError::Stop => {
                    failure.hint("--on-error skip goes on after an item that cannot be imported")
                }
                OnError::Skip => failure,
            })
        }
    }
}

fn format_of(import: &Import) -> Result<Format, Failure> {
    import.format.or_else(|| Format::of(&import.file)).ok_or_else(|| {
        Failure::usage(format!("'{}' does not say its format", import.file.display()))
            .hint("name it with --format json, ndjson or csv")
    })
}

/// The key of the container, which is made if that was asked for.
async fn container_key(
    client: &CosmosClient,
    container: &ContainerClient,
    import: &Import,
) -> Result<PartitionKeyDefinition, Failure> {
    if import.create {
        let paths: Vec<&str> = import.partition_key.iter().map(String::as_str).collect();
        let key = match paths.as_slice() {
            [path] => PartitionKeyDefinition::hash(path),
            several => PartitionKeyDefinition::multi_hash(several),
        };
        let key = key.map_err(|error| Failure::usage(format!("--partition-key: {error}")))?;
        unless_there(client.create_database(&import.container.database).await)?;
        let properties = ContainerProperties::new(&import.container.container, key);
        let database = client.database(&import.container.database);
        unless_there(database.create_container(&properties).await)?;
    }
    let properties = account::properties(container).await?.ok_or_else(|| {
        Failure::refused(&format!("there is no container {}", import.container))
            .hint("--create --partition-key /path makes it")
    })?;
    Ok(properties.partition_key)
}

/// What is there already need not be made.
fn unless_there<T>(made: perihelion::Result<T>) -> Result<(), Failure> {
    match made {
        Err(error) if error.kind() != ErrorKind::Conflict => Err(account::failure(&error)),
        _ => Ok(()),
    }
}

/// Where items come from, and how much has been read.
struct Source {
    input: Box<dyn Read + Send>,
    name: String,
    length: Option<u64>,
    read: Arc<AtomicU64>,
}

impl Source {
    fn open(path: &Path) -> Result<Source, Failure> {
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
        let cannot = |error: std::io::Error| Failure::other(format!("{name} cannot be read: {error}"));
        let file = File::open(path).map_err(cannot)?;
        let metadata = file.metadata().map_err(cannot)?;
        if metadata.is_dir() {
            return Err(Failure::usage(format!("{name} is a folder")));
        }
        let length = metadata.is_file().then_some(metadata.len());
        Ok(Source { input: Box::new(file), name, length, read })
    }
}

impl Read for Source {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let count = self.input.read(buffer)?;
        self.read.fetch_add(count as u64, Ordering::Relaxed);
        Ok(count)
    }
}

/// How it went.
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
) -> Result<Outcome, Failure> {
    let (name, read) = (source.name.clone(), Arc::clone(&source.read));
    let mut progress = Progress::new("imported", source.length);
    let (entries_in, entries) = mpsc::channel(READ_AHEAD);
    let reading = tokio::task::spawn_blocking(move || read_all(source, format, &key, &entries_in));
    let lines = Arc::new(Lines::default());
    let (stop, stopped) = oneshot::channel::<()>();
    // Dropping it would be telling, too.
    let mut stop = Some(stop);
    let feed = Feed::new(entries, import.on_error, Arc::clone(&lines));
    // Storing an item twice is as good as once: an upsert whose answer was lost is sent again.
    let options = BulkOptions::new().with_requests_max(import.concurrency).with_linger(LINGER);
    let bulk = container.bulk().repeatable().options(options);
    let mut results = bulk.execute_stream(feed.stream().take_until(stopped));
    let mut failed = 0;
    while let Some(item) = results.next().await {
        let line = lines.take(item.index);
        match item.outcome {
            Ok(_) => progress.step(Some(read.load(Ordering::Relaxed))),
            Err(error) if is_about_the_item(&error) => {
                progress.line(&format!("{name}:{line}: {}", account::reason(&error)));
                failed += 1;
                if import.on_error == OnError::Stop {
                    // Whoever feeds may be gone, because the file is at its end.
                    let _told = stop.take().map(|stop| stop.send(()));
                }
            }
            Err(error) => return Err(account::failure(&error)),
        }
    }
    tracing::info!(summary = ?results.summary(), "sent");
    let at_end = lines.at_end();
    if at_end {
        let end = reading.await.expect("reading does not panic");
        end.map_err(|error| Failure::other(format!("{name} cannot be read: {error}")))?;
    }
    Ok(Outcome { imported: progress.items(), failed, unread: !at_end })
}

/// Whether an error is one item's own, and not one that the others would meet too.
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

/// Reads until the end, or until nobody wants more.
fn read_all(
    source: Source,
    format: Format,
    key: &PartitionKeyDefinition,
    entries: &mpsc::Sender<Fed>,
) -> std::io::Result<()> {
    let mut reader = Reader::new(format, BufReader::with_capacity(FILE_BUFFER_BYTES, source))?;
    while let Some(entry) = reader.next()? {
        if entries.blocking_send(Fed::of(entry, key)).is_err() {
            break;
        }
    }
    Ok(())
}
