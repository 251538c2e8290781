//! Tasks that stop when the driver does.
