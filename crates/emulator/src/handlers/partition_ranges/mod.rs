//! `GET …/pkranges`: a container's physical partitions, and what became of them.

mod list;

pub(crate) use list::list;
