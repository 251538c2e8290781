//! The smaller policies of a container: conflict resolution, geospatial type, change feed retention,
//! computed properties and time to live.
//!
//! Input and output: properties of a container's body.

use serde::{Deserialize, Serialize};

use crate::definition_error::{DefinitionError, INVALID_INPUT, invalid};

/// How concurrent writes to one item in several regions are resolved.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", from = "SentConflictResolutionPolicy")]
pub struct ConflictResolutionPolicy {
    /// How a conflict is resolved.
    pub mode: ConflictResolutionMode,
    /// The path of the number that decides under last-writer-wins; the larger number wins.
    pub conflict_resolution_path: String,
    /// The stored procedure that decides in custom mode.
    pub conflict_resolution_procedure: String,
}

/// A policy as it was sent, whose omitted members depend on the mode.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[derive(Default)]
struct SentConflictResolutionPolicy {
    mode: ConflictResolutionMode,
    conflict_resolution_path: Option<String>,
    conflict_resolution_procedure: Option<String>,
}

impl From<SentConflictResolutionPolicy> for ConflictResolutionPolicy {
    fn from(sent: SentConflictResolutionPolicy) -> ConflictResolutionPolicy {
        let default = ConflictResolutionPolicy::default();
        let path = match sent.mode {
            ConflictResolutionMode::LastWriterWins => default.conflict_resolution_path,
            ConflictResolutionMode::Custom => String::new(),
        };
        ConflictResolutionPolicy {
            mode: sent.mode,
            conflict_resolution_path: sent.conflict_resolution_path.unwrap_or(path),
            conflict_resolution_procedure: sent.conflict_resolution_procedure.unwrap_or_default(),
        }
    }
}

/// How a conflict between regions is resolved.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum ConflictResolutionMode {
    /// Last writer wins: the larger number at a path.
    #[default]
    #[serde(alias = "lastWriterWins")]
    LastWriterWins,
    /// Custom: a stored procedure, or a client that reads the conflicts feed.
    #[serde(alias = "custom")]
    Custom,
}

impl Default for ConflictResolutionPolicy {
    fn default() -> ConflictResolutionPolicy {
        ConflictResolutionPolicy {
            mode: ConflictResolutionMode::LastWriterWins,
            conflict_resolution_path: "/_ts".to_owned(),
            conflict_resolution_procedure: String::new(),
        }
    }
}

/// How the spatial functions interpret coordinates.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct GeospatialConfig {
    /// The surface: geography or geometry.
    #[serde(rename = "type")]
    pub kind: GeospatialType,
}

/// The surface on which coordinates lie.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum GeospatialType {
    /// Longitude and latitude in degrees on the earth.
    #[default]
    Geography,
    /// Units of a flat plane.
    Geometry,
}

/// How long the change feed retains all versions and deletes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ChangeFeedPolicy {
    /// The retention, in minutes.
    pub retention_duration: i64,
}

/// The largest number of computed properties of a container.
pub const COMPUTED_PROPERTIES_MAX: usize = 20;

/// A property that is not stored but computed when a query reads it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ComputedProperty {
    /// The name of the property.
    pub name: String,
    /// The query that computes it, `SELECT VALUE … FROM c`; validated by the crate that has a SQL parser.
    pub query: String,
}

impl ComputedProperty {
    /// Validates names and number of the properties, but not their queries.
    pub(super) fn validate_all(properties: &[ComputedProperty]) -> Result<(), DefinitionError> {
        let count = properties.len();
        if count > COMPUTED_PROPERTIES_MAX {
            return Err(invalid(format!(
                "{INVALID_INPUT}: there are {count} computed properties, and at most {COMPUTED_PROPERTIES_MAX} are \
                 allowed."
            )));
        }
        const SYSTEM: [&str; 6] = ["id", "_rid", "_self", "_etag", "_ts", "_attachments"];
        for (index, ComputedProperty { name, query }) in properties.iter().enumerate() {
            for (member, text) in [("name", name), ("query", query)] {
                if text.is_empty() {
                    return Err(invalid(format!(
                        "Computed property '{member}' is either empty or unspecified."
                    )));
                }
            }
            if SYSTEM.contains(&name.as_str()) {
                return Err(invalid(format!(
                    "The system property name '{name}' cannot be used as a computed property name."
                )));
            }
            if properties[..index].iter().any(|earlier| earlier.name == *name) {
                return Err(invalid(format!(
                    "Computed property name '{name}' cannot be used in multiple definitions."
                )));
            }
        }
        Ok(())
    }
}

/// The longest time to live of an item, in seconds.
pub const TTL_SECONDS_MAX: i64 = 2_147_483_647;

/// How long items live, as set for a container or an item.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum TimeToLive {
    /// −1: items do not expire unless they have a time to live of their own.
    Forever,
    /// Items expire this many seconds after their last write; at least one.
    Seconds(u32),
}

impl TimeToLive {
    /// Reads a `defaultTtl` or `ttl` property: −1 or a positive 32-bit number.
    pub fn from_seconds(seconds: i64) -> Result<TimeToLive, DefinitionError> {
        match seconds {
            -1 => Ok(TimeToLive::Forever),
            1..=TTL_SECONDS_MAX => Ok(TimeToLive::Seconds(seconds as u32)),
            _ => Err(invalid(format!(
                "The time to live '{seconds}' is invalid. Ensure to provide -1 or a number of seconds between 1 and \
                 {TTL_SECONDS_MAX}."
            ))),
        }
    }

    /// Reads a `defaultTtl` or `ttl` property of any JSON type; `null`, fractions and strings are errors.
    pub fn from_json(value: &serde_json::Value) -> Result<TimeToLive, DefinitionError> {
        let whole = value.as_i64().or_else(|| {
            let number = value.as_f64().filter(|number| number.fract() == 0.0)?;
            (number.abs() <= TTL_SECONDS_MAX as f64).then_some(number as i64)
        });
        match whole {
            Some(seconds) => TimeToLive::from_seconds(seconds),
            None => Err(invalid(format!(
                "The time to live '{value}' is invalid. Ensure to provide -1 or a number of seconds between 1 and \
                 {TTL_SECONDS_MAX}."
            ))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_to_live_are_minus_one_or_positive() {
        for (json, expected) in [
            ("-1", Some(TimeToLive::Forever)),
            ("1", Some(TimeToLive::Seconds(1))),
            ("5.0", Some(TimeToLive::Seconds(5))),
            ("2147483647", Some(TimeToLive::Seconds(2147483647))),
            ("2147483648", None),
            ("0", None),
            ("-10", None),
            ("1.5", None),
            ("1e300", None),
            ("null", None),
            ("\"10\"", None),
        ] {
            let value = serde_json::from_str(json).expect("json");
            assert_eq!(TimeToLive::from_json(&value).ok(), expected, "{json}");
        }
    }

    #[test]
    fn computed_properties_need_unique_names() {
        let property =
            |name: &str| ComputedProperty { name: name.into(), query: "SELECT VALUE c.a FROM c".into() };
        let many = |count| (0..count).map(|number| property(&format!("p{number}"))).collect::<Vec<_>>();
        for (properties, good) in [
            (many(20), true),
            (many(21), false),
            (vec![property("id")], false),
            (vec![property("_ts")], false),
            (vec![property("")], false),
            (vec![property("a"), property("a")], false),
        ] {
            let outcome = ComputedProperty::validate_all(&properties);
            assert_eq!(outcome.is_ok(), good, "{properties:?}");
            let named = ["at most 20", "system property name", "is either empty", "multiple definitions"];
            let is_named = |text: &str| named.iter().any(|part| text.contains(part));
            assert!(outcome.err().is_none_or(|error| is_named(&error.message)));
        }
    }
}
