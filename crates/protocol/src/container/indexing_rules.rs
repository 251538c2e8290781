//! The included and excluded paths of an indexing policy as a tree, for deciding what to index.
//!
//! Input: a completed policy. Output: [`IndexingRules`], which the store walks together with an item.
//! Building the index is left to the store.

use std::collections::BTreeMap;

use super::index_path::{IndexPath, IndexPathEnd, IndexStep};
use super::indexing_policy::{IndexingMode, IndexingPolicy};

/// The paths of a policy as a tree. Where two rules apply, the longer path wins, and `/?` wins over `/*`.
#[derive(Clone, Debug, Default)]
pub struct IndexingRules {
    root: Node,
}

#[derive(Clone, Debug, Default)]
struct Node {
    /// Children by property name. A tree because nodes have few children: a search is cheaper than a hash.
    keys: BTreeMap<String, Node>,
    element: Option<Box<Node>>,
    scalar: Option<bool>,
    subtree: Option<bool>,
}

impl IndexingRules {
    /// Builds the tree of a validated policy; a path that cannot be parsed has no effect. Cost: linear in
    /// the text of the policy.
    pub fn new(policy: &IndexingPolicy) -> IndexingRules {
        let mut rules = IndexingRules::default();
        if policy.indexing_mode == IndexingMode::None {
            return rules;
        }
        // Excluded paths come first, so that an included path overrides an equal excluded one.
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

    /// The node for the item itself.
    pub fn root(&self) -> IndexingNode<'_> {
        IndexingNode { node: Some(&self.root), inherited: self.root.subtree.unwrap_or(false) }
    }
}

/// The rules that apply at one path of an item.
#[derive(Clone, Copy, Debug)]
pub struct IndexingNode<'a> {
    /// `None` if no rule mentions this path or a path below it.
    node: Option<&'a Node>,
    /// Whether the nearest `/*` rule above this path includes it.
    inherited: bool,
}

impl<'a> IndexingNode<'a> {
    /// The node for a property. Cost: one lookup, or none if no rule mentions a path below this one.
    #[must_use]
    pub fn property(self, name: &str) -> IndexingNode<'a> {
        self.down(self.node.and_then(|node| node.keys.get(name)))
    }

    /// The node for the elements of an array.
    #[must_use]
    pub fn element(self) -> IndexingNode<'a> {
        self.down(self.node.and_then(|node| node.element.as_deref()))
    }

    fn down(self, node: Option<&'a Node>) -> IndexingNode<'a> {
        let inherited = node.and_then(|node| node.subtree).unwrap_or(self.inherited);
        IndexingNode { node, inherited }
    }

    /// Whether a scalar at this path is indexed.
    pub fn is_indexed(self) -> bool {
        self.node.and_then(|node| node.scalar).unwrap_or(self.inherited)
    }

    /// Whether nothing at or below this path is indexed, so that it can be skipped.
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
    fn subtrees_without_included_paths_can_be_skipped() {
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
