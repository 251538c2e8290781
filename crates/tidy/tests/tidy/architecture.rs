//! The table of crates in ARCHITECTURE.md is what the manifests say.
//!
//! Each row of the table headed "crate | uses" names a crate and the crates of the workspace among its normal
//! dependencies. The rows stand in layers: a crate only uses crates below it.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::Command;

use serde_json::Value;

use crate::markdown;
use crate::workspace::{read, root};

const PAGE: &str = "ARCHITECTURE.md";

#[test]
fn the_table_of_crates_is_what_the_manifests_say() {
    let problems = compare(&rows(&read(PAGE)), &dependencies(&metadata()));
    assert!(problems.is_empty(), "\n{PAGE}, table \"crate | uses\":\n{}\n", problems.join("\n"));
}

/// Crates with what each uses, in the order of the table.
type Rows = Vec<(String, BTreeSet<String>)>;

/// The rows of the table headed "crate | uses".
fn rows(page: &str) -> Rows {
    let rows = markdown::table_rows(page).into_iter().map(|(_, cells)| cells);
    let table = rows.skip_while(|cells| cells.get(..2).is_none_or(|head| head != ["crate", "uses"])).skip(1);
    let entry = |cells: Vec<String>| {
        let names = cells.iter().take(2).map(|cell| markdown::code_spans(cell)).collect::<Vec<_>>();
        match names.as_slice() {
            [name, uses] if name.len() == 1 => Some((name[0].clone(), uses.iter().cloned().collect())),
            _ => None,
        }
    };
    table.map_while(entry).collect()
}

/// What differs between the table and the manifests, a sentence each.
fn compare(table: &Rows, manifests: &BTreeMap<String, BTreeSet<String>>) -> Vec<String> {
    let mut problems = Vec::new();
    for (name, uses) in manifests {
        match table.iter().find(|(row, _)| row == name) {
            None => problems.push(format!("`{name}` has no row")),
            Some((_, drawn)) => {
                let missing =
                    uses.difference(drawn).map(|other| format!("`{name}` uses `{other}`: add it to the row"));
                let gone =
                    drawn.difference(uses).map(|other| format!("`{name}` does not use `{other}`: remove it"));
                problems.extend(missing.chain(gone));
            }
        }
    }
    for (at, (name, uses)) in table.iter().enumerate() {
        if !manifests.contains_key(name) {
            problems.push(format!("`{name}` is no crate of the workspace"));
        }
        let above = table[..at].iter().filter(|(other, _)| uses.contains(other));
        problems
            .extend(above.map(|(other, _)| format!("`{name}` uses `{other}`, which must stand below it")));
    }
    problems
}

fn metadata() -> Value {
    let output = Command::new(env!("CARGO"))
        .args(["metadata", "--format-version=1", "--no-deps", "--offline"])
        .current_dir(root())
        .output()
        .expect("cargo can be started");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).expect("cargo metadata prints JSON")
}

/// The normal dependencies of each crate on others of the workspace, by the names of their folders.
fn dependencies(metadata: &Value) -> BTreeMap<String, BTreeSet<String>> {
    let folder = |path: &Value| {
        let path = Path::new(path.as_str()?);
        let path = if path.ends_with("Cargo.toml") { path.parent()? } else { path };
        Some(path.file_name()?.to_string_lossy().into_owned())
    };
    let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
    let mut crates = BTreeMap::new();
    for package in list(&metadata["packages"]) {
        let dependencies = list(&package["dependencies"]);
        let normal = dependencies.iter().filter(|dependency| dependency["kind"].is_null());
        let uses: BTreeSet<String> = normal.filter_map(|dependency| folder(&dependency["path"])).collect();
        crates.insert(folder(&package["manifest_path"]).expect("a package has a manifest"), uses);
    }
    crates
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const TABLE: &str =
        "| crate | uses | what |\n|---|---|---|\n| `a` | `b`, `c` | top |\n| `b` | `c` | |\n| `c` | | |\n";

    fn manifests(crates: &[(&str, &[&str])]) -> BTreeMap<String, BTreeSet<String>> {
        crates
            .iter()
            .map(|(name, uses)| ((*name).into(), uses.iter().map(ToString::to_string).collect()))
            .collect()
    }

    #[test]
    fn a_true_table_has_no_problems() {
        assert_eq!(
            compare(&rows(TABLE), &manifests(&[("a", &["b", "c"]), ("b", &["c"]), ("c", &[])])),
            [""; 0]
        );
    }

    #[test]
    fn a_difference_is_named() {
        let found = compare(&rows(TABLE), &manifests(&[("a", &["b"]), ("b", &["c", "d"]), ("d", &[])]));
        assert_eq!(
            found,
            [
                "`a` does not use `c`: remove it",
                "`b` uses `d`: add it to the row",
                "`d` has no row",
                "`c` is no crate of the workspace"
            ]
        );
    }

    #[test]
    fn rows_stand_in_layers() {
        let table = "| crate | uses |\n|---|---|\n| `c` | |\n| `a` | `c` |\n";
        let found = compare(&rows(table), &manifests(&[("a", &["c"]), ("c", &[])]));
        assert_eq!(found, ["`a` uses `c`, which must stand below it"]);
    }

    #[test]
    fn only_normal_dependencies_inside_the_workspace_count() {
        let metadata = json!({"packages": [{"manifest_path": "/r/crates/a/Cargo.toml", "dependencies": [
            {"kind": null, "path": "/r/crates/b"},
            {"kind": "dev", "path": "/r/crates/c"},
            {"kind": null, "name": "serde"},
        ]}]});
        assert_eq!(dependencies(&metadata), manifests(&[("a", &["b"])]));
    }
}
