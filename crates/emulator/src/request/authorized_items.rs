//! The items of a container that the sender of a request may use.
//!
//! Authorization derives this value once, from the principal. Every handler of items carries out its operation
//! under it: whatever the headers, the body or a continuation select is checked here, after it was parsed and
//! before it is executed. So they can narrow what was authorized, and never widen it.

use protocol::partition::{EffectivePartitionKey, EpkRange};
use protocol::status::Status;

use crate::response::ServiceError;

/// The items of one container that a request may read or write.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct AuthorizedItems {
    /// The EPK range of the partition key, complete or a prefix; all partition keys when absent.
    pub(super) range: Option<EpkRange>,
    /// Whether the request may use no item but the one that its path names.
    pub(super) one_item: bool,
}

impl AuthorizedItems {
    /// All items of the container.
    pub(crate) fn all() -> AuthorizedItems {
        AuthorizedItems { range: None, one_item: false }
    }

    /// Rejects a request that reads or writes beyond the authorized EPK range.
    pub(crate) fn check_range(&self, wanted: &EpkRange) -> Result<(), ServiceError> {
        match &self.range {
            Some(range) if !range.covers(wanted) => Err(other_partition_key()),
            _ => Ok(()),
        }
    }

    /// Rejects a request for a logical partition beyond the authorized EPK range.
    pub(crate) fn check_key(&self, wanted: &EffectivePartitionKey) -> Result<(), ServiceError> {
        match &self.range {
            Some(range) if !range.contains(wanted) => Err(other_partition_key()),
            _ => Ok(()),
        }
    }

    /// Rejects a write that gives the item `named` in the path another id.
    pub(crate) fn check_id(&self, named: &str, written: &str) -> Result<(), ServiceError> {
        if self.one_item && named != written {
            return Err(forbidden("the resource token is for one item, which it may not rename"));
        }
        Ok(())
    }
}

fn other_partition_key() -> ServiceError {
    forbidden("the resource token is for another partition key")
}

/// 403: the sender has no right to this.
pub(super) fn forbidden(reason: &str) -> ServiceError {
    ServiceError::new(
        Status::FORBIDDEN,
        format!("Insufficient permissions provided in the authorization header for the request: {reason}."),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn range(min: &str, max: &str) -> EpkRange {
        let key = |hex| EffectivePartitionKey::from_hex(hex).unwrap();
        EpkRange::new(key(min), key(max))
    }

    #[test]
    fn a_request_may_narrow_what_is_authorized_and_never_widen_it() {
        let items = AuthorizedItems { range: Some(range("10", "20")), one_item: false };
        for (wanted, allowed) in [
            (range("10", "20"), true),
            (range("12", "13"), true),
            (range("0F", "20"), false),
            (range("10", "21"), false),
            (range("30", "40"), false),
            (EpkRange::FULL, false),
        ] {
            assert_eq!(items.check_range(&wanted).is_ok(), allowed, "{wanted}");
            assert!(AuthorizedItems::all().check_range(&wanted).is_ok());
        }
        assert!(
            items.check_key(&range("10", "").min).is_ok() && items.check_key(&range("20", "").min).is_err()
        );
    }
}
