//! The one place that reads time.
