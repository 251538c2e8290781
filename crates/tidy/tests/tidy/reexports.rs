//! Every type in a public signature of the package `perihelion` can be named through that package.
//!
//! A signature is read as it is written: names are resolved by the `use` declarations of their file. A type of another
//! crate must stand in a `pub use` of the crate root, or its whole crate must; a type of the package itself must be
//! exported by the root.

use std::collections::{BTreeMap, BTreeSet};

use syn::visit::Visit;

use crate::workspace::{find, read, relative, root};

const ROOT: &str = "crates/client/src/lib.rs";

#[test]
fn types_in_public_signatures_are_exported() {
    let mut paths = Vec::new();
    find(&root().join("crates/client/src"), "rs", &mut paths);
    let paths = paths.iter().map(|path| relative(path));
    let files: Vec<(String, String)> = paths.map(|path| (path.clone(), read(&path))).collect();
    let problems = problems(&read(ROOT), &files);
    assert!(problems.is_empty(), "add a `pub use` to {ROOT}:\n{}", problems.join("\n"));
}

/// What the crate root exports.
#[derive(Debug, Default)]
struct Exports {
    /// Types of the package itself.
    own: BTreeSet<String>,
    /// Types of other crates: crate and name.
    of_other_crates: BTreeSet<(String, String)>,
    /// Crates that are exported as a whole.
    crates: BTreeSet<String>,
    /// Modules of the package, whose files are private.
    modules: BTreeSet<String>,
    /// Public modules in files of their own: what is public there is exported.
    modules_in_files: BTreeSet<String>,
    /// The name by which a type of another crate is known in the root, with its crate.
    root_names: BTreeSet<String>,
}

/// One line for each type that a public signature names and the root does not export.
fn problems(root: &str, files: &[(String, String)]) -> Vec<String> {
    let root = syn::parse_file(root).expect("a crate root");
    let mut exports = Exports::default();
    for item in &root.items {
        if let syn::Item::Mod(module) = item {
            exports.modules.insert(module.ident.to_string());
        }
    }
    collect_exports(&root.items, &mut exports);
    for module in exports.modules_in_files.clone() {
        let of_module = files.iter().filter(|(path, _)| {
            path.ends_with(&format!("/src/{module}.rs")) || path.ends_with(&format!("/src/{module}/mod.rs"))
        });
        for (path, text) in of_module {
            let file = syn::parse_file(text).unwrap_or_else(|error| panic!("{path}: {error}"));
            collect_exports(&file.items, &mut exports);
            exports.own.extend(file.items.iter().filter_map(public_type));
        }
    }
    let mut problems = BTreeSet::new();
    for (path, text) in files {
        let file = syn::parse_file(text).unwrap_or_else(|error| panic!("{path}: {error}"));
        let mut imports = BTreeMap::new();
        for item in &file.items {
            if let syn::Item::Use(item) = item {
                flatten(&item.tree, &mut Vec::new(), &mut |name, path| {
                    imports.insert(name.to_owned(), path.to_vec());
                });
            }
        }
        let names = SignatureNames { exports: &exports, imports, generics: Vec::new(), found: Vec::new() };
        for problem in names.of_file(&file) {
            problems.insert(format!("{path}: {problem}"));
        }
    }
    problems.into_iter().collect()
}

fn collect_exports(items: &[syn::Item], exports: &mut Exports) {
    for item in items {
        match item {
            syn::Item::Use(item) if is_public(&item.vis) => {
                flatten(&item.tree, &mut Vec::new(), &mut |name, path| {
                    let (first, last) = (&path[0], &path[path.len() - 1]);
                    if exports.modules.contains(first) {
                        exports.own.insert(last.clone());
                    } else if path.len() == 1 {
                        exports.crates.insert(first.clone());
                    } else {
                        exports.of_other_crates.insert((first.clone(), last.clone()));
                        exports.root_names.insert(name.to_owned());
                    }
                });
            }
            syn::Item::Mod(module) if is_public(&module.vis) => match &module.content {
                Some((_, items)) => collect_exports(items, exports),
                None => {
                    exports.modules_in_files.insert(module.ident.to_string());
                }
            },
            _ => {}
        }
    }
}

/// The name of a public type.
fn public_type(item: &syn::Item) -> Option<String> {
    let (visibility, name) = match item {
        syn::Item::Struct(item) => (&item.vis, &item.ident),
        syn::Item::Enum(item) => (&item.vis, &item.ident),
        syn::Item::Trait(item) => (&item.vis, &item.ident),
        syn::Item::Type(item) => (&item.vis, &item.ident),
        _ => return None,
    };
    is_public(visibility).then(|| name.to_string())
}

fn is_public(visibility: &syn::Visibility) -> bool {
    matches!(visibility, syn::Visibility::Public(_))
}

/// Calls `each` with every name that a `use` tree brings in, and the path behind it.
fn flatten(tree: &syn::UseTree, path: &mut Vec<String>, each: &mut impl FnMut(&str, &[String])) {
    match tree {
        syn::UseTree::Path(tree) => {
            path.push(tree.ident.to_string());
            flatten(&tree.tree, path, each);
            path.pop();
        }
        syn::UseTree::Name(tree) => with_last(path, &tree.ident, |path| {
            let name = tree.ident.to_string();
            // `use a::b::{self}` names `b`.
            match name.as_str() {
                "self" => each(&path[path.len() - 2], &path[..path.len() - 1]),
                name => each(name, path),
            }
        }),
        syn::UseTree::Rename(tree) => {
            with_last(path, &tree.ident, |path| each(&tree.rename.to_string(), path));
        }
        syn::UseTree::Group(tree) => tree.items.iter().for_each(|tree| flatten(tree, path, each)),
        syn::UseTree::Glob(_) => {}
    }
}

fn with_last(path: &mut Vec<String>, last: &syn::Ident, run: impl FnOnce(&[String])) {
    path.push(last.to_string());
    run(path);
    path.pop();
}

/// Collects the names in public signatures that cannot be named from outside.
struct SignatureNames<'a> {
    exports: &'a Exports,
    imports: BTreeMap<String, Vec<String>>,
    /// Type parameters in scope.
    generics: Vec<String>,
    found: Vec<String>,
}

/// Names that need no import: the prelude and primitive types.
const KNOWN: [&str; 31] = [
    "AsRef",
    "AsyncFn",
    "Box",
    "Clone",
    "Copy",
    "Default",
    "Drop",
    "Eq",
    "Fn",
    "FnMut",
    "FnOnce",
    "From",
    "Future",
    "Into",
    "IntoFuture",
    "IntoIterator",
    "Iterator",
    "None",
    "Option",
    "PartialEq",
    "Result",
    "Self",
    "Send",
    "Sized",
    "Some",
    "String",
    "Sync",
    "ToString",
    "TryFrom",
    "Unpin",
    "Vec",
];

impl SignatureNames<'_> {
    fn of_file(mut self, file: &syn::File) -> Vec<String> {
        file.items.iter().for_each(|item| self.item(item));
        self.found
    }

    fn item(&mut self, item: &syn::Item) {
        match item {
            syn::Item::Impl(item) if self.is_exported(&item.self_ty) => self.with(&item.generics, |names| {
                if let Some((path, _)) = &item.trait_ {
                    names.visit_path(path);
                }
                for inner in &item.items {
                    match inner {
                        syn::ImplItem::Fn(function) if is_public(&function.vis) => {
                            names.with(&function.sig.generics, |names| names.visit_signature(&function.sig));
                        }
                        syn::ImplItem::Type(alias) => names.visit_type(&alias.ty),
                        _ => {}
                    }
                }
            }),
            syn::Item::Struct(item) if self.exports.own.contains(&item.ident.to_string()) => {
                self.with(&item.generics, |names| {
                    for field in item.fields.iter().filter(|field| is_public(&field.vis)) {
                        names.visit_type(&field.ty);
                    }
                });
            }
            syn::Item::Enum(item) if self.exports.own.contains(&item.ident.to_string()) => {
                self.with(&item.generics, |names| {
                    item.variants.iter().flat_map(|variant| &variant.fields).for_each(|field| {
                        names.visit_type(&field.ty);
                    });
                });
            }
            syn::Item::Type(item) if self.exports.own.contains(&item.ident.to_string()) => {
                self.with(&item.generics, |names| names.visit_type(&item.ty));
            }
            syn::Item::Trait(item) if self.exports.own.contains(&item.ident.to_string()) => {
                self.with(&item.generics, |names| {
                    for inner in &item.items {
                        if let syn::TraitItem::Fn(function) = inner {
                            names.with(&function.sig.generics, |names| names.visit_signature(&function.sig));
                        }
                    }
                });
            }
            // The methods of a macro: their types are written from the root.
            syn::Item::Macro(item) if item.mac.path.is_ident("macro_rules") => {
                let text = item.mac.tokens.to_string().replace(' ', "");
                for rest in text.split("$crate::").skip(1) {
                    let name: String = rest.chars().take_while(|c| c.is_alphanumeric()).collect();
                    if name.starts_with(char::is_uppercase) && !self.is_root_name(&name) {
                        self.found.push(format!("`{name}` is in a signature of a macro"));
                    }
                }
            }
            _ => {}
        }
    }

    /// Looks at something with these type parameters in scope.
    fn with(&mut self, generics: &syn::Generics, look: impl FnOnce(&mut Self)) {
        let before = self.generics.len();
        self.generics.extend(generics.type_params().map(|parameter| parameter.ident.to_string()));
        self.visit_generics(generics);
        look(self);
        self.generics.truncate(before);
    }

    fn is_exported(&self, implementor: &syn::Type) -> bool {
        let syn::Type::Path(implementor) = implementor else { return false };
        implementor
            .path
            .segments
            .last()
            .is_some_and(|last| self.exports.own.contains(&last.ident.to_string()))
    }

    fn is_root_name(&self, name: &str) -> bool {
        self.exports.own.contains(name) || self.exports.root_names.contains(name)
    }

    /// Why a path cannot be named from outside; none if it can.
    fn problem(&self, path: &[String]) -> Option<String> {
        let (first, last) = (path[0].as_str(), path[path.len() - 1].as_str());
        let is_exported = match first {
            "std" | "core" | "alloc" => true,
            "crate" | "self" | "super" if self.exports.modules.contains(last) => true,
            "crate" | "self" | "super" => self.is_root_name(last),
            _ => {
                self.exports.crates.contains(first)
                    || self.exports.of_other_crates.contains(&(first.to_owned(), last.to_owned()))
            }
        };
        (!is_exported).then(|| format!("`{}` is in a public signature", path.join("::")))
    }
}

impl<'ast> Visit<'ast> for SignatureNames<'_> {
    fn visit_path(&mut self, path: &'ast syn::Path) {
        // Attributes and lifetimes have no arguments, and arguments of paths are paths themselves.
        syn::visit::visit_path(self, path);
        let segments: Vec<String> = path.segments.iter().map(|segment| segment.ident.to_string()).collect();
        let first = segments[0].as_str();
        let is_primitive = first.starts_with(char::is_lowercase) && segments.len() == 1;
        if is_primitive || KNOWN.contains(&first) && !self.imports.contains_key(first) {
            return;
        }
        if self.generics.iter().any(|generic| generic == first) {
            return;
        }
        let whole = match self.imports.get(first) {
            Some(import) => import.iter().chain(&segments[1..]).cloned().collect(),
            // A type of the same file.
            None if segments.len() == 1 => vec!["crate".to_owned(), first.to_owned()],
            None => segments,
        };
        self.found.extend(self.problem(&whole));
    }

    /// Bodies are no part of a signature.
    fn visit_block(&mut self, _: &'ast syn::Block) {}

    fn visit_attribute(&mut self, _: &'ast syn::Attribute) {}
}

#[cfg(test)]
mod tests {
    use super::*;

    const ROOT: &str = "
        mod call;
        pub use call::{Call, Page};
        pub use bytes::Bytes;
        pub use driver;
        pub mod policies { pub use protocol::container::Policy; }
    ";

    fn check(file: &str) -> Vec<String> {
        problems(ROOT, &[("call.rs".to_owned(), file.to_owned())])
    }

    #[test]
    fn what_is_exported_passes() {
        let file = "
            use bytes::Bytes;
            use driver::diagnostics::Diagnostics;
            use protocol::container::Policy;
            use std::time::Duration;
            pub struct Page<T> { pub items: Vec<T>, secret: hidden::Secret }
            pub struct Call<R>(fn() -> R);
            impl<R: Send> Call<R> {
                pub fn timeout(self, time: Duration, body: Bytes) -> Result<Page<R>, Diagnostics> { other::run() }
                pub fn policy(&self) -> Option<&Policy> { None }
                fn private(&self) -> hidden::Secret { hidden::Secret }
            }
            pub struct Unexported { pub secret: hidden::Secret }
        ";
        assert_eq!(check(file), Vec::<String>::new());
    }

    #[test]
    fn a_type_of_another_crate_that_is_not_exported_fails() {
        for (file, name) in [
            (
                "use futures::Stream; pub struct Call; impl Call { pub fn f() -> impl Stream<Item = u8> {} }",
                "futures::Stream",
            ),
            ("pub struct Page { pub at: time::OffsetDateTime }", "time::OffsetDateTime"),
            (
                "use serde::Serialize; pub struct Call<T>(T); impl<T: Serialize> Call<T> { pub fn f() {} }",
                "serde::Serialize",
            ),
            (
                "use futures::Stream; pub struct Call; impl Stream for Call { type Item = u8; }",
                "futures::Stream",
            ),
            ("pub struct Call; impl Iterator for Call { type Item = Vec<http::Uri>; }", "http::Uri"),
            ("pub struct Call; pub struct Inner; impl Call { pub fn f() -> Inner {} }", "Inner"),
            ("macro_rules! m { () => { pub fn f(x: $crate::Region) {} } }", "Region"),
        ] {
            let problems = check(file);
            assert!(problems.len() == 1 && problems[0].contains(name), "{file}: {problems:?}");
        }
    }
}
