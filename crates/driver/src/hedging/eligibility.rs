//! May this operation be raced? Pure.

use crate::operation::{Operation, OperationKind, Plane};
use crate::options::HedgingSettings;
use crate::routing::AccountState;

/// Whether a second attempt may run beside the first: for reads of data, and for writes where several regions
/// take them and doing them in two is the same as in one. A patch may count, a batch and a script may do
/// anything: they are never raced.
pub(crate) fn may_be_raced(
    operation: &Operation,
    settings: &HedgingSettings,
    account: &AccountState,
) -> bool {
    if !settings.enabled || account.forbids_hedging() || operation.plane() != Plane::Data {
        return false;
    }
    match operation.kind() {
        OperationKind::Read | OperationKind::ReadFeed | OperationKind::Query => true,
        OperationKind::Create | OperationKind::Replace | OperationKind::Upsert | OperationKind::Delete => {
            account.is_multi_write()
        }
        OperationKind::QueryPlan | OperationKind::Patch | OperationKind::Batch | OperationKind::Execute => {
            false
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::operation::{ContainerName, Target};
    use crate::routing::test_accounts::{account, properties};

    #[test]
    fn reads_are_raced_everywhere_and_writes_where_several_regions_take_them() {
        let container = ContainerName::new("d", "c");
        let (single, multi) = (account(&["A"], &["A", "B"]), account(&["A", "B"], &["A", "B"]));
        let on = HedgingSettings::default();
        for kind in OperationKind::ALL {
            let operation = Operation::new(kind, Target::items(&container));
            let reads = matches!(kind, OperationKind::Read | OperationKind::ReadFeed | OperationKind::Query);
            let writes = matches!(
                kind,
                OperationKind::Create
                    | OperationKind::Replace
                    | OperationKind::Upsert
                    | OperationKind::Delete
            );
            assert_eq!(may_be_raced(&operation, &on, &single), reads, "{kind:?}");
            assert_eq!(may_be_raced(&operation, &on, &multi), reads || writes, "{kind:?}");
        }
        let metadata = Operation::new(OperationKind::Read, Target::container(&container));
        assert!(!may_be_raced(&metadata, &on, &multi));
    }

    #[test]
    fn the_caller_and_the_account_may_forbid_it() {
        let read = Operation::new(OperationKind::Read, Target::item(&ContainerName::new("d", "c"), "i"));
        let off = HedgingSettings { enabled: false, ..HedgingSettings::default() };
        let regions = account(&["A"], &["A", "B"]);
        assert!(!may_be_raced(&read, &off, &regions));
        let mut forbidding = properties(&["A"], &["A", "B"]);
        forbidding.disable_cross_regional_hedging = true;
        assert!(!may_be_raced(
            &read,
            &HedgingSettings::default(),
            &regions.with_properties(&forbidding, &[])
        ));
    }
}
