//! What a query knows besides its text: the container it runs on, and the moment it runs at.
//!
//! [`QuerySchema`] is fixed when a statement is prepared; [`QueryContext`] arrives with each run. Both are
//! plain data. Validating policies is the owner of the container's business, and compiling computed
//! properties is the binder's.

use smol_str::SmolStr;

/// The part of a container's definition that changes what its queries mean.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct QuerySchema {
    /// Properties computed from the item, in the order of the container's definition.
    pub computed_properties: Vec<ComputedProperty>,
    /// The surface on which coordinates lie.
    pub geometry: GeometryKind,
    /// How each vector path measures distance.
    pub vector_policies: Vec<VectorPolicy>,
    /// Whose word endings full-text search strips.
    pub full_text_language: FullTextLanguage,
}

/// A property that exists only in queries.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ComputedProperty {
    /// The name it is read by.
    pub name: SmolStr,
    /// The text that yields its value, such as `SELECT VALUE LOWER(c.name) FROM c`.
    pub query: String,
}

/// The surface on which the spatial functions measure.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum GeometryKind {
    /// Longitude and latitude on the WGS-84 ellipsoid; metres.
    #[default]
    Geography,
    /// A plane; the unit of the coordinates.
    Geometry,
}

/// The distance function of one vector path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VectorPolicy {
    /// Where the vector is, as the policy writes it: `/embedding` or `/a/b`.
    pub path: String,
    /// How two of its vectors compare.
    pub distance: DistanceFunction,
}

/// How VECTORDISTANCE compares two vectors.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DistanceFunction {
    /// From -1 to 1, larger is closer.
    #[default]
    Cosine,
    /// Larger is closer.
    DotProduct,
    /// From 0, smaller is closer.
    Euclidean,
}

impl DistanceFunction {
    /// Reads the name a policy or an options object uses, in any case.
    pub fn from_name(name: &str) -> Option<DistanceFunction> {
        [
            ("cosine", DistanceFunction::Cosine),
            ("dotproduct", DistanceFunction::DotProduct),
            ("euclidean", DistanceFunction::Euclidean),
        ]
        .into_iter()
        .find(|(candidate, _)| candidate.eq_ignore_ascii_case(name))
        .map(|(_, distance)| distance)
    }

    /// Whether the nearest vector has the smallest distance, so that sorting is ascending.
    pub fn nearest_is_smallest(self) -> bool {
        match self {
            DistanceFunction::Euclidean => true,
            DistanceFunction::Cosine | DistanceFunction::DotProduct => false,
        }
    }
}

/// The language of a container's full-text paths.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum FullTextLanguage {
    /// `en-US`
    #[default]
    English,
    /// `fr-FR`
    French,
    /// `de-DE`
    German,
    /// `it-IT`
    Italian,
    /// `pt-PT` and `pt-BR`
    Portuguese,
    /// `es-ES`
    Spanish,
}

impl FullTextLanguage {
    /// Reads a language tag such as `en-US`; only the part before the dash decides.
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
    /// The distance function of the vector at `path` (written as in the policy, `/a/b`), if the
    /// container declares one.
    pub fn distance_function(&self, path: &str) -> Option<DistanceFunction> {
        self.vector_policies.iter().find(|policy| policy.path == path).map(|policy| policy.distance)
    }
}

/// What one run of a query takes from the outside context.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct QueryContext {
    /// The current time, in ticks of 100 ns since the Unix epoch.
    pub now: i64,
    /// Where the run's random numbers start.
    pub random_seed: u64,
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
