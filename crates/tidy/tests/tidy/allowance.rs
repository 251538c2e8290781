//! Offenders that a crate still has, counted exactly: a number that is too high fails like one that is too low, so
//! that it can only shrink.

use std::collections::BTreeMap;
use std::fmt::Write;

use crate::workspace::CRATES;

/// Something in a crate that breaks a rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Offender {
    /// Short name of the crate.
    pub krate: String,
    /// File and line where it stands.
    pub place: String,
    /// What stands there, and what to write instead.
    pub text: String,
}

/// Fails unless each crate has exactly as many offenders as `allowed` says; a crate it does not list has none.
/// `rule` is said first, and `file` holds the table.
pub(crate) fn check(rule: &str, file: &str, allowed: &[(&str, usize)], offenders: &[Offender]) {
    let crates = CRATES.iter().map(|one| one.name.as_str()).collect::<Vec<_>>();
    let report = compare(&crates, allowed, offenders);
    let counted = counts(&crates, offenders);
    assert!(
        report.is_empty(),
        "\n{rule}\n{report}The numbers allowed are in {file}; they may only become smaller. As counted:\n{counted}"
    );
}

/// The table as it would be exact now.
fn counts(crates: &[&str], offenders: &[Offender]) -> String {
    let count = |name: &str| offenders.iter().filter(|one| one.krate == name).count();
    let rows = crates.iter().map(|name| (name, count(name))).filter(|(_, count)| *count > 0);
    rows.map(|(name, count)| format!("    (\"{name}\", {count}),\n")).collect()
}

fn compare(crates: &[&str], allowed: &[(&str, usize)], offenders: &[Offender]) -> String {
    let allowed: BTreeMap<&str, usize> = allowed.iter().copied().collect();
    let mut report = String::new();
    for name in crates {
        let found = offenders.iter().filter(|one| one.krate == **name).collect::<Vec<_>>();
        let limit = allowed.get(name).copied().unwrap_or(0);
        if found.len() > limit {
            for one in &found {
                let _ = writeln!(report, "  {}: {}", one.place, one.text);
            }
        }
        if found.len() != limit {
            let _ = writeln!(report, "crate {name}: {} found, {limit} allowed", found.len());
        }
    }
    for name in allowed.keys().filter(|name| !crates.contains(name)) {
        let _ = writeln!(report, "crate {name}: allowed for, but there is no such crate");
    }
    report
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_must_be_exact() {
        let offender = Offender { krate: "a".into(), place: "a.rs:1".into(), text: "wrong".into() };
        let two = [offender.clone(), offender];
        assert_eq!(counts(&["a", "b"], &two), "    (\"a\", 2),\n");
        assert_eq!(compare(&["a", "b"], &[("a", 2)], &two), "");
        assert_eq!(compare(&["a"], &[("a", 3)], &two), "crate a: 2 found, 3 allowed\n");
        let expected = "  a.rs:1: wrong\n  a.rs:1: wrong\ncrate a: 2 found, 1 allowed\n";
        assert_eq!(compare(&["a"], &[("a", 1)], &two), expected);
        assert_eq!(compare(&[], &[("c", 0)], &[]), "crate c: allowed for, but there is no such crate\n");
    }
}
