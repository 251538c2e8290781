//! Time from the start of the process to the first answered request.

use std::collections::BTreeMap;

use crate::clock;
use crate::figures::milliseconds;
use crate::request::Request;
use crate::server::{Kind, Programs};

/// Milliseconds per server and round. Every server says on stdout when it listens, so nothing polls.
pub(crate) fn measure(
    programs: &Programs,
    servers: &[Kind],
    rounds: usize,
) -> Result<BTreeMap<Kind, Vec<f64>>, String> {
    let mut found: BTreeMap<Kind, Vec<f64>> = BTreeMap::new();
    for _ in 0..rounds {
        for kind in servers.iter().copied().filter(|kind| kind.stores()) {
            found.entry(kind).or_default().push(start_once(programs, kind)?);
        }
    }
    Ok(found)
}

fn start_once(programs: &Programs, kind: Kind) -> Result<f64, String> {
    let account = Request {
        verb: "GET",
        path: "/".to_owned(),
        kind: "",
        link: String::new(),
        headers: Vec::new(),
        body: String::new(),
    };
    let start = clock::now();
    let server = programs.start(kind)?;
    server.client()?.send(&account)?.expect(&[200]).map_err(|error| format!("{}: {error}", kind.name()))?;
    Ok(milliseconds(clock::now() - start))
}
