//! Rules that make requests fail on purpose, below sharding.
