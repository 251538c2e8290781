//! Every marker, both directions, and input made to hurt.

use proptest::prelude::*;
use serde_json::{Value, json};

use super::BinaryJsonErrorKind as Bad;
use super::*;

fn bytes(hex: &str) -> Vec<u8> {
    hex.split_whitespace().map(|byte| u8::from_str_radix(byte, 16).expect("hex")).collect()
}

#[track_caller]
fn check(hex: &str, text: &str) {
    let decoded = to_text(&bytes(hex)).unwrap_or_else(|error| panic!("{hex}: {error}"));
    assert_eq!(String::from_utf8(decoded).expect("text"), text, "{hex}");
}

#[track_caller]
fn check_both(text: &str, hex: &str) {
    check(hex, text);
    assert_eq!(from_text(text.as_bytes()).expect("JSON"), bytes(hex), "{text}");
}

#[track_caller]
fn check_bad(hex: &str, kind: Bad, position: usize) {
    assert_eq!(to_text(&bytes(hex)), Err(BinaryJsonError { kind, position }), "{hex}");
}

#[test]
fn the_first_byte_tells_binary_from_text() {
    assert!(is_binary(&[0x80, 0xD0]));
    for text in ["", "{}", "[]", "null", " {}"] {
        assert!(!is_binary(text.as_bytes()));
    }
}

#[test]
fn bodies_of_the_rust_client_are_read_and_written() {
    check_both(r#"{"id":0}"#, "80 ED 04 01 82 69 64 00");
    check_both(r#"{"id":"2","pk":"p"}"#, "80 ED 0A 02 82 69 64 81 32 82 70 6B 81 70");
    check_both("null", "80 D0");
    check_both("true", "80 D2");
    check_both("false", "80 D1");
    check_both("31", "80 1F");
    check_both("32", "80 CB 20 00 00 00 00 00 00 00");
    check_both("-1", "80 CB FF FF FF FF FF FF FF FF");
    check_both("18446744073709551615", "80 C7 FF FF FF FF FF FF FF FF");
    check_both("3.5", "80 CC 00 00 00 00 00 00 0C 40");
    check_both("4.865456050821262e-23", "80 CC B0 17 A8 B6 ED 68 4D 3B");
    check_both("-0.0", "80 CC 00 00 00 00 00 00 00 80");
    check_both(r#""""#, "80 80");
    check_both(r#"["a",[]]"#, "80 E5 05 02 81 61 E5 00 00");
    check_both("{}", "80 ED 00 00");
    check_both(r#""é\n\"\\\u0001""#, "80 86 C3 A9 0A 22 5C 01");
}

#[test]
fn lengths_grow_with_what_they_measure() {
    for (count, prefix) in
        [(63, "80 BF"), (64, "80 C0 40"), (300, "80 C1 2C 01"), (70_000, "80 C2 70 11 01 00")]
    {
        let text = format!("\"{}\"", "a".repeat(count));
        let binary = from_text(text.as_bytes()).expect("JSON");
        assert!(binary.starts_with(&bytes(prefix)), "{count}");
        assert_eq!(to_text(&binary).expect("binary"), text.as_bytes());
    }
    for (count, prefix) in
        [(255, "80 E5 FF FF"), (256, "80 E6 00 01 00 01"), (70_000, "80 E7 70 11 01 00 70 11 01 00")]
    {
        let text = format!("[{}]", vec!["1"; count].join(","));
        let binary = from_text(text.as_bytes()).expect("JSON");
        assert!(binary.starts_with(&bytes(prefix)), "{count}");
        assert_eq!(to_text(&binary).expect("binary"), text.as_bytes());
    }
}

#[test]
fn every_width_of_number_is_read() {
    check("80 C8 C8", "200");
    check("80 C9 18 FC", "-1000");
    check("80 CA 70 11 01 00", "70000");
    check("80 CB 00 0E FA D5 FE FF FF FF", "-5000000000");
    check("80 C7 FE FF FF FF FF FF FF FF", "18446744073709551614");
    check("80 D7 FF", "255");
    check("80 D8 FB", "-5");
    check("80 D9 18 FC", "-1000");
    check("80 DA 90 EE FE FF", "-70000");
    check("80 DB 00 0E FA D5 FE FF FF FF", "-5000000000");
    check("80 DC FE FF FF FF", "4294967294");
    check("80 CD 00 00 C0 3F", "1.5");
    check("80 CE 00 00 00 00 00 00 02 C0", "-2.25");
    check("80 CF 00 3C", "1");
    check("80 CC 00 00 00 00 00 00 F0 3F", "1");
}

#[test]
fn well_known_strings_are_one_byte() {
    check("80 2C", r#""id""#);
    check("80 20", r#""$s""#);
    check("80 3B", r#""type""#);
    check("80 3F", r#""_id""#);
    check("80 ED 04 02 2C 00 3B 01", r#"{"id":0,"type":1}"#);
    check("80 E9 2C D2", r#"{"id":true}"#);
}

#[test]
fn guids_are_written_in_three_ways() {
    let packed = "DE E7 83 AA 70 E4 A4 47 AB 0B A2 F4 14 70 B9 AA";
    check(&format!("80 75 {packed}"), r#""ed7e38aa-074e-4a74-bab0-2a4f41079baa""#);
    check(&format!("80 76 {packed}"), r#""ED7E38AA-074E-4A74-BAB0-2A4F41079BAA""#);
    check(&format!("80 77 {packed}"), r#""\"ed7e38aa-074e-4a74-bab0-2a4f41079baa\"""#);
    // An ETag as the service sends it.
    check(
        "80 77 00 00 84 21 00 00 20 00 00 00 A6 F7 9A A8 00 00",
        r#""\"00004812-0000-0200-0000-6a7fa98a0000\"""#,
    );
    check(
        "80 D3 00 01 02 03 04 05 06 07 08 09 0A 0B 0C 0D 0E 0F",
        r#""03020100-0504-0706-0809-0a0b0c0d0e0f""#,
    );
}

#[test]
fn packed_strings_are_unpacked() {
    check("80 78 10 CE AC 3B 09 D0 55 9B 64", r#""eccab3900d55b946""#);
    check("80 79 10 CE AC 3B 09 D0 55 9B 64", r#""ECCAB3900D55B946""#);
    check("80 78 01 0F", r#""f""#);
    check("80 7A 13 13 62 1C C7 14 30 B4 65 2B 04", r#""2015-06-30 23:45:13""#);
    check("80 7A 14 13 81 1C C4 21 2E B4 11 1B F1", r#""2007-03-01T13:00:00Z""#);
    check("80 7B 04 30 10 32", r#""0123""#);
    check(
        "80 7B 21 61 10 10 10 10 10 10 10 10 10 10 10 10 10 10 10 10 F6",
        r#""ababababababababababababababababg""#,
    );
    check(
        "80 7C 24 61 F3 10 48 91 50 21 3A DB 8A BB 89 B2 47 86 AB 24 CE 43 16 C8 78 38 F3",
        r#""thequickbrownfoxjumpedoverthelazydog""#,
    );
    check("80 7D 04 61 40 20 0C", r#""abcd""#);
    check("80 7E 02 C8 34", r#""Hi""#);
    check("80 7F 02 00 C8 34", r#""Hi""#);
}

#[test]
fn base64_is_put_back_as_it_was() {
    check("80 71 01 00 66 6F 6F", r#""Zm9v""#);
    check("80 71 01 01 66 6F", r#""Zm8=""#);
    check("80 71 01 02 41", r#""QQ==""#);
    check("80 71 01 FD 41", r#""QQ""#);
    check("80 71 00 00", r#""""#);
    check("80 72 02 00 00 66 6F 6F 62 61 72", r#""Zm9vYmFy""#);
    check("80 73 01 00 FB FF FE", r#""-__-""#);
    check("80 74 01 00 00 FB FF FE", r#""-__-""#);
    check("80 DD 04 DE AD BE EF", r#""3q2+7w==""#);
    check("80 DE 03 00 01 02 03", r#""AQID""#);
    check("80 DF 04 00 00 00 DE AD BE EF", r#""3q2+7w==""#);
    check("80 DF 00 00 00 00", r#""""#);
}

#[test]
fn strings_may_refer_to_earlier_ones() {
    let hello = "C0 05 68 65 6C 6C 6F";
    for (length, reference) in
        [("09", "C3 03"), ("0A", "C4 03 00"), ("0B", "C5 03 00 00"), ("0C", "C6 03 00 00 00")]
    {
        check(&format!("80 E2 {length} {hello} {reference}"), r#"["hello","hello"]"#);
    }
    // A name may be one too, also to a packed string.
    check("80 EA 08 7E 02 C8 34 00 C3 03 01", r#"{"Hi":0,"Hi":1}"#);
}

#[test]
fn containers_come_in_eight_forms_each() {
    for hex in [
        "80 E2 02 D2 D1",
        "80 E3 02 00 D2 D1",
        "80 E4 02 00 00 00 D2 D1",
        "80 E5 02 02 D2 D1",
        "80 E6 02 00 02 00 D2 D1",
        "80 E7 02 00 00 00 02 00 00 00 D2 D1",
    ] {
        check(hex, "[true,false]");
    }
    for hex in [
        "80 EA 04 2C 00 3B 01",
        "80 EB 04 00 2C 00 3B 01",
        "80 EC 04 00 00 00 2C 00 3B 01",
        "80 ED 04 02 2C 00 3B 01",
        "80 EE 04 00 02 00 2C 00 3B 01",
        "80 EF 04 00 00 00 02 00 00 00 2C 00 3B 01",
    ] {
        check(hex, r#"{"id":0,"type":1}"#);
    }
    check("80 E0", "[]");
    check("80 E8", "{}");
    check("80 E1 D2", "[true]");
    check("80 E2 05 E1 00 E9 2C 01", r#"[[0],{"id":1}]"#);
}

#[test]
fn numbers_of_one_type_need_no_markers() {
    check("80 F0 DA 03 01 00 00 00 02 00 00 00 03 00 00 00", "[1,2,3]");
    check("80 F1 D9 03 00 FF FF 00 00 E8 03", "[-1,0,1000]");
    check("80 F0 D7 03 0A 14 1E", "[10,20,30]");
    check("80 F0 DA 00", "[]");
    check("80 F0 CD 02 00 00 C0 3F 00 00 80 BE", "[1.5,-0.25]");
    check("80 F2 F0 D8 02 02 01 02 03 FC", "[[1,2],[3,-4]]");
    check("80 F3 F1 D7 01 00 02 00 05 06", "[[5],[6]]");
    check("80 F2 F0 D8 00 02", "[[],[]]");
}

#[test]
fn what_is_broken_is_named_and_found() {
    check_bad("", Bad::NotBinary, 0);
    check_bad("7B 7D", Bad::NotBinary, 0);
    check_bad("80", Bad::Truncated, 1);
    check_bad("80 D0 D0", Bad::Trailing, 2);
    check_bad("80 CA 01 02", Bad::Truncated, 2);
    check_bad("80 C0 05 68 69", Bad::Truncated, 3);
    check_bad("80 C2 FF FF FF FF", Bad::Truncated, 6);
    check_bad("80 E2 05 D0", Bad::Truncated, 2);
    check_bad("80 E2 01 CA 00 00 00 00", Bad::Truncated, 4);
    check_bad("80 E5 01 02 D0", Bad::Mismatch, 2);
    check_bad("80 ED 02 02 2C 00", Bad::Mismatch, 2);
    check_bad("80 E9 05 00", Bad::MisplacedMarker(5), 2);
    check_bad("80 E9 D0 00", Bad::MisplacedMarker(0xD0), 2);
    check_bad("80 EA 01 2C", Bad::Truncated, 4);
    check_bad("80 81 FF", Bad::NotText, 1);
    check_bad("80 7C 01 F0 1F", Bad::NotText, 1);
    check_bad("80 71 00 01", Bad::NotText, 1);
    check_bad("80 71 01 80", Bad::NotText, 1);
    check_bad("80 CC 00 00 00 00 00 00 F0 7F", Bad::NotFinite, 1);
    check_bad("80 CD 00 00 C0 7F", Bad::NotFinite, 1);
    check_bad("80 CF 00 7C", Bad::NotFinite, 1);
    check_bad("80 40", Bad::UnknownDictionary, 1);
    check_bad("80 67 00", Bad::UnknownDictionary, 1);
    for unknown in [0x68, 0x70, 0xD4, 0xD6, 0xF4, 0xFF] {
        check_bad(&format!("80 {unknown:02X}"), Bad::UnknownMarker(unknown), 1);
    }
    check_bad("80 F0 C8 01 01", Bad::MisplacedMarker(0xC8), 1);
    check_bad("80 F2 F1 D8 01 01 01", Bad::MisplacedMarker(0xF1), 1);
    check_bad("80 F0 DB FF", Bad::Truncated, 4);
}

#[test]
fn references_must_point_back_to_strings() {
    for (hex, position) in [
        ("80 C3 01", 1),                   // itself
        ("80 C3 00", 1),                   // the format byte
        ("80 C3 09", 1),                   // nowhere
        ("80 C6 FF FF FF FF", 1),          // far away
        ("80 E2 03 05 C3 03", 4),          // a number
        ("80 E2 03 C3 05 80", 3),          // a string that comes later
        ("80 E2 06 80 C3 03 C3 04 00", 6), // another reference
    ] {
        check_bad(hex, Bad::BadReference, position);
    }
}

#[test]
fn nesting_is_limited_in_both_directions() {
    let nested = |depth: usize| [&[0x80][..], &vec![0xE1; depth], &[0xD0]].concat();
    assert!(to_text(&nested(NESTING_MAX)).is_ok());
    assert_eq!(to_text(&nested(NESTING_MAX + 1)).map_err(|bad| bad.kind), Err(Bad::TooDeep));
    assert_eq!(to_text(&nested(1_000_000)).map_err(|bad| bad.kind), Err(Bad::TooDeep));
    let text = |depth: usize| format!("{}{}", "[".repeat(depth), "]".repeat(depth));
    assert!(from_text(text(NESTING_MAX).as_bytes()).is_ok());
    assert!(from_text(text(NESTING_MAX + 1).as_bytes()).is_err());
    assert!(from_text(text(1_000_000).as_bytes()).is_err());
}

#[test]
fn few_bytes_cannot_become_endless_text() {
    // One long string, and a great many references to it.
    let long = 60_000;
    let mut body = vec![0x80, 0xE4, 0, 0, 0, 0, 0xC1];
    body.extend_from_slice(&(long as u16).to_le_bytes());
    body.extend(std::iter::repeat_n(b'a', long));
    body.extend([0xC3, 0x06].repeat(50_000));
    let length = (body.len() - 6) as u32;
    body[2..6].copy_from_slice(&length.to_le_bytes());
    assert_eq!(to_text(&body).map_err(|bad| bad.kind), Err(Bad::TooLong));
    // Many empty arrays for six bytes: much for so few, and little all the same.
    let empty = bytes("80 F3 F1 D8 00 00 FF FF");
    assert!(to_text(&empty).is_ok_and(|text| text.len() < 256 * 1024));
}

#[test]
fn text_that_is_not_json_is_not_encoded() {
    for text in ["", "{", "[1,]", "nul", "1 2", "\"\\ud800\"", "{\"a\"}", "1e999"] {
        assert!(from_text(text.as_bytes()).is_err(), "{text}");
    }
}

fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        (-40i64..40).prop_map(Value::from),
        any::<f64>().prop_filter("JSON has no others", |value| value.is_finite()).prop_map(Value::from),
        any::<String>().prop_map(Value::from),
        "[a-z]{0,90}".prop_map(Value::from),
    ];
    leaf.prop_recursive(6, 200, 12, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..12).prop_map(Value::from),
            prop::collection::vec((any::<String>(), inner), 0..12)
                .prop_map(|members| Value::Object(members.into_iter().collect())),
        ]
    })
}

/// Equal as numbers: `1.0` comes back as `1`.
fn same(left: &Value, right: &Value) -> bool {
    match (left, right) {
        (Value::Number(left), Value::Number(right)) => {
            left == right || left.as_f64().map(f64::to_bits) == right.as_f64().map(f64::to_bits)
        }
        (Value::Array(left), Value::Array(right)) => {
            left.len() == right.len() && left.iter().zip(right).all(|(left, right)| same(left, right))
        }
        (Value::Object(left), Value::Object(right)) => {
            left.len() == right.len()
                && left.iter().zip(right).all(|(left, right)| left.0 == right.0 && same(left.1, right.1))
        }
        _ => left == right,
    }
}

proptest! {
    #[test]
    fn any_value_survives_both_ways(value in any_json()) {
        let text = serde_json::to_string(&value).unwrap();
        let binary = from_text(text.as_bytes()).unwrap();
        let back = to_text(&binary).unwrap();
        let read: Value = serde_json::from_slice(&back).unwrap();
        prop_assert!(same(&read, &value), "{} became {}", value, read);
        prop_assert_eq!(from_text(&back).unwrap().len() <= binary.len(), true);
    }

    #[test]
    fn any_bytes_decode_or_fail_without_panic(body in prop::collection::vec(any::<u8>(), 0..300)) {
        let body = [&[0x80], &body[..]].concat();
        if let Ok(text) = to_text(&body) {
            prop_assert!(serde_json::from_slice::<Value>(&text).is_ok() || text.len() > 100, "{}", String::from_utf8_lossy(&text));
            prop_assert!(std::str::from_utf8(&text).is_ok());
        }
    }

    /// Random bytes seldom get past the first marker; bytes that resemble containers get deeper.
    #[test]
    fn plausible_bytes_decode_or_fail_without_panic(body in prop::collection::vec(prop_oneof![Just(0x80u8), 0x00..0x08u8, 0x20..0x24u8, 0x71..0x90u8, 0xC0..0xD4u8, 0xD7..0xF4u8, any::<u8>()], 0..120)) {
        let body = [&[0x80], &body[..]].concat();
        if let Ok(text) = to_text(&body) {
            prop_assert!(std::str::from_utf8(&text).is_ok());
            prop_assert!(serde_json::from_slice::<serde::de::IgnoredAny>(&text).is_ok(), "{}", String::from_utf8_lossy(&text));
        }
    }

    /// One wrong byte in a good body is found or harmless.
    #[test]
    fn a_flipped_byte_never_panics(value in any_json(), place in any::<prop::sample::Index>(), byte: u8) {
        let mut body = from_text(value.to_string().as_bytes()).unwrap();
        let place = place.index(body.len());
        body[place] = byte;
        let _ = to_text(&body);
        body.truncate(place);
        prop_assert!(to_text(&body).is_err() || place > 1);
    }
}

#[test]
fn integers_beyond_64_bits_become_doubles() {
    let binary = from_text(b"123456789012345678901234567890").expect("JSON");
    let read: Value = serde_json::from_slice(&to_text(&binary).expect("binary")).expect("JSON");
    assert_eq!(read, json!(1.2345678901234568e29));
}
