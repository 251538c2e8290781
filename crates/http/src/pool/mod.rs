//! Connections that wait to be used again.
