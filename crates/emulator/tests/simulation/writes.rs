//! Steps that write: single requests and batches, each answered as the model says or not at all.

use http::Method;
use serde_json::Value;

use crate::client::Answer;
use crate::dice::Dice;
use crate::failure::{Failure, Promise, ensure};
use crate::model::{Change, Version, plain};
use crate::operation::{Decision, Operation, Write, decide_batch};
use crate::ring::Key;
use crate::stage::{DOCS, lsn_of};
use crate::world::World;

impl World {
    /// One write of one item, sometimes in a region that may not write.
    pub(crate) async fn write(&mut self, write: Write, dice: &mut Dice) -> Result<(), Failure> {
        let key = self.key(dice);
        let operation = self.operation(write, &key, dice);
        let region = if dice.chance(5) { self.region(dice) } else { self.hub };
        let session = dice.below(self.sessions.len());
        let (method, path, mut headers, body) = operation.request();
        headers.push(("x-ms-documentdb-partitionkey", key.header.clone()));
        let expected = operation.decide(self.history(&key.name).newest());
        let answer = self.send(region, method, &path, &headers, &body).await;
        self.tell(format!(
            "client {session} in {region}: {} {} → {}",
            key.name,
            operation.words(),
            shown(&answer)
        ));
        if region != self.hub {
            return self.expect_write_forbidden(&answer);
        }
        if answer.status == 408 {
            return self.find_out(&key, &[expected]).await;
        }
        self.expect_status(&answer, expected.status, &key)?;
        if expected.effect.is_some() {
            let etag = answer.header("etag").map(str::to_owned).unwrap_or_default();
            if let Some(body) = expected.effect.as_ref().and_then(|effect| effect.body.as_ref()) {
                expect_body(&answer.json(), body)?;
                ensure(answer.text("_etag") == etag, Promise::Answer, || "two entity tags".to_owned())?;
            }
            self.committed(&key, &expected, &etag, lsn_of(&answer))?;
        }
        self.session_saw(session, &answer);
        Ok(())
    }

    /// Several operations on one partition key, all or nothing.
    pub(crate) async fn write_batch(&mut self, dice: &mut Dice) -> Result<(), Failure> {
        let key = self.key(dice);
        let operations: Vec<Operation> = (0..dice.between(1, 6))
            .map(|_| {
                if dice.chance(10) {
                    return Operation::Read { id: self.some_id(&key, dice) };
                }
                let kinds = [
                    (2, Write::Create),
                    (5, Write::Upsert),
                    (2, Write::Replace),
                    (2, Write::Patch),
                    (1, Write::Delete),
                ];
                let write = dice.weighted(&kinds);
                self.operation(write, &key, dice)
            })
            .collect();
        let session = dice.below(self.sessions.len());
        let headers = [
            ("x-ms-documentdb-partitionkey", key.header.clone()),
            ("x-ms-cosmos-is-batch-request", "true".to_owned()),
            ("x-ms-cosmos-batch-atomic", "true".to_owned()),
        ];
        let (decisions, succeeds) = decide_batch(&operations, self.history(&key.name).newest());
        let body = Value::Array(operations.iter().map(Operation::in_batch).collect()).to_string();
        let answer = self.send(self.hub, Method::POST, DOCS, &headers, &body).await;
        let words: Vec<String> = operations.iter().map(Operation::words).collect();
        self.tell(format!(
            "client {session}: {} batch [{}] → {}",
            key.name,
            words.join("; "),
            shown(&answer)
        ));
        if answer.status == 408 {
            return self.find_out(&key, &decisions).await;
        }
        self.expect_status(&answer, if succeeds { 200 } else { 207 }, &key)?;
        let results = answer.json();
        let statuses: Vec<u64> =
            results.as_array().unwrap().iter().map(|result| result["statusCode"].as_u64().unwrap()).collect();
        let expected: Vec<u64> = decisions.iter().map(|decision| decision.status.into()).collect();
        ensure(statuses == expected, Promise::WriteOutcome, || {
            format!("{statuses:?} instead of {expected:?}")
        })?;
        for (decision, result) in decisions.iter().zip(results.as_array().unwrap()) {
            let etag = result["eTag"].as_str().unwrap_or_default();
            self.committed(&key, decision, etag, lsn_of(&answer))?;
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
        if version.is_some() {
            self.tags.push((key.name.clone(), effect.id.clone(), etag.to_owned()));
        }
        self.record(&key.name, Change { lsn, id: effect.id, kind: effect.kind, version, at: self.uptime() })
    }

    /// After an answer that does not say: whether it happened, which is all or nothing.
    async fn find_out(&mut self, key: &Key, decisions: &[Decision]) -> Result<(), Failure> {
        let Some(last) = decisions.iter().rev().find_map(|decision| decision.effect.as_ref()) else {
            return Err(Failure { promise: Promise::Answer, details: "nothing to wait for".to_owned() });
        };
        let headers = [("x-ms-documentdb-partitionkey", key.header.clone())];
        let path = format!("{DOCS}/{}", last.id);
        let answer = self.send(self.hub, Method::GET, &path, &headers, "").await;
        let there = (answer.status == 200).then(|| plain(&answer.json()));
        if there != last.body {
            self.tell("  it did not happen".to_owned());
            return Ok(());
        }
        self.tell("  it happened".to_owned());
        let lsn = lsn_of(&answer);
        for decision in decisions {
            let Some(effect) = &decision.effect else { continue };
            let path = format!("{DOCS}/{}", effect.id);
            let answer = self.send(self.hub, Method::GET, &path, &headers, "").await;
            let etag = answer.header("etag").map(str::to_owned).unwrap_or_default();
            self.committed(key, decision, &etag, lsn)?;
        }
        Ok(())
    }

    fn expect_status(&self, answer: &Answer, expected: u16, key: &Key) -> Result<(), Failure> {
        ensure(answer.status == expected, Promise::WriteOutcome, || {
            let items = self.history(&key.name).newest();
            format!("{} instead of {expected}: {}\n  there should be {items:?}", answer.status, shown(answer))
        })
    }

    /// 403/3, and no effect: every later check would show one.
    fn expect_write_forbidden(&self, answer: &Answer) -> Result<(), Failure> {
        let refused = answer.status == 403 && answer.header("x-ms-substatus") == Some("3");
        ensure(refused, Promise::WriteOutcome, || format!("{} where nobody may write", shown(answer)))
    }
}

pub(crate) fn expect_body(found: &Value, expected: &Value) -> Result<(), Failure> {
    ensure(plain(found) == *expected, Promise::WriteOutcome, || format!("{found} instead of {expected}"))
}

/// An answer in a few words.
pub(crate) fn shown(answer: &Answer) -> String {
    let header = |name: &str| answer.header(name).unwrap_or("-").to_owned();
    let sub_status = answer.header("x-ms-substatus").map(|code| format!("/{code}")).unwrap_or_default();
    format!("{}{sub_status} lsn {} token {}", answer.status, header("lsn"), header("x-ms-session-token"))
}
