//! Steps that read one item, with a session or without.

use http::Method;
use protocol::account::ConsistencyLevel;

use crate::dice::Dice;
use crate::failure::{Failure, Promise, ensure};
use crate::model::plain;
use crate::ring::Key;
use crate::stage::DOCS;
use crate::world::World;
use crate::writes::shown;

impl World {
    /// Reads an item in any region, as part of a session.
    pub(crate) async fn read_in_session(&mut self, dice: &mut Dice) -> Result<(), Failure> {
        let (key, region, session) = (self.key(dice), self.region(dice), dice.below(self.sessions.len()));
        let id = self.some_id(&key, dice);
        self.session_read(&key, &id, region, session).await.map(drop)
    }

    /// The same. Says at which LSN it was answered; nothing if the region was behind the session.
    pub(crate) async fn session_read(
        &mut self,
        key: &Key,
        id: &str,
        region: u8,
        session: usize,
    ) -> Result<Option<u64>, Failure> {
        let mut headers = vec![("x-ms-documentdb-partitionkey", key.header.clone())];
        headers.extend(self.sessions[session].header().map(|token| ("x-ms-session-token", token)));
        let honoured = self.level >= ConsistencyLevel::Session;
        let answer = self.send(region, Method::GET, &format!("{DOCS}/{id}"), &headers, "").await;
        self.tell(format!("client {session} in {region}: {} read {id} → {}", key.name, shown(&answer)));
        if self.is_too_stale(region, &answer)? {
            return Ok(None);
        }
        let behind = answer.status == 404 && answer.header("x-ms-substatus") == Some("1002");
        if behind {
            ensure(honoured && region != self.hub, Promise::Session, || {
                format!("{}: this region has everything", shown(&answer))
            })?;
            return Ok(None);
        }
        let level = if honoured { self.level } else { ConsistencyLevel::Eventual };
        let lsn = self.check_lsn(region, &key.name, level, &answer)?;
        let floor = self.sessions[session].floor(&key.name);
        ensure(!honoured || lsn >= floor, Promise::Session, || {
            format!("client {session} has seen LSN {floor} of {}, and is shown LSN {lsn}", key.name)
        })?;
        self.check_item(key, id, lsn, &answer)?;
        self.remember_tag(key, id, &answer);
        self.session_saw(session, &answer);
        Ok(Some(lsn))
    }

    /// When everything has arrived, no region is behind any session, and all show the newest.
    pub(crate) async fn read_everything_in_sessions(&mut self) -> Result<(), Failure> {
        for region in 0..self.regions.len() as u8 {
            for key in self.keys.clone() {
                for session in 0..self.sessions.len() {
                    let id = format!("i{}", session % self.ids);
                    let shown = self.session_read(&key, &id, region, session).await?;
                    let newest = self.history(&key.name).lsn();
                    ensure(shown.is_some_and(|lsn| lsn >= newest), Promise::Convergence, || {
                        format!("region {region} is at LSN {shown:?} of {}, and not at {newest}", key.name)
                    })?;
                }
            }
        }
        Ok(())
    }

    /// Reads an item in any region, with nothing but the account's level or a weaker one.
    pub(crate) async fn read_alone(&mut self, dice: &mut Dice) -> Result<(), Failure> {
        let (key, region) = (self.key(dice), self.region(dice));
        let id = self.some_id(&key, dice);
        let weaker = [ConsistencyLevel::ConsistentPrefix, ConsistencyLevel::Eventual];
        let asked = dice.chance(50).then(|| *dice.pick(&weaker)).filter(|level| *level < self.level);
        let mut headers = vec![("x-ms-documentdb-partitionkey", key.header.clone())];
        headers.extend(asked.map(|level| ("x-ms-consistency-level", level.name().to_owned())));
        let answer = self.send(region, Method::GET, &format!("{DOCS}/{id}"), &headers, "").await;
        let level = asked.unwrap_or(self.level);
        self.tell(format!("anyone in {region}: {} read {id} at {level:?} → {}", key.name, shown(&answer)));
        if level == ConsistencyLevel::BoundedStaleness && self.is_too_stale(region, &answer)? {
            return Ok(());
        }
        let lsn = self.check_lsn(region, &key.name, level, &answer)?;
        self.check_item(&key, &id, lsn, &answer)?;
        self.remember_tag(&key, &id, &answer);
        // Clients keep the tokens of weaker reads as well, which may say less than they know.
        if dice.chance(50) {
            let session = dice.below(self.sessions.len());
            self.session_saw(session, &answer);
        }
        Ok(())
    }

    /// What is shown of an item has to be what there was at the LSN stated.
    fn check_item(
        &self,
        key: &Key,
        id: &str,
        lsn: u64,
        answer: &crate::client::Answer,
    ) -> Result<(), Failure> {
        let at = self.history(&key.name).at(lsn);
        let expected = at.get(id);
        let holds = match (answer.status, expected) {
            (200, Some(version)) => {
                plain(&answer.json()) == version.body && answer.header("etag") == Some(version.etag.as_str())
            }
            (404, None) => true,
            _ => false,
        };
        ensure(holds, Promise::Prefix, || {
            let body = String::from_utf8_lossy(&answer.body);
            format!("{} {body}\n  at LSN {lsn} there was {expected:?}", answer.status)
        })
    }

    fn remember_tag(&mut self, key: &Key, id: &str, answer: &crate::client::Answer) {
        if let (200, Some(etag)) = (answer.status, answer.header("etag")) {
            self.tags.push((key.name.clone(), id.to_owned(), etag.to_owned()));
        }
    }
}
