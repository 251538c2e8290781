//! The context of function calls: what functions use besides their arguments.

use std::cell::RefCell;
use std::sync::Arc;

use smol_str::SmolStr;

use super::full_text::Term;
use super::spatial::PreparedGeometry;
use super::string::{Pattern, uncompiled_units};
use crate::context::{FullTextLanguage, QueryContext, QuerySchema};
use crate::value::Object;
use crate::work_budget::WorkBudget;

/// The context of function calls during one execution, used by one thread at a time.
#[derive(Debug)]
pub(crate) struct FunctionContext<'a> {
    /// The current time, in ticks of 100 ns since the Unix epoch.
    pub(crate) now: i64,
    /// The schema of the container.
    pub(crate) schema: &'a QuerySchema,
    /// The work budget of the execution.
    pub(crate) budget: WorkBudget,
    rng: RefCell<fastrand::Rng>,
    /// Compiled patterns by pattern and modifiers; `None` if the pattern does not compile, which is cached
    /// as well.
    regexes: RecentCache<(SmolStr, SmolStr), Option<Pattern>>,
    /// Geometries by the identity of the object, which the entry keeps alive.
    geometries: RecentCache<Arc<Object>, Option<Arc<PreparedGeometry>>>,
    /// Search terms by their text and language.
    terms: RecentCache<(SmolStr, FullTextLanguage), Arc<Term>>,
}

impl<'a> FunctionContext<'a> {
    /// The context of an execution with `context` on a container with `schema`.
    pub(crate) fn new(context: QueryContext, schema: &'a QuerySchema) -> FunctionContext<'a> {
        FunctionContext {
            now: context.now,
            schema,
            budget: WorkBudget::new(context.work_units_max),
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

    /// Whether `text` matches a pattern, which `compile` compiles on first use. `None` if the pattern does
    /// not compile.
    pub(super) fn matches_regex(
        &self,
        text: &str,
        (pattern, modifiers): (&str, &str),
        compile: fn(&str, &str) -> Option<Pattern>,
    ) -> Option<bool> {
        self.regexes.with(
            |known| known.0 == pattern && known.1 == modifiers,
            || {
                let known = (pattern.into(), modifiers.into());
                // Compiling takes far longer than matching a short text.
                if !self.budget.spend(uncompiled_units(pattern)) {
                    return (known, None);
                }
                let compiled = compile(pattern, modifiers);
                self.budget.spend(compiled.as_ref().map_or(0, Pattern::compile_units));
                (known, compiled)
            },
            |pattern| {
                let pattern = pattern.as_ref()?;
                self.budget.spend(pattern.units(text)).then(|| pattern.regex.is_match(text))
            },
        )
    }

    /// The geometry of a GeoJSON object, prepared on first use; `None` if it is invalid.
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

    /// The words of a search term, split on first use.
    pub(super) fn term(&self, text: &SmolStr, language: FullTextLanguage) -> Arc<Term> {
        self.terms.with(
            |known| known.0 == *text && known.1 == language,
            || ((text.clone(), language), Arc::new(Term::new(text, language))),
            Clone::clone,
        )
    }
}

/// How many entries each cache holds. Queries rarely have more than a few constants, and values from items
/// must not make the caches grow.
const RECENT_MAX: usize = 16;

/// A small cache, the most recently used entry first.
#[derive(Debug)]
struct RecentCache<K, V>(RefCell<Vec<(K, V)>>);

impl<K, V> Default for RecentCache<K, V> {
    fn default() -> RecentCache<K, V> {
        RecentCache(RefCell::new(Vec::new()))
    }
}

impl<K, V> RecentCache<K, V> {
    /// Calls `read` with the entry whose key `is_wanted`, which `make` creates if it is missing.
    fn with<T>(
        &self,
        is_wanted: impl Fn(&K) -> bool,
        make: impl FnOnce() -> (K, V),
        read: impl FnOnce(&V) -> T,
    ) -> T {
        let mut entries = self.0.borrow_mut();
        match entries.iter().position(|(key, _)| is_wanted(key)) {
            Some(at) => entries[..=at].rotate_right(1),
            None => {
                entries.truncate(RECENT_MAX - 1);
                entries.insert(0, make());
            }
        }
        read(&entries[0].1)
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
    fn the_cache_keeps_recent_entries_and_is_bounded() {
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
    fn a_function_context_is_send() {
        fn assert_send<T: Send>() {}
        assert_send::<FunctionContext<'_>>();
    }
}
