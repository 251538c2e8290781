//! What functions may use besides their arguments.

use std::cell::{Cell, RefCell};

use regex::Regex;
use smol_str::SmolStr;

use crate::context::{Context, Schema};

/// Regular expressions kept compiled during one run. Queries rarely use more than one or two; a
/// pattern that comes from the items themselves must not make the run grow.
const REGEXES_MAX: usize = 16;

/// The surroundings of one run of a query. Lives as long as the run and is used by one thread.
#[derive(Debug)]
pub(crate) struct Environment<'a> {
    /// The current time, in ticks of 100 ns since the Unix epoch.
    pub(crate) now: i64,
    /// The container the query runs on.
    pub(crate) schema: &'a Schema,
    random: Cell<u64>,
    regexes: RefCell<Vec<CachedRegex>>,
}

#[derive(Debug)]
struct CachedRegex {
    pattern: SmolStr,
    modifiers: SmolStr,
    /// `None` when the pattern does not compile: that is remembered as well.
    regex: Option<Regex>,
}

impl<'a> Environment<'a> {
    /// The surroundings of a run in `context` on a container of `schema`.
    pub(crate) fn new(context: Context, schema: &'a Schema) -> Environment<'a> {
        Environment {
            now: context.now,
            schema,
            random: Cell::new(context.random_seed),
            regexes: RefCell::new(Vec::new()),
        }
    }

    /// The next random number, in `0.0..1.0`.
    pub(crate) fn random(&self) -> f64 {
        // SplitMix64: one addition of state, three rounds of mixing.
        let state = self.random.get().wrapping_add(0x9E37_79B9_7F4A_7C15);
        self.random.set(state);
        let mut bits = state;
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        bits ^= bits >> 31;
        // The upper 53 bits fill a double's mantissa evenly.
        (bits >> 11) as f64 / (1u64 << 53) as f64
    }

    /// Whether `text` matches a pattern, compiled by `compile` the first time it is seen.
    /// `None` when the pattern does not compile.
    pub(crate) fn matches_regex(
        &self,
        text: &str,
        pattern: &str,
        modifiers: &str,
        compile: fn(&str, &str) -> Option<Regex>,
    ) -> Option<bool> {
        let mut regexes = self.regexes.borrow_mut();
        let known = regexes.iter().position(|entry| entry.pattern == pattern && entry.modifiers == modifiers);
        let at = known.unwrap_or_else(|| {
            if regexes.len() == REGEXES_MAX {
                regexes.remove(0);
            }
            regexes.push(CachedRegex {
                pattern: pattern.into(),
                modifiers: modifiers.into(),
                regex: compile(pattern, modifiers),
            });
            regexes.len() - 1
        });
        regexes[at].regex.as_ref().map(|regex| regex.is_match(text))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn random_numbers_follow_the_seed_and_stay_below_one() {
        let schema = Schema::default();
        let draw = |seed| {
            let environment = Environment::new(Context { random_seed: seed, ..Context::default() }, &schema);
            (0..1000).map(|_| environment.random()).collect::<Vec<_>>()
        };
        assert_eq!(draw(1), draw(1));
        assert_ne!(draw(1), draw(2));
        assert!(draw(3).iter().all(|number| (0.0..1.0).contains(number)));
        let mean = draw(4).iter().sum::<f64>() / 1000.0;
        assert!((0.45..0.55).contains(&mean), "{mean}");
    }

    #[test]
    fn a_flood_of_patterns_does_not_grow_the_cache() {
        let schema = Schema::default();
        let environment = Environment::new(Context::default(), &schema);
        for at in 0..100 {
            let matched =
                environment.matches_regex("7", &at.to_string(), "", |pattern, _| Regex::new(pattern).ok());
            assert_eq!(matched, Some(at == 7));
        }
        assert_eq!(environment.regexes.borrow().len(), REGEXES_MAX);
    }
}
