//! `peri import`: a thread reads the file, one loop puts items of the same partition together and counts,
//! tasks send them.

mod batches;
mod send;

use std::collections::VecDeque;
use std::fs::File;
use std::io::{BufReader, Read};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use protocol::container::PartitionKeyDefinition;
use tokio::sync::mpsc;
use tokio::task::JoinSet;

use crate::account_client::{AccountClient, AccountError, Upsert};
use crate::arguments::{Import, OnError};
use crate::exit::Failure;
use crate::fixtures::{Entry, Format, Item, Reader};
use crate::output::{self, Progress};
use batches::{Batch, Batches, Numbered};
use send::{Sender, Sent};

/// Items that are read ahead of being sent.
const READ_AHEAD: usize = 64;
/// How long an item waits for others of its partition when the file gives no more.
const LINGER: Duration = Duration::from_millis(50);
const FILE_BUFFER_BYTES: usize = 256 * 1024;

/// Sends every item of the file.
pub(crate) fn run(import: &Import) -> Result<(), Failure> {
    let format = format_of(import)?;
    let account = import.account.connection().map_err(Failure::usage)?;
    let source = Source::open(&import.file)?;
    let client = AccountClient::new(account, import.container.clone()).map_err(Failure::other)?;
    let runtime = super::runtime()?;
    let outcome = runtime.block_on(async {
        let key = container_key(&client, import).await?;
        let sender = Sender::new(client).await?;
        send_all(import, source, format, &sender, &key).await
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
async fn container_key(client: &AccountClient, import: &Import) -> Result<PartitionKeyDefinition, Failure> {
    if import.create {
        let paths: Vec<&str> = import.partition_key.iter().map(String::as_str).collect();
        let key = match paths.as_slice() {
            [path] => PartitionKeyDefinition::hash(path),
            several => PartitionKeyDefinition::multi_hash(several),
        };
        let key = key.map_err(|error| Failure::usage(format!("--partition-key: {error}")))?;
        client.create(&key).await?;
    }
    client.partition_key().await?.ok_or_else(|| {
        Failure::refused(&format!("there is no container {}", import.container))
            .hint("--create --partition-key /path makes it")
    })
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
    sender: &Sender,
    key: &PartitionKeyDefinition,
) -> Result<Outcome, Failure> {
    let (name, read) = (source.name.clone(), Arc::clone(&source.read));
    let mut progress = Progress::new("imported", source.length);
    let (entries_in, mut entries) = mpsc::channel(READ_AHEAD);
    let reading = tokio::task::spawn_blocking(move || read_all(source, format, &entries_in));
    let mut sending: JoinSet<Result<Vec<Sent>, AccountError>> = JoinSet::new();
    let mut batches = Batches::default();
    let mut ready: VecDeque<Batch> = VecDeque::new();
    let mut outcome = Outcome::default();
    let mut at_end = false;
    loop {
        let wants_more = !at_end && !outcome.unread;
        if !wants_more && ready.is_empty() {
            ready.extend(batches.take_largest());
        }
        while sending.len() < import.concurrency.get()
            && let Some(batch) = ready.pop_front()
        {
            sending.spawn(sender.clone().send(batch));
        }
        let sent = tokio::select! {
            // A slow file does not keep results waiting.
            biased;
            Some(sent) = sending.join_next() => sent.expect("sending does not panic")?,
            entry = tokio::time::timeout(LINGER, entries.recv()), if wants_more && ready.is_empty() => {
                match entry {
                    Ok(Some(Entry { line, text })) => match upsert(text, key) {
                        Ok(item) => {
                            ready.extend(batches.add(Numbered { line, item }, &sender.ranges()));
                            continue;
                        }
                        Err(reason) => vec![(line, Err(reason))],
                    },
                    Ok(None) => {
                        at_end = true;
                        continue;
                    }
                    // Nothing more for a moment: what is there need not wait for it.
                    Err(_) => {
                        ready.extend(batches.take_largest());
                        continue;
                    }
                }
            }
            else => break,
        };
        for (line, result) in sent {
            match result {
                Ok(()) => progress.step(Some(read.load(Ordering::Relaxed))),
                Err(reason) => {
                    progress.line(&format!("{name}:{line}: {reason}"));
                    outcome.failed += 1;
                    outcome.unread = import.on_error == OnError::Stop;
                }
            }
        }
    }
    outcome.imported = progress.items();
    if at_end {
        let end = reading.await.expect("reading does not panic");
        end.map_err(|error| Failure::other(format!("{name} cannot be read: {error}")))?;
        outcome.unread = false;
    }
    Ok(outcome)
}

/// Reads until the end, or until nobody wants more.
fn read_all(source: Source, format: Format, entries: &mpsc::Sender<Entry>) -> std::io::Result<()> {
    let mut reader = Reader::new(format, BufReader::with_capacity(FILE_BUFFER_BYTES, source))?;
    while let Some(entry) = reader.next()? {
        if entries.blocking_send(entry).is_err() {
            break;
        }
    }
    Ok(())
}

/// An entry as it is sent, if it can be.
fn upsert(text: Result<String, String>, key: &PartitionKeyDefinition) -> Result<Upsert, String> {
    let text = text?;
    let item = Item::parse(&text)?;
    item.check()?;
    let own = item.partition_key(key);
    Ok(Upsert::new(&own, key, text))
}
