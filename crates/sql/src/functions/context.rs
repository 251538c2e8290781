//! What functions may use besides their arguments.

use std::cell::RefCell;
use std::sync::Arc;

use smol_str::SmolStr;

use super::full_text::Term;
use super::spatial::PreparedGeometry;
use super::string::Pattern;
use crate::context::{QueryContext, QuerySchema};
use crate::value::Object;
use crate::work_budget::WorkBudget;

/// The surroundings of one run of a query. Lives as long as the run and is used by one thread.
#[derive(Debug)]
pub(crate) struct FunctionContext<'a> {
    /// The current time, in ticks of 100 ns since the Unix epoch.
    pub(crate) now: i64,
    /// The container the query runs on.
    pub(crate) schema: &'a QuerySchema,
    /// How much the run has done and may still do.
    pub(crate) budget: WorkBudget,
    rng: RefCell<fastrand::Rng>,
    /// By pattern and modifiers; `None` when the pattern does not compile, which is worth
    /// remembering as well.
    regexes: RecentCache<(SmolStr, SmolStr), Option<Pattern>>,
    /// By the identity of the object, which the entry keeps alive.
    geometries: RecentCache<Arc<Object>, Option<Arc<PreparedGeometry>>>,
    /// By the text searched for.
    terms: RecentCache<SmolStr, Arc<Term>>,
}

impl<'a> FunctionContext<'a> {
    /// The surroundings of a run in `context` on a container of `schema`.
    pub(crate) fn new(context: QueryContext, schema: &'a QuerySchema) -> FunctionContext<'a> {
        FunctionContext {
            now: context.now,
            schema,
            budget: WorkBudget::new(),
            rng: RefCell::new(fastrand::Rng::with_seed(context.random_seed)),
            regexes: RecentCache::default(),
            geometries: RecentCache::default(),
            terms: RecentCache::default(),
        }
    }

    /// The next random number, in `0.0..1.0`.
    pub(super) fn random(&self) -> f64 {
        self.rng.borrow_mut().f64()
    }

    /// Whether `text` matches a pattern, compiled by `compile` the first time it is seen.
    /// `None` when the pattern does not compile.
    pub(super) fn matches_regex(
        &self,
        text: &str,
        (pattern, modifiers): (&str, &str),
        compile: fn(&str, &str) -> Option<Pattern>,
    ) -> Option<bool> {
        self.regexes.with(
            |known| known.0 == pattern && known.1 == modifiers,
            || ((pattern.into(), modifiers.into()), compile(pattern, modifiers)),
            |pattern| {
                let pattern = pattern.as_ref()?;
                self.budget.spend(pattern.units(text)).then(|| pattern.regex.is_match(text))
            },
        )
    }

    /// `object` as a geometry, read and laid out the first time it is seen; `None` when it is none.
    pub(super) fn prepared_geometry(&self, object: &Arc<Object>) -> Option<Arc<PreparedGeometry>> {
        self.geometries.with(
            |known| Arc::ptr_eq(known, object),
            || {
                let prepared = PreparedGeometry::new(object, self.schema.geometry);
                (Arc::clone(object), prepared.map(Arc::new))
            },
            Clone::clone,
        )
    }

    /// The words of a search term, taken apart the first time it is seen.
    pub(super) fn term(&self, text: &SmolStr) -> Arc<Term> {
        self.terms.with(
            |known| known == text,
            || (text.clone(), Arc::new(Term::new(text, self.schema.full_text_language))),
            Clone::clone,
        )
    }
}

/// How many results of each kind a run keeps. Queries rarely have more than a few constants; what
/// comes from the items themselves must not make the run grow.
const RECENT_MAX: usize = 16;

/// A few results worth keeping from row to row, the latest used in front.
#[derive(Debug)]
struct RecentCache<K, V>(RefCell<Vec<(K, V)>>);

impl<K, V> Default for RecentCache<K, V> {
    fn default() -> RecentCache<K, V> {
        RecentCache(RefCell::new(Vec::new()))
    }
}

impl<K, V> RecentCache<K, V> {
    /// Hands `answer` the value whose key `is_wanted`, which `make` provides when there is none yet.
    fn with<T>(
        &self,
        is_wanted: impl Fn(&K) -> bool,
        make: impl FnOnce() -> (K, V),
        answer: impl FnOnce(&V) -> T,
    ) -> T {
        let mut entries = self.0.borrow_mut();
        match entries.iter().position(|(key, _)| is_wanted(key)) {
            Some(at) => entries[..=at].rotate_right(1),
            None => {
                entries.truncate(RECENT_MAX - 1);
                entries.insert(0, make());
            }
        }
        answer(&entries[0].1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn random_numbers_follow_the_seed_and_stay_below_one() {
        let schema = QuerySchema::default();
        let draw = |seed| {
            let context =
                FunctionContext::new(QueryContext { random_seed: seed, ..QueryContext::default() }, &schema);
            (0..1000).map(|_| context.random()).collect::<Vec<_>>()
        };
        assert_eq!(draw(1), draw(1));
        assert_ne!(draw(1), draw(2));
        assert!(draw(3).iter().all(|number| (0.0..1.0).contains(number)));
        let mean = draw(4).iter().sum::<f64>() / 1000.0;
        assert!((0.45..0.55).contains(&mean), "{mean}");
    }

    #[test]
    fn what_was_used_lately_is_kept_and_the_rest_is_bounded() {
        let recent = RecentCache::default();
        let made = std::cell::Cell::new(0);
        let ask = |wanted: usize| {
            recent.with(
                |key| *key == wanted,
                || {
                    made.set(made.get() + 1);
                    (wanted, wanted * 2)
                },
                |value| *value,
            )
        };
        for number in 1..100 {
            assert_eq!(ask(0), 0);
            assert_eq!(ask(number), number * 2);
        }
        assert_eq!(made.get(), 100);
        assert_eq!(recent.0.borrow().len(), RECENT_MAX);
    }

    #[test]
    fn a_run_may_move_between_threads() {
        fn assert_send<T: Send>() {}
        assert_send::<FunctionContext<'_>>();
    }
}
