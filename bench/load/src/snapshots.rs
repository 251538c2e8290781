//! Whether saving and restoring the whole account costs the same whatever it holds.

use crate::clock;
use crate::figures::{median, milliseconds};
use crate::options::Budget;
use crate::request::Request;
use crate::server::{Kind, Programs, Server};
use crate::subject::{create_database, fill_container};

/// Times each is done.
const REPETITIONS: usize = 50;
/// The items of the small account.
const FEW: u64 = 1_000;

/// What it takes at one size.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Snapshots {
    pub(crate) items: u64,
    pub(crate) save_millis: f64,
    pub(crate) restore_millis: f64,
}

/// A small account, then a large one. The times are those of a request to the control port, answer
/// included.
pub(crate) fn measure(
    programs: &Programs,
    budget: Budget,
    progress: &mut dyn FnMut(&str),
) -> Result<Vec<Snapshots>, String> {
    let mut found = Vec::new();
    for items in [FEW, budget.large] {
        progress(&format!("snapshots of {items} items"));
        let server = programs.start(Kind::Perihelion)?;
        create_database(&mut server.client()?)?;
        fill_container(&server, "snapshots", items)?;
        found.push(Snapshots {
            items,
            save_millis: time(&server, "/snapshots/bench")?,
            restore_millis: time(&server, "/snapshots/bench/restore")?,
        });
    }
    Ok(found)
}

fn time(server: &Server, path: &str) -> Result<f64, String> {
    let mut client = server.control()?;
    let mut times = Vec::with_capacity(REPETITIONS);
    for _ in 0..REPETITIONS {
        let request = Request {
            verb: "POST",
            path: path.to_owned(),
            kind: "",
            link: String::new(),
            headers: vec![("x-perihelion-control", "1".to_owned())],
            body: String::new(),
        };
        let start = clock::now();
        client.send(&request)?.expect(&[200, 201])?;
        times.push(milliseconds(clock::now() - start));
    }
    median(&times).ok_or_else(|| "nothing was measured".to_owned())
}
