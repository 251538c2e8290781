//! Whether the index can serve ORDER BY. The service refuses an order that no index has; so does a request,
//! although the engine could sort.

use sql::access_path::AccessPath;
use thiserror::Error;

use super::access_method::{composite_spaces, steps_of};
use crate::store::ContainerSchema;
use crate::store::index::Step;

/// Why no index can serve an ORDER BY clause.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
pub enum OrderByError {
    /// The indexing policy excludes the only path.
    #[error("The index path corresponding to the specified order-by item is excluded.")]
    PathExcluded,
    /// There are several paths, and no composite index has exactly these in this order.
    #[error("The order by query does not have a corresponding composite index that it can be served from.")]
    NoCompositeIndex,
}

/// Checks that an index has the order of a query. An order by computed values needs none.
pub fn check_order_by(access: &AccessPath, schema: &ContainerSchema) -> Result<(), OrderByError> {
    match access.order.as_slice() {
        [] => Ok(()),
        [(path, _)] => {
            let steps = steps_of(path);
            let is_served = steps.contains(&Step::Element) || schema.policy.is_indexed(&steps);
            if is_served { Ok(()) } else { Err(OrderByError::PathExcluded) }
        }
        several => {
            let spaces = composite_spaces(several);
            let is_served =
                schema.policy.composites().iter().any(|composite| spaces.contains(&composite.space));
            if is_served { Ok(()) } else { Err(OrderByError::NoCompositeIndex) }
        }
    }
}
