//! Every row of `docs/retries.md`, end to end: a rule makes a region answer so, and the operation goes on as the
//! table says.

use std::time::Duration;

use emulator::faults::{ConnectionEffect, OperationKind as Asked, Rule};
use perihelion_driver::options::{DriverOptions, HedgingOptions, OperationOptions};
use perihelion_driver::{CosmosDriver, ErrorKind};

use crate::lab::{EAST, Lab, WEST, regions, run};

fn unraced(lab: &Lab) -> CosmosDriver {
    let hedging = HedgingOptions::new().with_enabled(false);
    lab.driver_with(DriverOptions::new().with_operation(OperationOptions::new().with_hedging(hedging)))
}

/// What is struck, with what, and what becomes of the operation.
struct Row {
    name: &'static str,
    rule: fn() -> Rule,
    /// The regions a read is seen in, or why it fails.
    read: Result<&'static [&'static str], ErrorKind>,
    /// The same for a write.
    write: Result<&'static [&'static str], ErrorKind>,
}

const HERE_AGAIN: Result<&[&str], ErrorKind> = Ok(&[WEST, WEST]);
const ELSEWHERE: Result<&[&str], ErrorKind> = Ok(&[WEST, EAST]);

/// One region writes: where a read goes elsewhere, a write tries again here.
const ROWS: &[Row] = &[
    Row { name: "403/1008", rule: || Rule::answer(403, 1008), read: ELSEWHERE, write: HERE_AGAIN },
    Row { name: "403/3", rule: || Rule::answer(403, 3), read: ELSEWHERE, write: HERE_AGAIN },
    Row { name: "404/1002", rule: || Rule::answer(404, 1002), read: ELSEWHERE, write: HERE_AGAIN },
    Row { name: "410/1002", rule: || Rule::answer(410, 1002), read: HERE_AGAIN, write: HERE_AGAIN },
    Row { name: "410/1007", rule: || Rule::answer(410, 1007), read: HERE_AGAIN, write: HERE_AGAIN },
    Row { name: "410/1000", rule: || Rule::answer(410, 1000), read: HERE_AGAIN, write: HERE_AGAIN },
    Row { name: "410", rule: || Rule::answer(410, 0), read: ELSEWHERE, write: HERE_AGAIN },
    Row { name: "503", rule: || Rule::answer(503, 0), read: ELSEWHERE, write: HERE_AGAIN },
    Row { name: "429/3092", rule: || Rule::answer(429, 3092), read: ELSEWHERE, write: HERE_AGAIN },
    Row {
        name: "429/3200",
        rule: || Rule::answer(429, 3200).retry_after(Duration::from_millis(1)),
        read: HERE_AGAIN,
        write: HERE_AGAIN,
    },
    Row { name: "500", rule: || Rule::answer(500, 0), read: ELSEWHERE, write: Err(ErrorKind::Undecided) },
    Row { name: "408", rule: || Rule::answer(408, 0), read: ELSEWHERE, write: Err(ErrorKind::Undecided) },
    Row { name: "449", rule: || Rule::answer(449, 0), read: HERE_AGAIN, write: HERE_AGAIN },
    Row { name: "400/1024", rule: || Rule::answer(400, 1024), read: HERE_AGAIN, write: HERE_AGAIN },
    Row { name: "404/1013", rule: || Rule::answer(404, 1013), read: HERE_AGAIN, write: HERE_AGAIN },
    Row {
        name: "404/1003",
        rule: || Rule::answer(404, 1003),
        read: Err(ErrorKind::NotFound),
        write: Err(ErrorKind::NotFound),
    },
    Row {
        name: "401",
        rule: || Rule::answer(401, 0),
        read: Err(ErrorKind::Unauthenticated),
        write: Err(ErrorKind::Unauthenticated),
    },
    Row {
        name: "403",
        rule: || Rule::answer(403, 0),
        read: Err(ErrorKind::Forbidden),
        write: Err(ErrorKind::Forbidden),
    },
    Row {
        name: "412",
        rule: || Rule::answer(412, 0),
        read: Err(ErrorKind::PreconditionFailed),
        write: Err(ErrorKind::PreconditionFailed),
    },
    Row {
        name: "413",
        rule: || Rule::answer(413, 0),
        read: Err(ErrorKind::TooLarge),
        write: Err(ErrorKind::TooLarge),
    },
];

#[tokio::test]
async fn every_answer_is_followed_as_the_table_says() {
    for row in ROWS {
        let lab = Lab::start().await;
        for (struck, expected) in [(Asked::Read, row.read), (Asked::Write, row.write)] {
            // A driver of its own each time, so that nothing is remembered from before.
            let driver = unraced(&lab);
            run(&driver, &lab.upsert("a", 1)).await.expect("written");
            lab.running.faults().add((row.rule)().on(struck).in_region(WEST).times(1)).expect("a rule");
            let operation = if struck == Asked::Read { lab.read("a") } else { lab.upsert("a", 2) };
            match (run(&driver, &operation).await, expected) {
                (Ok(response), Ok(expected)) => {
                    assert_eq!(regions(&response), expected, "{} {struck:?}", row.name);
                }
                (Err(error), Err(expected)) => assert_eq!(error.kind(), expected, "{} {struck:?}", row.name),
                (Ok(response), Err(_)) => {
                    panic!("{} {struck:?}: {}", row.name, response.diagnostics().summary())
                }
                (Err(error), Ok(_)) => panic!("{} {struck:?}: {error}", row.name),
            }
        }
    }
}

#[tokio::test]
async fn where_several_regions_write_a_refused_write_goes_elsewhere() {
    for (status, sub_status) in [(403, 3), (403, 1008), (503, 0), (429, 3092), (410, 0), (404, 1002)] {
        let lab = Lab::start_multi_write().await;
        let driver = unraced(&lab);
        run(&driver, &lab.upsert("a", 1)).await.expect("written");
        let rule = Rule::answer(status, sub_status).on(Asked::Write).in_region(WEST);
        lab.running.faults().add(rule).expect("a rule");
        let written = run(&driver, &lab.upsert("a", 2)).await.expect("written elsewhere");
        assert_eq!(regions(&written), [WEST, EAST], "{status}/{sub_status}");
    }
}

#[tokio::test]
async fn a_connection_lost_before_or_after_the_request_is_told_apart_by_what_may_be_repeated() {
    let lab = Lab::start().await;
    for (effect, write) in [
        (ConnectionEffect::CloseBefore, ErrorKind::Undecided),
        (ConnectionEffect::CloseAfter, ErrorKind::Undecided),
    ] {
        let driver = unraced(&lab);
        run(&driver, &lab.upsert("a", 1)).await.expect("written");
        // The transport tries another connection of its own accord, so all of them fail.
        let rule = |struck| Rule::connection(effect).on(struck).in_region(WEST);
        let id = lab.running.faults().add(rule(Asked::Read)).expect("a rule");
        let read = run(&driver, &lab.read("a")).await.expect("read elsewhere");
        assert_eq!(regions(&read).last().map(String::as_str), Some(EAST), "{effect:?}");
        lab.running.faults().remove(&id).expect("removed");
        let id = lab.running.faults().add(rule(Asked::Write)).expect("a rule");
        let error = run(&driver, &lab.upsert("a", 2)).await.expect_err("nobody knows");
        assert_eq!(error.kind(), write, "{effect:?}");
        lab.running.faults().remove(&id).expect("removed");
    }
}
