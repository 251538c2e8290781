//! The other end of a connection: scheme, lower-cased host and port.
