//! The inputs of a query besides its text: the container's schema, the current time and the random seed.
//!
//! [`QuerySchema`] is fixed when a statement is prepared; [`QueryContext`] is given to each execution. Both
//! are plain data. Policies are validated where the container is defined, and computed properties are
//! compiled by the binder.

pub use protocol::container::DistanceFunction;
use smol_str::SmolStr;

/// The part of a container's definition that affects its queries.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct QuerySchema {
    /// The computed properties, in the order of the container's definition.
    pub computed_properties: Vec<ComputedProperty>,
    /// The surface on which coordinates lie.
    pub geometry: GeometryKind,
    /// The distance function of each vector path.
    pub vector_policies: Vec<VectorPolicy>,
    /// The language of full-text search in paths that have no language of their own.
    pub full_text_language: FullTextLanguage,
    /// The paths whose language the container's policy names.
    pub full_text_paths: Vec<FullTextPathLanguage>,
}

/// A computed property, which queries can read although items do not store it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ComputedProperty {
    /// The name of the property.
    pub name: SmolStr,
    /// The query that computes it, such as `SELECT VALUE LOWER(c.name) FROM c`.
    pub query: String,
}

/// The surface on which the spatial functions measure.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum GeometryKind {
    /// Longitude and latitude on the WGS-84 ellipsoid; distances are in metres.
    #[default]
    Geography,
    /// A plane; distances are in the unit of the coordinates.
    Geometry,
}

/// The distance function of one vector path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VectorPolicy {
    /// The path as the policy writes it: `/embedding` or `/a/b`.
    pub path: String,
    /// The distance function of the path.
    pub distance: DistanceFunction,
}

/// The language of one full-text path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FullTextPathLanguage {
    /// The path as the policy writes it: `/abstract` or `/a/b`.
    pub path: String,
    /// The language of the texts at the path.
    pub language: FullTextLanguage,
}

/// The language of a text that is searched, which decides about stop words and endings.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum FullTextLanguage {
    /// English, with the language tag `en-US`.
    #[default]
    English,
    /// French, with the language tag `fr-FR`.
    French,
    /// German, with the language tag `de-DE`.
    German,
    /// Italian, with the language tag `it-IT`.
    Italian,
    /// Portuguese, with the language tags `pt-PT` and `pt-BR`.
    Portuguese,
    /// Spanish, with the language tag `es-ES`.
    Spanish,
}

impl FullTextLanguage {
    /// All languages, once each.
    pub(crate) const ALL: [FullTextLanguage; 6] = [
        FullTextLanguage::English,
        FullTextLanguage::French,
        FullTextLanguage::German,
        FullTextLanguage::Italian,
        FullTextLanguage::Portuguese,
        FullTextLanguage::Spanish,
    ];

    /// Parses a language tag such as `en-US`; only the part before the dash matters.
    pub fn from_tag(tag: &str) -> Option<FullTextLanguage> {
        let primary = tag.split('-').next().unwrap_or(tag);
        [
            ("en", FullTextLanguage::English),
            ("fr", FullTextLanguage::French),
            ("de", FullTextLanguage::German),
            ("it", FullTextLanguage::Italian),
            ("pt", FullTextLanguage::Portuguese),
            ("es", FullTextLanguage::Spanish),
        ]
        .into_iter()
        .find(|(candidate, _)| candidate.eq_ignore_ascii_case(primary))
        .map(|(_, language)| language)
    }
}

impl QuerySchema {
    /// The language of the text at `path` (written as in the policy, `/a/b`), if the policy names one.
    pub(crate) fn full_text_language_of(&self, path: &str) -> Option<FullTextLanguage> {
        self.full_text_paths.iter().find(|known| known.path == path).map(|known| known.language)
    }

    /// The distance function of the vector at `path` (written as in the policy, `/a/b`), if the
    /// container declares one.
    pub fn distance_function(&self, path: &str) -> Option<DistanceFunction> {
        self.vector_policies.iter().find(|policy| policy.path == path).map(|policy| policy.distance)
    }
}

/// The inputs of one execution of a query.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct QueryContext {
    /// The current time, in ticks of 100 ns since the Unix epoch.
    pub now: i64,
    /// The seed of RAND().
    pub random_seed: u64,
    /// The largest number of work units, for an execution that is to be short. Without it, the limit is that
    /// of a request and grows with the number of documents.
    pub work_units_max: Option<u64>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distance_functions_are_read_in_any_case() {
        assert_eq!(DistanceFunction::from_name("Cosine"), Some(DistanceFunction::Cosine));
        assert_eq!(DistanceFunction::from_name("dotProduct"), Some(DistanceFunction::DotProduct));
        assert_eq!(DistanceFunction::from_name("euclidean"), Some(DistanceFunction::Euclidean));
        assert_eq!(DistanceFunction::from_name("manhattan"), None);
    }

    #[test]
    fn languages_are_read_from_their_tags() {
        assert_eq!(FullTextLanguage::from_tag("en-US"), Some(FullTextLanguage::English));
        assert_eq!(FullTextLanguage::from_tag("pt-br"), Some(FullTextLanguage::Portuguese));
        assert_eq!(FullTextLanguage::from_tag("xx-XX"), None);
    }

    #[test]
    fn a_vector_path_has_the_distance_function_of_its_policy() {
        let schema = QuerySchema {
            vector_policies: vec![VectorPolicy {
                path: "/embedding".to_owned(),
                distance: DistanceFunction::Euclidean,
            }],
            ..QuerySchema::default()
        };
        assert_eq!(schema.distance_function("/embedding"), Some(DistanceFunction::Euclidean));
        assert_eq!(schema.distance_function("/other"), None);
    }
}
