//! The account resource, which `GET /` returns: regions, consistency and replication policies.
//!
//! Clients read it to learn the endpoints of the regions. Which regions are available is decided by the
//! server.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// The body of the account resource, which clients read before they send any other request.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AccountProperties {
    /// The `_self` link, which is empty but must be present.
    #[serde(rename = "_self")]
    pub self_link: String,
    /// The account's name. Not `localhost`: the JavaScript client would ignore the regions.
    pub id: String,
    /// The `_rid` of the account, which is usually its host name.
    #[serde(rename = "_rid")]
    pub rid: String,
    /// The link to media, a feature that no longer exists.
    #[serde(default)]
    pub media: String,
    /// The link to addresses, which gateway mode does not use.
    #[serde(default)]
    pub addresses: String,
    /// The link to the feed of databases.
    #[serde(rename = "_dbs", default)]
    pub databases: String,
    /// The regions that accept writes: one region, or all regions of a multi-write account.
    #[serde(default)]
    pub writable_locations: Vec<Location>,
    /// The regions that accept reads, in failover order.
    #[serde(default)]
    pub readable_locations: Vec<Location>,
    /// Whether every region accepts writes.
    #[serde(default)]
    pub enable_multiple_write_locations: bool,
    /// Whether continuous backup is enabled.
    #[serde(default)]
    pub continuous_backup_enabled: bool,
    /// Whether writes wait until other regions have committed them.
    #[serde(default, rename = "enableNRegionSynchronousCommit")]
    pub enable_n_region_synchronous_commit: bool,
    /// Whether a single partition may fail over to another region.
    #[serde(default)]
    pub enable_per_partition_failover_behavior: bool,
    /// Whether clients must not send hedged requests.
    #[serde(default)]
    pub disable_cross_regional_hedging: bool,
    /// The replica set as configured by the user.
    #[serde(default)]
    pub user_replication_policy: ReplicationPolicy,
    /// The default consistency level of the account.
    #[serde(default)]
    pub user_consistency_policy: ConsistencyPolicy,
    /// The replica set as configured by the system.
    #[serde(default)]
    pub system_replication_policy: ReplicationPolicy,
    /// How reads are distributed over the replicas.
    #[serde(default)]
    pub read_policy: ReadPolicy,
    /// Limits of the query engine, as JSON text.
    #[serde(default)]
    pub query_engine_configuration: String,
    /// Further properties, kept as they were read.
    #[serde(flatten)]
    pub other: Map<String, Value>,
}

/// A region of the account and its endpoint.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Location {
    /// The display name of the region, such as `East US 2`.
    pub name: String,
    /// The URL of the region, with a trailing slash.
    pub database_account_endpoint: String,
}

/// How many replicas a partition has in a region.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ReplicationPolicy {
    /// The smallest size of a replica set.
    pub min_replica_set_size: u32,
    /// The largest size of a replica set. The spelling is the service's.
    #[serde(rename = "maxReplicasetSize")]
    pub max_replica_set_size: u32,
    /// Whether a write is acknowledged before all replicas have it.
    pub async_replication: bool,
}

impl Default for ReplicationPolicy {
    fn default() -> ReplicationPolicy {
        ReplicationPolicy { min_replica_set_size: 3, max_replica_set_size: 4, async_replication: false }
    }
}

/// The default consistency policy of the account.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ConsistencyPolicy {
    /// The level of a request that does not ask for one. An unknown level is read as the default one, so
    /// that session tokens are still sent.
    #[serde(deserialize_with = "known_level")]
    pub default_consistency_level: ConsistencyLevel,
}

fn known_level<'de, D: serde::Deserializer<'de>>(text: D) -> Result<ConsistencyLevel, D::Error> {
    Ok(String::deserialize(text)?.parse().unwrap_or_default())
}

/// How reads are distributed over the replicas of a partition.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ReadPolicy {
    /// The weight of the primary replica.
    pub primary_read_coefficient: u32,
    /// The weight of each secondary replica.
    pub secondary_read_coefficient: u32,
}

impl Default for ReadPolicy {
    fn default() -> ReadPolicy {
        ReadPolicy { primary_read_coefficient: 1, secondary_read_coefficient: 1 }
    }
}

/// The guarantee that a read gives, ordered from weakest to strongest.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum ConsistencyLevel {
    /// A read returns whatever the replica has.
    Eventual,
    /// A read returns a prefix of the writes, without gaps.
    ConsistentPrefix,
    /// A read returns the writes of its own session.
    #[default]
    Session,
    /// A read is no staler than the configured bound.
    BoundedStaleness,
    /// A read returns the latest committed write.
    Strong,
}

impl ConsistencyLevel {
    /// Whether a request may ask for this level on an account whose default is `default`. A request may
    /// only weaken the default.
    pub fn is_allowed_by(self, default: ConsistencyLevel) -> bool {
        self <= default
    }

    /// The name used in headers and bodies, such as `BoundedStaleness`.
    pub fn name(self) -> &'static str {
        match self {
            ConsistencyLevel::Eventual => "Eventual",
            ConsistencyLevel::ConsistentPrefix => "ConsistentPrefix",
            ConsistencyLevel::Session => "Session",
            ConsistencyLevel::BoundedStaleness => "BoundedStaleness",
            ConsistencyLevel::Strong => "Strong",
        }
    }

    /// All consistency levels, weakest first.
    pub const ALL: [ConsistencyLevel; 5] = [
        ConsistencyLevel::Eventual,
        ConsistencyLevel::ConsistentPrefix,
        ConsistencyLevel::Session,
        ConsistencyLevel::BoundedStaleness,
        ConsistencyLevel::Strong,
    ];
}

/// The error of a text that is not the name of a consistency level.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not a consistency level: expected Strong, BoundedStaleness, Session, ConsistentPrefix or Eventual")]
pub struct ConsistencyLevelError;

impl FromStr for ConsistencyLevel {
    type Err = ConsistencyLevelError;

    fn from_str(word: &str) -> Result<ConsistencyLevel, ConsistencyLevelError> {
        let mut levels = ConsistencyLevel::ALL.into_iter();
        levels.find(|level| level.name().eq_ignore_ascii_case(word)).ok_or(ConsistencyLevelError)
    }
}

impl fmt::Display for ConsistencyLevel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The query engine limits that the service publishes. No known client reads them.
const QUERY_ENGINE_CONFIGURATION: &str = concat!(
    r#"{"maxSqlQueryInputLength":262144,"maxJoinsPerSqlQuery":5,"maxLogicalAndPerSqlQuery":500,"#,
    r#""maxLogicalOrPerSqlQuery":500,"maxUdfRefPerSqlQuery":10,"maxInExpressionItemsCount":16000,"#,
    r#""queryMaxInMemorySortDocumentCount":500,"maxQueryRequestTimeoutFraction":0.9,"#,
    r#""sqlAllowNonFiniteNumbers":false,"sqlAllowAggregateFunctions":true,"sqlAllowSubQuery":true,"#,
    r#""sqlAllowScalarSubQuery":true,"allowNewKeywords":true,"sqlAllowLike":true,"#,
    r#""sqlAllowGroupByClause":true,"maxSpatialQueryCells":12,"spatialMaxGeometryPointCount":256,"#,
    r#""sqlDisableOptimizationFlags":0,"sqlAllowTop":true,"enableSpatialIndexing":true}"#
);

impl AccountProperties {
    /// An account with one write region (the first of `regions`) and defaults for everything else.
    pub fn new(id: &str, regions: Vec<Location>, consistency: ConsistencyLevel) -> AccountProperties {
        AccountProperties {
            self_link: String::new(),
            id: id.to_owned(),
            rid: format!("{id}.sql.cosmos.local"),
            media: "//media/".to_owned(),
            addresses: "//addresses/".to_owned(),
            databases: "//dbs/".to_owned(),
            writable_locations: regions.first().cloned().into_iter().collect(),
            readable_locations: regions,
            enable_multiple_write_locations: false,
            continuous_backup_enabled: false,
            enable_n_region_synchronous_commit: false,
            enable_per_partition_failover_behavior: false,
            disable_cross_regional_hedging: false,
            user_replication_policy: ReplicationPolicy::default(),
            user_consistency_policy: ConsistencyPolicy { default_consistency_level: consistency },
            system_replication_policy: ReplicationPolicy::default(),
            read_policy: ReadPolicy::default(),
            query_engine_configuration: QUERY_ENGINE_CONFIGURATION.to_owned(),
            other: Map::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_account_body_has_the_services_members() {
        let region = |name: &str, port: u16| Location {
            name: name.into(),
            database_account_endpoint: format!("http://127.0.0.1:{port}/"),
        };
        let regions = vec![region("East US", 8081), region("West US", 8082)];
        let account = AccountProperties::new("localhost-account", regions, ConsistencyLevel::Session);
        let body = serde_json::to_value(&account).expect("plain data");
        let expected = r#"{
          "_self": "", "id": "localhost-account", "_rid": "localhost-account.sql.cosmos.local",
          "media": "//media/", "addresses": "//addresses/", "_dbs": "//dbs/",
          "writableLocations": [{"name": "East US", "databaseAccountEndpoint": "http://127.0.0.1:8081/"}],
          "readableLocations": [{"name": "East US", "databaseAccountEndpoint": "http://127.0.0.1:8081/"},
                                {"name": "West US", "databaseAccountEndpoint": "http://127.0.0.1:8082/"}],
          "enableMultipleWriteLocations": false, "continuousBackupEnabled": false,
          "enableNRegionSynchronousCommit": false, "enablePerPartitionFailoverBehavior": false,
          "disableCrossRegionalHedging": false,
          "userReplicationPolicy": {"asyncReplication": false, "minReplicaSetSize": 3, "maxReplicasetSize": 4},
          "userConsistencyPolicy": {"defaultConsistencyLevel": "Session"},
          "systemReplicationPolicy": {"minReplicaSetSize": 3, "maxReplicasetSize": 4, "asyncReplication": false},
          "readPolicy": {"primaryReadCoefficient": 1, "secondaryReadCoefficient": 1}
        }"#;
        let mut expected: Value = serde_json::from_str(expected).expect("json");
        expected["queryEngineConfiguration"] = body["queryEngineConfiguration"].clone();
        assert_eq!(body, expected);
        let engine = body["queryEngineConfiguration"].as_str().expect("text, not an object");
        assert!(serde_json::from_str::<Value>(engine).is_ok_and(|engine| engine.is_object()));
        let read: AccountProperties = serde_json::from_value(body).expect("what was written");
        assert_eq!(read, account);
    }

    #[test]
    fn an_unknown_consistency_level_is_read_as_the_default() {
        let policy = r#"{"defaultConsistencyLevel":"Quantum"}"#;
        let policy: ConsistencyPolicy = serde_json::from_str(policy).unwrap();
        assert_eq!(policy.default_consistency_level, ConsistencyLevel::Session);
    }

    #[test]
    fn three_members_are_enough_to_read_an_account() {
        assert!(serde_json::from_str::<AccountProperties>(r#"{"_self":"","id":"a","_rid":"r"}"#).is_ok());
        assert!(serde_json::from_str::<AccountProperties>(r#"{"id":"a","_rid":"r"}"#).is_err());
    }

    #[test]
    fn a_request_may_only_weaken_the_default() {
        for (asked, index) in ConsistencyLevel::ALL.into_iter().zip(0..) {
            assert_eq!(asked.name().parse(), Ok(asked));
            for (default, limit) in ConsistencyLevel::ALL.into_iter().zip(0..) {
                assert_eq!(asked.is_allowed_by(default), index <= limit, "{asked} of {default}");
            }
        }
        assert_eq!("strong".parse(), Ok(ConsistencyLevel::Strong));
        assert_eq!("Strongest".parse::<ConsistencyLevel>(), Err(ConsistencyLevelError));
    }
}
