//! `GET /`.

mod read;

pub(crate) use read::read;
