//! Walks the syntax tree of a file and collects what [`SourceFile`] keeps of it.

use std::mem;

use syn::punctuated::Punctuated;
use syn::visit::{self, Visit};
use syn::{Attribute, Ident, Meta, Token};

use super::{Definition, Function, Import, Reference, SourceFile, macro_tokens};

/// What `.await` calls without naming it.
pub(crate) const AWAITED: [&str; 2] = ["into_future", "poll"];

/// Collects the facts of `syntax`, the file of the module `module`.
pub(crate) fn collect(syntax: &syn::File, module: Vec<String>) -> SourceFile {
    let mut collector = Collector { module, ..Collector::default() };
    collector.file.test_only = is_test_only(&syntax.attrs);
    collector.visit_file(syntax);
    collector.file
}

#[derive(Default)]
struct Collector {
    file: SourceFile,
    /// Module whose items are being visited, from the crate root.
    module: Vec<String>,
    /// How many of the enclosing items are for tests only.
    test_depth: usize,
    /// The type or trait whose block is being visited.
    owner: Option<String>,
    /// How many function bodies enclose what is being visited, and what the outermost mentions so far.
    function_depth: usize,
    mentions: Vec<String>,
}

impl Collector {
    /// Visits what carries `attributes`; while it does, everything counts as test code if they say so.
    fn with_attributes(&mut self, attributes: &[Attribute], visit: impl FnOnce(&mut Collector)) {
        let test_only = is_test_only(attributes);
        self.test_depth += usize::from(test_only);
        visit(self);
        self.test_depth -= usize::from(test_only);
    }

    fn define(&mut self, kind: &'static str, ident: &Ident) {
        let line = ident.span().start().line;
        self.file.definitions.push(Definition { kind, name: ident.to_string(), line });
    }

    /// Records a path as written, if it leads into the own crate and stands in production code.
    fn refer(&mut self, written: &[String], line: usize) {
        if self.test_depth == 0
            && let Some(path) = resolve(&self.module, written)
            && !path.is_empty()
        {
            self.file.references.push(Reference { path, line });
        }
    }

    fn mention(&mut self, name: &Ident) {
        if self.function_depth > 0 && name != "self" {
            self.mentions.push(name.to_string());
        }
    }

    /// Visits a function body, and records the function with what its body mentions.
    fn function(&mut self, name: &Ident, visit: impl FnOnce(&mut Collector)) {
        self.define("fn", name);
        self.function_depth += 1;
        let outer = mem::take(&mut self.mentions);
        visit(self);
        let mentions = mem::replace(&mut self.mentions, outer);
        self.function_depth -= 1;
        if self.test_depth == 0 {
            // A function inside of a function is part of it: the outer one mentions what the inner one does.
            if self.function_depth > 0 {
                self.mentions.extend(mentions.iter().cloned());
            }
            self.file.functions.push(Function {
                name: name.to_string(),
                owner: self.owner.clone(),
                mentions,
            });
        }
    }

    fn use_tree(&mut self, tree: &syn::UseTree, prefix: &mut Vec<(String, usize)>) {
        match tree {
            syn::UseTree::Path(path) => {
                prefix.push((path.ident.to_string(), path.ident.span().start().line));
                self.use_tree(&path.tree, prefix);
                prefix.pop();
            }
            syn::UseTree::Name(name) => self.import(prefix, Some(&name.ident), &name.ident.to_string()),
            syn::UseTree::Rename(rename) => {
                self.import(prefix, Some(&rename.ident), &rename.rename.to_string());
            }
            syn::UseTree::Glob(_) => self.import(prefix, None, "*"),
            syn::UseTree::Group(group) => {
                for tree in &group.items {
                    self.use_tree(tree, prefix);
                }
            }
        }
    }

    fn import(&mut self, prefix: &[(String, usize)], leaf: Option<&Ident>, name: &str) {
        let mut written = prefix.iter().map(|(segment, _)| segment.clone()).collect::<Vec<_>>();
        written.extend(leaf.filter(|leaf| *leaf != "self").map(ToString::to_string));
        let line = match (leaf, prefix.last()) {
            (Some(leaf), _) => leaf.span().start().line,
            (None, Some((_, line))) => *line,
            (None, None) => 0,
        };
        self.refer(&written, line);
        if self.module.is_empty() && self.function_depth == 0 && self.test_depth == 0 {
            let path = resolve(&self.module, &written).unwrap_or(written);
            let name =
                if name == "self" { path.last().cloned().unwrap_or_default() } else { name.to_owned() };
            self.file.imports.push(Import { name, path });
        }
    }
}

/// The path from the crate root that `written` has in `module`; `None` when it does not begin in the own crate.
fn resolve(module: &[String], written: &[String]) -> Option<Vec<String>> {
    let mut base = match written.first()?.as_str() {
        "crate" => Vec::new(),
        "self" | "super" => module.to_vec(),
        _ => return None,
    };
    for segment in written {
        match segment.as_str() {
            "crate" | "self" => {}
            "super" => {
                base.pop();
            }
            _ => base.push(segment.clone()),
        }
    }
    Some(base)
}

/// Whether code with these attributes is compiled for tests only.
fn is_test_only(attributes: &[Attribute]) -> bool {
    attributes.iter().any(|attribute| match &attribute.meta {
        Meta::Path(path) => path.segments.last().is_some_and(|last| last.ident == "test"),
        Meta::List(list) if list.path.is_ident("cfg") => {
            list.parse_args::<Meta>().is_ok_and(|meta| needs_test(&meta))
        }
        Meta::List(list) => list.path.segments.last().is_some_and(|last| last.ident == "test"),
        Meta::NameValue(_) => false,
    })
}

/// Whether a `cfg` predicate can only hold when `test` does.
fn needs_test(predicate: &Meta) -> bool {
    let parts = |list: &syn::MetaList| {
        list.parse_args_with(Punctuated::<Meta, Token![,]>::parse_terminated).unwrap_or_default()
    };
    match predicate {
        Meta::Path(path) => path.is_ident("test"),
        Meta::List(list) if list.path.is_ident("all") => parts(list).iter().any(needs_test),
        Meta::List(list) if list.path.is_ident("any") => parts(list).iter().all(needs_test),
        Meta::List(_) | Meta::NameValue(_) => false,
    }
}

fn item_attributes(item: &syn::Item) -> &[Attribute] {
    match item {
        syn::Item::Const(item) => &item.attrs,
        syn::Item::Enum(item) => &item.attrs,
        syn::Item::Fn(item) => &item.attrs,
        syn::Item::Impl(item) => &item.attrs,
        syn::Item::Macro(item) => &item.attrs,
        syn::Item::Mod(item) => &item.attrs,
        syn::Item::Static(item) => &item.attrs,
        syn::Item::Struct(item) => &item.attrs,
        syn::Item::Trait(item) => &item.attrs,
        syn::Item::Type(item) => &item.attrs,
        syn::Item::Union(item) => &item.attrs,
        syn::Item::Use(item) => &item.attrs,
        _ => &[],
    }
}

/// The name of the type that an `impl` block is for.
fn type_name(of: &syn::Type) -> Option<String> {
    match of {
        syn::Type::Path(path) => path.path.segments.last().map(|last| last.ident.to_string()),
        syn::Type::Reference(reference) => type_name(&reference.elem),
        _ => None,
    }
}

impl<'ast> Visit<'ast> for Collector {
    fn visit_item(&mut self, item: &'ast syn::Item) {
        self.with_attributes(item_attributes(item), |this| visit::visit_item(this, item));
    }

    fn visit_impl_item(&mut self, item: &'ast syn::ImplItem) {
        let attributes: &[Attribute] = match item {
            syn::ImplItem::Const(item) => &item.attrs,
            syn::ImplItem::Fn(item) => &item.attrs,
            syn::ImplItem::Type(item) => &item.attrs,
            syn::ImplItem::Macro(item) => &item.attrs,
            _ => &[],
        };
        self.with_attributes(attributes, |this| visit::visit_impl_item(this, item));
    }

    fn visit_trait_item(&mut self, item: &'ast syn::TraitItem) {
        let attributes: &[Attribute] = match item {
            syn::TraitItem::Const(item) => &item.attrs,
            syn::TraitItem::Fn(item) => &item.attrs,
            syn::TraitItem::Type(item) => &item.attrs,
            syn::TraitItem::Macro(item) => &item.attrs,
            _ => &[],
        };
        self.with_attributes(attributes, |this| visit::visit_trait_item(this, item));
    }

    fn visit_field(&mut self, field: &'ast syn::Field) {
        if let Some(ident) = &field.ident {
            self.define("field", ident);
        }
        self.with_attributes(&field.attrs, |this| visit::visit_field(this, field));
    }

    fn visit_variant(&mut self, variant: &'ast syn::Variant) {
        self.define("variant", &variant.ident);
        self.with_attributes(&variant.attrs, |this| visit::visit_variant(this, variant));
    }

    fn visit_arm(&mut self, arm: &'ast syn::Arm) {
        self.with_attributes(&arm.attrs, |this| visit::visit_arm(this, arm));
    }

    fn visit_local(&mut self, local: &'ast syn::Local) {
        self.with_attributes(&local.attrs, |this| visit::visit_local(this, local));
    }

    fn visit_field_value(&mut self, value: &'ast syn::FieldValue) {
        self.with_attributes(&value.attrs, |this| visit::visit_field_value(this, value));
    }

    fn visit_stmt_macro(&mut self, statement: &'ast syn::StmtMacro) {
        self.with_attributes(&statement.attrs, |this| visit::visit_stmt_macro(this, statement));
    }

    fn visit_item_mod(&mut self, item: &'ast syn::ItemMod) {
        self.define("mod", &item.ident);
        self.module.push(item.ident.to_string());
        if item.content.is_none() && self.test_depth > 0 {
            self.file.test_modules.push(self.module.clone());
        }
        visit::visit_item_mod(self, item);
        self.module.pop();
    }

    fn visit_item_struct(&mut self, item: &'ast syn::ItemStruct) {
        self.define("struct", &item.ident);
        visit::visit_item_struct(self, item);
    }

    fn visit_item_enum(&mut self, item: &'ast syn::ItemEnum) {
        self.define("enum", &item.ident);
        visit::visit_item_enum(self, item);
    }

    fn visit_item_type(&mut self, item: &'ast syn::ItemType) {
        self.define("type", &item.ident);
        visit::visit_item_type(self, item);
    }

    fn visit_item_const(&mut self, item: &'ast syn::ItemConst) {
        self.define("const", &item.ident);
        visit::visit_item_const(self, item);
    }

    fn visit_item_static(&mut self, item: &'ast syn::ItemStatic) {
        self.define("static", &item.ident);
        visit::visit_item_static(self, item);
    }

    fn visit_impl_item_const(&mut self, item: &'ast syn::ImplItemConst) {
        self.define("const", &item.ident);
        visit::visit_impl_item_const(self, item);
    }

    fn visit_item_trait(&mut self, item: &'ast syn::ItemTrait) {
        self.define("trait", &item.ident);
        let outer = self.owner.replace(item.ident.to_string());
        visit::visit_item_trait(self, item);
        self.owner = outer;
    }

    fn visit_trait_item_type(&mut self, item: &'ast syn::TraitItemType) {
        self.define("type", &item.ident);
        visit::visit_trait_item_type(self, item);
    }

    fn visit_trait_item_const(&mut self, item: &'ast syn::TraitItemConst) {
        self.define("const", &item.ident);
        visit::visit_trait_item_const(self, item);
    }

    fn visit_item_impl(&mut self, item: &'ast syn::ItemImpl) {
        let outer = mem::replace(&mut self.owner, type_name(&item.self_ty));
        visit::visit_item_impl(self, item);
        self.owner = outer;
    }

    fn visit_item_fn(&mut self, item: &'ast syn::ItemFn) {
        self.function(&item.sig.ident, |this| visit::visit_item_fn(this, item));
    }

    fn visit_impl_item_fn(&mut self, item: &'ast syn::ImplItemFn) {
        self.function(&item.sig.ident, |this| visit::visit_impl_item_fn(this, item));
    }

    fn visit_trait_item_fn(&mut self, item: &'ast syn::TraitItemFn) {
        self.function(&item.sig.ident, |this| visit::visit_trait_item_fn(this, item));
    }

    fn visit_item_use(&mut self, item: &'ast syn::ItemUse) {
        self.use_tree(&item.tree, &mut Vec::new());
    }

    fn visit_visibility(&mut self, _: &'ast syn::Visibility) {}

    fn visit_path(&mut self, path: &'ast syn::Path) {
        let written = path.segments.iter().map(|segment| segment.ident.to_string()).collect::<Vec<_>>();
        if let Some(first) = path.segments.first()
            && written.len() > 1
        {
            self.refer(&written, first.ident.span().start().line);
        }
        visit::visit_path(self, path);
        if let Some(last) = path.segments.last() {
            self.mention(&last.ident);
        }
    }

    fn visit_type(&mut self, of: &'ast syn::Type) {
        // A type is no call: its names are references, but no mentions.
        let before = self.mentions.len();
        visit::visit_type(self, of);
        self.mentions.truncate(before);
    }

    // Arguments are evaluated before the call that takes them, so their mentions come first.
    fn visit_expr_call(&mut self, call: &'ast syn::ExprCall) {
        for argument in &call.args {
            self.visit_expr(argument);
        }
        self.visit_expr(&call.func);
    }

    fn visit_expr_method_call(&mut self, call: &'ast syn::ExprMethodCall) {
        self.visit_expr(&call.receiver);
        if let Some(turbofish) = &call.turbofish {
            self.visit_angle_bracketed_generic_arguments(turbofish);
        }
        for argument in &call.args {
            self.visit_expr(argument);
        }
        self.mention(&call.method);
    }

    fn visit_expr_await(&mut self, awaited: &'ast syn::ExprAwait) {
        visit::visit_expr_await(self, awaited);
        if self.function_depth > 0 {
            self.mentions.extend(AWAITED.map(str::to_owned));
        }
    }

    fn visit_macro(&mut self, invocation: &'ast syn::Macro) {
        for (written, line) in macro_tokens::paths(&invocation.tokens) {
            self.refer(&written, line);
        }
        macro_tokens::definitions(&invocation.tokens, &mut self.file.definitions);
        if self.function_depth > 0 {
            macro_tokens::mentions(&invocation.tokens, &mut self.mentions);
        }
        self.visit_path(&invocation.path);
    }

    fn visit_attribute(&mut self, attribute: &'ast Attribute) {
        let Meta::List(list) = &attribute.meta else { return };
        for (written, line) in macro_tokens::paths(&list.tokens) {
            self.refer(&written, line);
        }
        // serde names functions in strings: `with = "crate::dates"`.
        for token in list.tokens.clone() {
            let line = token.span().start().line;
            if let Ok(text) = syn::parse_str::<syn::LitStr>(&token.to_string())
                && let Ok(path) = syn::parse_str::<syn::Path>(&text.value())
            {
                let written =
                    path.segments.iter().map(|segment| segment.ident.to_string()).collect::<Vec<_>>();
                self.refer(&written, line);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(module: &[&str], text: &str) -> SourceFile {
        let module = module.iter().map(ToString::to_string).collect();
        SourceFile::parse("a.rs", Some(module), text).unwrap()
    }

    fn references(module: &[&str], text: &str) -> Vec<String> {
        let mut found =
            parse(module, text).references.iter().map(|one| one.path.join("::")).collect::<Vec<_>>();
        found.sort();
        found
    }

    #[test]
    fn paths_are_resolved_to_the_crate_root() {
        assert_eq!(references(&["a"], "use crate::{b, c::D as E, f::*}; use std::io;"), ["b", "c::D", "f"]);
        assert_eq!(
            references(&["a", "x"], "use super::y; use super::super::b::{self, C};"),
            ["a::y", "b", "b::C"]
        );
        assert_eq!(references(&["a"], "fn f(x: crate::b::T) { super::c::g(x) }"), ["b::T", "c::g"]);
        assert_eq!(references(&["a"], "mod inner { use super::super::b; }"), ["b"]);
    }

    #[test]
    fn paths_in_macros_and_in_attributes_count() {
        assert_eq!(references(&["a"], "fn f() { println!(\"{}\", crate::b::C); }"), ["b::C"]);
        assert_eq!(references(&["a"], "macro_rules! m { () => { $crate::b::f() } }"), ["b::f"]);
        assert_eq!(references(&["a"], "struct A { #[serde(with = \"crate::dates\")] b: u8 }"), ["dates"]);
    }

    #[test]
    fn code_for_tests_does_not_count() {
        let none = [""; 0];
        assert_eq!(references(&["a"], "#[cfg(test)] mod tests { use crate::b; }"), none);
        assert_eq!(references(&["a"], "#[cfg(all(test, feature = \"x\"))] use crate::b;"), none);
        assert_eq!(references(&["a"], "#[test] fn t() { crate::b::f(); }"), none);
        assert_eq!(references(&["a"], "impl A { #[cfg(test)] fn f() { crate::b::f(); } }"), none);
        assert_eq!(references(&["a"], "#[cfg(any(test, feature = \"x\"))] use crate::b;"), ["b"]);
        assert_eq!(references(&["a"], "#[cfg(not(test))] use crate::b;"), ["b"]);
    }

    #[test]
    fn modules_for_tests_in_files_of_their_own_are_listed() {
        assert_eq!(parse(&["a"], "#[cfg(test)] mod tests; mod b;").test_modules, [["a", "tests"]]);
        assert!(parse(&["a"], "#![cfg(test)]").test_only);
    }

    #[test]
    fn imports_of_the_root_have_a_name_and_a_path() {
        let imports = parse(&[], "pub use a::{T, U as V, self}; pub use self::b::*;").imports;
        let shown =
            imports.iter().map(|one| format!("{} = {}", one.name, one.path.join("::"))).collect::<Vec<_>>();
        assert_eq!(shown, ["T = a::T", "V = a::U", "a = a", "* = b"]);
    }

    #[test]
    fn a_function_mentions_calls_in_the_order_of_evaluation() {
        let file = parse(&["a"], "impl A { async fn f(&self) { g(self.h(Self::i).await); } }");
        assert_eq!(file.functions[0].owner.as_deref(), Some("A"));
        assert_eq!(file.functions[0].mentions, ["i", "h", "into_future", "poll", "g"]);
    }

    #[test]
    fn definitions_have_their_kind() {
        let file = parse(
            &["a"],
            "struct A { b: u8 } enum C { D } trait E { fn f(); } const G: u8 = 1; type H = u8;",
        );
        let shown =
            file.definitions.iter().map(|one| format!("{} {}", one.kind, one.name)).collect::<Vec<_>>();
        assert_eq!(
            shown,
            ["struct A", "field b", "enum C", "variant D", "trait E", "fn f", "const G", "type H"]
        );
    }
}
