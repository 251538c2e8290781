//! Properties of the whole language, on random queries over random documents.
//!
//! - `parsing`: any text gives a tree or a good error; a printed tree reads back as itself.
//! - `planning`: a plan followed over several partitions gives the rows of a run over all of them.
//! - `running`: a planned run gives the rows of a naive run, in every way an index may take part.

mod documents;
mod index;
mod parsing;
mod planning;
mod queries;
mod running;
