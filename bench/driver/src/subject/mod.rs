//! Each of the three behind one function: an operation whose answer is read to its end, and is the right one.

mod bare;
mod perihelion;
mod published;
mod recorder;

use crate::item::ITEM_BYTES;
use crate::load::Work;
use crate::peri::Peri;

pub use self::perihelion::{Perihelion, client, driver as perihelion_driver};
pub use self::published::{Published, driver as published_driver, options as published_options};

/// How the subjects talk to the server: over TLS in both cases.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wire {
    /// HTTP/1.1.
    Http1,
    /// HTTP/2.
    Http2,
}

impl Wire {
    /// Both.
    pub const ALL: [Wire; 2] = [Wire::Http1, Wire::Http2];

    /// As it is printed.
    pub fn name(self) -> &'static str {
        match self {
            Wire::Http1 => "HTTP/1.1",
            Wire::Http2 => "HTTP/2",
        }
    }
}

/// One of the three.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// The product's driver.
    Perihelion,
    /// The published crate `azure_data_cosmos_driver`.
    Published,
    /// hyper's connections, fed with requests that were made and signed before.
    Bare,
}

impl Kind {
    /// All of them; the first is compared with the others.
    pub const ALL: [Kind; 3] = [Kind::Perihelion, Kind::Published, Kind::Bare];

    /// As it is printed.
    pub fn name(self) -> &'static str {
        match self {
            Kind::Perihelion => "Perihelion",
            Kind::Published => "azure_data_cosmos_driver",
            Kind::Bare => "bare hyper",
        }
    }
}

/// What is done, how, and how many at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    /// What.
    pub work: Work,
    /// How it is sent.
    pub wire: Wire,
    /// How many at once.
    pub in_flight: usize,
}

/// One of many that do the same thing at the same time.
#[derive(Debug)]
pub enum Worker {
    /// See [`Kind::Perihelion`].
    Perihelion(perihelion::Perihelion),
    /// See [`Kind::Published`].
    Published(published::Published),
    /// See [`Kind::Bare`].
    Bare(bare::Bare),
}

impl Worker {
    /// As many workers of one subject as are to be in flight, on one container. Connections of the bare loop
    /// are made here; those of the drivers with the first operations.
    pub async fn all(kind: Kind, shape: Shape, peri: &Peri, container: &str) -> Result<Vec<Worker>, String> {
        let (wire, in_flight) = (shape.wire, shape.in_flight);
        Ok(match kind {
            Kind::Perihelion => {
                let one = perihelion::Perihelion::new(wire, peri, container)?;
                (0..in_flight).map(|_| Worker::Perihelion(one.clone())).collect()
            }
            Kind::Published => {
                let one = published::Published::new(wire, peri, container).await?;
                (0..in_flight).map(|_| Worker::Published(one.clone())).collect()
            }
            Kind::Bare => {
                let all = bare::Bare::all(shape, peri, container).await?;
                all.into_iter().map(Worker::Bare).collect()
            }
        })
    }

    /// Reads an item.
    pub async fn read(&mut self, number: u64) -> Result<(), String> {
        let length = match self {
            Worker::Perihelion(worker) => worker.read(number).await?,
            Worker::Published(worker) => worker.read(number).await?,
            Worker::Bare(worker) => worker.read(number).await?,
        };
        right(length)
    }

    /// Makes an item.
    pub async fn create(&mut self, number: u64, body: Vec<u8>) -> Result<(), String> {
        let length = match self {
            Worker::Perihelion(worker) => worker.create(number, body).await?,
            Worker::Published(worker) => worker.create(number, body).await?,
            Worker::Bare(worker) => worker.create(number, body).await?,
        };
        right(length)
    }
}

/// An answer carries the item and what the server adds to it.
fn right(length: usize) -> Result<(), String> {
    if length > ITEM_BYTES { Ok(()) } else { Err(format!("an answer of {length} bytes is not the item")) }
}
