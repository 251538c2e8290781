//! May this operation be raced? Pure.

use crate::operation::{Operation, OperationKind, Plane, Precondition};
use crate::options::HedgingSettings;
use crate::routing::AccountState;

/// Whether a second attempt may run beside the first: for reads of data, and for writes where several regions
/// take them and a twin that arrives late does no harm. A patch may count, a batch and a script may do
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
            account.is_multi_write() && may_arrive_late(operation)
        }
        OperationKind::QueryPlan | OperationKind::Patch | OperationKind::Batch | OperationKind::Execute => {
            false
        }
    }
}

/// Whether a write changes nothing that came after it. The slow region may carry the first attempt out long after
/// the second was acknowledged, and dropping it does not call it back: what is in a region that nobody can
/// reach is done when it can be reached again. A create finds its item there then, and a condition that was met
/// is not met twice; any other write would undo later ones, unless the caller knows that there are none.
fn may_arrive_late(operation: &Operation) -> bool {
    operation.kind() == OperationKind::Create
        || matches!(operation.precondition(), Precondition::IfMatch(_))
        || operation.is_idempotent()
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
            let creates = kind == OperationKind::Create;
            assert_eq!(may_be_raced(&operation, &on, &single), reads, "{kind:?}");
            assert_eq!(may_be_raced(&operation, &on, &multi), reads || creates, "{kind:?}");
            // Others may be too, once a late twin does no harm.
            let writes = creates
                || matches!(kind, OperationKind::Replace | OperationKind::Upsert | OperationKind::Delete);
            let conditional = operation.clone().with_precondition(Precondition::IfMatch("e".to_owned()));
            for harmless in [conditional, operation.repeatable()] {
                assert_eq!(may_be_raced(&harmless, &on, &single), reads, "{kind:?}");
                assert_eq!(may_be_raced(&harmless, &on, &multi), reads || writes, "{kind:?}");
            }
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
