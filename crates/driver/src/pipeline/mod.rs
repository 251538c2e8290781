//! The loop over regions: route, build, send, evaluate, apply.

mod step;
