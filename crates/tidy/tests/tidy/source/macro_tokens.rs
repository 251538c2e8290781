//! Reads the tokens of macro invocations, which have no syntax tree: paths, definitions and mentions.

use proc_macro2::{Delimiter, TokenStream, TokenTree};

use super::Definition;

/// A path found among tokens: its segments as written (`crate`, `store`, `Item`) and the line of the first.
pub(crate) type WrittenPath = (Vec<String>, usize);

/// Every path that begins with `crate`, `self` or `super` and continues with `::`. A tree in braces
/// (`crate::{a, b::c}`) gives one path per leaf.
pub(crate) fn paths(tokens: &TokenStream) -> Vec<WrittenPath> {
    let mut found = Vec::new();
    find_paths(&list(tokens), &mut found);
    found
}

fn find_paths(tokens: &[TokenTree], found: &mut Vec<WrittenPath>) {
    let mut at = 0;
    while let Some(token) = tokens.get(at) {
        match token {
            TokenTree::Ident(ident) if ["crate", "self", "super"].iter().any(|root| ident == root) => {
                at = read_path(tokens, at, Vec::new(), ident.span().start().line, found);
            }
            TokenTree::Group(group) => {
                find_paths(&list(&group.stream()), found);
                at += 1;
            }
            _ => at += 1,
        }
    }
}

/// Reads the rest of a path that begins with `segments`; its next segment is at `at`. Returns where the path ends.
fn read_path(
    tokens: &[TokenTree],
    mut at: usize,
    mut segments: Vec<String>,
    line: usize,
    found: &mut Vec<WrittenPath>,
) -> usize {
    loop {
        match tokens.get(at) {
            Some(TokenTree::Ident(ident)) => segments.push(ident.to_string()),
            Some(TokenTree::Group(group))
                if group.delimiter() == Delimiter::Brace && !segments.is_empty() =>
            {
                for branch in list(&group.stream()).split(|token| is_punct(Some(token), ',')) {
                    read_path(branch, 0, segments.clone(), line, found);
                }
                return at + 1;
            }
            _ => break,
        }
        at += 1;
        if !is_double_colon(tokens, at) {
            break;
        }
        at += 2;
    }
    if segments.len() > 1 {
        found.push((segments, line));
    }
    at
}

/// Names that are defined among tokens: what follows `struct`, `enum`, `trait`, `fn`, `mod`, `const`, `static`, `type`.
pub(crate) fn definitions(tokens: &TokenStream, found: &mut Vec<Definition>) {
    const KEYWORDS: [&str; 8] = ["struct", "enum", "trait", "fn", "mod", "const", "static", "type"];
    let tokens = list(tokens);
    for (at, token) in tokens.iter().enumerate() {
        match token {
            TokenTree::Group(group) => definitions(&group.stream(), found),
            TokenTree::Ident(word) => {
                let keyword = KEYWORDS.into_iter().find(|keyword| word == keyword);
                if let (Some(kind), Some(TokenTree::Ident(name))) = (keyword, tokens.get(at + 1))
                    && !KEYWORDS.iter().any(|keyword| name == keyword)
                {
                    found.push(Definition { kind, name: name.to_string(), line: name.span().start().line });
                }
            }
            TokenTree::Punct(_) | TokenTree::Literal(_) => {}
        }
    }
}

/// Names that are called or passed on among tokens, arguments before the call.
pub(crate) fn mentions(tokens: &TokenStream, found: &mut Vec<String>) {
    let tokens = list(tokens);
    let mut called = None;
    for (at, token) in tokens.iter().enumerate() {
        match token {
            TokenTree::Group(group) => {
                mentions(&group.stream(), found);
                found.extend(called.take());
            }
            TokenTree::Ident(name) if name == "await" => {
                found.extend(super::collect::AWAITED.map(str::to_owned))
            }
            TokenTree::Ident(name) => {
                let next = tokens.get(at + 1);
                let call = matches!(next, Some(TokenTree::Group(group)) if group.delimiter() == Delimiter::Parenthesis);
                if call {
                    called = Some(name.to_string());
                } else if at > 1 && is_double_colon(&tokens, at - 2) {
                    found.push(name.to_string());
                }
            }
            TokenTree::Punct(_) | TokenTree::Literal(_) => {}
        }
    }
}

fn list(tokens: &TokenStream) -> Vec<TokenTree> {
    tokens.clone().into_iter().collect()
}

fn is_punct(token: Option<&TokenTree>, character: char) -> bool {
    matches!(token, Some(TokenTree::Punct(punct)) if punct.as_char() == character)
}

fn is_double_colon(tokens: &[TokenTree], at: usize) -> bool {
    is_punct(tokens.get(at), ':') && is_punct(tokens.get(at + 1), ':')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(text: &str) -> Vec<String> {
        paths(&text.parse().unwrap()).into_iter().map(|(segments, _)| segments.join("::")).collect()
    }

    #[test]
    fn paths_are_found_in_nested_groups_and_trees() {
        assert_eq!(written("assert!(crate::a::f(super::b::X))"), ["crate::a::f", "super::b::X"]);
        assert_eq!(
            written("use crate::{a, b::{self, c as d}, e::*};"),
            ["crate::a", "crate::b::self", "crate::b::c", "crate::e"]
        );
        assert_eq!(written("$crate::a::f()"), ["crate::a::f"]);
    }

    #[test]
    fn a_receiver_and_a_visibility_are_no_paths() {
        assert_eq!(written("pub(crate) fn f(&self) { self.a; }"), [""; 0]);
    }

    #[test]
    fn mentions_are_in_the_order_of_evaluation() {
        let mut found = Vec::new();
        mentions(&"a(b(1), x.c()); Type::d".parse().unwrap(), &mut found);
        assert_eq!(found, ["b", "c", "a", "d"]);
    }

    #[test]
    fn definitions_follow_their_keyword() {
        let mut found = Vec::new();
        definitions(&"pub struct A { b: u8 } pub const fn c() {}".parse().unwrap(), &mut found);
        let names = found.iter().map(|one| (one.kind, one.name.as_str())).collect::<Vec<_>>();
        assert_eq!(names, [("struct", "A"), ("fn", "c")]);
    }
}
