//! The 128-bit hash by which the service and the .NET SDK tell values apart.
//!
//! A client that continues a query with ORDER BY names an array or an object by this hash alone, so arrays and
//! objects sort by it. Equal values have equal hashes: the order of properties does not count, and zero has no
//! sign.

use protocol::murmur_hash::murmur_hash_128;

use super::{Number, Object, Value};

/// The seeds of the service, as the upper and the lower half.
const ROOT: u128 = 0x8846_e002_84c4_cf1f_bfc2_359e_afc0_e2b7;
const NULL: u128 = 0x156c_918b_f564_ee48_1380_f68b_b3b0_cfe4;
const FALSE: u128 = 0xe9fc_8a4c_531c_d0dd_c1be_517f_e893_b40c;
const TRUE: u128 = 0x7884_8836_5c8a_985d_f86d_4abf_9a41_2e74;
const NUMBER: u128 = 0x790b_e1ea_bd7b_9481_2400_e8b8_94ce_9c2a;
const STRING: u128 = 0x0948_1be8_ef4b_56dd_61f5_3f0a_4420_4cfb;
const ARRAY: u128 = 0xa014_512c_858e_b115_fa57_3b01_4c4d_c18e;
const OBJECT: u128 = 0x3dcf_1872_4582_2449_77b2_85ac_511a_ef30;
const ELEMENT: u128 = 0x5b1c_c317_8bd9_c593_fe05_7204_216d_b999;
const PROPERTY_NAME: u128 = 0x7c8b_e2eb_a72e_4634_c915_dde0_5849_2a8a;

/// The distinct hash of a value.
///
/// Cost: linear in the value; allocates nothing.
pub fn distinct_hash(value: &Value) -> u128 {
    hash_value(value, ROOT)
}

fn hash_value(value: &Value, seed: u128) -> u128 {
    match value {
        Value::Undefined => seed,
        Value::Null => hash_seed(NULL, seed),
        Value::Bool(false) => hash_seed(FALSE, seed),
        Value::Bool(true) => hash_seed(TRUE, seed),
        Value::Number(number) => murmur_hash_128(&number_bytes(*number), hash_seed(NUMBER, seed)),
        Value::String(text) => murmur_hash_128(text.as_bytes(), hash_seed(STRING, seed)),
        Value::Array(elements) => {
            elements.iter().zip(0..).fold(hash_seed(ARRAY, seed), |hash, (element, index)| {
                hash_seed(hash_value(element, ELEMENT.wrapping_add(index)), hash)
            })
        }
        Value::Object(members) => hash_object(members, seed),
    }
}

fn hash_object(members: &Object, seed: u128) -> u128 {
    let name_seed = hash_seed(STRING, PROPERTY_NAME);
    // An exclusive or does not depend on the order of the properties.
    let properties = members
        .iter()
        .fold(0, |hash, (name, value)| hash ^ hash_value(value, murmur_hash_128(name.as_bytes(), name_seed)));
    match (hash_seed(OBJECT, seed), properties) {
        (empty, 0) => empty,
        (object, properties) => hash_seed(properties, object),
    }
}

/// The hash of a 128-bit number, such as a seed or another hash.
fn hash_seed(number: u128, seed: u128) -> u128 {
    murmur_hash_128(&number.to_le_bytes(), seed)
}

/// A number as the service hashes it: a double, and the bits of an integer that the double has no room for.
fn number_bytes(number: Number) -> [u8; 10] {
    let (double, more_bits) = match number {
        Number::Int(integer) => extended(integer),
        Number::UInt(_) | Number::Float(_) => (number.as_f64(), 0),
    };
    let mut bytes = [0; 10];
    // Adding zero gives both zeros the same bits.
    bytes[..8].copy_from_slice(&(double + 0.0).to_le_bytes());
    bytes[8..].copy_from_slice(&more_bits.to_le_bytes());
    bytes
}

/// The bits of a double's fraction.
const FRACTION_BITS: u32 = 52;

/// An integer as a double that is rounded towards zero, and the ten bits after its fraction, left-aligned in 16.
fn extended(integer: i64) -> (f64, u16) {
    let magnitude = integer.unsigned_abs();
    // Zero and the smallest integer are powers of two or nothing: exact in any case.
    let highest = u64::BITS - 1 - (magnitude | 1).leading_zeros();
    if highest <= FRACTION_BITS || highest - magnitude.trailing_zeros() <= FRACTION_BITS {
        return (integer as f64, 0);
    }
    let fraction = (magnitude << (62 - highest)) & 0x3FFF_FFFF_FFFF_FFFF;
    let exponent = u64::from(highest + 1023) << FRACTION_BITS;
    let sign = u64::from(integer < 0) << 63;
    (f64::from_bits(sign | exponent | fraction >> 10), ((fraction & 0x3FF) << 6) as u16)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::value::parse;

    fn hash(json: &str) -> u128 {
        distinct_hash(&parse(json.as_bytes()).unwrap())
    }

    #[test]
    fn hashes_equal_those_of_the_dotnet_sdk() {
        let text = "asdf".repeat(6);
        let array = format!(r#"[null,false,true,1234,"{text}"]"#);
        let object = format!(
            r#"{{"null":null,"false":false,"true":true,"cosmosNumber":1234,"cosmosString":"{text}"}}"#
        );
        for (json, expected) in [
            ("null", 0x898E_FBF2_680D_AEA3_9E24_D6AE_6653_417D),
            ("false", 0x6E88_AA42_42F0_17B7_705F_1258_1A61_118F),
            ("true", 0xCD4D_51AB_869F_071F_F019_C3E4_A55C_0125),
            ("1234", 0xA94B_F613_35C9_FBA4_2C28_D7D9_895D_1434),
            (r#""""#, 0xA784_46CF_2870_29A5_85B3_95A1_61A2_A9A1),
            (&format!("\"{text}\""), 0x8F12_4368_401E_0B91_AD58_0CA5_42E0_35DB),
            ("[]", 0x7D54_F729_FF4A_63FF_A2EF_3CA3_5953_8082),
            (&array, 0xA940_7916_DE27_F316_CC5A_8E4E_B9AF_D5E6),
            ("{}", 0x14B8_6A60_AA01_A738_1438_743E_80B9_65D8),
            (&object, 0x3B6A_A9F4_F43A_AEC0_E48E_BE2B_C020_D55C),
        ] {
            assert_eq!(hash(json), expected, "{json}");
        }
    }

    #[test]
    fn equal_values_have_equal_hashes() {
        for (left, right) in [
            (r#"{"a":1,"b":[2,{"c":null}]}"#, r#"{"b":[2.0,{"c":null}],"a":1.0}"#),
            ("[0]", "[-0.0]"),
            ("[1e2]", "[100]"),
        ] {
            assert_eq!(hash(left), hash(right), "{left} {right}");
        }
        assert_ne!(hash("[1,2]"), hash("[2,1]"));
        assert_ne!(hash("[9007199254740993]"), hash("[9007199254740992]"));
    }

    #[test]
    fn integers_keep_the_bits_that_a_double_has_no_room_for() {
        for (integer, double, more_bits) in [
            (0, 0.0_f64.to_bits(), 0),
            (-1234, (-1234.0_f64).to_bits(), 0),
            (i64::MIN, (i64::MIN as f64).to_bits(), 0),
            (9_007_199_254_740_993, 0x4340_0000_0000_0000, 0x8000),
            (-9_007_199_254_740_993, 0xC340_0000_0000_0000, 0x8000),
            (i64::MAX, 0x43DF_FFFF_FFFF_FFFF, 0xFFC0),
        ] {
            let (found, bits) = extended(integer);
            assert_eq!((found.to_bits(), bits), (double, more_bits), "{integer}");
        }
    }
}
