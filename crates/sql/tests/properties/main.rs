//! Property tests of the whole language, with random queries over random documents.
//!
//! - `parsing`: any text parses or is an error; a printed query parses to the same AST.
//! - `planning`: a plan executed over several partitions returns the rows of one over all documents.
//! - `running`: a streamed execution returns the rows of the reference, however an index is used.

mod documents;
mod index;
mod parsing;
mod planning;
mod queries;
mod running;
