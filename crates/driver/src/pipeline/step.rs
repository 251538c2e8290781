//! Everything an evaluation may answer: what to do next, and what to change.
