//! `CosmosDriver`: wires the parts, holds no rules.
