//! Steps that read one item, with a session or without.

use http::Method;
use protocol::account::ConsistencyLevel;

use crate::failure::{Failure, Guarantee, ensure};
use crate::fixture::DOCS;
use crate::model::plain;
use crate::partition_ranges::Key;
use crate::seeded_random::SeededRandom;
use crate::single_write::SingleWriteSimulation;
use crate::writes::summary;

impl SingleWriteSimulation {
    /// Reads an item in any region, as part of a session.
    pub(crate) async fn read_in_session(&mut self, rng: &mut SeededRandom) -> Result<(), Failure> {
        let (key, region, session) =
            (self.random_key(rng), self.random_region(rng), rng.below(self.sessions.len()));
        let id = self.some_id(&key, rng);
        self.session_read(&key, &id, region, session).await.map(drop)
    }

    /// Reads one item in a session; returns the LSN, or `None` if the region was behind the session.
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
        let response = self.send(region, Method::GET, &format!("{DOCS}/{id}"), &headers, "").await;
        self.log_line(format!(
            "client {session} in {region}: {} read {id} → {}",
            key.name,
            summary(&response)
        ));
        if self.is_too_stale(region, &response)? {
            return Ok(None);
        }
        let behind = response.status == 404 && response.header("x-ms-substatus") == Some("1002");
        if behind {
            ensure(honoured && region != self.hub, Guarantee::Session, || {
                format!("{}: this region has everything", summary(&response))
            })?;
            return Ok(None);
        }
        let level = if honoured { self.level } else { ConsistencyLevel::Eventual };
        let lsn = self.check_lsn(region, &key.name, level, &response)?;
        let min_lsn = self.sessions[session].min_lsn(&key.name);
        ensure(!honoured || lsn >= min_lsn, Guarantee::Session, || {
            format!("client {session} has seen LSN {min_lsn} of {}, and is shown LSN {lsn}", key.name)
        })?;
        self.check_item(key, id, lsn, &response)?;
        self.remember_tag(key, id, &response);
        self.session_observe(session, &response);
        Ok(Some(lsn))
    }

    /// Checks that no region is behind any session once everything has been replicated.
    pub(crate) async fn read_everything_in_sessions(&mut self) -> Result<(), Failure> {
        for region in 0..self.regions.len() as u8 {
            for key in self.keys.clone() {
                for session in 0..self.sessions.len() {
                    let id = format!("i{}", session % self.ids);
                    let visible = self.session_read(&key, &id, region, session).await?;
                    let newest = self.history(&key.name).lsn();
                    ensure(visible.is_some_and(|lsn| lsn >= newest), Guarantee::Convergence, || {
                        format!("region {region} is at LSN {visible:?} of {}, and not at {newest}", key.name)
                    })?;
                }
            }
        }
        Ok(())
    }

    /// Reads an item in any region without a session, at the account's level or a weaker one.
    pub(crate) async fn read_alone(&mut self, rng: &mut SeededRandom) -> Result<(), Failure> {
        let (key, region) = (self.random_key(rng), self.random_region(rng));
        let id = self.some_id(&key, rng);
        let weaker = [ConsistencyLevel::ConsistentPrefix, ConsistencyLevel::Eventual];
        let requested = rng.chance(50).then(|| *rng.pick(&weaker)).filter(|level| *level < self.level);
        let mut headers = vec![("x-ms-documentdb-partitionkey", key.header.clone())];
        headers.extend(requested.map(|level| ("x-ms-consistency-level", level.name().to_owned())));
        let response = self.send(region, Method::GET, &format!("{DOCS}/{id}"), &headers, "").await;
        let level = requested.unwrap_or(self.level);
        self.log_line(format!(
            "anyone in {region}: {} read {id} at {level:?} → {}",
            key.name,
            summary(&response)
        ));
        if level == ConsistencyLevel::BoundedStaleness && self.is_too_stale(region, &response)? {
            return Ok(());
        }
        let lsn = self.check_lsn(region, &key.name, level, &response)?;
        self.check_item(&key, &id, lsn, &response)?;
        self.remember_tag(&key, &id, &response);
        // Clients merge the tokens of weaker reads as well, which may be behind the session.
        if rng.chance(50) {
            let session = rng.below(self.sessions.len());
            self.session_observe(session, &response);
        }
        Ok(())
    }

    /// Checks that a response contains the item as of the LSN that it states.
    fn check_item(
        &self,
        key: &Key,
        id: &str,
        lsn: u64,
        response: &crate::client::TestResponse,
    ) -> Result<(), Failure> {
        let at = self.history(&key.name).at(lsn);
        let expected = at.get(id);
        let holds = match (response.status, expected) {
            (200, Some(version)) => {
                plain(&response.json()) == version.body
                    && response.header("etag") == Some(version.etag.as_str())
            }
            (404, None) => true,
            _ => false,
        };
        ensure(holds, Guarantee::Prefix, || {
            let body = String::from_utf8_lossy(&response.body);
            format!("{} {body}\n  at LSN {lsn} there was {expected:?}", response.status)
        })
    }

    fn remember_tag(&mut self, key: &Key, id: &str, response: &crate::client::TestResponse) {
        if let (200, Some(etag)) = (response.status, response.header("etag")) {
            self.tags.push((key.name.clone(), id.to_owned(), etag.to_owned()));
        }
    }
}
