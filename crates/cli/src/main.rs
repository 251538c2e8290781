//! `peri`, the local cloud.
fn main() {}
