//! Every row of `docs/retries.md`, end to end: regions response so, and the operation continues as the table says.
//!
//! The table itself is what is expected: a case only says how its response is brought about. A row without a case
//! fails, and so does a case without a row.

use std::collections::BTreeSet;
use std::ops::RangeInclusive;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use azure_core::credentials::{AccessToken, TokenCredential, TokenRequestOptions};
use azure_core::time::OffsetDateTime;
use emulator::faults::{ConnectionEffect, FaultRule, OperationKind as Asked};
use perihelion_driver::Response;
use perihelion_driver::diagnostics::{AttemptRecord, Diagnostics};
use perihelion_driver::operation::{Operation, OperationKind, Scope, Target};
use perihelion_driver::options::{DriverOptions, HedgingOptions, OperationOptions};
use perihelion_driver::options::{RegionOptions, TimeoutOptions};
use perihelion_driver::{Access, Region};
use perihelion_driver::{Account, CosmosDriver, CosmosRuntime, Error, ErrorKind};
use protocol::partition_range::RangeId;
use serde_json::{Value, json};

use crate::faulty_server::{FaultyResponse, FaultyServer, RequestTarget};
use crate::test_account::{Clients, EAST, NORTH, TestAccount, WEST, run, within};

const DOCUMENT: &str = include_str!("../../../../docs/retries.md");

/// One row, as it is written.
#[derive(Clone, Copy, Debug)]
struct Row {
    response: &'static str,
    operation: &'static str,
    first: &'static str,
    alone: &'static str,
    changes: &'static str,
    gives_up_after: &'static str,
    error: &'static str,
}

fn rows() -> Vec<Row> {
    let lines = DOCUMENT.lines().skip_while(|line| !line.starts_with("| response |")).skip(2);
    lines
        .take_while(|line| line.starts_with('|'))
        .map(|line| {
            let cells: Vec<&str> = line.trim_matches('|').split('|').map(str::trim).collect();
            let [response, operation, first, alone, changes, gives_up_after, error] = cells[..] else {
                panic!("seven cells: {line}")
            };
            Row { response, operation, first, alone, changes, gives_up_after, error }
        })
        .collect()
}

/// What brings a response about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fault {
    /// A region responds with this status and sub-status.
    Response(u16, u32),
    /// A region does not let anybody in.
    RefuseConnection,
    /// A region ends the connection before it has done anything, or after it has done it.
    Close(ConnectionEffect),
    /// The credential has no token any more.
    NoToken,
    /// A region sends a response without end.
    TooLong,
    /// The deadline is over before anything is sent.
    TooLate,
    /// The caller's session token has a character that no header can hold.
    InvalidHeader,
    /// No response before the deadline.
    Slow,
}

/// The account around it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Topology {
    /// One region writes; where a row needs a write that other regions take, all do.
    Usual,
    /// One region writes, and the operation begins in another one.
    AwayFromHub,
    /// All regions take writes.
    AllWrite,
    /// Partitions fail over by themselves.
    PartitionsFailOver,
}

/// What is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Call {
    Read,
    Write,
    RepeatableWrite,
    ByRange,
}

struct Case {
    response: &'static str,
    operation: &'static str,
    faults: &'static [Fault],
    topology: Topology,
    call: &'static [Call],
}

const fn case(
    response: &'static str,
    operation: &'static str,
    faults: &'static [Fault],
    call: &'static [Call],
) -> Case {
    Case { response, operation, faults, topology: Topology::Usual, call }
}

const READ: &[Call] = &[Call::Read];
const WRITE: &[Call] = &[Call::Write];
const REPEATABLE: &[Call] = &[Call::RepeatableWrite];
const ANY: &[Call] = &[Call::Read, Call::Write];
const MOVED: &[Fault] = &[Fault::Response(410, 1002), Fault::Response(410, 1007), Fault::Response(410, 1008)];
const GONE: &[Fault] = &[Fault::Response(410, 0), Fault::Response(410, 21)];
const UNAVAILABLE: &[Fault] = &[Fault::Response(503, 0), Fault::Response(503, 9002)];
const BUSY: &[Fault] = &[Fault::Response(429, 3092)];
const FAILED: &[Fault] = &[Fault::Response(500, 0), Fault::Response(408, 0)];
const OTHERS: &[Fault] = &[
    Fault::Response(400, 0),
    Fault::Response(401, 0),
    Fault::Response(403, 0),
    Fault::Response(404, 0),
    Fault::Response(409, 0),
    Fault::Response(412, 0),
    Fault::Response(413, 0),
];
const LOST: &[Fault] =
    &[Fault::Close(ConnectionEffect::CloseBefore), Fault::Close(ConnectionEffect::CloseAfter)];

const CASES: &[Case] = &[
    case("403/3", "any", &[Fault::Response(403, 3)], ANY),
    Case {
        topology: Topology::PartitionsFailOver,
        ..case("403/3, partitions fail over", "writes", &[Fault::Response(403, 3)], WRITE)
    },
    case("403/1008", "any", &[Fault::Response(403, 1008)], ANY),
    Case {
        topology: Topology::AwayFromHub,
        ..case("404/1002, one write region", "any", &[Fault::Response(404, 1002)], READ)
    },
    Case {
        topology: Topology::AllWrite,
        ..case("404/1002, several", "any", &[Fault::Response(404, 1002)], ANY)
    },
    case("410/1002, 410/1007, 410/1008", "any", MOVED, ANY),
    case("410/1002, 410/1007, 410/1008", "by range id", MOVED, &[Call::ByRange]),
    case("410/1000", "any", &[Fault::Response(410, 1000)], ANY),
    case("410, other", "reads", GONE, READ),
    case("410, other", "writes", GONE, WRITE),
    case("503", "reads", UNAVAILABLE, READ),
    case("503", "writes", UNAVAILABLE, WRITE),
    case("429/3092", "reads", BUSY, READ),
    case("429/3092", "writes", BUSY, WRITE),
    case("429, other", "any", &[Fault::Response(429, 3200)], ANY),
    case("500, 408", "reads", FAILED, READ),
    case("500, 408", "writes", FAILED, WRITE),
    case("500, 408", "repeatable writes", FAILED, REPEATABLE),
    case("449", "any", &[Fault::Response(449, 0)], ANY),
    case("400/1024", "any", &[Fault::Response(400, 1024)], ANY),
    case("404/1003", "any", &[Fault::Response(404, 1003)], ANY),
    case("404/1013", "any", &[Fault::Response(404, 1013)], ANY),
    case("other responses", "any", OTHERS, ANY),
    case("no response, not sent", "reads", &[Fault::RefuseConnection], READ),
    case("no response, not sent", "writes", &[Fault::RefuseConnection], WRITE),
    case("no response, maybe sent", "reads", LOST, READ),
    case("no response, maybe sent", "writes", LOST, WRITE),
    case("no response, maybe sent", "repeatable writes", LOST, REPEATABLE),
    case("no token from the credential", "any", &[Fault::NoToken], ANY),
    case("a request that cannot be sent", "any", &[Fault::InvalidHeader], ANY),
    case("an unreadable response", "reads", &[Fault::TooLong], READ),
    case("an unreadable response", "writes", &[Fault::TooLong], WRITE),
    case("deadline, not sent", "any", &[Fault::TooLate], ANY),
    case("deadline, maybe sent", "reads", &[Fault::Slow], READ),
    case("deadline, maybe sent", "writes", &[Fault::Slow], WRITE),
];

#[tokio::test]
async fn every_row_of_the_table_is_what_happens_over_sockets() {
    let rows = rows();
    assert!(rows.len() > 20, "docs/retries.md has lost its table");
    for case in CASES {
        let of_case =
            rows.iter().filter(|row| (row.response, row.operation) == (case.response, case.operation));
        assert_eq!(of_case.count(), 1, "no row for the case {} · {}", case.response, case.operation);
    }
    let mut checks = Vec::new();
    for row in rows {
        let of_row =
            CASES.iter().filter(|case| (row.response, row.operation) == (case.response, case.operation));
        let cases: Vec<&Case> = of_row.collect();
        let [case] = cases[..] else { panic!("one case for the row {} · {}", row.response, row.operation) };
        for fault in case.faults {
            checks.extend(case.call.iter().map(|call| check(row, case.topology, *fault, *call)));
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
    assert_eq!(wrong, 0, "responses that are not handled as the table says; each is listed above");
}

/// One response, for one operation, in all three situations of its row.
async fn check(row: Row, topology: Topology, fault: Fault, call: Call) {
    let label = format!("{} · {} ({fault:?}, {call:?})", row.response, row.operation);
    if fault == Fault::TooLong {
        let scenario = Scenario::behind_a_liar().await;
        return scenario.endless(row, fault, call, &label).await;
    }
    let scenario = Scenario::with_others(topology, fault, call).await;
    scenario.once(row.first, fault, call, &label).await;
    let scenario = Scenario::alone(topology, fault, call).await;
    scenario.once(row.alone, fault, call, &label).await;
    let scenario = Scenario::alone(topology, fault, call).await;
    scenario.endless(row, fault, call, &label).await;
}

/// An account, a driver that has done something before, and the region it goes to.
struct Scenario {
    test_account: TestAccount,
    server: Option<FaultyServer>,
    driver: CosmosDriver,
    here: &'static str,
    token: Arc<Fading>,
}

impl Scenario {
    /// Where other regions could be turned to.
    async fn with_others(topology: Topology, fault: Fault, call: Call) -> Scenario {
        let writes = matches!(call, Call::Write | Call::RepeatableWrite);
        let test_account = TestAccount::start_with(|config| {
            config.partition_failover = topology == Topology::PartitionsFailOver;
            config.multi_write = topology == Topology::AllWrite || (writes && !config.partition_failover);
        });
        let preferred =
            if topology == Topology::AwayFromHub { [NORTH, EAST, WEST] } else { [WEST, EAST, NORTH] };
        Scenario::new(test_account.await, &preferred, fault).await
    }

    /// Where there is none: one region, or for a write the only one that takes it.
    async fn alone(topology: Topology, fault: Fault, call: Call) -> Scenario {
        let writes = matches!(call, Call::Write | Call::RepeatableWrite);
        let test_account = TestAccount::start_with(|config| {
            config.partition_failover = topology == Topology::PartitionsFailOver;
            if !writes || config.partition_failover {
                config.regions = vec![WEST.to_owned()].into();
            }
        });
        Scenario::new(test_account.await, &[WEST], fault).await
    }

    async fn new(test_account: TestAccount, preferred: &[&'static str], fault: Fault) -> Scenario {
        let token = Arc::new(Fading(AtomicBool::new(true)));
        let account = match fault {
            Fault::NoToken => {
                Account::with_credential(&test_account.running.endpoint(), Arc::clone(&token) as _)
            }
            _ => Account::from_connection_string(&test_account.running.connection_string()),
        };
        let runtime = CosmosRuntime::builder(Arc::new(Clients)).build().expect("valid");
        let driver = runtime.driver(&account.expect("valid"), options(preferred)).expect("valid");
        run(&test_account.driver(), &test_account.upsert("a", 1)).await.expect("written");
        if fault == Fault::RefuseConnection {
            // No connection is kept: on one that is open, a request would be sent and lost.
            let rule = FaultRule::connection(ConnectionEffect::GoAway).named("last");
            test_account.running.faults().add(rule).expect("a rule");
        }
        let scenario = Scenario { test_account, server: None, driver, here: preferred[0], token };
        // It knows the account, the container and its ranges, and has connections.
        for call in [Call::Read, Call::Write, Call::ByRange] {
            run(&scenario.driver, &scenario.operation(call)).await.expect("all is well");
        }
        scenario
    }

    async fn behind_a_liar() -> Scenario {
        let server = FaultyServer::start().await;
        let driver = server.driver(options(&[WEST]));
        let token = Arc::new(Fading(AtomicBool::new(true)));
        let test_account =
            TestAccount::start_with(|config| config.regions = vec![WEST.to_owned()].into()).await;
        run(&driver, &server.test_account.upsert("a", 1)).await.expect("all is well");
        Scenario { test_account, server: Some(server), driver, here: WEST, token }
    }

    fn operation(&self, call: Call) -> Operation {
        match call {
            Call::Read => self.test_account.read("a"),
            Call::Write => self.test_account.upsert("a", 2),
            Call::RepeatableWrite => self.test_account.upsert("a", 2).repeatable(),
            Call::ByRange => {
                Operation::new(OperationKind::Query, Target::items(&self.test_account.container))
                    .with_scope(Scope::Partition(RangeId(0)))
                    .with_body(json!({"query": "SELECT * FROM c"}).to_string())
            }
        }
    }

    /// Lets it happen, once or again and again. What cannot happen once happens again and again.
    fn fault(&self, fault: Fault, call: Call, times: Option<u64>) {
        let asked = match call {
            Call::Read => Asked::Read,
            Call::Write | Call::RepeatableWrite => Asked::Write,
            Call::ByRange => Asked::Query,
        };
        let rule = match fault {
            Fault::Response(429, 3200) if times.is_none() => {
                FaultRule::status(429, 3200).retry_after(Duration::from_millis(1)).on(asked)
            }
            // The transport waits for a while by itself; that it comes to an end is what is asked here.
            Fault::Response(429, 3200) => {
                FaultRule::status(429, 3200).retry_after(Duration::from_millis(1)).on(asked).times(10)
            }
            Fault::Response(status, sub_status) => {
                let rule = FaultRule::status(status, sub_status).on(asked);
                times.into_iter().fold(rule, FaultRule::times)
            }
            Fault::RefuseConnection => FaultRule::connection(ConnectionEffect::Refuse),
            Fault::Close(effect) => FaultRule::connection(effect).on(asked),
            Fault::Slow => FaultRule::delay(Duration::from_secs(60)).on(asked),
            Fault::NoToken => return self.token.0.store(false, Ordering::Release),
            Fault::TooLong => {
                let head = format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n", usize::MAX >> 8);
                let server = self.server.as_ref().expect("behind a server");
                return server.inject(
                    RequestTarget::Items,
                    FaultyResponse::TooLong(head.into_bytes(), usize::MAX >> 16),
                );
            }
            Fault::TooLate | Fault::InvalidHeader => return,
        };
        self.test_account.running.faults().add(rule.in_region(self.here).named("fault")).expect("a rule");
    }

    async fn run(&self, fault: Fault, call: Call) -> Result<Response, Error> {
        let mut operation = self.operation(call);
        if fault == Fault::InvalidHeader {
            operation = operation.with_session_token("0:-1#1\r\nx-forged: 1");
        }
        let deadline = match fault {
            Fault::TooLate => Duration::from_nanos(1),
            Fault::Slow => Duration::from_millis(500),
            // Longer than all the waits of a row, however slow the machine.
            _ => Duration::from_secs(60),
        };
        loop {
            let result = self.driver.execute_operation(&operation, &within(deadline)).await;
            // A token that is still good is used to its end.
            if fault != Fault::NoToken || result.is_err() {
                return result;
            }
        }
    }

    /// What follows when it happens once.
    async fn once(self, expected: &str, fault: Fault, call: Call, label: &str) {
        self.fault(fault, call, Some(1));
        // Where nothing else is left, what continues happening does so until it is given up.
        let result = self.run(fault, call).await;
        let attempts = attempts(diagnostics(&result));
        let regions: Vec<&str> = attempts.iter().map(|attempt| attempt.endpoint.region().as_str()).collect();
        let (place, time) = expected.split_once(", ").unwrap_or((expected, ""));
        let next = || *regions.get(1).unwrap_or_else(|| panic!("{label}: tried once, in {regions:?}"));
        assert!(regions.first().is_none_or(|first| *first == self.here), "{label}: {regions:?}");
        match place {
            "gives up" => {
                assert!(result.is_err() && regions.len() <= 1, "{label}: {regions:?}");
                return;
            }
            "here" => assert_eq!(next(), self.here, "{label}"),
            "another region" => assert_ne!(next(), self.here, "{label}"),
            "the hub region" => assert_eq!(next(), WEST, "{label}"),
            other => panic!("the table names an unknown error '{other}'"),
        }
        if let Some(longest) = time.strip_prefix("after up to ") {
            let (started, took) = attempts[0].outcome.span();
            let waited = attempts[1].outcome.span().0.saturating_duration_since(started + took);
            assert!(waited >= duration(longest) / 2, "{label}: waited {waited:?}");
        }
        if matches!(fault, Fault::Response(..)) {
            let error = result.as_ref().err().map(ToString::to_string);
            assert_eq!(error, None, "{label}: it happened once");
        }
    }

    /// What follows when it happens again and again: how often it is tried, what is changed, what is error.
    async fn endless(self, row: Row, fault: Fault, call: Call, label: &str) {
        let before = self.requests(0).await;
        let last = before.first().map_or(0, |newest| newest["number"].as_u64().expect("a number"));
        self.fault(fault, call, None);
        let result = self.run(fault, call).await;
        let diagnostics = diagnostics(&result);
        let error = result.as_ref().expect_err(label);
        let expected = match row.error {
            "the service's error" => match fault {
                Fault::Response(status, sub_status) => {
                    let status = protocol::status::Status(status);
                    assert_eq!(error.status(), Some(status), "{label}: {error}");
                    ErrorKind::of_status(status, protocol::status::SubStatus(sub_status))
                }
                _ => panic!("{label}: there was no response"),
            },
            "`Unavailable`" => ErrorKind::Unavailable,
            "`Undecided`" => ErrorKind::Undecided,
            "`DeadlineExceeded`" => ErrorKind::DeadlineExceeded,
            "`Unauthenticated`" => ErrorKind::Unauthenticated,
            "`BadResponse`" => ErrorKind::BadResponse,
            "`BadRequest`" => ErrorKind::BadRequest,
            other => panic!("the table names an unknown error '{other}'"),
        };
        assert_eq!(error.kind(), expected, "{label}: {error}");
        let retries = retries(row.gives_up_after);
        if diagnostics.omitted() == 0 {
            let tried = attempts(diagnostics).len();
            // Nothing is on record of what was never sent.
            let unsent = matches!(fault, Fault::TooLate | Fault::NoToken | Fault::InvalidHeader);
            let as_told = if unsent { tried == 0 } else { tried > 0 && retries.contains(&(tried - 1)) };
            assert!(as_told, "{label}: {}", diagnostics.summary());
        } else {
            // More requests than are kept: several for each attempt, each over another connection.
            let sent = diagnostics.totals().attempts as usize;
            let as_told = retries.start() + 1..=3 * (retries.end() + 1);
            assert!(as_told.contains(&sent), "{label}: {}", diagnostics.summary());
        }
        self.changes(row.changes, fault, last, label).await;
    }

    /// Compares the shared state afterwards with what the table says.
    async fn changes(&self, expected: &str, fault: Fault, last: u64, label: &str) {
        let mut seen = BTreeSet::new();
        let (account, here) = (self.driver.account(), Region::new(self.here));
        match (account.is_unavailable(&here, true), account.is_unavailable(&here, false)) {
            (true, _) => seen.insert("region down"),
            (false, true) => seen.insert("region down for writes"),
            (false, false) => false,
        };
        if account.is_silent(&here) {
            seen.insert("counts a silent region");
        }
        for (key, breaker) in self.driver.partition_state().breakers() {
            let is_silent = breaker.failures == breaker.silent_failures;
            seen.insert(match (key.access, breaker.failures) {
                (_, 0) if breaker.is_open() => "opens the breaker",
                (Access::Read, _) if is_silent => "counts a silent read",
                (Access::Read, _) => "counts a failed read",
                (Access::Write, _) if is_silent => "counts a silent write",
                (Access::Write, _) => "counts a failed write",
            });
        }
        if self.server.is_none() && fault != Fault::NoToken {
            self.test_account.running.faults().remove("fault").expect("a set of rules");
            // Another operation follows.
            run(&self.driver, &self.operation(Call::Read)).await.expect("all is well again");
            let asked = |path: &str, requests: &[Value]| requests.iter().any(|seen| seen["path"] == path);
            let requests = self.requests(last).await;
            if asked("/", &requests) {
                seen.insert("refreshes the account");
            }
            if asked("/dbs/d/colls/c", &requests) {
                // With it, its ranges.
                seen.insert("forgets the container");
            } else if asked("/dbs/d/colls/c/pkranges", &requests) {
                seen.insert("refreshes partition ranges");
            }
        }
        // A deadline that has passed before anything is sent shows no silence.
        let is_sent = fault != Fault::TooLate;
        let is_expected = |change: &&str| *change != "–" && (is_sent || *change != "counts a silent region");
        let expected: BTreeSet<&str> = expected.split(", ").filter(is_expected).collect();
        // A region that was silent again and again, for a second, is down in the end.
        if expected.contains("counts a silent region") && seen.remove("region down") {
            seen.insert("counts a silent region");
        }
        assert_eq!(seen, expected, "{label}");
    }

    /// The requests the account has seen after number `last`, newest first.
    async fn requests(&self, last: u64) -> Vec<Value> {
        let path = format!("/requests?limit=1000&after={last}");
        let response = self.test_account.control(http::Method::GET, &path, Value::Null).await;
        response["requests"].as_array().expect("a list").clone()
    }
}

fn options(preferred: &[&str]) -> DriverOptions {
    let hedging = HedgingOptions::new().with_enabled(false);
    let regions = RegionOptions::new().with_preferred(preferred.iter().copied());
    // One request has all the time in the topology, unless the operation has less.
    let timeouts = TimeoutOptions::new().with_attempt(Duration::from_secs(30));
    let operation = OperationOptions::new().with_hedging(hedging).with_regions(regions);
    DriverOptions::new().with_operation(operation.with_timeouts(timeouts))
}

static NOTHING_TRIED: std::sync::OnceLock<Diagnostics> = std::sync::OnceLock::new();

fn diagnostics(result: &Result<Response, Error>) -> &Diagnostics {
    match result {
        Ok(response) => response.diagnostics(),
        // What was refused before anything was tried has none.
        Err(error) if error.kind() == ErrorKind::BadRequest && error.status().is_none() => {
            NOTHING_TRIED.get_or_init(Diagnostics::default)
        }
        Err(error) => error.diagnostics().expect("diagnostics"),
    }
}

/// The attempts of an operation. What the transport repeats within one is not another.
fn attempts(diagnostics: &Diagnostics) -> Vec<&AttemptRecord> {
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

/// Parses a duration such as `100ms` or `2s`.
fn duration(text: &str) -> Duration {
    let (number, unit) = text.split_at(text.find(|c: char| !c.is_ascii_digit()).expect("a unit"));
    let number = number.parse().expect("a number");
    match unit {
        "ms" => Duration::from_millis(number),
        "s" => Duration::from_secs(number),
        other => panic!("unknown unit '{other}'"),
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
