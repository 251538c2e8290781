//! A source file has one job and at most 500 lines.

use crate::workspace::CRATES;

const LINES_MAX: usize = 500;

/// Files that are longer; each has its reason.
const LONGER: &[(&str, &str)] = &[
    ("crates/driver/src/pipeline/tests.rs", "cases of one loop, with one set of helpers"),
    ("crates/http/src/client/tests.rs", "cases of one client, with one set of helpers"),
];

#[test]
fn source_files_are_short() {
    let files = CRATES.iter().flat_map(|one| &one.files).filter(|file| file.module.is_some());
    let long = files.filter(|file| file.lines > LINES_MAX).collect::<Vec<_>>();
    let mut report = Vec::new();
    for file in long.iter().filter(|file| !LONGER.iter().any(|(path, _)| file.path == *path)) {
        report.push(format!(
            "{} has {} lines, over {LINES_MAX}: give one of its jobs a file",
            file.path, file.lines
        ));
    }
    for (path, _) in LONGER.iter().filter(|(path, _)| !long.iter().any(|file| file.path == *path)) {
        report.push(format!("{path} is not over {LINES_MAX} lines: remove it from LONGER in {}", file!()));
    }
    assert!(report.is_empty(), "\n{}\n", report.join("\n"));
}
