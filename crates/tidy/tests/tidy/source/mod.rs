//! What one source file says: its paths, definitions, doc comments and functions.
//!
//! [`SourceFile::parse`] reads a file once with syn and keeps plain values with line numbers, so that the tests need
//! no syntax tree. Macro invocations are read as tokens: a path or definition inside them counts like any other.

mod collect;
mod doc_blocks;
mod macro_tokens;

/// One `.rs` file of a crate, reduced to what the tests ask about.
#[derive(Debug, Default)]
pub(crate) struct SourceFile {
    /// Path from the root of the repository, with `/` between its parts.
    pub path: String,
    /// Number of lines in the file.
    pub lines: usize,
    /// Module that the file is, from the crate root; `None` outside of `src`.
    pub module: Option<Vec<String>>,
    /// Whether the file is compiled for tests only, by an attribute of its own (`#![cfg(test)]`).
    pub test_only: bool,
    /// Paths into the own crate, in code that is not only for tests.
    pub references: Vec<Reference>,
    /// `use` declarations outside of functions and modules: what a crate root imports or exports.
    pub imports: Vec<Import>,
    /// Child modules that are declared for tests only, with their path from the crate root.
    pub test_modules: Vec<Vec<String>>,
    /// Everything that is given a name, in tests as well.
    pub definitions: Vec<Definition>,
    /// Doc comments, in tests as well.
    pub doc_blocks: Vec<DocBlock>,
    /// Functions that are not only for tests.
    pub functions: Vec<Function>,
}

/// A path that begins with `crate`, `self` or `super`, resolved to the crate root.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Reference {
    /// Segments after the crate root: `crate::store::Item` is `["store", "Item"]`.
    pub path: Vec<String>,
    /// Line of the first segment.
    pub line: usize,
}

/// One name that a `use` declaration of a crate root brings in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Import {
    /// Name it is known by afterwards; `*` for a glob.
    pub name: String,
    /// Segments from the crate root; the first may also be another crate.
    pub path: Vec<String>,
}

/// A name that the workspace chose.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Definition {
    /// What it names: `struct`, `field`, `fn`, and so on.
    pub kind: &'static str,
    /// The identifier, as written.
    pub name: String,
    /// Line of the identifier.
    pub line: usize,
}

/// Doc comments on consecutive lines.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct DocBlock {
    /// Line on which the block begins.
    pub line: usize,
    /// Text of all lines, joined by spaces.
    pub text: String,
}

/// A function with what its body mentions.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Function {
    /// Name of the function, without its type.
    pub name: String,
    /// The type or trait whose `impl` or `trait` block it stands in.
    pub owner: Option<String>,
    /// Names of what the body calls or passes on, in the order of evaluation: arguments before the call.
    pub mentions: Vec<String>,
}

impl SourceFile {
    /// Reads `text`, the file at `path`, which is the module `module` of its crate.
    pub(crate) fn parse(path: &str, module: Option<Vec<String>>, text: &str) -> Result<SourceFile, String> {
        let tokens = text.parse().map_err(|error| format!("{path}: {error}"))?;
        let doc_blocks = doc_blocks::doc_blocks(&tokens);
        let syntax: syn::File = syn::parse2(tokens).map_err(|error| {
            let at = error.span().start();
            format!("{path}:{}: {error}", at.line)
        })?;
        let mut file = collect::collect(&syntax, module.clone().unwrap_or_default());
        file.path = path.to_owned();
        file.lines = text.lines().count();
        file.module = module;
        file.doc_blocks = doc_blocks;
        Ok(file)
    }

    /// Reads the body of a function that is written on a page: what the statements in `text` mention.
    pub(crate) fn parse_statements(text: &str) -> Result<Function, String> {
        let wrapped = format!("async fn snippet() {{ {text}\n}}");
        let file = SourceFile::parse("snippet", None, &wrapped)?;
        Ok(file.functions.into_iter().next().unwrap_or_default())
    }
}
