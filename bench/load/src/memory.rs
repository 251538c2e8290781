//! Resident memory, idle and with items, and what an idle server does with the processor.

use std::thread;
use std::time::Duration;

use crate::clock;
use crate::server::{Kind, Programs};
use crate::subject::{create_database, fill_container};

/// What one server takes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Memory {
    pub(crate) idle_bytes: u64,
    pub(crate) loaded_bytes: u64,
    /// Processor time over wall time while nobody asks anything, after the load.
    pub(crate) idle_processor: f64,
}

/// The items of the loaded figure.
pub(crate) const ITEMS: u64 = 100_000;

/// Time to settle: freed memory goes back, compilers and collectors finish.
const SETTLE: Duration = Duration::from_secs(2);

/// Starts a fresh server, looks, fills it, looks again, and leaves it alone for `idle`.
pub(crate) fn measure(programs: &Programs, kind: Kind, idle: Duration) -> Result<Memory, String> {
    let server = programs.start(kind)?;
    create_database(&mut server.client()?)?;
    thread::sleep(SETTLE);
    let idle_bytes = server.process().resident()?;
    fill_container(&server, "memory", ITEMS)?;
    thread::sleep(SETTLE);
    let loaded_bytes = server.process().resident()?;

    let (start, before) = (clock::now(), server.process().processor_time()?);
    thread::sleep(idle);
    let used = server.process().processor_time()?.saturating_sub(before);
    let idle_processor = used.as_secs_f64() / (clock::now() - start).as_secs_f64();
    Ok(Memory { idle_bytes, loaded_bytes, idle_processor })
}
