//! The system properties that the account assigns: `_rid`, `_self`, `_etag`, `_ts`.
//!
//! In: the time of a change. Out: system properties that no resource had before. Ids only grow, so a resource
//! recreated under an old name gets a new `_rid`.

use protocol::resource::SystemProperties;

use clock::Ticks;

/// Assigns resource ids and entity tags. Lives behind the catalog's writer lock.
#[derive(Debug)]
pub(super) struct Allocator {
    next_database: u32,
    next_in_database: u32,
    next_offer: u32,
    next_permission: u64,
    next_version: u64,
}

impl Allocator {
    pub(super) fn new(first_rid: u32) -> Allocator {
        Allocator {
            next_database: first_rid,
            next_in_database: 1,
            next_offer: 1,
            next_permission: 1,
            next_version: 1,
        }
    }

    /// The counters as they are persisted.
    pub(super) fn counters(&self) -> [u64; 5] {
        let Allocator { next_database, next_in_database, next_offer, next_permission, next_version } = *self;
        [next_database.into(), next_in_database.into(), next_offer.into(), next_permission, next_version]
    }

    /// The allocator with these counters.
    pub(super) fn from_counters(counters: [u64; 5]) -> Option<Allocator> {
        let [database, in_database, offer, next_permission, next_version] = counters;
        Some(Allocator {
            next_database: u32::try_from(database).ok()?,
            next_in_database: u32::try_from(in_database).ok()?,
            next_offer: u32::try_from(offer).ok()?,
            next_permission,
            next_version,
        })
    }

    pub(super) fn database(&mut self) -> u32 {
        take(&mut self.next_database)
    }

    /// Containers and users share one sequence; a bit of the `_rid` tells them apart. It is 31 bits
    /// wide, and account-wide, so that an id is never seen again under another database.
    pub(super) fn in_database(&mut self) -> u32 {
        take(&mut self.next_in_database) & 0x7FFF_FFFF
    }

    /// Offers have three bytes.
    pub(super) fn offer(&mut self) -> u32 {
        take(&mut self.next_offer) & 0x00FF_FFFF
    }

    pub(super) fn permission(&mut self) -> u64 {
        let id = self.next_permission;
        self.next_permission += 1;
        id
    }

    /// Scripts share the sequence of permissions, so that an id is never seen again in another container.
    pub(super) fn script(&mut self) -> u64 {
        self.permission()
    }

    /// The system properties of a new resource.
    pub(super) fn new_resource(
        &mut self,
        rid: impl ToString,
        self_link: String,
        now: Ticks,
    ) -> SystemProperties {
        SystemProperties { rid: rid.to_string(), self_link, etag: self.etag(now), ts: seconds(now) }
    }

    /// The system properties of a changed resource: a new entity tag and timestamp.
    pub(super) fn next_version(&mut self, old: &SystemProperties, now: Ticks) -> SystemProperties {
        SystemProperties { etag: self.etag(now), ts: seconds(now), ..old.clone() }
    }

    /// An entity tag that differs from every earlier one: a count, and the time for a person to read.
    fn etag(&mut self, now: Ticks) -> String {
        let count = self.next_version;
        self.next_version += 1;
        let (low, high) = (count & 0xFFFF_FFFF, (count >> 32) & 0xFFFF);
        format!("\"{low:08x}-{high:04x}-0100-0000-{:08x}0000\"", seconds(now) & 0xFFFF_FFFF)
    }
}

fn take(next: &mut u32) -> u32 {
    let id = *next;
    *next = next.wrapping_add(1);
    id
}

fn seconds(now: Ticks) -> u64 {
    u64::try_from(now.seconds()).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn etags_look_like_the_service_s_and_never_repeat() {
        let mut allocator = Allocator::new(1);
        let now = Ticks(1_562_278_442 * 10_000_000);
        let new_resource = allocator.new_resource("r", "s/".to_owned(), now);
        assert_eq!(new_resource.etag, "\"00000001-0000-0100-0000-5d1e7a2a0000\"");
        let next_version = allocator.next_version(&new_resource, now);
        assert_eq!(next_version.etag, "\"00000002-0000-0100-0000-5d1e7a2a0000\"");
        assert_eq!(
            (next_version.rid, next_version.self_link, next_version.ts),
            (new_resource.rid, new_resource.self_link, 1_562_278_442)
        );
    }

    #[test]
    fn ids_only_grow() {
        let mut allocator = Allocator::new(u32::MAX);
        assert_eq!((allocator.database(), allocator.database()), (u32::MAX, 0));
        assert_eq!((allocator.in_database(), allocator.in_database()), (1, 2));
    }
}
