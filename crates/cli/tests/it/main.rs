//! The built program, run as a person or a script runs it.

mod binary;
mod cert;
mod clock;
mod control;
mod fixtures;
mod help;
mod up;
