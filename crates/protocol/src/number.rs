//! Writing doubles as JSON text.

use std::fmt::Write;

/// Writes a finite double: integers without a fraction up to 2^53, everything else in the shortest form
/// that reads back as the same bits. `fmt` and not `ryu`, which would write `1.0` for integers.
pub(crate) fn write_double(value: f64, out: &mut impl Write) {
    debug_assert!(value.is_finite(), "JSON has no other numbers");
    let exact_max = 9_007_199_254_740_992.0;
    let is_negative_zero = value == 0.0 && value.is_sign_negative();
    let written = if value.fract() == 0.0 && value.abs() <= exact_max && !is_negative_zero {
        write!(out, "{}", value as i64)
    } else {
        write!(out, "{value:?}")
    };
    written.expect("writing to memory cannot fail");
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn text(value: f64) -> String {
        let mut out = String::new();
        write_double(value, &mut out);
        out
    }

    #[test]
    fn whole_numbers_have_no_fraction() {
        for (value, expected) in [
            (0.0, "0"),
            (-0.0, "-0.0"),
            (1.0, "1"),
            (-5.0, "-5"),
            (1.5, "1.5"),
            (9007199254740992.0, "9007199254740992"),
            (1e300, "1e300"),
            (1e-7, "1e-7"),
        ] {
            assert_eq!(text(value), expected);
        }
    }

    proptest! {
        #[test]
        fn a_double_survives_its_text(value in any::<f64>().prop_filter("finite", |value| value.is_finite())) {
            let written = text(value);
            prop_assert_eq!(written.parse::<f64>().unwrap().to_bits(), value.to_bits());
            let json: f64 = serde_json::from_str(&written).unwrap();
            prop_assert_eq!(json.to_bits(), value.to_bits());
        }
    }
}
