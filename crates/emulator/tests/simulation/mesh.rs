//! All regions write: each answers from its own copy, conflicts are settled, and all end up equal.

use std::collections::BTreeMap;
use std::ops::{Deref, DerefMut};
use std::time::Duration;

use http::Method;
use protocol::account::ConsistencyLevel;
use protocol::session_token::{PartitionToken, SessionToken};
use serde_json::{Value, json};

use crate::ask::Heard;
use crate::client::Answer;
use crate::descent::{Descent, ItemName};
use crate::dice::Dice;
use crate::failure::{Failure, Promise, ensure};
use crate::mesh_feed::MeshReader;
use crate::model::{Items, Version, plain};
use crate::operation::{Decision, Operation, Write};
use crate::operator::Deed;
use crate::order::Order;
use crate::ring::Key;
use crate::run::Play;
use crate::stage::{DOCS, Scenery, Stage, lsn_of};
use crate::trouble::Time;
use crate::writes::shown;

/// Everything a step works with.
pub(crate) struct Mesh {
    stage: Stage,
    pub(crate) descent: Descent,
    clients: Vec<Client>,
    pub(crate) feeds: Vec<MeshReader>,
    /// By name and partition key.
    snapshots: BTreeMap<String, BTreeMap<String, Items>>,
    /// By region and partition key, the LSN of the last answer.
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
    Write(Write),
    Batch,
    Read,
    Query,
    BeginFeed,
    ReadFeed,
    Operate(Deed),
    Trouble,
    SaveSnapshot,
    RestoreSnapshot,
    Restart,
}

const ACTIONS: &[(usize, Action)] = &[
    (8, Action::Write(Write::Create)),
    (24, Action::Write(Write::Upsert)),
    (8, Action::Write(Write::Replace)),
    (8, Action::Write(Write::Patch)),
    (5, Action::Write(Write::Delete)),
    (6, Action::Batch),
    (30, Action::Read),
    (8, Action::Query),
    (3, Action::BeginFeed),
    (10, Action::ReadFeed),
    (20, Action::Operate(Deed::LetTimePass)),
    (2, Action::Operate(Deed::ChangeLag)),
    (3, Action::Operate(Deed::Pause)),
    (4, Action::Operate(Deed::Resume)),
    (3, Action::Operate(Deed::Split)),
    (2, Action::Operate(Deed::Merge)),
    (4, Action::Trouble),
    (2, Action::SaveSnapshot),
    (1, Action::RestoreSnapshot),
    (3, Action::Restart),
];

impl Deref for Mesh {
    type Target = Stage;

    fn deref(&self) -> &Stage {
        &self.stage
    }
}

impl DerefMut for Mesh {
    fn deref_mut(&mut self) -> &mut Stage {
        &mut self.stage
    }
}

impl Play for Mesh {
    async fn begin(dice: &mut Dice) -> Mesh {
        let scenery = Scenery {
            regions: dice.between(2, 3),
            multi_write: true,
            level: dice.weighted(&[(4, ConsistencyLevel::Session), (1, ConsistencyLevel::BoundedStaleness)]),
            kept: dice.chance(25),
        };
        Mesh {
            stage: Stage::new(scenery, dice).await,
            descent: Descent::default(),
            clients: (0..3).map(|_| Client::default()).collect(),
            feeds: Vec::new(),
            snapshots: BTreeMap::new(),
            progress: BTreeMap::new(),
        }
    }

    async fn step(&mut self, dice: &mut Dice) -> Result<(), Failure> {
        // Nobody is asked where the bound cannot be kept: that has tests of its own.
        if (0..self.regions.len() as u8).any(|region| self.may_be_too_stale(region)) {
            (0..self.regions.len()).for_each(|at| self.resume_region(at));
        }
        match dice.weighted(ACTIONS) {
            Action::Write(write) => self.write(&[write], dice).await?,
            Action::Batch => {
                let kinds = [(2, Write::Create), (5, Write::Upsert), (2, Write::Patch), (1, Write::Delete)];
                let writes: Vec<Write> = (0..dice.between(2, 5)).map(|_| dice.weighted(&kinds)).collect();
                self.write(&writes, dice).await?;
            }
            Action::Read => {
                let (key, region, client) =
                    (self.key(dice), self.region(dice), dice.below(self.clients.len()));
                let id = format!("i{}", dice.below(self.ids));
                self.read(&key, &id, region, client).await?;
            }
            Action::Query => {
                let (key, region) = (self.key(dice), self.region(dice));
                let items = self.items(region, &key).await?;
                let shown: Vec<&Value> = items.values().map(|version| &version.body["v"]).collect();
                let line = format!("in {region}: {} has {shown:?}", key.name);
                self.tell(line);
            }
            Action::BeginFeed => self.begin_feed(dice).await?,
            Action::ReadFeed => self.read_feed(dice).await?,
            Action::Operate(deed) => self.operate_on(deed, dice).await?,
            Action::Trouble => self.make_trouble(Time::StandsStill, dice),
            Action::SaveSnapshot => self.save_snapshot(dice).await?,
            Action::RestoreSnapshot => self.restore_snapshot(dice).await?,
            Action::Restart => {
                if self.restart(dice).await? {
                    self.snapshots.clear();
                }
            }
        }
        Ok(())
    }

    async fn settle(&mut self, _: &mut Dice) -> Result<(), Failure> {
        self.end_trouble();
        for at in 0..self.regions.len() {
            self.resume_region(at);
        }
        self.wait(Duration::from_secs(10));
        self.agree().await
    }

    fn told(&mut self) -> &mut Vec<String> {
        &mut self.stage.told
    }
}

impl Mesh {
    /// What a region has of a partition key, by a query.
    pub(crate) async fn items(&mut self, region: u8, key: &Key) -> Result<Items, Failure> {
        let headers = [
            ("x-ms-documentdb-partitionkey", key.header.clone()),
            ("x-ms-documentdb-isquery", "true".to_owned()),
            ("content-type", "application/query+json".to_owned()),
        ];
        let query = json!({"query": "SELECT * FROM c"}).to_string();
        let answer = self.send(region, Method::POST, DOCS, &headers, &query).await;
        ensure(answer.status == 200, Promise::Answer, || shown(&answer))?;
        self.check_progress(region, key, &answer)?;
        let mut items = Items::new();
        for row in answer.json()["Documents"].as_array().unwrap() {
            let (id, etag) = (row["id"].as_str().unwrap(), row["_etag"].as_str().unwrap());
            let version = Version { body: plain(row), etag: etag.to_owned(), lsn: 0 };
            let twice = items.insert(id.to_owned(), version).is_some();
            ensure(!twice, Promise::Query, || format!("{row} is there twice"))?;
        }
        Ok(items)
    }

    /// What all regions have of every partition key, which is the same.
    async fn items_everywhere(&mut self) -> Result<BTreeMap<String, Items>, Failure> {
        let mut everything = BTreeMap::new();
        for key in self.keys.clone() {
            let items = self.items(0, &key).await?;
            for region in 1..self.regions.len() as u8 {
                let others = self.items(region, &key).await?;
                ensure(items == others, Promise::Convergence, || {
                    format!("of {} region 0 has {items:?}\n  and region {region} {others:?}", key.name)
                })?;
            }
            everything.insert(key.name.clone(), items);
        }
        Ok(everything)
    }

    /// Everything on its way arrives, and is saved.
    async fn save_snapshot(&mut self, dice: &mut Dice) -> Result<(), Failure> {
        let name = self.save_as(dice);
        let saved = self.items_everywhere().await?;
        self.snapshots.insert(name, saved);
        Ok(())
    }

    async fn restore_snapshot(&mut self, dice: &mut Dice) -> Result<(), Failure> {
        let names = self.snapshots.keys().cloned().collect();
        let Some(name) = self.go_back(names, dice).await? else { return Ok(()) };
        let (saved, found) = (self.snapshots[&name].clone(), self.items_everywhere().await?);
        ensure(found == saved, Promise::Prefix, || format!("{found:?}\n  instead of {saved:?}"))?;
        // What was undone never was: nobody has seen it, and nobody is told.
        self.descent = Descent::default();
        for (key, items) in saved {
            for (id, version) in items {
                let v = version.body["v"].as_u64().unwrap();
                self.descent.record(v, (key.clone(), id), None, false);
            }
        }
        self.clients.iter_mut().for_each(|client| client.seen.clear());
        self.feeds.clear();
        Ok(())
    }

    fn check_progress(&mut self, region: u8, key: &Key, answer: &Answer) -> Result<(), Failure> {
        let lsn = lsn_of(answer);
        let was = self.progress.insert((region, key.name.clone()), lsn).unwrap_or(0);
        ensure(was <= lsn, Promise::Progress, || {
            format!("region {region} answered about {} at LSN {was}, and now at {lsn}", key.name)
        })
    }

    /// One write, or a batch of them, in any region: answered as what that region has calls for.
    async fn write(&mut self, writes: &[Write], dice: &mut Dice) -> Result<(), Failure> {
        let (key, region, client) = (self.key(dice), self.region(dice), dice.below(self.clients.len()));
        let there = self.items(region, &key).await?;
        let mut operations = Vec::new();
        for write in writes {
            let (id, v) = (format!("i{}", dice.below(self.ids)), self.new_v());
            let known = there.get(&id).map(|version| version.etag.clone());
            let if_match = if dice.chance(20) { known } else { None };
            operations.push(Operation::draw(*write, &key, (id, v), if_match, dice));
        }
        let order = match <[Operation; 1]>::try_from(operations) {
            Ok([operation]) => Order::One(operation),
            Err(operations) => Order::Batch(operations),
        };
        let decisions = order.decide(&there);
        // Who leaves does so at once: what a region has changes with time.
        let patience = dice.chance(10).then_some(Duration::ZERO);
        let before = self.progress[&(region, key.name.clone())];
        let heard = self.hear(&order.ask(&key, region), patience).await;
        let line = format!("client {client} in {region}: {} {} → {}", key.name, order.words(), heard.shown());
        self.tell(line);
        match heard {
            Heard::Answer(answer) => {
                order.check(&answer, &decisions, &there)?;
                self.committed(&key, Some(client), &there, &decisions);
                self.saw_token(client, &answer);
            }
            Heard::Refusal(_) => {}
            Heard::Nothing => {
                self.items(region, &key).await?;
                let happened = self.progress[&(region, key.name.clone())] > before;
                self.tell(format!("  it {}", if happened { "happened" } else { "did not happen" }));
                if happened {
                    self.committed(&key, None, &there, &decisions);
                }
            }
        }
        Ok(())
    }

    /// Remembers what was carried out, and who has heard of it.
    fn committed(&mut self, key: &Key, client: Option<usize>, there: &Items, decisions: &[Decision]) {
        let v_of = |body: &Value| body["v"].as_u64().unwrap();
        let mut now: BTreeMap<String, Option<u64>> =
            there.iter().map(|(id, version)| (id.clone(), Some(v_of(&version.body)))).collect();
        for effect in decisions.iter().filter_map(|decision| decision.effect.clone()) {
            let item = (key.name.clone(), effect.id.clone());
            let base = now.get(&effect.id).copied().flatten();
            let v = effect.body.as_ref().map(v_of);
            let number = v.unwrap_or_else(|| self.new_v());
            self.descent.record(number, item.clone(), base, v.is_none());
            if let Some(client) = client {
                self.clients[client].seen.insert(item, number);
            }
            now.insert(effect.id, v);
        }
    }

    fn saw_token(&mut self, client: usize, answer: &Answer) {
        let token = PartitionToken::parse(answer.header("x-ms-session-token").unwrap()).unwrap();
        self.clients[client].token.record(token).unwrap();
    }

    /// A read in a session; says whether the region was behind it.
    async fn read(&mut self, key: &Key, id: &str, region: u8, client: usize) -> Result<bool, Failure> {
        let mut headers = vec![("x-ms-documentdb-partitionkey", key.header.clone())];
        if !self.clients[client].token.partitions().is_empty() {
            headers.push(("x-ms-session-token", self.clients[client].token.to_string()));
        }
        let answer = self.send(region, Method::GET, &format!("{DOCS}/{id}"), &headers, "").await;
        let v = if answer.status == 200 { answer.json()["v"].as_u64() } else { None };
        let line =
            format!("client {client} in {region}: {} read {id} → {} v {v:?}", key.name, shown(&answer));
        self.tell(line);
        if answer.status == 404 && answer.header("x-ms-substatus") == Some("1002") {
            return Ok(true);
        }
        ensure([200, 404].contains(&answer.status), Promise::Answer, || shown(&answer))?;
        self.check_progress(region, key, &answer)?;
        let item = (key.name.clone(), id.to_owned());
        ensure(v.is_none_or(|v| self.descent.knows(&item, v)), Promise::Prefix, || {
            format!("nobody wrote {v:?} of {item:?}")
        })?;
        let seen = self.clients[client].seen.get(&item).copied();
        ensure(seen.is_none_or(|seen| self.descent.may_follow(&item, seen, v)), Promise::Session, || {
            format!("client {client} has seen {seen:?} of {item:?}, and is shown {v:?}")
        })?;
        if let Some(v) = v {
            self.clients[client].seen.insert(item, v);
        }
        self.saw_token(client, &answer);
        Ok(false)
    }

    /// When everything has arrived: all regions are equal, nothing is lost, no session has to wait, and
    /// feeds have told the last version of everything.
    async fn agree(&mut self) -> Result<(), Failure> {
        let mut last: BTreeMap<ItemName, u64> = BTreeMap::new();
        let everything = self.items_everywhere().await?;
        for key in self.keys.clone() {
            let items = &everything[&key.name];
            for at in 0..self.ids {
                let item = (key.name.clone(), format!("i{at}"));
                let v = items.get(&item.1).map(|version| version.body["v"].as_u64().unwrap());
                let lost = self.descent.lost(&item, v);
                ensure(lost.is_none(), Promise::NothingLost, || {
                    format!("{item:?} ended as {v:?} although somebody wrote {lost:?} on top of it")
                })?;
                last.extend(v.map(|v| (item, v)));
            }
            for (region, client) in (0..self.regions.len() as u8).zip([0, 1, 2]) {
                let behind = self.read(&key, "i0", region, client).await?;
                ensure(!behind, Promise::Convergence, || {
                    format!("region {region} is still behind {client}")
                })?;
            }
        }
        self.drain_feeds(&last).await
    }
}
