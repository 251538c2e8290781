//! A server that takes 50 ms: how many operations are really under way when 256 could be.

use crate::load::Work;
use crate::options::Options;
use crate::peri::Peri;
use crate::points::{self, Cell, READS};
use crate::subject::{Shape, Wire};

/// How long the server takes.
pub const TAKES: &str = "50ms";

/// What is measured.
pub const SHAPE: Shape = Shape { work: Work::Read, wire: Wire::Http2, in_flight: 256 };

/// Measures point reads while a rule delays every answer.
pub fn measure(options: &Options, peri: &Peri) -> Result<Cell, String> {
    // A slot has to be long beside the delay, or its two ends are what is measured.
    let options = Options { rounds: options.rounds.div_ceil(2), slot: options.slot * 4, ..options.clone() };
    let cell = points::measure_after(&options, SHAPE, peri, READS, || {
        peri.command(&["fault", "delay", TAKES]).map(drop)
    });
    peri.command(&["fault", "clear"])?;
    cell
}
