//! Tests over the sources and pages of this repository: they keep its structure.
//!
//! | module | what it checks |
//! |---|---|
//! | `module_graph` | the top-level modules of a crate do not depend on each other in a circle |
//! | `architecture` | the table of crates in ARCHITECTURE.md is what the manifests say |
//! | `doc_lines` | a doc comment says something without its neighbours |
//! | `vocabulary` | identifiers use the terms of the field |
//! | `path_pages` | the pages that follow one request through the code are true |
//! | `links` | relative links lead to files and headings that exist |
//! | `reexports` | types in public signatures of the client can be named through it |
//! | `file_length` | source files are short |
//! | `public_api` | the public items of published crates are those of their `public-api.txt` |
//!
//! `workspace` reads every source file once; `source` is what is known about one of them. CONTRIBUTING.md says how to
//! fix a failure.

mod source;
mod workspace;

mod allowance;
mod architecture;
mod doc_lines;
mod file_length;
mod links;
mod markdown;
mod module_graph;
mod path_pages;
mod public_api;
mod reexports;
mod vocabulary;
