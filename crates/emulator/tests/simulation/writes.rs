//! Steps that write: single requests and batches, each answered as the model says or not at all.

use std::collections::BTreeMap;
use std::time::Duration;

use http::Method;
use serde_json::Value;

use crate::ask::Heard;
use crate::client::Answer;
use crate::dice::Dice;
use crate::failure::{Failure, Promise, ensure};
use crate::model::{Change, Version, plain};
use crate::operation::{Decision, Operation, Write};
use crate::order::Order;
use crate::ring::Key;
use crate::stage::{DOCS, lsn_of};
use crate::world::World;

impl World {
    /// One write of one item, sometimes in a region that may not write.
    pub(crate) async fn write(&mut self, write: Write, dice: &mut Dice) -> Result<(), Failure> {
        let key = self.key(dice);
        let order = Order::One(self.operation(write, &key, dice));
        let region = if dice.chance(5) { self.region(dice) } else { self.hub };
        self.carry_out(&order, &key, region, dice).await
    }

    /// Several operations on one partition key, all or nothing.
    pub(crate) async fn write_batch(&mut self, dice: &mut Dice) -> Result<(), Failure> {
        let key = self.key(dice);
        let kinds = [
            (2, Write::Create),
            (5, Write::Upsert),
            (2, Write::Replace),
            (2, Write::Patch),
            (1, Write::Delete),
        ];
        let operations = (0..dice.between(1, 6)).map(|_| {
            if dice.chance(10) {
                return Operation::Read { id: self.some_id(&key, dice) };
            }
            let write = dice.weighted(&kinds);
            self.operation(write, &key, dice)
        });
        let order = Order::Batch(operations.collect());
        self.carry_out(&order, &key, self.hub, dice).await
    }

    async fn carry_out(
        &mut self,
        order: &Order,
        key: &Key,
        region: u8,
        dice: &mut Dice,
    ) -> Result<(), Failure> {
        let session = dice.below(self.sessions.len());
        let decisions = order.decide(self.history(&key.name).newest());
        // Nothing else tells whether an order was carried out that leaves everything as it was.
        let before = if self.net_effect(key, &decisions).is_none() { self.hub_lsn(key).await } else { 0 };
        let heard = self.hear(&order.ask(key, region), patience(dice)).await;
        let words = format!("client {session} in {region}: {} {}", key.name, order.words());
        self.tell(format!("{words} → {}", heard.shown()));
        let answer = match heard {
            Heard::Refusal(_) => return Ok(()),
            Heard::Nothing if region != self.hub => return Ok(()),
            Heard::Answer(answer) if region != self.hub => return self.expect_write_forbidden(&answer),
            Heard::Answer(answer) if answer.status == 429 => return self.expect_stale_region(&answer),
            Heard::Answer(answer) if answer.status != 408 => answer,
            Heard::Answer(_) | Heard::Nothing => return self.find_out(key, &decisions, before).await,
        };
        let etags = order.check(&answer, &decisions, self.history(&key.name).newest())?;
        for (decision, etag) in decisions.iter().zip(&etags) {
            self.committed(key, decision, etag, lsn_of(&answer))?;
        }
        self.session_saw(session, &answer);
        Ok(())
    }

    /// Draws an operation; half of the time about an item that is there.
    fn operation(&mut self, write: Write, key: &Key, dice: &mut Dice) -> Operation {
        let id = self.some_id(key, dice);
        let v = self.new_v();
        let if_match = if dice.chance(40) { self.known_tag(&key.name, &id, dice) } else { None };
        Operation::draw(write, key, (id, v), if_match, dice)
    }

    pub(crate) fn some_id(&self, key: &Key, dice: &mut Dice) -> String {
        let there: Vec<&String> = self.history(&key.name).newest().keys().collect();
        if !there.is_empty() && dice.chance(50) {
            return (*dice.pick(&there)).clone();
        }
        format!("i{}", dice.below(self.ids))
    }

    /// An entity tag that a client has seen of this item, perhaps an old one.
    fn known_tag(&self, key: &str, id: &str, dice: &mut Dice) -> Option<String> {
        let known: Vec<&String> =
            self.tags.iter().filter(|(k, i, _)| k == key && i == id).map(|(_, _, etag)| etag).collect();
        let recent = &known[known.len().saturating_sub(2)..];
        (!recent.is_empty()).then(|| (*dice.pick(recent)).clone())
    }

    /// Remembers that a decision has been carried out.
    fn committed(&mut self, key: &Key, decision: &Decision, etag: &str, lsn: u64) -> Result<(), Failure> {
        let Some(effect) = decision.effect.clone() else { return Ok(()) };
        let version = effect.body.map(|body| Version { body, etag: etag.to_owned(), lsn });
        // Nobody has heard of the tag of a version that was replaced before it could be asked for.
        if version.is_some() && !etag.is_empty() {
            self.tags.push((key.name.clone(), effect.id.clone(), etag.to_owned()));
        }
        self.record(&key.name, Change { lsn, id: effect.id, kind: effect.kind, version, at: self.age() })
    }

    /// After an answer that does not say: whether it happened, which is all or nothing. `before` is the
    /// LSN there was, where nothing but that can tell.
    async fn find_out(&mut self, key: &Key, decisions: &[Decision], before: u64) -> Result<(), Failure> {
        let happened = match self.net_effect(key, decisions) {
            Some((id, body)) => self.newest_item(key, &id).await.1.as_ref().map(plain) == body,
            None => self.hub_lsn(key).await > before,
        };
        if !happened {
            self.tell("  it did not happen".to_owned());
            return Ok(());
        }
        self.tell("  it happened".to_owned());
        let lsn = self.hub_lsn(key).await;
        for decision in decisions {
            let Some(effect) = &decision.effect else { continue };
            let (etag, _) = self.newest_item(key, &effect.id).await;
            self.committed(key, decision, &etag, lsn)?;
        }
        Ok(())
    }

    /// An item that is not the same before and after, and how it is afterwards.
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

    /// Entity tag and text of an item where it is written.
    async fn newest_item(&self, key: &Key, id: &str) -> (String, Option<Value>) {
        let headers = [("x-ms-documentdb-partitionkey", key.header.clone())];
        let answer = self.send(self.hub, Method::GET, &format!("{DOCS}/{id}"), &headers, "").await;
        let etag = answer.header("etag").map(str::to_owned).unwrap_or_default();
        (etag, (answer.status == 200).then(|| answer.json()))
    }

    async fn hub_lsn(&self, key: &Key) -> u64 {
        let headers = [("x-ms-documentdb-partitionkey", key.header.clone())];
        lsn_of(&self.send(self.hub, Method::GET, &format!("{DOCS}/nobody"), &headers, "").await)
    }

    /// 429, and no effect, while another region is staler than agreed.
    fn expect_stale_region(&self, answer: &Answer) -> Result<(), Failure> {
        let stale = (0..self.regions.len() as u8).any(|region| self.may_be_too_stale(region));
        ensure(stale && answer.header("x-ms-retry-after-ms").is_some(), Promise::WriteOutcome, || {
            format!("{} where nothing is stale", shown(answer))
        })
    }

    /// 403/3, and no effect: every later check would show one.
    fn expect_write_forbidden(&self, answer: &Answer) -> Result<(), Failure> {
        let refused = answer.status == 403 && answer.header("x-ms-substatus") == Some("3");
        ensure(refused, Promise::WriteOutcome, || format!("{} where nobody may write", shown(answer)))
    }
}

/// How long a client waits: seldom not long enough.
fn patience(dice: &mut Dice) -> Option<Duration> {
    dice.chance(10).then(|| Duration::from_millis(dice.below(20) as u64))
}

/// An answer in a few words.
pub(crate) fn shown(answer: &Answer) -> String {
    let header = |name: &str| answer.header(name).unwrap_or("-").to_owned();
    let sub_status = answer.header("x-ms-substatus").map(|code| format!("/{code}")).unwrap_or_default();
    format!("{}{sub_status} lsn {} token {}", answer.status, header("lsn"), header("x-ms-session-token"))
}
