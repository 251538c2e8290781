//! Finds the doc comments of a token stream, inside macros as well.

use proc_macro2::{Delimiter, Group, Literal, TokenStream, TokenTree};

use super::DocBlock;

/// Every block of `///` or `//!` lines in `tokens`. Lines that follow each other directly are one block.
pub(crate) fn doc_blocks(tokens: &TokenStream) -> Vec<DocBlock> {
    let mut lines = Vec::new();
    find_lines(tokens, &mut lines);
    let mut blocks: Vec<(DocBlock, DocLine)> = Vec::new();
    for line in lines {
        match blocks.last_mut() {
            Some((block, last)) if last.end + 1 == line.start && last.inner == line.inner => {
                block.text = format!("{} {}", block.text, line.text.trim()).trim().to_owned();
                *last = line;
            }
            _ => {
                let block = DocBlock { line: line.start, text: line.text.trim().to_owned() };
                blocks.push((block, line));
            }
        }
    }
    blocks.into_iter().map(|(block, _)| block).collect()
}

/// One `#[doc = "…"]`, which is what the compiler makes of a line of documentation.
struct DocLine {
    start: usize,
    end: usize,
    inner: bool,
    text: String,
}

fn find_lines(tokens: &TokenStream, lines: &mut Vec<DocLine>) {
    let mut after_hash = None; // Some(inner): a `#`, or `#!`, stands directly before.
    for token in tokens.clone() {
        match token {
            TokenTree::Punct(punct) if punct.as_char() == '#' => after_hash = Some(false),
            TokenTree::Punct(punct) if punct.as_char() == '!' && after_hash.is_some() => {
                after_hash = Some(true)
            }
            TokenTree::Group(group) => match (after_hash.take(), doc_text(&group)) {
                (Some(inner), Some(literal)) => lines.push(DocLine {
                    start: literal.span().start().line,
                    end: literal.span().end().line,
                    inner,
                    text: unquoted(&literal),
                }),
                _ => find_lines(&group.stream(), lines),
            },
            _ => after_hash = None,
        }
    }
}

/// The literal of `[doc = "…"]`.
fn doc_text(group: &Group) -> Option<Literal> {
    if group.delimiter() != Delimiter::Bracket {
        return None;
    }
    let mut tokens = group.stream().into_iter();
    match (tokens.next()?, tokens.next()?, tokens.next()?) {
        (TokenTree::Ident(name), TokenTree::Punct(equals), TokenTree::Literal(literal))
            if name == "doc" && equals.as_char() == '=' =>
        {
            Some(literal)
        }
        _ => None,
    }
}

fn unquoted(literal: &Literal) -> String {
    match syn::parse_str::<syn::LitStr>(&literal.to_string()) {
        Ok(text) => text.value(),
        Err(_) => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn blocks(text: &str) -> Vec<(usize, String)> {
        doc_blocks(&text.parse().unwrap()).into_iter().map(|block| (block.line, block.text)).collect()
    }

    #[test]
    fn consecutive_lines_are_one_block() {
        let text = "//! A file.\n\n/// One\n/// two.\nstruct A;\n/// Three.\nstruct B;\n";
        assert_eq!(blocks(text), [(1, "A file.".into()), (3, "One two.".into()), (6, "Three.".into())]);
    }

    #[test]
    fn documentation_inside_a_macro_counts_and_inside_a_string_does_not() {
        let text = "pin! {\n  /// A field.\n  a: u8\n}\nconst S: &str = \"\n/// Text.\n\";\n";
        assert_eq!(blocks(text), [(2, "A field.".into())]);
    }

    #[test]
    fn other_attributes_and_plain_comments_are_no_documentation() {
        assert_eq!(blocks("#[derive(Debug)]\n// plain\n#[doc(hidden)]\nstruct A;\n"), []);
    }
}
