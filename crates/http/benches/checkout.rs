//! Checkout and checkin, alone and under contention.

fn main() {}
