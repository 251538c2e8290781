//! The container's indexing policy: which paths of a document are indexed.

use protocol::container::{
    CompositeOrder, IndexPath, IndexingMode, IndexingNode, IndexingPolicy, IndexingRules,
};

use super::space::{IndexSpace, Step};

/// Which paths are indexed, and how several are indexed together.
#[derive(Clone, Debug, Default)]
pub(crate) struct Policy {
    /// The rules of the indexing policy; nothing is indexed without them.
    rules: Option<IndexingRules>,
    composites: Vec<Composite>,
}

/// One composite index of the policy.
#[derive(Clone, Debug)]
pub(crate) struct Composite {
    pub(crate) space: IndexSpace,
    /// Each path, and whether it descends.
    pub(crate) parts: Vec<(Vec<Step>, bool)>,
}

impl Policy {
    /// Reads the policy as the container's properties state it.
    pub(crate) fn compile(policy: &IndexingPolicy) -> Policy {
        if policy.indexing_mode == IndexingMode::None {
            return Policy::default();
        }
        let composites = policy.composite_indexes.iter().map(|parts| {
            let steps = |path: &str| IndexPath::parse(path).map(|path| path.steps).unwrap_or_default();
            let parts: Vec<_> = parts
                .iter()
                .map(|part| (steps(&part.path), part.order == CompositeOrder::Descending))
                .collect();
            Composite { space: composite_space(&parts), parts }
        });
        Policy { composites: composites.collect(), rules: Some(IndexingRules::new(policy)) }
    }

    pub(super) fn root(&self) -> Option<IndexingNode<'_>> {
        self.rules.as_ref().map(IndexingRules::root)
    }

    /// Where an item's time of writing is indexed, if anything is.
    pub(super) fn time(&self) -> Option<IndexSpace> {
        self.rules.as_ref().map(|_| IndexSpace::ROOT.member("_ts"))
    }

    /// The composite indexes of the policy.
    pub(crate) fn composites(&self) -> &[Composite] {
        &self.composites
    }

    /// Whether scalars at `path` have entries.
    pub(crate) fn is_indexed(&self, path: &[Step]) -> bool {
        let Some(root) = self.root() else { return false };
        let place = path.iter().fold(root, |place, step| match step {
            Step::Key(name) => place.property(name),
            Step::Element => place.element(),
        });
        place.is_indexed() || is_always_indexed(path)
    }
}

/// Identity and time are indexed whatever the policy says, as in the service.
fn is_always_indexed(path: &[Step]) -> bool {
    matches!(path, [Step::Key(name)] if name == "id" || name == "_ts")
}

impl Composite {
    /// Whether its entry depends on when the item is written.
    pub(super) fn uses_time(&self) -> bool {
        self.parts.iter().any(|(path, _)| is_time(path))
    }
}

/// `/_ts`: known only when the item is written.
pub(super) fn is_time(path: &[Step]) -> bool {
    matches!(path, [Step::Key(name)] if name == "_ts")
}

/// The space of the composite index over these paths and directions.
pub(crate) fn composite_space(parts: &[(Vec<Step>, bool)]) -> IndexSpace {
    parts.iter().fold(IndexSpace::ROOT, |space, (path, descending)| {
        space.join(4 + u8::from(*descending), path.iter().collect())
    })
}
