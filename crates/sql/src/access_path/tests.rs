//! Tests of partition key filters. Access paths are tested by `tests/cases/access_path.sqltest`.

use protocol::container::PartitionKeyDefinition;
use protocol::partition::{PartitionKey, PartitionKeyComponent};

use super::*;
use crate::{QuerySchema, Statement};

fn key_filter(condition: &str, paths: &[&str]) -> PartitionKeyFilter {
    let definition = match paths {
        [path] => PartitionKeyDefinition::hash(path),
        several => PartitionKeyDefinition::multi_hash(several),
    };
    let text = format!("SELECT * FROM c WHERE {condition}");
    let parameters = [("list".into(), Value::array([Value::from("a"), Value::from("b")]))];
    Statement::prepare(&text, &parameters, &QuerySchema::default())
        .unwrap()
        .partition_key_filter(&definition.unwrap())
}

fn strings(keys: &[&[&str]]) -> Vec<PartitionKey> {
    keys.iter().map(|key| PartitionKey::new(key.iter().map(|part| (*part).into()).collect())).collect()
}

#[test]
fn partition_keys_of_one_level() {
    let points = |keys: &[&str]| {
        PartitionKeyFilter::Points(strings(&keys.iter().map(std::slice::from_ref).collect::<Vec<_>>()))
    };
    for (condition, expected) in [
        ("c.pk = 'a'", points(&["a"])),
        ("'a' = c.pk AND c.x > 1", points(&["a"])),
        ("c.pk IN ('a', 'b', 'a')", points(&["a", "b"])),
        ("c.pk = 'a' OR c.pk = 'b' AND c.x = 1", points(&["a", "b"])),
        ("ARRAY_CONTAINS(@list, c.pk)", points(&["a", "b"])),
        ("c.pk LIKE 'a'", points(&["a"])),
        ("c.pk LIKE 'a!%' ESCAPE '!'", points(&["a%"])),
        ("c.pk", PartitionKeyFilter::Points(vec![PartitionKey::single(true)])),
        ("NOT c.pk", PartitionKeyFilter::Points(vec![PartitionKey::single(false)])),
        (
            "c.pk = null",
            PartitionKeyFilter::Points(vec![PartitionKey::new(vec![PartitionKeyComponent::Null])]),
        ),
        ("c.pk = 5", PartitionKeyFilter::Points(vec![PartitionKey::single(5.0)])),
        ("c.pk = 0", PartitionKeyFilter::Points(vec![PartitionKey::single(0.0), PartitionKey::single(-0.0)])),
        ("c.pk = 'a' AND c.pk = 'b'", PartitionKeyFilter::Nothing),
        ("c.pk IN ('a', 'b') AND c.pk IN ('b', 'c')", points(&["b"])),
        ("false", PartitionKeyFilter::Nothing),
        ("c.x = 1", PartitionKeyFilter::Full),
        ("c.pk = 'a' OR c.x = 1", PartitionKeyFilter::Full),
        ("c.pk > 'a'", PartitionKeyFilter::Full),
        ("c.pk BETWEEN 'a' AND 'b'", PartitionKeyFilter::Full),
        ("c.pk LIKE 'a%'", PartitionKeyFilter::Full),
        ("STARTSWITH(c.pk, 'a')", PartitionKeyFilter::Full),
        ("c.pk != 'a'", PartitionKeyFilter::Full),
        ("LOWER(c.pk) = 'a'", PartitionKeyFilter::Full),
        ("c.other.pk = 'a'", PartitionKeyFilter::Full),
    ] {
        assert_eq!(key_filter(condition, &["/pk"]), expected, "{condition}");
    }
    assert_eq!(key_filter("c.a['b c'] = 'a'", &["/a/\"b c\""]), points(&["a"]));
}

#[test]
fn hierarchical_partition_keys() {
    let paths = &["/tenant", "/user"];
    for (condition, expected) in [
        ("c.tenant = 'a' AND c.user = 'b'", PartitionKeyFilter::Points(strings(&[&["a", "b"]]))),
        (
            "c.tenant = 'a' AND c.user IN ('b', 'c')",
            PartitionKeyFilter::Points(strings(&[&["a", "b"], &["a", "c"]])),
        ),
        ("c.tenant = 'a'", PartitionKeyFilter::Prefixes(strings(&[&["a"]]))),
        (
            "c.tenant = 'a' OR c.tenant = 'b' AND c.user = 'x'",
            PartitionKeyFilter::Prefixes(strings(&[&["a"], &["b", "x"]])),
        ),
        ("c.user = 'b'", PartitionKeyFilter::Full),
        ("c.tenant = 'a' OR c.user = 'b'", PartitionKeyFilter::Full),
        ("c.tenant = 'a' AND c.user = 'b' AND c.tenant = 'c'", PartitionKeyFilter::Nothing),
    ] {
        assert_eq!(key_filter(condition, paths), expected, "{condition}");
    }
}

#[test]
fn too_many_partition_keys_are_not_routed() {
    let list = |name: &str| {
        let values: Vec<String> = (0..100).map(|n| format!("'{n}'")).collect();
        format!("c.{name} IN ({})", values.join(","))
    };
    let condition = format!("{} AND {} AND {}", list("a"), list("b"), list("c"));
    assert_eq!(key_filter(&condition, &["/a", "/b", "/c"]), PartitionKeyFilter::Full);
}
