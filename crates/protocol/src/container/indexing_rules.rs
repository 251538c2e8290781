//! What a policy says about each place in an item.
//!
//! In: a completed policy. Out: [`IndexingRules`], walked alongside an item. The item itself, and
//! the index, are the store's.

use std::collections::BTreeMap;

use super::index_path::{IndexPath, IndexPathEnd, IndexStep};
use super::indexing_policy::{IndexingMode, IndexingPolicy};

/// A policy's paths as a tree. Where two rules meet, the longer path wins, and `/?` over `/*`.
#[derive(Clone, Debug, Default)]
pub struct IndexingRules {
    root: Node,
}

#[derive(Clone, Debug, Default)]
struct Node {
    /// Few, as a rule: to look for a name among them takes less than to hash it.
    keys: BTreeMap<String, Node>,
    element: Option<Box<Node>>,
    scalar: Option<bool>,
    subtree: Option<bool>,
}

impl IndexingRules {
    /// The rules of a policy whose paths have been checked; a path that cannot be read says
    /// nothing. Cost: linear in the text of the policy.
    pub fn new(policy: &IndexingPolicy) -> IndexingRules {
        let mut rules = IndexingRules::default();
        if policy.indexing_mode == IndexingMode::None {
            return rules;
        }
        // Excluded paths first: of two equal ones the included wins.
        for path in &policy.excluded_paths {
            rules.add(&path.path, false);
        }
        for path in &policy.included_paths {
            rules.add(&path.path, true);
        }
        rules
    }

    fn add(&mut self, path: &str, indexed: bool) {
        let Ok(path) = IndexPath::parse(path) else { return };
        let mut node = &mut self.root;
        for step in path.steps {
            node = match step {
                IndexStep::Key(name) => node.keys.entry(name).or_default(),
                IndexStep::Element => node.element.get_or_insert_default(),
            };
        }
        match path.end {
            IndexPathEnd::Scalar => node.scalar = Some(indexed),
            IndexPathEnd::Subtree | IndexPathEnd::Bare => node.subtree = Some(indexed),
        }
    }

    /// The item itself.
    pub fn root(&self) -> IndexingNode<'_> {
        IndexingNode { node: Some(&self.root), inherited: self.root.subtree.unwrap_or(false) }
    }
}

/// A place in an item, as far as the rules can tell places apart.
#[derive(Clone, Copy, Debug)]
pub struct IndexingNode<'a> {
    /// `None` where no rule goes on.
    node: Option<&'a Node>,
    /// What the last `/*` on the way down said.
    inherited: bool,
}

impl<'a> IndexingNode<'a> {
    /// One property down. Cost: one look-up, or none where no rule goes on.
    #[must_use]
    pub fn property(self, name: &str) -> IndexingNode<'a> {
        self.down(self.node.and_then(|node| node.keys.get(name)))
    }

    /// Into an array's elements.
    #[must_use]
    pub fn element(self) -> IndexingNode<'a> {
        self.down(self.node.and_then(|node| node.element.as_deref()))
    }

    fn down(self, node: Option<&'a Node>) -> IndexingNode<'a> {
        let inherited = node.and_then(|node| node.subtree).unwrap_or(self.inherited);
        IndexingNode { node, inherited }
    }

    /// Whether a scalar found here is indexed.
    pub fn is_indexed(self) -> bool {
        self.node.and_then(|node| node.scalar).unwrap_or(self.inherited)
    }

    /// Whether nothing from here down is indexed, so that it need not be looked at.
    pub fn is_all_excluded(self) -> bool {
        !self.inherited && self.node.is_none()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rules(json: &str) -> IndexingRules {
        let policy: IndexingPolicy = serde_json::from_str(json).expect("a policy");
        IndexingRules::new(&policy.completed().expect("a good policy"))
    }

    #[track_caller]
    fn check(rules: &IndexingRules, path: &str, indexed: bool) {
        let mut place = rules.root();
        for step in IndexPath::parse(path).expect("a path").steps {
            place = match step {
                IndexStep::Key(name) => place.property(&name),
                IndexStep::Element => place.element(),
            };
        }
        assert_eq!(place.is_indexed(), indexed, "{path}");
    }

    #[test]
    fn by_default_everything_but_the_etag_is_indexed() {
        let rules = rules("{}");
        check(&rules, "/a", true);
        check(&rules, "/a/b/[]/c", true);
        check(&rules, "/_etag", false);
        check(&rules, "/_etag/below", true);
    }

    #[test]
    fn the_longer_path_wins() {
        let rules = rules(
            r#"{"includedPaths":[{"path":"/*"},{"path":"/a/b/c/?"},{"path":"/tags/[]/?"}],
                "excludedPaths":[{"path":"/a/b/*"},{"path":"/d/?"},{"path":"/tags/*"}]}"#,
        );
        check(&rules, "/a", true);
        check(&rules, "/a/x", true);
        check(&rules, "/a/b", false);
        check(&rules, "/a/b/x", false);
        check(&rules, "/a/b/c", true);
        check(&rules, "/a/b/c/d", false);
        check(&rules, "/d", false);
        check(&rules, "/d/e", true);
        check(&rules, "/tags/[]", true);
        check(&rules, "/tags/[]/name", false);
    }

    #[test]
    fn what_no_rule_reaches_can_be_skipped() {
        let rules = rules(r#"{"includedPaths":[{"path":"/a/?"}],"excludedPaths":[{"path":"/*"}]}"#);
        check(&rules, "/a", true);
        check(&rules, "/b", false);
        assert!(rules.root().property("b").is_all_excluded());
        assert!(!rules.root().is_all_excluded() && !rules.root().property("a").is_all_excluded());
    }

    #[test]
    fn mode_none_indexes_nothing() {
        let rules = rules(r#"{"indexingMode":"none","automatic":false}"#);
        check(&rules, "/a", false);
    }
}
