//! Offers: how much throughput a database or container has.
//!
//! An offer is created and deleted with the resource it applies to; only its throughput changes.

use std::sync::Arc;

use bytes::Bytes;
use protocol::resource::SystemProperties;
use protocol::resource_id::OfferRid;
use protocol::throughput::{Offer, OfferContent, Throughput};

use super::identity::Allocator;
use super::{Catalog, CatalogError, to_bytes};
use clock::Ticks;

/// An offer as the catalog knows it.
#[derive(Clone, Debug)]
pub struct OfferEntry {
    /// The `_rid`, typed. It is the id, too.
    pub rid: OfferRid,
    /// The throughput that is provisioned.
    pub throughput: Throughput,
    /// The resource, as data.
    pub offer: Offer,
    /// The resource as clients read it.
    pub json: Bytes,
}

impl OfferEntry {
    pub(super) fn create(
        allocator: &mut Allocator,
        pays_for: &SystemProperties,
        throughput: Throughput,
        now: Ticks,
    ) -> OfferEntry {
        let rid = OfferRid(allocator.offer());
        let system = allocator.new_resource(rid, rid.self_link(), now);
        let target = (pays_for.rid.as_str(), pays_for.self_link.as_str());
        let offer = Offer::new(rid, &throughput, target, &system.etag, system.ts);
        OfferEntry { rid, throughput, json: to_bytes(&offer), offer }
    }
}

impl Catalog {
    /// Changes an offer's throughput.
    ///
    /// `decide` gets the offer as it is now and returns its new throughput.
    pub fn replace_offer<E: From<CatalogError>>(
        &self,
        rid: OfferRid,
        now: Ticks,
        decide: impl FnOnce(&OfferEntry) -> Result<Throughput, E>,
    ) -> Result<Arc<OfferEntry>, E> {
        self.update(|snapshot, allocator| {
            let old = snapshot.offer(rid).ok_or(CatalogError::NotFound)?;
            let throughput = decide(old)?;
            let mut offer = Offer {
                content: OfferContent::new(&throughput),
                system: allocator.next_version(&old.offer.system, now),
                ..old.offer.clone()
            };
            remember_maximum(&mut offer.content, &old.offer.content);
            let entry = Arc::new(OfferEntry { rid, throughput, json: to_bytes(&offer), offer });
            snapshot.put_offer(Arc::clone(&entry));
            Ok(entry)
        })
    }
}

/// An offer records its highest throughput so far, because that bounds how low it may be set.
fn remember_maximum(next: &mut OfferContent, old: &OfferContent) {
    if let (Some(next), Some(old)) =
        (&mut next.offer_minimum_throughput_parameters, &old.offer_minimum_throughput_parameters)
    {
        next.throughput_max_ever = next.throughput_max_ever.max(old.throughput_max_ever);
        next.storage_kb_max_ever = next.storage_kb_max_ever.max(old.storage_kb_max_ever);
    }
}
