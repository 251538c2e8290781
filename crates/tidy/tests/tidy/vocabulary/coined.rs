//! The coined words, and the term that the field has for each.
//!
//! Not listed, because their ordinary sense is too frequent to tell them apart by name: ahead, base, draft, except,
//! exchange, gather, held, learn, left, line, meter, newest, place, post, reach, retire, ring, seen, settle, turn, view,
//! watch and words.

/// In which identifiers a coined word is looked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Scope {
    /// In all identifiers: the word has no ordinary sense in this code base.
    Anywhere,
    /// In names of at most [`SHORT_WORDS_MAX`] words. Longer ones are sentences, the names of tests, in which the word
    /// may have its ordinary sense.
    ShortNames,
    /// Only where the word is the whole name: in combinations it has an ordinary sense.
    WholeName,
}

/// Names of more words are taken for sentences.
pub(crate) const SHORT_WORDS_MAX: usize = 3;

/// A word that stood where the field has a term.
#[derive(Debug)]
pub(crate) struct Coined {
    /// The word in its grammatical forms; `_` joins those that are only coined together.
    pub forms: &'static [&'static str],
    /// What to write instead.
    pub term: &'static str,
    /// In which identifiers it is looked for.
    pub scope: Scope,
    /// Words after which it has its ordinary sense.
    pub except_after: &'static [&'static str],
}

const fn anywhere(forms: &'static [&'static str], term: &'static str) -> Coined {
    Coined { forms, term, scope: Scope::Anywhere, except_after: &[] }
}

const fn in_short_names(forms: &'static [&'static str], term: &'static str) -> Coined {
    Coined { forms, term, scope: Scope::ShortNames, except_after: &[] }
}

const fn as_whole_name(forms: &'static [&'static str], term: &'static str) -> Coined {
    Coined { forms, term, scope: Scope::WholeName, except_after: &[] }
}

/// Every coined word, with the term of the field.
pub(crate) const COINED: &[Coined] = &[
    // Items, partitions and replication.
    anywhere(&["stretch", "stretches"], "EPK range, feed range"),
    anywhere(&["vantage", "vantages"], "read context"),
    as_whole_name(&["sees"], "staleness bound"),
    anywhere(&["mesh", "meshes"], "multi-write replicas"),
    in_short_names(&["viewed"], "single-write replicas, follower view"),
    Coined {
        forms: &["letter", "letters"],
        term: "replication message",
        scope: Scope::ShortNames,
        except_after: &["dead"],
    },
    anywhere(&["inbox", "inboxes"], "replication queue"),
    in_short_names(&["hear", "hears", "heard"], "apply at hub"),
    anywhere(&["tell_all"], "broadcast"),
    in_short_names(&["take_in", "takes_in", "taken_in"], "drain"),
    in_short_names(&["kept"], "stored, persisted"),
    as_whole_name(&["ticket"], "durability wait, sync sequence number"),
    anywhere(&["heir", "heirs"], "child partitions"),
    as_whole_name(&["drafts"], "child partitions"),
    anywhere(&["upkeep"], "maintenance"),
    as_whole_name(&["growth"], "auto-split; of shards, scale-out"),
    anywhere(&["spot", "spots"], "sort position"),
    in_short_names(&["moment", "moments"], "write timestamp, date and time"),
    // Throughput.
    anywhere(&["bill", "bills"], "RU admission"),
    anywhere(&["purse", "purses"], "token bucket"),
    anywhere(&["funding"], "throughput source"),
    anywhere(&["tally", "tallies"], "usage counter"),
    // Requests, faults and sockets.
    anywhere(
        &["sight", "sights", "sighting", "sightings"],
        "request log, request record; of leases, observation",
    ),
    in_short_names(&["answer", "answers"], "response"),
    anywhere(&["refusal", "refusals"], "error"),
    anywhere(&["story", "stories"], "error context"),
    anywhere(&["conduct", "misbehave", "misbehaves"], "connection fault"),
    anywhere(&["strike", "strikes", "struck"], "fault decision, injected fault"),
    as_whole_name(&["facts", "met"], "request attributes, or what they are facts of"),
    anywhere(&["door", "doors", "doorway", "doorman"], "port, listener"),
    anywhere(&["entrance", "entrances"], "acceptor"),
    in_short_names(&["judge", "judges", "judged"], "evaluate, decide; of connections, timeout policy"),
    // The driver and the client.
    anywhere(&["surroundings"], "pipeline context"),
    in_short_names(&["meeting"], "account discovery"),
    in_short_names(&["asking", "asked"], "metadata lookup, requested"),
    in_short_names(&["told"], "with diagnostics, reported"),
    anywhere(&["carrier", "carriers"], "transport"),
    as_whole_name(&["carry"], "send"),
    as_whole_name(&["foreign"], "azure_core adapter"),
    as_whole_name(&["pieces"], "request parts, parts"),
    anywhere(&["patience"], "slow threshold, timeout"),
    in_short_names(&["elsewhere"], "default protocol, another region"),
    anywhere(&["fate", "fates"], "outcome"),
    as_whole_name(&["lane", "lanes"], "partition queue"),
    in_short_names(&["effort"], "work budget"),
    anywhere(&["crew", "crews"], "worker context"),
    in_short_names(&["held_lease", "held_leases"], "owned lease"),
    in_short_names(&["verdict", "verdicts"], "decision"),
    // Tests.
    anywhere(&["dice"], "seeded random source: `rng`, `random`, `jitter`"),
    anywhere(&["lab", "labs"], "test account"),
    in_short_names(&["world", "worlds"], "test fixture"),
    as_whole_name(&["scratch"], "temporary directory: `tempfile::TempDir`"),
];
