//! The loop over regions: route, build, send, evaluate, apply.

mod attempts;
mod evaluate;
mod step;
