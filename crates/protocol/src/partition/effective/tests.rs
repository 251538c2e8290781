//! The service's vectors, and what must hold for every key.

use proptest::prelude::*;

use super::*;
use PartitionKeyComponent::{Bool, Null, Number, Undefined};

fn definition(kind: PartitionKeyKind, version: PartitionKeyVersion, levels: usize) -> PartitionKeyDefinition {
    let paths = ["/a", "/b", "/c", "/d"][..levels].iter().map(|path| path.parse().expect("a path")).collect();
    PartitionKeyDefinition { paths, kind, stated_version: Some(version), system_key: false }
}

fn v1() -> PartitionKeyDefinition {
    definition(PartitionKeyKind::Hash, PartitionKeyVersion::V1, 1)
}

fn v2() -> PartitionKeyDefinition {
    definition(PartitionKeyKind::Hash, PartitionKeyVersion::V2, 1)
}

fn levels(count: usize) -> PartitionKeyDefinition {
    definition(PartitionKeyKind::MultiHash, PartitionKeyVersion::V2, count)
}

fn text(value: impl Into<String>) -> PartitionKeyComponent {
    PartitionKeyComponent::String(value.into())
}

#[test]
fn single_keys_have_the_epks_of_the_service() {
    let hundred_v1 = format!("05C1EB5921F70608{}00", "62".repeat(100));
    let cut_v1 = format!("05C1E153DB455808{}F0C0", "62".repeat(99));
    let a = |count| text("a".repeat(count));
    for (component, expected_v2, expected_v1) in [
        (Undefined, "11622DAA78F835834610ABE56EFF5CB5", "05C1D529E345DC00"),
        (Null, "378867E4430E67857ACE5C908374FE16", "05C1ED45D7475601"),
        (Bool(true), "0E711127C5B5A8E4726AC6DD306A3E59", "05C1D7C5A903D803"),
        (Bool(false), "2FE1BE91E90A3439635E0E9E37361EF2", "05C1DB857D857C02"),
        (Number(0.0), "155B95BEDAC4B1E9EC1CDC9BB0DDDE58", "05C1BF6DA11560058000"),
        (Number(-0.0), "3D018BB1DF3DB27235766E81FD10406E", "05C1E703ED99A0058000"),
        (Number(1.0), "20CD98B339BA78A5D0CF6953B87070B0", "05C1ED172B6B2605BFF0"),
        (Number(-1.0), "19938E7A936C1C5B9E3AE842BBC16839", "05C1D1A5BDDF9C054010"),
        (Number(5.0), "19C08621B135968252FB34B4CF66F811", "05C1D9C1C5517C05C014"),
        (Number(100.5), "3BDA91921BA67B3D119EAD5DBDAF4169", "05C1DBA703217005C05990"),
        (Number(-128.0), "01DAEDABF913540367FE219B2AD06148", "05C1D73349F54C053FA0"),
        (Number(127.0), "0C507ACAC853ECA7977BF4CEFB562A25", "05C1DD539DDFCC05C05FE0"),
        (Number(2147483647.0), "2D9349D64712AEB5EB1406E2F0BE2725", "05C1E1F503DFB205C1DFFFFFFFFC"),
        (Number(-2147483648.0), "0B1660D5233C3171725B30D4A5F4CC1F", "05C1DFBF252BCC053E20"),
        (Number(2f64.powi(53)), "15335910D01122E3D99DA5DE569B065D", "05C1E53167392405C340"),
        (Number(i64::MAX as f64), "2EDB959178DFCCA18983F89384D1629B", "05C1B799AB2DD005C3E0"),
        (Number(i64::MIN as f64), "23D5C6395512BDFEAFADAD15328AD2BB", "05C1DB35F33D1C053C20"),
        (Number(5.123124190509124), "0EF2E2D82460884AF0F6440BE4F726A8", ""),
        (Number(f64::from_bits(1)), "0E6CBA63A280927DE485DEF865800139", "05C1E5C91F4D3005800101010101010102"),
        (Number(f64::MAX), "31424D996457102634591FF245DBCC4D", "05C1CBE367C53005FFEFFFFFFFFFFFFFFE"),
        (text(""), "32E9366E637A71B4E710384B2F4970A0", "05C1CF33970FF80800"),
        (text("p"), "1D1C97DD684A8CFD0AD88BD3B4BC757C", "05C1E979AD5B14087100"),
        (text("pk1"), "1EC0C2CBE45DBC919CF2B65D399C2673", "05C1EDBDA5AF1E08716C3200"),
        (text("asdf"), "208BF1D598F5B63AD5520F04FE58C5E8", "05C1E7035DAF84086274656700"),
        (
            text("partitionKey"),
            "013AEFCF77FA271571CF665A58C933F1",
            "05C1E1B3D9CD2608716273756A756A706F4C667A00",
        ),
        (text("redmond"), "22E342F38A486A088463DFF7838A5963", "05C1EFE313830C087366656E706F6500"),
        (text("你好"), "004DC6466F1ECD29F3606AEBC7AFC317", "05C1D37361259408E5BEA1E6A6BE00"),
        (a(100), "0DBD7D229437BB665DE6417747994D57", &hundred_v1),
        (a(101), "08042541D30C8BF90D7092B1519AE0BC", &hundred_v1),
        (a(1024), "332BDF5512AE49615F32C7D98C2DB86C", &hundred_v1),
        (text(format!("{}\u{1F600}", "a".repeat(99))), "3DCDC7ABFC5BF49867B328ECDB14F0BF", &cut_v1),
    ] {
        let key = PartitionKey::single(component);
        assert_eq!(effective_key(&v2(), &key).to_hex(), expected_v2, "version 2 of {key:?}");
        assert_eq!(effective_key(&levels(1), &key).to_hex(), expected_v2, "one level of {key:?}");
        if !expected_v1.is_empty() {
            assert_eq!(effective_key(&v1(), &key).to_hex(), expected_v1, "version 1 of {key:?}");
        }
    }
}

#[test]
fn several_components_of_a_single_hash_are_hashed_together() {
    let key = PartitionKey::new(vec![Number(5.0), text("redmond"), Bool(true), Null]);
    let together = definition(PartitionKeyKind::Hash, PartitionKeyVersion::V2, 4);
    assert_eq!(effective_key(&together, &key).to_hex(), "3032DECBE2AB1768D8E0AEDEA35881DF");
}

#[test]
fn levels_of_a_hierarchical_key_are_hashed_apart() {
    for (components, expected) in [
        (vec![text("a"), text("b")], "3A5381E1114EB8D3FCC90795045B49B7195644569A78B1E22D200348AF9416CE"),
        (
            vec![text("redmond"), text("98052")],
            "22E342F38A486A088463DFF7838A596336C8BBEC5EEB4676558994E4D8DF79A7",
        ),
        (
            vec![text("tenant1"), Number(42.0), Null],
            "0DAE0B8467B011E957BC0B8B0DEB5ACA08E6D561F6FD951DCC25E7E4EA2884B5378867E4430E67857ACE5C908374FE16",
        ),
        (vec![text("a"), Undefined], "3A5381E1114EB8D3FCC90795045B49B711622DAA78F835834610ABE56EFF5CB5"),
    ] {
        let key = PartitionKey::new(components);
        assert_eq!(effective_key(&levels(key.components().len()), &key).to_hex(), expected);
    }
}

#[test]
fn a_prefix_covers_everything_below_it() {
    let prefix = prefix_range(&levels(2), &PartitionKey::single("a"));
    assert_eq!(prefix.min.to_hex(), "3A5381E1114EB8D3FCC90795045B49B7");
    assert_eq!(prefix.max.to_hex(), "3A5381E1114EB8D3FCC90795045B49B7FF");
    let below = PartitionKey::new(vec![text("a"), text("b")]);
    assert!(prefix.contains(&effective_key(&levels(2), &below)));
    let beside = PartitionKey::new(vec![text("b"), text("b")]);
    assert!(!prefix.contains(&effective_key(&levels(2), &beside)));
}

#[test]
fn a_complete_key_is_a_point_and_an_empty_one_the_ring() {
    let key = PartitionKey::single("a");
    let range = prefix_range(&v2(), &key);
    assert_eq!(range, EpkRange::point(effective_key(&v2(), &key)));
    assert_eq!(prefix_range(&levels(2), &PartitionKey::new(Vec::new())), EpkRange::FULL);
}

#[test]
fn old_range_containers_keep_the_order_of_their_values() {
    let ordered = definition(PartitionKeyKind::Range, PartitionKeyVersion::V1, 1);
    let positions = [Undefined, Null, Number(-2.5), Number(1.0), Number(1.5), text("a"), text("b")]
        .map(|component| effective_key(&ordered, &PartitionKey::single(component)));
    assert!(positions.is_sorted());
}

#[test]
fn version_1_cuts_at_a_hundred_utf16_units() {
    for (value, expected) in [
        ("ä".repeat(100), ("ä".repeat(100), "")),
        ("ä".repeat(101), ("ä".repeat(100), "")),
        ("\u{1F600}".repeat(60), ("\u{1F600}".repeat(50), "")),
        (format!("a{}", "\u{1F600}".repeat(60)), (format!("a{}", "\u{1F600}".repeat(49)), "\u{FFFD}")),
        ("short".to_owned(), ("short".to_owned(), "")),
    ] {
        let (text, replacement) = cut_v1(&value);
        assert_eq!((text.to_owned(), replacement), expected);
    }
}

#[test]
fn hex_is_read_in_either_case_and_nothing_else_is() {
    assert_eq!(EffectivePartitionKey::from_hex(""), Ok(EffectivePartitionKey::MIN));
    assert_eq!(EffectivePartitionKey::from_hex("ff"), Ok(EffectivePartitionKey::MAX));
    assert_eq!(EffectivePartitionKey::MAX.to_hex(), "FF");
    for bad in ["F", "0G", "é", "ABC", " 0", "+1"] {
        assert_eq!(EffectivePartitionKey::from_hex(bad), Err(EffectivePartitionKeyError), "{bad}");
    }
}

#[test]
fn a_position_is_small() {
    assert_eq!(size_of::<EffectivePartitionKey>(), 24);
}

fn any_component() -> impl Strategy<Value = PartitionKeyComponent> {
    prop_oneof![
        Just(Undefined),
        Just(Null),
        any::<bool>().prop_map(Bool),
        any::<f64>().prop_map(Number),
        ".{0,120}".prop_map(text),
    ]
}

proptest! {
    #[test]
    fn hex_round_trips_and_keeps_the_order(left in prop::collection::vec(any::<u8>(), 0..60), right in prop::collection::vec(any::<u8>(), 0..60)) {
        let (a, b) = (EffectivePartitionKey::from_bytes(&left), EffectivePartitionKey::from_bytes(&right));
        prop_assert_eq!(a.as_bytes(), &left[..]);
        prop_assert_eq!(EffectivePartitionKey::from_hex(&a.to_hex()).unwrap(), a.clone());
        prop_assert_eq!(a.to_string(), a.to_hex());
        prop_assert_eq!(a.cmp(&b), left.cmp(&right));
        prop_assert_eq!(a.to_hex().cmp(&b.to_hex()), left.cmp(&right));
    }

    #[test]
    fn every_key_lies_between_the_ends(component in any_component()) {
        let key = PartitionKey::single(component);
        for definition in [v1(), v2(), levels(3)] {
            let position = effective_key(&definition, &key);
            prop_assert!(EpkRange::FULL.contains(&position));
            prop_assert!(prefix_range(&definition, &key).contains(&position));
        }
    }

    #[test]
    fn encoded_numbers_compare_as_numbers(left in any::<f64>(), right in any::<f64>()) {
        let encode = |value| { let mut bytes = Vec::new(); encode_number(value, &mut bytes); bytes };
        if let Some(order) = left.partial_cmp(&right) {
            prop_assert_eq!(encode(left).cmp(&encode(right)), order);
        }
    }
}
