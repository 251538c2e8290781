//! The repository as the tests see it: its root, its crates and their source files, read once per run.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;
use std::thread;

use crate::source::SourceFile;

/// One crate of the workspace.
pub(crate) struct Crate {
    /// Name of its folder below `crates`, which is its short name in ARCHITECTURE.md.
    pub name: String,
    /// Every `.rs` file of it, by path.
    pub files: Vec<SourceFile>,
}

/// Every crate below `crates`, by name.
pub(crate) static CRATES: LazyLock<Vec<Crate>> = LazyLock::new(|| {
    let folders =
        entries(&root().join("crates")).into_iter().filter(|folder| folder.join("Cargo.toml").is_file());
    let mut paths = Vec::new();
    for folder in folders {
        let mut files = Vec::new();
        find(&folder, "rs", &mut files);
        paths.push((file_name(&folder), files));
    }
    let files = parse_all(paths.iter().flat_map(|(_, files)| files.iter().map(PathBuf::as_path)).collect());
    let mut files = files.into_iter();
    paths
        .into_iter()
        .map(|(name, paths)| Crate { name, files: files.by_ref().take(paths.len()).collect() })
        .collect()
});

/// The root of the repository.
pub(crate) fn root() -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.ancestors().nth(2).expect("the crate is two folders below the root").to_path_buf()
}

/// The text of the file at `path` from the root.
pub(crate) fn read(path: &str) -> String {
    fs::read_to_string(root().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// The source file at `path` from the root.
pub(crate) fn source_file(path: &str) -> Option<&'static SourceFile> {
    CRATES.iter().flat_map(|one| &one.files).find(|file| file.path == path)
}

/// Adds every file below `folder` whose name ends in `.extension`, in order; build output is left out.
pub(crate) fn find(folder: &Path, extension: &str, found: &mut Vec<PathBuf>) {
    for path in entries(folder) {
        if path.is_dir() {
            if !["target", "node_modules"].contains(&file_name(&path).as_str()) {
                find(&path, extension, found);
            }
        } else if path.extension().is_some_and(|of| of == extension) {
            found.push(path);
        }
    }
}

/// The path from the root, with `/` between its parts.
pub(crate) fn relative(path: &Path) -> String {
    let path = path.strip_prefix(root()).expect("below the root");
    path.components().map(|part| part.as_os_str().to_string_lossy()).collect::<Vec<_>>().join("/")
}

fn entries(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    let mut paths = entries.map(|entry| entry.expect("an entry of the folder").path()).collect::<Vec<_>>();
    paths.sort();
    paths
}

fn file_name(path: &Path) -> String {
    path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default()
}

/// Parses files in their order, on as many threads as there are processors.
fn parse_all(paths: Vec<&Path>) -> Vec<SourceFile> {
    let threads = thread::available_parallelism().map_or(1, usize::from);
    let share = paths.len().div_ceil(threads).max(1);
    thread::scope(|scope| {
        let parts =
            paths.chunks(share).map(|part| scope.spawn(|| part.iter().map(|path| parse(path)).collect()));
        let parts: Vec<thread::ScopedJoinHandle<'_, Vec<SourceFile>>> = parts.collect();
        parts.into_iter().flat_map(|part| part.join().expect("every file parses")).collect()
    })
}

fn parse(path: &Path) -> SourceFile {
    let relative = relative(path);
    let text = fs::read_to_string(path).unwrap_or_else(|error| panic!("{relative}: {error}"));
    SourceFile::parse(&relative, module_of(&relative), &text).unwrap_or_else(|error| panic!("{error}"))
}

/// The module that a file below `src` is: `crates/x/src/a/b.rs` and `crates/x/src/a/b/mod.rs` are `["a", "b"]`.
fn module_of(path: &str) -> Option<Vec<String>> {
    let mut parts = path.strip_prefix("crates/")?.split('/').skip(1);
    if parts.next() != Some("src") {
        return None;
    }
    let mut module = parts.map(ToOwned::to_owned).collect::<Vec<_>>();
    let file = module.pop()?;
    match file.strip_suffix(".rs")? {
        "mod" => {}
        "lib" | "main" if module.is_empty() => {}
        stem => module.push(stem.to_owned()),
    }
    Some(module)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_the_module_that_its_path_says() {
        assert_eq!(module_of("crates/x/src/lib.rs"), Some(vec![]));
        assert_eq!(module_of("crates/x/src/a.rs"), Some(vec!["a".into()]));
        assert_eq!(module_of("crates/x/src/a/mod.rs"), Some(vec!["a".into()]));
        assert_eq!(module_of("crates/x/src/a/b.rs"), Some(vec!["a".into(), "b".into()]));
        assert_eq!(module_of("crates/x/tests/it/main.rs"), None);
    }

    #[test]
    fn every_crate_has_sources() {
        assert!(CRATES.iter().all(|one| !one.files.is_empty()));
        assert!(CRATES.len() > 1);
    }
}
