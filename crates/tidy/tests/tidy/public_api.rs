//! The public items of the crates that users name, as a text file in each crate.
//!
//! A change of the public API changes that file, so that a review sees it and a release knows what to call its version. All
//! `pub` items are listed, because the lint `unreachable_pub` keeps others out. Of a macro that makes items the functions in its
//! text are listed, and where it is used.

use std::collections::BTreeSet;
use std::fs;

use proc_macro2::{Delimiter, TokenStream, TokenTree};
use quote::{ToTokens, quote};
use syn::{Attribute, Fields, ImplItem, Item, Signature, TraitItem, Visibility};

use crate::workspace;

/// The crates with a snapshot, by the names of their folders: `perihelion` and those whose types it exports.
const CRATES: [&str; 4] = ["client", "driver", "http", "protocol"];
/// Set to write the snapshots anew.
const BLESS: &str = "PERI_BLESS";

#[test]
fn public_items_are_those_of_the_snapshots() {
    for name in CRATES {
        let path = workspace::root().join(format!("crates/{name}/public-api.txt"));
        let items = public_items(name);
        if std::env::var_os(BLESS).is_some() {
            fs::write(&path, &items).expect("the snapshot can be written");
            continue;
        }
        let known = fs::read_to_string(&path).unwrap_or_default();
        let (old, new): (BTreeSet<&str>, BTreeSet<&str>) = (known.lines().collect(), items.lines().collect());
        let removed = old.difference(&new).map(|line| format!("- {line}\n"));
        let added = new.difference(&old).map(|line| format!("+ {line}\n"));
        let changes: String = removed.chain(added).collect();
        assert!(
            changes.is_empty(),
            "the public API of `{name}` has changed:\n{changes}if that is meant, write the snapshot anew: \
             {BLESS}=1 cargo test -p perihelion-tidy public_api, and add a line to CHANGELOG.md"
        );
    }
}

/// The public items of a crate, sorted, one per line.
fn public_items(name: &str) -> String {
    let (mut paths, mut lines) = (Vec::new(), BTreeSet::new());
    workspace::find(&workspace::root().join(format!("crates/{name}/src")), "rs", &mut paths);
    for path in paths {
        let source = fs::read_to_string(&path).expect("a source file");
        let syntax = syn::parse_file(&source).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        if !syntax.attrs.iter().any(is_test) {
            collect(&syntax.items, &mut lines);
        }
    }
    lines.into_iter().map(|line| line + "\n").collect()
}

fn collect(items: &[Item], lines: &mut BTreeSet<String>) {
    for item in items {
        match item {
            Item::Mod(module) if !module.attrs.iter().any(is_test) => {
                if is_public(&module.vis) {
                    lines.insert(format!("{}mod {}", condition(&module.attrs), module.ident));
                }
                collect(module.content.as_ref().map_or(&[][..], |(_, items)| items), lines);
            }
            Item::Use(import) if is_public(&import.vis) => {
                lines.insert(format!("{}use {}", condition(&import.attrs), text(&import.tree)));
            }
            Item::Fn(function) if is_public(&function.vis) => {
                lines.insert(format!("{}{}", condition(&function.attrs), signature(&function.sig)));
            }
            Item::Const(constant) if is_public(&constant.vis) => {
                lines.insert(format!("const {}: {}", constant.ident, text(&constant.ty)));
            }
            Item::Type(alias) if is_public(&alias.vis) => {
                let (ident, generics, ty) = (&alias.ident, &alias.generics, &alias.ty);
                lines.insert(format!("type {}", text(&quote!(#ident #generics = #ty))));
            }
            Item::Struct(item) if is_public(&item.vis) => {
                let (ident, generics) = (&item.ident, &item.generics);
                let attributes = format!("{}{}", condition(&item.attrs), markers(&item.attrs));
                lines.insert(format!("{attributes}struct {}", text(&quote!(#ident #generics))));
                fields(&item.ident.to_string(), &item.fields, true, lines);
            }
            Item::Enum(item) if is_public(&item.vis) => {
                let (ident, generics) = (&item.ident, &item.generics);
                let attributes = format!("{}{}", condition(&item.attrs), markers(&item.attrs));
                lines.insert(format!("{attributes}enum {}", text(&quote!(#ident #generics))));
                for variant in &item.variants {
                    let name = format!("{}::{}", item.ident, variant.ident);
                    lines.insert(format!("{}variant {name}", condition(&variant.attrs)));
                    fields(&name, &variant.fields, false, lines);
                }
            }
            Item::Trait(item) if is_public(&item.vis) => {
                let (ident, generics, bounds) = (&item.ident, &item.generics, &item.supertraits);
                lines.insert(format!("trait {}", text(&quote!(#ident #generics : #bounds))));
                for member in &item.items {
                    if let TraitItem::Fn(function) = member {
                        let kind = if function.default.is_some() { "provided " } else { "" };
                        lines.insert(format!("{}::{kind}{}", item.ident, signature(&function.sig)));
                    }
                }
            }
            Item::Impl(item) => {
                let (generics, ty, clause) = (&item.generics, &item.self_ty, &item.generics.where_clause);
                if let Some((path, _)) = &item.trait_ {
                    lines.insert(format!("impl {}", text(&quote!(#generics #path for #ty #clause))));
                    continue;
                }
                for member in &item.items {
                    if let ImplItem::Fn(function) = member
                        && is_public(&function.vis)
                    {
                        let of = format!("{}{}", condition(&item.attrs), condition(&function.attrs));
                        lines.insert(format!("{of}{}::{}", text(ty), signature(&function.sig)));
                    }
                }
            }
            Item::Macro(item) => match &item.ident {
                Some(name) => public_functions(&name.to_string(), item.mac.tokens.clone(), lines),
                None => {
                    let (path, tokens) = (text(&item.mac.path), text(&item.mac.tokens));
                    lines.insert(format!("macro {path}!({tokens})"));
                }
            },
            _ => {}
        }
    }
}

/// The public functions in the text of the macro `name`, and in the groups inside of it.
fn public_functions(name: &str, tokens: TokenStream, lines: &mut BTreeSet<String>) {
    let tokens: Vec<TokenTree> = tokens.into_iter().collect();
    let is = |index: usize, word: &str| tokens.get(index).is_some_and(|token| token.to_string() == word);
    for (index, token) in tokens.iter().enumerate() {
        if is(index, "pub") && (is(index + 1, "fn") || is(index + 1, "async")) {
            let is_body = |token: &&TokenTree| match token {
                TokenTree::Group(group) => group.delimiter() == Delimiter::Brace,
                _ => false,
            };
            let function: TokenStream =
                tokens[index + 1..].iter().take_while(|token| !is_body(token)).cloned().collect();
            lines.insert(format!("macro {name}: {}", text(&function)));
        }
        if let TokenTree::Group(group) = token {
            public_functions(name, group.stream(), lines);
        }
    }
}

/// The fields that can be named: all of an enum's variant, and the public ones of a struct.
fn fields(owner: &str, fields: &Fields, only_public: bool, lines: &mut BTreeSet<String>) {
    for (index, field) in fields.iter().enumerate() {
        if is_public(&field.vis) || !only_public {
            let name = field.ident.as_ref().map_or_else(|| index.to_string(), ToString::to_string);
            lines.insert(format!("field {owner}.{name}: {}", text(&field.ty)));
        }
    }
}

fn is_public(visibility: &Visibility) -> bool {
    matches!(visibility, Visibility::Public(_))
}

fn is_test(attribute: &Attribute) -> bool {
    attribute.path().is_ident("cfg") && text(&attribute.meta) == "cfg(test)"
}

/// The condition under which an item is compiled, in front of it.
fn condition(attributes: &[Attribute]) -> String {
    let conditions = attributes.iter().filter(|attribute| attribute.path().is_ident("cfg"));
    conditions.map(|attribute| format!("#[{}] ", text(&attribute.meta))).collect()
}

/// The attributes that change what users may do with a type: derived traits, and that it may grow.
fn markers(attributes: &[Attribute]) -> String {
    let is_marker = |attribute: &&Attribute| {
        attribute.path().is_ident("derive") || attribute.path().is_ident("non_exhaustive")
    };
    attributes.iter().filter(is_marker).map(|attribute| format!("#[{}] ", text(&attribute.meta))).collect()
}

fn signature(signature: &Signature) -> String {
    text(signature)
}

/// The tokens as a person would write them on one line.
fn text(tokens: &impl ToTokens) -> String {
    let mut text = tokens.to_token_stream().to_string().replace('\n', " ");
    for (spaced, written) in [
        (" :: ", "::"),
        (":: ", "::"),
        (" ::", "::"),
        (" < ", "<"),
        ("< ", "<"),
        (" >", ">"),
        (" ,", ","),
        (", )", ")"),
        (",)", ")"),
        (", }", " }"),
        (" ;", ";"),
        (" :", ":"),
        (" (", "("),
        ("( ", "("),
        (" )", ")"),
        ("& ", "&"),
        (" [", "["),
        ("[ ", "["),
        (" ]", "]"),
        (" !", "!"),
        ("' ", "'"),
        (" . ", "."),
        ("- >", "->"),
        ("->", " -> "),
        ("  ", " "),
    ] {
        text = text.replace(spaced, written);
    }
    text.replace("=>", "=> ").replace("  ", " ").trim().trim_end_matches(':').to_owned()
}

#[test]
fn signatures_are_written_as_people_do() {
    for source in [
        "fn read<T: Clone>(&self, key: impl Into<Key>, id: &str) -> Result<Vec<T>>",
        "async fn wait(self) -> Result<()>",
        "fn values<'a>(self) -> Values<'a, T>",
    ] {
        let function: syn::ItemFn = syn::parse_str(&format!("{source} {{}}")).expect("a function");
        assert_eq!(signature(&function.sig), source);
    }
}

#[test]
fn only_what_is_public_is_listed() {
    let source = "
        pub struct A { pub b: u8, c: u8 }
        struct Hidden { pub d: u8 }
        #[derive(Clone)] #[non_exhaustive] pub enum E { F(u8) }
        impl A { pub fn g(&self) {} fn h(&self) {} }
        #[cfg(feature = \"x\")] pub fn i() {}
        #[cfg(test)] mod tests { pub fn j() {} }
        pub(crate) fn k() {}
        macro_rules! options { ($a:ident) => { impl $a { pub fn l(self) -> Self { self } fn m() {} } } }
        options!(A);
    ";
    let mut lines = BTreeSet::new();
    collect(&syn::parse_file(source).expect("Rust").items, &mut lines);
    let expected = [
        "#[cfg(feature = \"x\")] fn i()",
        "#[derive(Clone)] #[non_exhaustive] enum E",
        "A::fn g(&self)",
        "field A.b: u8",
        "field E::F.0: u8",
        "macro options!(A)",
        "macro options: fn l(self) -> Self",
        "struct A",
        "variant E::F",
    ];
    assert_eq!(lines.iter().map(String::as_str).collect::<Vec<_>>(), expected);
}
