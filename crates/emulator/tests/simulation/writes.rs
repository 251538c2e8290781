//! Steps that write: single requests and batches, checked against the model.

use std::collections::BTreeMap;
use std::time::Duration;

use http::Method;
use serde_json::Value;

use crate::client::TestResponse;
use crate::failure::{Failure, Guarantee, ensure};
use crate::fixture::{DOCS, lsn_of};
use crate::model::{Change, Version, plain};
use crate::operation::{Decision, Operation, WriteKind};
use crate::partition_ranges::Key;
use crate::requests::Delivery;
use crate::seeded_random::SeededRandom;
use crate::single_write::SingleWriteSimulation;
use crate::write_request::WriteRequest;

impl SingleWriteSimulation {
    /// Writes one item, sometimes in a region that is not the write region.
    pub(crate) async fn write(&mut self, write: WriteKind, rng: &mut SeededRandom) -> Result<(), Failure> {
        let key = self.random_key(rng);
        let write = WriteRequest::Single(self.operation(write, &key, rng));
        let region = if rng.chance(5) { self.random_region(rng) } else { self.hub };
        self.execute(&write, &key, region, rng).await
    }

    /// Several operations on one partition key, all or nothing.
    pub(crate) async fn write_batch(&mut self, rng: &mut SeededRandom) -> Result<(), Failure> {
        let key = self.random_key(rng);
        let kinds = [
            (2, WriteKind::Create),
            (5, WriteKind::Upsert),
            (2, WriteKind::Replace),
            (2, WriteKind::Patch),
            (1, WriteKind::Delete),
        ];
        let operations = (0..rng.between(1, 6)).map(|_| {
            if rng.chance(10) {
                return Operation::Read { id: self.some_id(&key, rng) };
            }
            let write = rng.weighted(&kinds);
            self.operation(write, &key, rng)
        });
        let write = WriteRequest::Batch(operations.collect());
        self.execute(&write, &key, self.hub, rng).await
    }

    async fn execute(
        &mut self,
        write: &WriteRequest,
        key: &Key,
        region: u8,
        rng: &mut SeededRandom,
    ) -> Result<(), Failure> {
        let session = rng.below(self.sessions.len());
        let decisions = write.decide(self.history(&key.name).newest());
        // If the write changes no item, only the LSN shows whether it was carried out.
        let before = if self.net_effect(key, &decisions).is_none() { self.hub_lsn(key).await } else { 0 };
        let delivery = self.send_once(&write.to_request(key, region), timeout(rng)).await;
        let description = format!("client {session} in {region}: {} {}", key.name, write.description());
        self.log_line(format!("{description} → {}", delivery.summary()));
        let response = match delivery {
            Delivery::InjectedError(_) => return Ok(()),
            Delivery::Lost if region != self.hub => return Ok(()),
            Delivery::Response(response) if region != self.hub => {
                return self.expect_write_forbidden(&response);
            }
            Delivery::Response(response) if response.status == 429 => {
                return self.expect_stale_region(&response);
            }
            Delivery::Response(response) if response.status != 408 => response,
            Delivery::Response(_) | Delivery::Lost => return self.find_out(key, &decisions, before).await,
        };
        let etags = write.check(&response, &decisions, self.history(&key.name).newest())?;
        for (decision, etag) in decisions.iter().zip(&etags) {
            self.committed(key, decision, etag, lsn_of(&response))?;
        }
        self.session_observe(session, &response);
        Ok(())
    }

    /// Draws an operation, half of the time on an existing item.
    fn operation(&mut self, write: WriteKind, key: &Key, rng: &mut SeededRandom) -> Operation {
        let id = self.some_id(key, rng);
        let v = self.next_version();
        let if_match = if rng.chance(40) { self.known_tag(&key.name, &id, rng) } else { None };
        Operation::random(write, key, (id, v), if_match, rng)
    }

    pub(crate) fn some_id(&self, key: &Key, rng: &mut SeededRandom) -> String {
        let there: Vec<&String> = self.history(&key.name).newest().keys().collect();
        if !there.is_empty() && rng.chance(50) {
            return (*rng.pick(&there)).clone();
        }
        format!("i{}", rng.below(self.ids))
    }

    /// An entity tag that a client has seen of this item, perhaps an old one.
    fn known_tag(&self, key: &str, id: &str, rng: &mut SeededRandom) -> Option<String> {
        let known: Vec<&String> =
            self.tags.iter().filter(|(k, i, _)| k == key && i == id).map(|(_, _, etag)| etag).collect();
        let recent = &known[known.len().saturating_sub(2)..];
        (!recent.is_empty()).then(|| (*rng.pick(recent)).clone())
    }

    /// Records that an operation was carried out.
    fn committed(&mut self, key: &Key, decision: &Decision, etag: &str, lsn: u64) -> Result<(), Failure> {
        let Some(effect) = decision.effect.clone() else { return Ok(()) };
        let version = effect.body.map(|body| Version { body, etag: etag.to_owned(), lsn });
        // The etag of a version that was replaced within its batch is never returned.
        if version.is_some() && !etag.is_empty() {
            self.tags.push((key.name.clone(), effect.id.clone(), etag.to_owned()));
        }
        self.record(&key.name, Change { lsn, id: effect.id, kind: effect.kind, version, at: self.age() })
    }

    /// Finds out whether a write without a response was carried out, as a whole or not at all. `before` is the
    /// LSN before it, for writes that change no item.
    async fn find_out(&mut self, key: &Key, decisions: &[Decision], before: u64) -> Result<(), Failure> {
        let happened = match self.net_effect(key, decisions) {
            Some((id, body)) => self.newest_item(key, &id).await.1.as_ref().map(plain) == body,
            None => self.hub_lsn(key).await > before,
        };
        if !happened {
            self.log_line("  it did not happen".to_owned());
            return Ok(());
        }
        self.log_line("  it happened".to_owned());
        let lsn = self.hub_lsn(key).await;
        for decision in decisions {
            let Some(effect) = &decision.effect else { continue };
            let (etag, _) = self.newest_item(key, &effect.id).await;
            self.committed(key, decision, &etag, lsn)?;
        }
        Ok(())
    }

    /// An item that the write changes, and its final state.
    fn net_effect(&self, key: &Key, decisions: &[Decision]) -> Option<(String, Option<Value>)> {
        let effects = decisions.iter().filter_map(|decision| decision.effect.as_ref());
        let after: BTreeMap<&String, &Option<Value>> =
            effects.map(|effect| (&effect.id, &effect.body)).collect();
        let before = self.history(&key.name).newest();
        let differs = |(id, body): &(&String, &Option<Value>)| {
            before.get(*id).map(|version| &version.body) != body.as_ref()
        };
        after.into_iter().find(differs).map(|(id, body)| (id.clone(), body.clone()))
    }

    /// The etag and body of an item in the write region.
    async fn newest_item(&self, key: &Key, id: &str) -> (String, Option<Value>) {
        let headers = [("x-ms-documentdb-partitionkey", key.header.clone())];
        let response = self.send(self.hub, Method::GET, &format!("{DOCS}/{id}"), &headers, "").await;
        let etag = response.header("etag").map(str::to_owned).unwrap_or_default();
        (etag, (response.status == 200).then(|| response.json()))
    }

    async fn hub_lsn(&self, key: &Key) -> u64 {
        let headers = [("x-ms-documentdb-partitionkey", key.header.clone())];
        lsn_of(&self.send(self.hub, Method::GET, &format!("{DOCS}/nobody"), &headers, "").await)
    }

    /// Expects 429 without an effect, while another region violates bounded staleness.
    fn expect_stale_region(&self, response: &TestResponse) -> Result<(), Failure> {
        let stale = (0..self.regions.len() as u8).any(|region| self.may_be_too_stale(region));
        ensure(stale && response.header("x-ms-retry-after-ms").is_some(), Guarantee::WriteOutcome, || {
            format!("{} where nothing is stale", summary(response))
        })
    }

    /// Expects 403/3 without an effect, which later checks would show.
    fn expect_write_forbidden(&self, response: &TestResponse) -> Result<(), Failure> {
        let rejected = response.status == 403 && response.header("x-ms-substatus") == Some("3");
        ensure(rejected, Guarantee::WriteOutcome, || format!("{} where nobody may write", summary(response)))
    }
}

/// How long a client waits; seldom too short.
fn timeout(rng: &mut SeededRandom) -> Option<Duration> {
    rng.chance(10).then(|| Duration::from_millis(rng.below(20) as u64))
}

/// A short description of a response, for the log.
pub(crate) fn summary(response: &TestResponse) -> String {
    let header = |name: &str| response.header(name).unwrap_or("-").to_owned();
    let sub_status = response.header("x-ms-substatus").map(|code| format!("/{code}")).unwrap_or_default();
    format!("{}{sub_status} lsn {} token {}", response.status, header("lsn"), header("x-ms-session-token"))
}
