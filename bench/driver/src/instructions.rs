//! Instructions of a read, counted by callgrind.

use std::path::Path;
use std::process::Command;

/// Instructions per read of a program that takes the number of reads as its last argument: what more reads cost more than
/// fewer, so that starting costs nothing. `None` where there is no program that counts them.
pub fn per_read(program: &Path, arguments: &[&str], reads: u64) -> Option<f64> {
    let count = |reads: u64| count(program, arguments, reads);
    let (few, many) = (count(reads / 2)?, count(reads / 2 + reads)?);
    Some((many - few) / reads as f64)
}

fn count(program: &Path, arguments: &[&str], reads: u64) -> Option<f64> {
    let output = Command::new("valgrind")
        .args(["--tool=callgrind", "--callgrind-out-file=/dev/null"])
        .arg(program)
        .args(arguments)
        .arg(reads.to_string())
        .output()
        .ok()?;
    let text = String::from_utf8_lossy(&output.stderr);
    let collected = text.lines().find_map(|line| line.split_once("Collected :"))?.1;
    collected.trim().parse().ok()
}
