//! No cycle among the top-level modules of a crate.
//!
//! Module A depends on module B when code below `src/a` names `crate::b`, also through `super::`, in a `use` tree, a
//! type, an expression, a macro or an attribute. A name that the crate root re-exports (`crate::Item`, with
//! `pub use store::Item` in lib.rs) is a dependency on the module it comes from. Code that is only compiled for tests
//! does not count, nor does the crate root itself, which names everything.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::fmt::Write;

use crate::source::{Import, SourceFile};
use crate::workspace::CRATES;

/// Crates that still have a cycle.
const NOT_YET: &[&str] = &[];

#[test]
fn top_level_modules_have_no_cycle() {
    let mut failures = String::new();
    for one in CRATES.iter() {
        let cycles = ModuleGraph::new(&one.files).cycles();
        let listed = NOT_YET.contains(&one.name.as_str());
        if listed && cycles.is_empty() {
            let _ = writeln!(
                failures,
                "{} has no cycle any more: remove it from NOT_YET in {}",
                one.name,
                file!()
            );
        }
        for cycle in cycles {
            if listed {
                println!("crate {}: {cycle}", one.name);
            } else {
                let _ = writeln!(failures, "crate {}: {cycle}", one.name);
            }
        }
    }
    let gone = NOT_YET.iter().filter(|name| !CRATES.iter().any(|one| one.name == **name));
    for name in gone {
        let _ = writeln!(failures, "there is no crate {name}: remove it from NOT_YET in {}", file!());
    }
    assert!(failures.is_empty(), "\n{failures}");
}

/// The top-level modules of one crate, and the first place where each depends on another.
#[derive(Debug, Default)]
struct ModuleGraph {
    edges: BTreeMap<String, BTreeMap<String, String>>,
}

impl ModuleGraph {
    fn new(files: &[SourceFile]) -> ModuleGraph {
        let inside = |file: &SourceFile| file.module.clone();
        let tests = files.iter().flat_map(|file| file.test_modules.iter());
        let mut tests: BTreeSet<Vec<String>> = tests.cloned().collect();
        tests.extend(files.iter().filter(|file| file.test_only).filter_map(inside));
        let for_tests =
            |module: &[String]| (1..=module.len()).any(|length| tests.contains(&module[..length]));

        let production = || {
            let modules = files.iter().filter_map(|file| file.module.as_ref().map(|module| (file, module)));
            modules.filter(|(_, module)| !for_tests(module))
        };
        let modules: BTreeSet<&str> =
            production().filter_map(|(_, module)| Some(module.first()?.as_str())).collect();
        let root: Vec<&Import> = production()
            .filter(|(_, module)| module.is_empty())
            .flat_map(|(file, _)| &file.imports)
            .collect();

        let mut graph = ModuleGraph::default();
        for (file, module) in production() {
            let Some(from) = module.first() else { continue };
            for reference in &file.references {
                for to in targets(&reference.path, &modules, &root) {
                    if to != from {
                        let place = format!("{}:{}", file.path, reference.line);
                        graph.edges.entry(from.clone()).or_default().entry(to.to_owned()).or_insert(place);
                    }
                }
            }
        }
        graph
    }

    /// One sentence for each set of modules that depend on each other: how many they are, and a shortest cycle.
    fn cycles(&self) -> Vec<String> {
        let mut told: BTreeSet<&str> = BTreeSet::new();
        let mut cycles = Vec::new();
        for start in self.edges.keys() {
            if told.contains(start.as_str()) {
                continue;
            }
            let below = self.reachable(start);
            let together: Vec<&str> = below
                .iter()
                .copied()
                .filter(|module| self.reachable(module).contains(start.as_str()))
                .collect();
            if together.is_empty() {
                continue;
            }
            told.extend(&together);
            let shortest =
                together.iter().filter_map(|module| self.shortest_cycle(module)).min_by_key(Vec::len);
            let mut text =
                format!("{} top-level modules form a cycle: {}", together.len(), together.join(", "));
            for (from, to, place) in shortest.unwrap_or_default() {
                let _ = write!(text, "\n    {from} -> {to}   {place}");
            }
            cycles.push(text);
        }
        cycles
    }

    /// The modules that `start` depends on, directly or through others; itself only if it is in a cycle.
    fn reachable<'a>(&'a self, start: &'a str) -> BTreeSet<&'a str> {
        let mut found = BTreeSet::new();
        let mut open = vec![start];
        while let Some(module) = open.pop() {
            let next = self.edges.get(module).into_iter().flat_map(BTreeMap::keys);
            open.extend(next.map(String::as_str).filter(|module| found.insert(*module)));
        }
        found
    }

    /// The edges of a shortest way from `start` back to itself, each with its place.
    fn shortest_cycle<'a>(&'a self, start: &'a str) -> Option<Vec<(&'a str, &'a str, &'a str)>> {
        let mut ways: VecDeque<Vec<(&str, &str, &str)>> = VecDeque::from([Vec::new()]);
        let mut seen = BTreeSet::new();
        while let Some(way) = ways.pop_front() {
            let from = way.last().map_or(start, |(_, to, _)| *to);
            for (to, place) in self.edges.get(from).into_iter().flatten() {
                let longer = [way.as_slice(), &[(from, to.as_str(), place.as_str())]].concat();
                if to == start {
                    return Some(longer);
                }
                if seen.insert(to.as_str()) {
                    ways.push_back(longer);
                }
            }
        }
        None
    }
}

/// The top-level modules that a path from the crate root leads to: none for what the root defines itself, several
/// only for a glob of the root's own names.
fn targets<'a>(path: &'a [String], modules: &BTreeSet<&'a str>, root: &[&'a Import]) -> Vec<&'a str> {
    let Some(first) = path.first() else { return Vec::new() };
    if modules.contains(first.as_str()) {
        return vec![first.as_str()];
    }
    let named = root.iter().filter(|import| import.name == *first).collect::<Vec<_>>();
    // What is named nowhere may come in through a glob.
    let imports =
        if named.is_empty() { root.iter().filter(|import| import.name == "*").collect() } else { named };
    let origins = imports.into_iter().filter_map(|import| Some(import.path.first()?.as_str()));
    origins.filter(|origin| modules.contains(origin)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cycles(files: &[(&str, &str)]) -> Vec<String> {
        let parse = |(path, text): &(&str, &str)| {
            let module = path.split('/').filter(|part| *part != "lib").map(ToOwned::to_owned).collect();
            SourceFile::parse(&format!("{path}.rs"), Some(module), text).unwrap()
        };
        ModuleGraph::new(&files.iter().map(parse).collect::<Vec<_>>()).cycles()
    }

    #[test]
    fn a_cycle_is_found_and_each_step_has_a_place() {
        let found = cycles(&[
            ("lib", "mod a; mod b; mod c; mod d;"),
            ("a", "use crate::b::B;"),
            ("b/inner", "\nfn f() { super::super::c::f() }"),
            ("c", "fn f() { g!(crate::a::f()) }"),
            ("d", "use crate::{a, b, c};"),
        ]);
        let expected = "3 top-level modules form a cycle: a, b, c\n    a -> b   a.rs:1\n    b -> c   b/inner.rs:2\n    \
                        c -> a   c.rs:1";
        assert_eq!(found, [expected]);
    }

    #[test]
    fn layers_have_no_cycle() {
        let found = cycles(&[
            ("lib", "mod a; mod b; mod c; use c::f; pub use a::A;"),
            ("a", "use crate::b::B; use self::inner::x; mod inner { use super::y; }"),
            ("b", "use crate::c; use std::a; use crate::b::x;"),
            ("c", "use other::b;"),
        ]);
        assert_eq!(found, [""; 0]);
    }

    #[test]
    fn a_name_of_the_root_leads_to_the_module_it_comes_from() {
        let root = ("lib", "mod a; mod b; pub use a::{A as Named, x};");
        assert_eq!(cycles(&[root, ("a", "use crate::b;"), ("b", "use crate::Named;")]).len(), 1);
        assert_eq!(cycles(&[root, ("a", "use crate::b;"), ("b", "use super::x;")]).len(), 1);
        assert_eq!(cycles(&[root, ("a", "use crate::b;"), ("b", "use crate::OfTheRoot;")]).len(), 0);
        let root = ("lib", "mod a; mod b; pub use a::*;");
        assert_eq!(cycles(&[root, ("a", "use crate::b;"), ("b", "use crate::Named;")]).len(), 1);
    }

    #[test]
    fn tests_may_look_anywhere() {
        let found = cycles(&[
            ("lib", "mod a; mod b;"),
            ("a", "use crate::b; #[cfg(test)] mod tests;"),
            ("b", "#[cfg(test)] mod tests; mod other;"),
            ("b/tests", "use crate::a; mod deeper;"),
            ("b/tests/deeper", "use crate::a;"),
            ("b/other", "#![cfg(test)] use crate::a;"),
        ]);
        assert_eq!(found, [""; 0]);
    }

    #[test]
    fn cycles_apart_from_each_other_are_listed_apart() {
        let root = ("lib", "mod a; mod b; mod c; mod d;");
        let found = cycles(&[
            root,
            ("a", "use crate::b;"),
            ("b", "use crate::a; use crate::c;"),
            ("c", "use crate::d;"),
            ("d", "use crate::c;"),
        ]);
        assert_eq!(found.len(), 2);
    }
}
