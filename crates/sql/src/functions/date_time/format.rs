//! DATETIMEFORMAT: a date written by a pattern.

use smol_str::{SmolStr, SmolStrBuilder, format_smolstr};

use super::calendar::DateTime;

/// Writes `date_time` by `pattern`; `None` for a pattern with an unknown letter.
///
/// Runs of `y`, `M`, `d`, `H`, `m` and `s` are numbers: one letter without leading zeros, two with. `f`
/// writes as many digits of the fraction as there are letters, `F` omits trailing zeros. A backslash makes
/// the next character literal; all other characters are literal.
pub(super) fn format(date_time: DateTime, pattern: &str) -> Option<SmolStr> {
    let fields = date_time.fields();
    let mut text = SmolStrBuilder::new();
    let mut rest = pattern.chars();
    while let Some(letter) = rest.next() {
        if letter == '\\' {
            text.push(rest.next()?);
            continue;
        }
        let number = match letter {
            'y' => fields.year,
            'M' => fields.month,
            'd' => fields.day,
            'H' => fields.hour,
            'm' => fields.minute,
            's' => fields.second,
            'f' | 'F' => fields.fraction,
            literal => {
                text.push(literal);
                continue;
            }
        };
        let mut run = 1;
        while rest.as_str().starts_with(letter) {
            rest.next();
            run += 1;
        }
        let digits = match (letter, run) {
            ('f' | 'F', 1..=7) => {
                let digits = format_smolstr!("{number:07}");
                let digits = &digits[..run];
                SmolStr::new(if letter == 'F' { digits.trim_end_matches('0') } else { digits })
            }
            ('y', 4) => format_smolstr!("{number:04}"),
            ('y', 2) => format_smolstr!("{:02}", number % 100),
            ('M' | 'd' | 'H' | 'm' | 's', 1) => format_smolstr!("{number}"),
            ('M' | 'd' | 'H' | 'm' | 's', 2) => format_smolstr!("{number:02}"),
            _ => return None,
        };
        text.push_str(&digits);
    }
    Some(text.finish())
}
