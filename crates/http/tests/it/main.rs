//! The crate from outside: the pool on plain values, the client against servers on loopback.

mod pool;
