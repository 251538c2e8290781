//! Every row of `docs/retries.md`, end to end: regions answer so, and the operation goes on as the table says.
//!
//! The table itself is what is expected: a case only says how its answer is brought about. A row without a case
//! fails, and so does a case without a row.

use std::collections::BTreeSet;
use std::ops::RangeInclusive;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use azure_core::credentials::{AccessToken, TokenCredential, TokenRequestOptions};
use azure_core::time::OffsetDateTime;
use emulator::faults::{ConnectionEffect, FaultRule, OperationKind as Asked};
use perihelion_driver::diagnostics::{Attempt, Diagnostics};
use perihelion_driver::operation::{Operation, OperationKind, Response, Scope, Target};
use perihelion_driver::options::{DriverOptions, HedgingOptions, OperationOptions};
use perihelion_driver::options::{RegionOptions, TimeoutOptions};
use perihelion_driver::routing::{BreakerState, Region};
use perihelion_driver::{Account, CosmosDriver, CosmosRuntime, Error, ErrorKind};
use protocol::partition_range::RangeId;
use serde_json::{Value, json};

use crate::lab::{Clients, EAST, Lab, NORTH, WEST, run, within};
use crate::liar::{About, Liar, Lie};

const DOCUMENT: &str = include_str!("../../../../docs/retries.md");

/// One row, as it is written.
#[derive(Clone, Copy, Debug)]
struct Row {
    answer: &'static str,
    operation: &'static str,
    first: &'static str,
    alone: &'static str,
    changes: &'static str,
    gives_up_after: &'static str,
    heard: &'static str,
}

fn rows() -> Vec<Row> {
    let lines = DOCUMENT.lines().skip_while(|line| !line.starts_with("| answer |")).skip(2);
    lines
        .take_while(|line| line.starts_with('|'))
        .map(|line| {
            let cells: Vec<&str> = line.trim_matches('|').split('|').map(str::trim).collect();
            let [answer, operation, first, alone, changes, gives_up_after, heard] = cells[..] else {
                panic!("seven cells: {line}")
            };
            Row { answer, operation, first, alone, changes, gives_up_after, heard }
        })
        .collect()
}

/// What brings an answer about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Strike {
    /// A region answers so.
    Answer(u16, u32),
    /// A region does not let anybody in.
    Refuse,
    /// A region ends the connection before it has done anything, or after it has done it.
    Close(ConnectionEffect),
    /// The credential has no token any more.
    NoToken,
    /// A region answers without end.
    Rambles,
    /// The deadline is over before anything is sent.
    TooLate,
    /// No answer before the deadline.
    Slow,
}

/// The account around it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum World {
    /// One region writes; where a row needs a write that could go elsewhere, all do.
    Usual,
    /// One region writes, and the operation begins in another one.
    AwayFromHub,
    /// All regions write.
    AllWrite,
    /// Partitions fail over by themselves.
    PartitionsFailOver,
}

/// What is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Doing {
    Read,
    Write,
    RepeatableWrite,
    ByRange,
}

struct Case {
    answer: &'static str,
    operation: &'static str,
    strikes: &'static [Strike],
    world: World,
    doing: &'static [Doing],
}

const fn case(
    answer: &'static str,
    operation: &'static str,
    strikes: &'static [Strike],
    doing: &'static [Doing],
) -> Case {
    Case { answer, operation, strikes, world: World::Usual, doing }
}

const READ: &[Doing] = &[Doing::Read];
const WRITE: &[Doing] = &[Doing::Write];
const REPEATABLE: &[Doing] = &[Doing::RepeatableWrite];
const ANY: &[Doing] = &[Doing::Read, Doing::Write];
const MOVED: &[Strike] = &[Strike::Answer(410, 1002), Strike::Answer(410, 1007), Strike::Answer(410, 1008)];
const GONE: &[Strike] = &[Strike::Answer(410, 0), Strike::Answer(410, 21)];
const UNAVAILABLE: &[Strike] = &[Strike::Answer(503, 0), Strike::Answer(503, 9002)];
const BUSY: &[Strike] = &[Strike::Answer(429, 3092)];
const FAILED: &[Strike] = &[Strike::Answer(500, 0), Strike::Answer(408, 0)];
const OTHERS: &[Strike] = &[
    Strike::Answer(400, 0),
    Strike::Answer(401, 0),
    Strike::Answer(403, 0),
    Strike::Answer(404, 0),
    Strike::Answer(409, 0),
    Strike::Answer(412, 0),
    Strike::Answer(413, 0),
];
const LOST: &[Strike] =
    &[Strike::Close(ConnectionEffect::CloseBefore), Strike::Close(ConnectionEffect::CloseAfter)];

const CASES: &[Case] = &[
    case("403/3", "any", &[Strike::Answer(403, 3)], ANY),
    Case {
        world: World::PartitionsFailOver,
        ..case("403/3, partitions fail over", "writes", &[Strike::Answer(403, 3)], WRITE)
    },
    case("403/1008", "any", &[Strike::Answer(403, 1008)], ANY),
    Case {
        world: World::AwayFromHub,
        ..case("404/1002, one write region", "any", &[Strike::Answer(404, 1002)], READ)
    },
    Case { world: World::AllWrite, ..case("404/1002, several", "any", &[Strike::Answer(404, 1002)], ANY) },
    case("410/1002, 410/1007, 410/1008", "any", MOVED, ANY),
    case("410/1002, 410/1007, 410/1008", "by range id", MOVED, &[Doing::ByRange]),
    case("410/1000", "any", &[Strike::Answer(410, 1000)], ANY),
    case("410, other", "reads", GONE, READ),
    case("410, other", "writes", GONE, WRITE),
    case("503", "reads", UNAVAILABLE, READ),
    case("503", "writes", UNAVAILABLE, WRITE),
    case("429/3092", "reads", BUSY, READ),
    case("429/3092", "writes", BUSY, WRITE),
    case("429, other", "any", &[Strike::Answer(429, 3200)], ANY),
    case("500, 408", "reads", FAILED, READ),
    case("500, 408", "writes", FAILED, WRITE),
    case("500, 408", "repeatable writes", FAILED, REPEATABLE),
    case("449", "any", &[Strike::Answer(449, 0)], ANY),
    case("400/1024", "any", &[Strike::Answer(400, 1024)], ANY),
    case("404/1003", "any", &[Strike::Answer(404, 1003)], ANY),
    case("404/1013", "any", &[Strike::Answer(404, 1013)], ANY),
    case("other answers", "any", OTHERS, ANY),
    case("no answer, not sent", "reads", &[Strike::Refuse], READ),
    case("no answer, not sent", "writes", &[Strike::Refuse], WRITE),
    case("no answer, maybe sent", "reads", LOST, READ),
    case("no answer, maybe sent", "writes", LOST, WRITE),
    case("no answer, maybe sent", "repeatable writes", LOST, REPEATABLE),
    case("no token from the credential", "any", &[Strike::NoToken], ANY),
    case("an answer that cannot be read", "reads", &[Strike::Rambles], READ),
    case("an answer that cannot be read", "writes", &[Strike::Rambles], WRITE),
    case("deadline, not sent", "any", &[Strike::TooLate], ANY),
    case("deadline, maybe sent", "reads", &[Strike::Slow], READ),
    case("deadline, maybe sent", "writes", &[Strike::Slow], WRITE),
];

#[tokio::test]
async fn every_row_of_the_table_is_what_happens_over_sockets() {
    let rows = rows();
    assert!(rows.len() > 20, "docs/retries.md has lost its table");
    for case in CASES {
        let of_case = rows.iter().filter(|row| (row.answer, row.operation) == (case.answer, case.operation));
        assert_eq!(of_case.count(), 1, "no row for the case {} · {}", case.answer, case.operation);
    }
    let mut checks = Vec::new();
    for row in rows {
        let of_row = CASES.iter().filter(|case| (row.answer, row.operation) == (case.answer, case.operation));
        let cases: Vec<&Case> = of_row.collect();
        let [case] = cases[..] else { panic!("one case for the row {} · {}", row.answer, row.operation) };
        for strike in case.strikes {
            checks.extend(case.doing.iter().map(|doing| check(row, case.world, *strike, *doing)));
        }
    }
    // Their waits are real, so they wait together; a few at a time, so that none of them is starved.
    let room = Arc::new(tokio::sync::Semaphore::new(24));
    let mut running = tokio::task::JoinSet::new();
    for check in checks {
        let room = Arc::clone(&room);
        running.spawn(async move {
            let _place = room.acquire_owned().await.expect("never closed");
            check.await;
        });
    }
    let mut wrong = 0;
    while let Some(ended) = running.join_next().await {
        wrong += usize::from(ended.is_err());
    }
    assert_eq!(wrong, 0, "answers that are not followed as the table says; each is told above");
}

/// One answer, for one operation, in all three situations of its row.
async fn check(row: Row, world: World, strike: Strike, doing: Doing) {
    let told = format!("{} · {} ({strike:?}, {doing:?})", row.answer, row.operation);
    if strike == Strike::Rambles {
        let stage = Stage::behind_a_liar().await;
        return stage.endless(row, strike, doing, &told).await;
    }
    let stage = Stage::with_others(world, strike, doing).await;
    stage.once(row.first, strike, doing, &told).await;
    let stage = Stage::alone(world, strike, doing).await;
    stage.once(row.alone, strike, doing, &told).await;
    let stage = Stage::alone(world, strike, doing).await;
    stage.endless(row, strike, doing, &told).await;
}

/// An account, a driver that has done something before, and the region it goes to.
struct Stage {
    lab: Lab,
    liar: Option<Liar>,
    driver: CosmosDriver,
    here: &'static str,
    token: Arc<Fading>,
}

impl Stage {
    /// Where other regions could be turned to.
    async fn with_others(world: World, strike: Strike, doing: Doing) -> Stage {
        let writes = matches!(doing, Doing::Write | Doing::RepeatableWrite);
        let lab = Lab::start_with(|config| {
            config.partition_failover = world == World::PartitionsFailOver;
            config.multi_write = world == World::AllWrite || (writes && !config.partition_failover);
        });
        let preferred = if world == World::AwayFromHub { [NORTH, EAST, WEST] } else { [WEST, EAST, NORTH] };
        Stage::new(lab.await, &preferred, strike).await
    }

    /// Where there is none: one region, or for a write the only one that takes it.
    async fn alone(world: World, strike: Strike, doing: Doing) -> Stage {
        let writes = matches!(doing, Doing::Write | Doing::RepeatableWrite);
        let lab = Lab::start_with(|config| {
            config.partition_failover = world == World::PartitionsFailOver;
            if !writes || config.partition_failover {
                config.regions = vec![WEST.to_owned()];
            }
        });
        Stage::new(lab.await, &[WEST], strike).await
    }

    async fn new(lab: Lab, preferred: &[&'static str], strike: Strike) -> Stage {
        let token = Arc::new(Fading(AtomicBool::new(true)));
        let account = match strike {
            Strike::NoToken => Account::with_credential(&lab.running.endpoint(), Arc::clone(&token) as _),
            _ => Account::from_connection_string(&lab.running.connection_string()),
        };
        let runtime = CosmosRuntime::builder(Arc::new(Clients)).build().expect("valid");
        let driver = runtime.driver(&account.expect("valid"), options(preferred)).expect("valid");
        run(&lab.driver(), &lab.upsert("a", 1)).await.expect("written");
        if strike == Strike::Refuse {
            // No connection is kept: on one that is open, a request would be sent and lost.
            let rule = FaultRule::connection(ConnectionEffect::GoAway).named("last");
            lab.running.faults().add(rule).expect("a rule");
        }
        let stage = Stage { lab, liar: None, driver, here: preferred[0], token };
        // It knows the account, the container and its ranges, and has connections.
        for doing in [Doing::Read, Doing::Write, Doing::ByRange] {
            run(&stage.driver, &stage.operation(doing)).await.expect("all is well");
        }
        stage
    }

    async fn behind_a_liar() -> Stage {
        let liar = Liar::start().await;
        let driver = liar.driver(options(&[WEST]));
        let token = Arc::new(Fading(AtomicBool::new(true)));
        let lab = Lab::start_with(|config| config.regions = vec![WEST.to_owned()]).await;
        run(&driver, &liar.lab.upsert("a", 1)).await.expect("all is well");
        Stage { lab, liar: Some(liar), driver, here: WEST, token }
    }

    fn operation(&self, doing: Doing) -> Operation {
        match doing {
            Doing::Read => self.lab.read("a"),
            Doing::Write => self.lab.upsert("a", 2),
            Doing::RepeatableWrite => self.lab.upsert("a", 2).repeatable(),
            Doing::ByRange => Operation::new(OperationKind::Query, Target::items(&self.lab.container))
                .with_scope(Scope::Partition(RangeId(0)))
                .with_body(json!({"query": "SELECT * FROM c"}).to_string()),
        }
    }

    /// Lets it happen, once or again and again. What cannot happen once happens again and again.
    fn strike(&self, strike: Strike, doing: Doing, times: Option<u64>) {
        let asked = match doing {
            Doing::Read => Asked::Read,
            Doing::Write | Doing::RepeatableWrite => Asked::Write,
            Doing::ByRange => Asked::Query,
        };
        let rule = match strike {
            Strike::Answer(429, 3200) if times.is_none() => {
                FaultRule::status(429, 3200).retry_after(Duration::from_millis(1)).on(asked)
            }
            // The transport waits for a while by itself; that it comes to an end is what is asked here.
            Strike::Answer(429, 3200) => {
                FaultRule::status(429, 3200).retry_after(Duration::from_millis(1)).on(asked).times(10)
            }
            Strike::Answer(status, sub_status) => {
                let rule = FaultRule::status(status, sub_status).on(asked);
                times.into_iter().fold(rule, FaultRule::times)
            }
            Strike::Refuse => FaultRule::connection(ConnectionEffect::Refuse),
            Strike::Close(effect) => FaultRule::connection(effect).on(asked),
            Strike::Slow => FaultRule::delay(Duration::from_secs(60)).on(asked),
            Strike::NoToken => return self.token.0.store(false, Ordering::Release),
            Strike::Rambles => {
                let head = format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n", usize::MAX >> 8);
                let liar = self.liar.as_ref().expect("behind a liar");
                return liar.lie(About::Items, Lie::Rambles(head.into_bytes(), usize::MAX >> 16));
            }
            Strike::TooLate => return,
        };
        self.lab.running.faults().add(rule.in_region(self.here).named("strike")).expect("a rule");
    }

    async fn run(&self, strike: Strike, doing: Doing) -> Result<Response, Error> {
        let operation = self.operation(doing);
        let deadline = match strike {
            Strike::TooLate => Duration::from_nanos(1),
            Strike::Slow => Duration::from_millis(500),
            // Longer than all the waits of a row, however slow the machine.
            _ => Duration::from_secs(60),
        };
        loop {
            let result = self.driver.execute_operation(&operation, &within(deadline)).await;
            // A token that is still good is used to its end.
            if strike != Strike::NoToken || result.is_err() {
                return result;
            }
        }
    }

    /// What follows when it happens once.
    async fn once(self, expected: &str, strike: Strike, doing: Doing, told: &str) {
        self.strike(strike, doing, Some(1));
        // Where nothing else is left, what goes on happening does so until it is given up.
        let result = self.run(strike, doing).await;
        let attempts = attempts(diagnostics(&result));
        let regions: Vec<&str> = attempts.iter().map(|attempt| attempt.endpoint.region().as_str()).collect();
        let (place, time) = expected.split_once(", ").unwrap_or((expected, ""));
        let next = || *regions.get(1).unwrap_or_else(|| panic!("{told}: tried once, in {regions:?}"));
        assert!(regions.first().is_none_or(|first| *first == self.here), "{told}: {regions:?}");
        match place {
            "gives up" => {
                assert!(result.is_err() && regions.len() <= 1, "{told}: {regions:?}");
                return;
            }
            "here" => assert_eq!(next(), self.here, "{told}"),
            "another region" => assert_ne!(next(), self.here, "{told}"),
            "the hub region" => assert_eq!(next(), WEST, "{told}"),
            other => panic!("nobody knows what '{other}' means"),
        }
        if let Some(longest) = time.strip_prefix("after up to ") {
            let (started, took) = attempts[0].outcome.span();
            let waited = attempts[1].outcome.span().0.saturating_duration_since(started + took);
            assert!(waited >= duration(longest) / 2, "{told}: waited {waited:?}");
        }
        if matches!(strike, Strike::Answer(..)) {
            let error = result.as_ref().err().map(ToString::to_string);
            assert_eq!(error, None, "{told}: it happened once");
        }
    }

    /// What follows when it happens again and again: how often it is tried, what is changed, what is heard.
    async fn endless(self, row: Row, strike: Strike, doing: Doing, told: &str) {
        let before = self.requests(0).await;
        let last = before.first().map_or(0, |newest| newest["number"].as_u64().expect("a number"));
        self.strike(strike, doing, None);
        let result = self.run(strike, doing).await;
        let diagnostics = diagnostics(&result);
        let error = result.as_ref().expect_err(told);
        let heard = match row.heard {
            "the answer" => match strike {
                Strike::Answer(status, sub_status) => {
                    let status = protocol::status::Status(status);
                    assert_eq!(error.status(), Some(status), "{told}: {error}");
                    ErrorKind::of_status(status, protocol::status::SubStatus(sub_status))
                }
                _ => panic!("{told}: there was no answer"),
            },
            "`Unavailable`" => ErrorKind::Unavailable,
            "`Undecided`" => ErrorKind::Undecided,
            "`DeadlineExceeded`" => ErrorKind::DeadlineExceeded,
            "`Unauthenticated`" => ErrorKind::Unauthenticated,
            "`BadResponse`" => ErrorKind::BadResponse,
            other => panic!("nobody knows what '{other}' means"),
        };
        assert_eq!(error.kind(), heard, "{told}: {error}");
        let retries = retries(row.gives_up_after);
        if diagnostics.omitted() == 0 {
            let tried = attempts(diagnostics).len();
            // Nothing is on record of what was never sent.
            let unsent = matches!(strike, Strike::TooLate | Strike::NoToken);
            let as_told = if unsent { tried == 0 } else { tried > 0 && retries.contains(&(tried - 1)) };
            assert!(as_told, "{told}: {}", diagnostics.summary());
        } else {
            // More requests than are kept: several for each attempt, each over another connection.
            let sent = diagnostics.totals().attempts as usize;
            let as_told = retries.start() + 1..=3 * (retries.end() + 1);
            assert!(as_told.contains(&sent), "{told}: {}", diagnostics.summary());
        }
        self.changes(row.changes, strike, last, told).await;
    }

    /// What everybody knows afterwards, against what the table says.
    async fn changes(&self, expected: &str, strike: Strike, last: u64, told: &str) {
        let mut seen = BTreeSet::new();
        let (account, here) = (self.driver.account(), Region::new(self.here));
        match (account.is_unavailable(&here, true), account.is_unavailable(&here, false)) {
            (true, _) => seen.insert("region down"),
            (false, true) => seen.insert("region down for writes"),
            (false, false) => false,
        };
        for (_, breaker) in self.driver.partition_state().breakers() {
            if breaker.failed_reads > 0 {
                seen.insert("counts a failed read");
            }
            if breaker.failed_writes > 0 {
                seen.insert("counts a failed write");
            }
            if breaker.failed_reads + breaker.failed_writes == 0
                && matches!(breaker.state, BreakerState::Open { .. })
            {
                seen.insert("opens the breaker");
            }
        }
        if self.liar.is_none() && strike != Strike::NoToken {
            self.lab.running.faults().remove("strike").expect("a set of rules");
            // Somebody comes after it.
            run(&self.driver, &self.operation(Doing::Read)).await.expect("all is well again");
            let asked = |path: &str, requests: &[Value]| requests.iter().any(|seen| seen["path"] == path);
            let requests = self.requests(last).await;
            if asked("/", &requests) {
                seen.insert("asks the account");
            }
            if asked("/dbs/d/colls/c", &requests) {
                // With it, its ranges.
                seen.insert("forgets the container");
            } else if asked("/dbs/d/colls/c/pkranges", &requests) {
                seen.insert("lists ranges");
            }
        }
        let expected: BTreeSet<&str> = expected.split(", ").filter(|change| *change != "–").collect();
        assert_eq!(seen, expected, "{told}");
    }

    /// The requests the account has seen after number `last`, newest first.
    async fn requests(&self, last: u64) -> Vec<Value> {
        let path = format!("/requests?limit=1000&after={last}");
        let answer = self.lab.control(http::Method::GET, &path, Value::Null).await;
        answer["requests"].as_array().expect("a list").clone()
    }
}

fn options(preferred: &[&str]) -> DriverOptions {
    let hedging = HedgingOptions::new().with_enabled(false);
    let regions = RegionOptions::new().with_preferred(preferred.iter().copied());
    // One request has all the time in the world, unless the operation has less.
    let timeouts = TimeoutOptions::new().with_attempt(Duration::from_secs(30));
    let operation = OperationOptions::new().with_hedging(hedging).with_regions(regions);
    DriverOptions::new().with_operation(operation.with_timeouts(timeouts))
}

fn diagnostics(result: &Result<Response, Error>) -> &Diagnostics {
    match result {
        Ok(response) => response.diagnostics(),
        Err(error) => error.diagnostics().expect("told"),
    }
}

/// The attempts of an operation. What the transport repeats within one is not another.
fn attempts(diagnostics: &Diagnostics) -> Vec<&Attempt> {
    let attempts = diagnostics.attempts().iter();
    attempts.filter(|attempt| attempt.next != "again in the same region").collect()
}

/// `–`, `1 retry`, `6 retries, …`, `8 to 13 retries, …`.
fn retries(text: &str) -> RangeInclusive<usize> {
    let number = |word: &str| word.parse().unwrap_or_else(|_| panic!("'{word}' is not a number"));
    match text.split(' ').collect::<Vec<_>>()[..] {
        ["–"] => 0..=0,
        [least, "to", most, ..] => number(least)..=number(most),
        [number_of, ..] => number(number_of)..=number(number_of),
        [] => panic!("an empty cell"),
    }
}

/// `100ms`, `2s`.
fn duration(text: &str) -> Duration {
    let (number, unit) = text.split_at(text.find(|c: char| !c.is_ascii_digit()).expect("a unit"));
    let number = number.parse().expect("a number");
    match unit {
        "ms" => Duration::from_millis(number),
        "s" => Duration::from_secs(number),
        other => panic!("nobody knows the unit '{other}'"),
    }
}

/// A credential whose tokens are good for a second, for as long as it is.
#[derive(Debug)]
struct Fading(AtomicBool);

#[async_trait::async_trait]
impl TokenCredential for Fading {
    async fn get_token(
        &self,
        _: &[&str],
        _: Option<TokenRequestOptions<'_>>,
    ) -> azure_core::Result<AccessToken> {
        if !self.0.load(Ordering::Acquire) {
            let kind = azure_core::error::ErrorKind::Credential;
            return Err(azure_core::Error::with_message(kind, "signed out"));
        }
        let expires_on = OffsetDateTime::now_utc() + azure_core::time::Duration::seconds(1);
        Ok(AccessToken::new("eyJhbGciOiJub25lIn0.eyJvaWQiOiIxIn0.c2ln", expires_on))
    }
}
