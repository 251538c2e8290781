//! A simulation of a multi-write account: each region serves its own replica, conflicts are resolved, and all
//! replicas converge.

use std::collections::BTreeMap;
use std::ops::{Deref, DerefMut};
use std::time::Duration;

use http::Method;
use protocol::account::ConsistencyLevel;
use protocol::session_token::{PartitionToken, SessionToken};
use serde_json::{Value, json};

use crate::client::TestResponse;
use crate::failure::{Failure, Guarantee, ensure};
use crate::fault_rules::RequestDelay;
use crate::fixture::{DOCS, Fixture, FixtureOptions, lsn_of};
use crate::lineage::{ItemName, VersionLineage};
use crate::model::{Items, Version, plain};
use crate::multi_write_feed::MultiWriteFeedReader;
use crate::operation::{Decision, Operation, WriteKind};
use crate::operator::OperatorAction;
use crate::partition_ranges::Key;
use crate::requests::Delivery;
use crate::run::Simulation;
use crate::seeded_random::SeededRandom;
use crate::write_request::WriteRequest;
use crate::writes::summary;

/// The state of a multi-write simulation.
pub(crate) struct MultiWriteSimulation {
    fixture: Fixture,
    pub(crate) lineage: VersionLineage,
    clients: Vec<Client>,
    pub(crate) feeds: Vec<MultiWriteFeedReader>,
    /// The items of each snapshot, by name and partition key.
    snapshots: BTreeMap<String, BTreeMap<String, Items>>,
    /// The LSN of the last response, by region and partition key.
    progress: BTreeMap<(u8, String), u64>,
}

/// A session: its token, and the version of each item it has seen last.
#[derive(Default)]
struct Client {
    token: SessionToken,
    seen: BTreeMap<ItemName, u64>,
}

#[derive(Clone, Copy, Debug)]
enum Action {
    Write(WriteKind),
    Batch,
    Read,
    Query,
    BeginFeed,
    ReadFeed,
    Operate(OperatorAction),
    AddFault,
    SaveSnapshot,
    RestoreSnapshot,
    Restart,
}

const ACTIONS: &[(usize, Action)] = &[
    (8, Action::Write(WriteKind::Create)),
    (24, Action::Write(WriteKind::Upsert)),
    (8, Action::Write(WriteKind::Replace)),
    (8, Action::Write(WriteKind::Patch)),
    (5, Action::Write(WriteKind::Delete)),
    (6, Action::Batch),
    (30, Action::Read),
    (8, Action::Query),
    (3, Action::BeginFeed),
    (10, Action::ReadFeed),
    (20, Action::Operate(OperatorAction::AdvanceClock)),
    (2, Action::Operate(OperatorAction::ChangeLag)),
    (3, Action::Operate(OperatorAction::Pause)),
    (4, Action::Operate(OperatorAction::Resume)),
    (3, Action::Operate(OperatorAction::Split)),
    (2, Action::Operate(OperatorAction::Merge)),
    (4, Action::AddFault),
    (2, Action::SaveSnapshot),
    (1, Action::RestoreSnapshot),
    (3, Action::Restart),
];

impl Deref for MultiWriteSimulation {
    type Target = Fixture;

    fn deref(&self) -> &Fixture {
        &self.fixture
    }
}

impl DerefMut for MultiWriteSimulation {
    fn deref_mut(&mut self) -> &mut Fixture {
        &mut self.fixture
    }
}

impl Simulation for MultiWriteSimulation {
    async fn create(rng: &mut SeededRandom) -> MultiWriteSimulation {
        let options = FixtureOptions {
            regions: rng.between(2, 3),
            multi_write: true,
            level: rng.weighted(&[(4, ConsistencyLevel::Session), (1, ConsistencyLevel::BoundedStaleness)]),
            stored: rng.chance(25),
        };
        MultiWriteSimulation {
            fixture: Fixture::new(options, rng).await,
            lineage: VersionLineage::default(),
            clients: (0..3).map(|_| Client::default()).collect(),
            feeds: Vec::new(),
            snapshots: BTreeMap::new(),
            progress: BTreeMap::new(),
        }
    }

    async fn step(&mut self, rng: &mut SeededRandom) -> Result<(), Failure> {
        // Violations of bounded staleness have tests of their own, so regions that are too far behind resume.
        if (0..self.regions.len() as u8).any(|region| self.may_be_too_stale(region)) {
            (0..self.regions.len()).for_each(|at| self.resume_region(at));
        }
        match rng.weighted(ACTIONS) {
            Action::Write(write) => self.write(&[write], rng).await?,
            Action::Batch => {
                let kinds = [
                    (2, WriteKind::Create),
                    (5, WriteKind::Upsert),
                    (2, WriteKind::Patch),
                    (1, WriteKind::Delete),
                ];
                let writes: Vec<WriteKind> = (0..rng.between(2, 5)).map(|_| rng.weighted(&kinds)).collect();
                self.write(&writes, rng).await?;
            }
            Action::Read => {
                let (key, region, client) =
                    (self.random_key(rng), self.random_region(rng), rng.below(self.clients.len()));
                let id = format!("i{}", rng.below(self.ids));
                self.read(&key, &id, region, client).await?;
            }
            Action::Query => {
                let (key, region) = (self.random_key(rng), self.random_region(rng));
                let items = self.items(region, &key).await?;
                let visible: Vec<&Value> = items.values().map(|version| &version.body["v"]).collect();
                let line = format!("in {region}: {} has {visible:?}", key.name);
                self.log_line(line);
            }
            Action::BeginFeed => self.begin_feed(rng).await?,
            Action::ReadFeed => self.read_feed(rng).await?,
            Action::Operate(action) => self.run_operator_action(action, rng).await?,
            Action::AddFault => self.add_fault_rule(RequestDelay::Forbidden, rng),
            Action::SaveSnapshot => self.save_snapshot(rng).await?,
            Action::RestoreSnapshot => self.restore_snapshot(rng).await?,
            Action::Restart => {
                if self.restart(rng).await? {
                    self.snapshots.clear();
                }
            }
        }
        Ok(())
    }

    async fn check_final_state(&mut self, _: &mut SeededRandom) -> Result<(), Failure> {
        self.clear_faults();
        for at in 0..self.regions.len() {
            self.resume_region(at);
        }
        self.wait(Duration::from_secs(10));
        self.agree().await
    }

    fn log(&mut self) -> &mut Vec<String> {
        &mut self.fixture.log
    }
}

impl MultiWriteSimulation {
    /// The items of a partition key in one region, by a query.
    pub(crate) async fn items(&mut self, region: u8, key: &Key) -> Result<Items, Failure> {
        let headers = [
            ("x-ms-documentdb-partitionkey", key.header.clone()),
            ("x-ms-documentdb-isquery", "true".to_owned()),
            ("content-type", "application/query+json".to_owned()),
        ];
        let query = json!({"query": "SELECT * FROM c"}).to_string();
        let response = self.send(region, Method::POST, DOCS, &headers, &query).await;
        ensure(response.status == 200, Guarantee::Response, || summary(&response))?;
        self.check_progress(region, key, &response)?;
        let mut items = Items::new();
        for row in response.json()["Documents"].as_array().unwrap() {
            let (id, etag) = (row["id"].as_str().unwrap(), row["_etag"].as_str().unwrap());
            let version = Version { body: plain(row), etag: etag.to_owned(), lsn: 0 };
            let twice = items.insert(id.to_owned(), version).is_some();
            ensure(!twice, Guarantee::Query, || format!("{row} is there twice"))?;
        }
        Ok(items)
    }

    /// The items of every partition key, which must be equal in all regions.
    async fn items_everywhere(&mut self) -> Result<BTreeMap<String, Items>, Failure> {
        let mut everything = BTreeMap::new();
        for key in self.keys.clone() {
            let items = self.items(0, &key).await?;
            for region in 1..self.regions.len() as u8 {
                let others = self.items(region, &key).await?;
                ensure(items == others, Guarantee::Convergence, || {
                    format!("of {} region 0 has {items:?}\n  and region {region} {others:?}", key.name)
                })?;
            }
            everything.insert(key.name.clone(), items);
        }
        Ok(everything)
    }

    /// Lets all writes replicate, and saves a snapshot.
    async fn save_snapshot(&mut self, rng: &mut SeededRandom) -> Result<(), Failure> {
        let name = self.save_as(rng);
        let saved = self.items_everywhere().await?;
        self.snapshots.insert(name, saved);
        Ok(())
    }

    async fn restore_snapshot(&mut self, rng: &mut SeededRandom) -> Result<(), Failure> {
        let names = self.snapshots.keys().cloned().collect();
        let Some(name) = self.go_back(names, rng).await? else { return Ok(()) };
        let (saved, found) = (self.snapshots[&name].clone(), self.items_everywhere().await?);
        ensure(found == saved, Guarantee::Prefix, || format!("{found:?}\n  instead of {saved:?}"))?;
        // Undone writes are removed from sessions and feeds as well.
        self.lineage = VersionLineage::default();
        for (key, items) in saved {
            for (id, version) in items {
                let v = version.body["v"].as_u64().unwrap();
                self.lineage.record(v, (key.clone(), id), None, false);
            }
        }
        self.clients.iter_mut().for_each(|client| client.seen.clear());
        self.feeds.clear();
        Ok(())
    }

    fn check_progress(&mut self, region: u8, key: &Key, response: &TestResponse) -> Result<(), Failure> {
        let lsn = lsn_of(response);
        let was = self.progress.insert((region, key.name.clone()), lsn).unwrap_or(0);
        ensure(was <= lsn, Guarantee::Progress, || {
            format!("region {region} answered about {} at LSN {was}, and now at {lsn}", key.name)
        })
    }

    /// One write, or a batch of them, in any region, checked against the items of that region.
    async fn write(&mut self, writes: &[WriteKind], rng: &mut SeededRandom) -> Result<(), Failure> {
        let (key, region, client) =
            (self.random_key(rng), self.random_region(rng), rng.below(self.clients.len()));
        let there = self.items(region, &key).await?;
        let mut operations = Vec::new();
        for write in writes {
            let (id, v) = (format!("i{}", rng.below(self.ids)), self.next_version());
            let known = there.get(&id).map(|version| version.etag.clone());
            let if_match = if rng.chance(20) { known } else { None };
            operations.push(Operation::random(*write, &key, (id, v), if_match, rng));
        }
        let write = match <[Operation; 1]>::try_from(operations) {
            Ok([operation]) => WriteRequest::Single(operation),
            Err(operations) => WriteRequest::Batch(operations),
        };
        let decisions = write.decide(&there);
        // A client that disconnects does so at once: the items of a region change with time.
        let timeout = rng.chance(10).then_some(Duration::ZERO);
        let before = self.progress[&(region, key.name.clone())];
        let delivery = self.send_once(&write.to_request(&key, region), timeout).await;
        let line = format!(
            "client {client} in {region}: {} {} → {}",
            key.name,
            write.description(),
            delivery.summary()
        );
        self.log_line(line);
        match delivery {
            Delivery::Response(response) => {
                write.check(&response, &decisions, &there)?;
                self.committed(&key, Some(client), &there, &decisions);
                self.saw_token(client, &response);
            }
            Delivery::InjectedError(_) => {}
            Delivery::Lost => {
                self.items(region, &key).await?;
                let happened = self.progress[&(region, key.name.clone())] > before;
                self.log_line(format!("  it {}", if happened { "happened" } else { "did not happen" }));
                if happened {
                    self.committed(&key, None, &there, &decisions);
                }
            }
        }
        Ok(())
    }

    /// Records what was carried out, and in which session.
    fn committed(&mut self, key: &Key, client: Option<usize>, there: &Items, decisions: &[Decision]) {
        let v_of = |body: &Value| body["v"].as_u64().unwrap();
        let mut now: BTreeMap<String, Option<u64>> =
            there.iter().map(|(id, version)| (id.clone(), Some(v_of(&version.body)))).collect();
        for effect in decisions.iter().filter_map(|decision| decision.effect.clone()) {
            let item = (key.name.clone(), effect.id.clone());
            let base = now.get(&effect.id).copied().flatten();
            let v = effect.body.as_ref().map(v_of);
            let number = v.unwrap_or_else(|| self.next_version());
            self.lineage.record(number, item.clone(), base, v.is_none());
            if let Some(client) = client {
                self.clients[client].seen.insert(item, number);
            }
            now.insert(effect.id, v);
        }
    }

    fn saw_token(&mut self, client: usize, response: &TestResponse) {
        let token = PartitionToken::parse(response.header("x-ms-session-token").unwrap()).unwrap();
        self.clients[client].token.record(token).unwrap();
    }

    /// Reads an item in a session; returns whether the region was behind it.
    async fn read(&mut self, key: &Key, id: &str, region: u8, client: usize) -> Result<bool, Failure> {
        let mut headers = vec![("x-ms-documentdb-partitionkey", key.header.clone())];
        if !self.clients[client].token.partitions().is_empty() {
            headers.push(("x-ms-session-token", self.clients[client].token.to_string()));
        }
        let response = self.send(region, Method::GET, &format!("{DOCS}/{id}"), &headers, "").await;
        let v = if response.status == 200 { response.json()["v"].as_u64() } else { None };
        let line =
            format!("client {client} in {region}: {} read {id} → {} v {v:?}", key.name, summary(&response));
        self.log_line(line);
        if response.status == 404 && response.header("x-ms-substatus") == Some("1002") {
            return Ok(true);
        }
        ensure([200, 404].contains(&response.status), Guarantee::Response, || summary(&response))?;
        self.check_progress(region, key, &response)?;
        let item = (key.name.clone(), id.to_owned());
        ensure(v.is_none_or(|v| self.lineage.contains(&item, v)), Guarantee::Prefix, || {
            format!("nobody wrote {v:?} of {item:?}")
        })?;
        let seen = self.clients[client].seen.get(&item).copied();
        ensure(seen.is_none_or(|seen| self.lineage.may_follow(&item, seen, v)), Guarantee::Session, || {
            format!("client {client} has seen {seen:?} of {item:?}, and is shown {v:?}")
        })?;
        if let Some(v) = v {
            self.clients[client].seen.insert(item, v);
        }
        self.saw_token(client, &response);
        Ok(false)
    }

    /// Checks the final state: all regions are equal, no write is lost, no session has to wait, and every feed
    /// has delivered the last version of each item.
    async fn agree(&mut self) -> Result<(), Failure> {
        let mut last: BTreeMap<ItemName, u64> = BTreeMap::new();
        let everything = self.items_everywhere().await?;
        for key in self.keys.clone() {
            let items = &everything[&key.name];
            for at in 0..self.ids {
                let item = (key.name.clone(), format!("i{at}"));
                let v = items.get(&item.1).map(|version| version.body["v"].as_u64().unwrap());
                let lost = self.lineage.lost_version(&item, v);
                ensure(lost.is_none(), Guarantee::NoLostWrite, || {
                    format!("{item:?} ended as {v:?} although somebody wrote {lost:?} on top of it")
                })?;
                last.extend(v.map(|v| (item, v)));
            }
            for (region, client) in (0..self.regions.len() as u8).zip([0, 1, 2]) {
                let behind = self.read(&key, "i0", region, client).await?;
                ensure(!behind, Guarantee::Convergence, || {
                    format!("region {region} is still behind {client}")
                })?;
            }
        }
        self.drain_feeds(&last).await
    }
}
