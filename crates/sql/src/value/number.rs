//! Numbers: SQL computes with doubles, but integers keep their 64 bits when they are only stored.

use std::fmt;

/// A JSON number. Compare and compute with [`Number::as_f64`]: in SQL all numbers are doubles. The integer
/// forms exist so that stored numbers are written back exactly.
#[derive(Clone, Copy, Debug)]
pub enum Number {
    /// An integer that fits 64 bits with a sign.
    Int(i64),
    /// An integer above `i64::MAX`.
    UInt(u64),
    /// Any other number, including infinities and NaN, which exist only during execution.
    Float(f64),
}

impl Number {
    /// The shortest form: doubles that are exact as `i64` become integers.
    pub fn from_f64(value: f64) -> Number {
        // Beyond 2^53 a double no longer identifies one integer, and -0 has no integer form.
        const EXACT: f64 = 9_007_199_254_740_992.0;
        if value.fract() == 0.0 && value.abs() <= EXACT && !(value == 0.0 && value.is_sign_negative()) {
            Number::Int(value as i64)
        } else {
            Number::Float(value)
        }
    }

    /// The value as a double, as SQL sees it.
    pub fn as_f64(self) -> f64 {
        match self {
            Number::Int(value) => value as f64,
            Number::UInt(value) => value as f64,
            Number::Float(value) => value,
        }
    }

    /// The value if it is a whole number that fits.
    pub fn as_i64(self) -> Option<i64> {
        match self {
            Number::Int(value) => Some(value),
            Number::UInt(_) => None,
            Number::Float(value) => {
                let fits = value.fract() == 0.0 && value >= i64::MIN as f64 && value < i64::MAX as f64;
                fits.then_some(value as i64)
            }
        }
    }

    /// Whether the number is neither infinite nor NaN, so that JSON can represent it.
    pub fn is_finite(self) -> bool {
        match self {
            Number::Int(_) | Number::UInt(_) => true,
            Number::Float(value) => value.is_finite(),
        }
    }
}

/// The JSON text: integers without a fraction, doubles in their shortest round-trip form.
impl fmt::Display for Number {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Number::Int(value) => write!(f, "{value}"),
            Number::UInt(value) => write!(f, "{value}"),
            Number::Float(value) if value.is_nan() => f.write_str("NaN"),
            Number::Float(value) if value.is_infinite() => {
                f.write_str(if value > 0.0 { "Infinity" } else { "-Infinity" })
            }
            Number::Float(value) => {
                let magnitude = value.abs();
                if magnitude != 0.0 && !(1e-6..1e21).contains(&magnitude) {
                    write!(f, "{value:e}")
                } else {
                    write!(f, "{value}")
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whole_numbers_print_without_a_fraction_and_doubles_in_shortest_form() {
        for (value, text) in [
            (1.0, "1"),
            (-1.5, "-1.5"),
            (0.1, "0.1"),
            (1e21, "1e21"),
            (1e300, "1e300"),
            (1e-7, "1e-7"),
            (100.0, "100"),
            (-0.0, "-0"),
            (123456789012345680000.0, "123456789012345680000"),
        ] {
            assert_eq!(Number::from_f64(value).to_string(), text);
        }
        assert_eq!(Number::Int(i64::MAX).to_string(), "9223372036854775807");
        assert_eq!(Number::UInt(u64::MAX).to_string(), "18446744073709551615");
    }

    #[test]
    fn only_whole_numbers_within_range_are_integers() {
        assert_eq!(Number::Float(3.0).as_i64(), Some(3));
        assert_eq!(Number::Float(3.5).as_i64(), None);
        assert_eq!(Number::Float(9.3e18).as_i64(), None);
        assert_eq!(Number::UInt(u64::MAX).as_i64(), None);
    }
}
