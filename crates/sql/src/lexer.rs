//! The lexer: query text to tokens.
//!
//! Input: the query text. Output: tokens with their spans, ended by [`Token::End`], or the first lexical
//! error. Cost: linear in the text, which is limited to [`QUERY_TEXT_BYTES_MAX`] bytes.

use smol_str::SmolStr;

use crate::error::{SqlError, code};
use crate::token::{Span, Symbol, Token};
use crate::value::Number;

/// The longest query that the service accepts, in bytes.
pub const QUERY_TEXT_BYTES_MAX: usize = 512 * 1024;

/// A token and its span in the query text.
#[derive(Clone, Debug)]
pub(crate) struct SpannedToken {
    pub(crate) token: Token,
    pub(crate) span: Span,
}

/// Splits `text` into tokens.
pub(crate) fn tokenize(text: &str) -> Result<Vec<SpannedToken>, SqlError> {
    if text.len() > QUERY_TEXT_BYTES_MAX {
        let message = format!(
            "the query text is {} bytes long; at most {QUERY_TEXT_BYTES_MAX} are allowed",
            text.len()
        );
        return Err(SqlError::new(code::SYNTAX, Span { start: 0, end: text.len() }, message));
    }
    let mut lexer = Lexer { text, at: 0 };
    let mut tokens = Vec::with_capacity(text.len() / 4 + 1);
    loop {
        lexer.skip_blanks_and_comments()?;
        let start = lexer.at;
        let token = lexer.token()?;
        let last = token.is_end();
        tokens.push(SpannedToken { token, span: Span { start, end: lexer.at } });
        if last {
            return Ok(tokens);
        }
    }
}

struct Lexer<'a> {
    text: &'a str,
    at: usize,
}

impl Lexer<'_> {
    fn rest(&self) -> &str {
        &self.text[self.at..]
    }

    fn byte(&self, ahead: usize) -> Option<u8> {
        self.text.as_bytes().get(self.at + ahead).copied()
    }

    fn error(&self, start: usize, message: impl Into<String>) -> SqlError {
        SqlError::new(code::SYNTAX, Span { start, end: self.at.max(start + 1).min(self.text.len()) }, message)
    }

    fn skip_blanks_and_comments(&mut self) -> Result<(), SqlError> {
        loop {
            let rest = self.rest();
            let blanks = rest.len() - rest.trim_start_matches(is_blank).len();
            self.at += blanks;
            let rest = self.rest();
            if rest.starts_with("--") {
                self.at += rest.find(['\n', '\r']).unwrap_or(rest.len());
            } else if let Some(comment) = rest.strip_prefix("/*") {
                let Some(end) = comment.find("*/") else {
                    let message =
                        "Syntax error, the comment that starts here is never closed. Expected '*/'.";
                    let start = self.at;
                    self.at = self.text.len();
                    return Err(self.error(start, message));
                };
                self.at += end + 4;
            } else {
                return Ok(());
            }
        }
    }

    fn token(&mut self) -> Result<Token, SqlError> {
        let Some(first) = self.rest().chars().next() else { return Ok(Token::End) };
        match first {
            '"' | '\'' => self.string(first),
            '0'..='9' => self.number(),
            '.' if self.byte(1).is_some_and(|next| next.is_ascii_digit()) && !self.follows_a_value() => {
                self.number()
            }
            '@' => {
                self.at += 1;
                let start = self.at;
                match self.word() {
                    "" => {
                        Err(self.error(start - 1, "Syntax error, '@' must be followed by a parameter name."))
                    }
                    name => Ok(Token::Parameter(SmolStr::new(name))),
                }
            }
            _ if starts_word(first) => Ok(Token::Word(SmolStr::new(self.word()))),
            _ => {
                let rest = self.rest();
                match Symbol::LONGEST_FIRST.iter().find(|symbol| rest.starts_with(symbol.text())) {
                    Some(symbol) => {
                        self.at += symbol.text().len();
                        Ok(Token::Symbol(*symbol))
                    }
                    None => {
                        let start = self.at;
                        self.at += first.len_utf8();
                        let message =
                            format!("Syntax error, incorrect syntax near '{}'.", first.escape_default());
                        Err(self.error(start, message))
                    }
                }
            }
        }
    }

    /// Whether the previous token ends a value, so that a dot starts a path and not a fraction.
    fn follows_a_value(&self) -> bool {
        let before = self.text[..self.at].chars().next_back();
        before.is_some_and(|c| continues_word(c) || matches!(c, ']' | ')' | '}' | '"' | '\''))
    }

    fn word(&mut self) -> &str {
        let start = self.at;
        let rest = self.rest();
        self.at += rest.find(|c| !continues_word(c)).unwrap_or(rest.len());
        &self.text[start..self.at]
    }

    fn digits(&mut self) {
        while self.byte(0).is_some_and(|byte| byte.is_ascii_digit()) {
            self.at += 1;
        }
    }

    fn number(&mut self) -> Result<Token, SqlError> {
        let start = self.at;
        if self.byte(0) == Some(b'0') && matches!(self.byte(1), Some(b'x' | b'X')) {
            self.at += 2;
            let digits = self.word();
            return match u64::from_str_radix(digits, 16) {
                // `from_str_radix` also accepts a sign, which is not part of a word.
                Ok(value) => Ok(Token::Number(i64::try_from(value).map_or(Number::UInt(value), Number::Int))),
                Err(_) => Err(self.error(start, "Syntax error, '0x' needs 1 to 16 hexadecimal digits.")),
            };
        }
        self.digits();
        if self.byte(0) == Some(b'.') && self.byte(1).is_some_and(|next| next.is_ascii_digit()) {
            self.at += 1;
            self.digits();
        } else if self.byte(0) == Some(b'.') && !self.rest()[1..].starts_with(starts_word) {
            self.at += 1;
        }
        if matches!(self.byte(0), Some(b'e' | b'E')) {
            let sign = usize::from(matches!(self.byte(1), Some(b'+' | b'-')));
            if self.byte(1 + sign).is_some_and(|next| next.is_ascii_digit()) {
                self.at += 1 + sign;
                self.digits();
            }
        }
        if self.rest().starts_with(continues_word) {
            self.word();
            let near = &self.text[start..self.at];
            return Err(self.error(start, format!("Syntax error, '{near}' is neither a number nor a name.")));
        }
        let digits = &self.text[start..self.at];
        let number = match (digits.parse::<i64>(), digits.parse::<u64>()) {
            (Ok(value), _) => Number::Int(value),
            (_, Ok(value)) => Number::UInt(value),
            // Too many digits for an integer, a fraction or an exponent: a double, possibly infinite.
            _ => Number::from_f64(digits.parse().unwrap_or(f64::INFINITY)),
        };
        if !number.is_finite() {
            return Err(self.error(start, format!("Syntax error, the number '{digits}' is out of range.")));
        }
        Ok(Token::Number(number))
    }

    fn string(&mut self, quote: char) -> Result<Token, SqlError> {
        let start = self.at;
        self.at += 1;
        let mut unescaped = String::new();
        loop {
            let rest = self.rest();
            let Some(plain) = rest.find([quote, '\\']) else {
                self.at = self.text.len();
                let message =
                    format!("Syntax error, the string that starts here is never closed. Expected {quote}.");
                return Err(self.error(start, message));
            };
            unescaped.push_str(&rest[..plain]);
            self.at += plain + 1;
            if self.text.as_bytes()[self.at - 1] != b'\\' {
                return Ok(Token::String(SmolStr::new(unescaped)));
            }
            self.escape(&mut unescaped)?;
        }
    }

    /// Reads the escape sequence after a backslash.
    fn escape(&mut self, out: &mut String) -> Result<(), SqlError> {
        let start = self.at - 1;
        let Some(escaped) = self.rest().chars().next() else {
            return Err(self.error(start, "Syntax error, the query ends inside a string."));
        };
        self.at += escaped.len_utf8();
        out.push(match escaped {
            '\'' | '"' | '\\' | '/' => escaped,
            'b' => '\u{8}',
            'f' => '\u{c}',
            'n' => '\n',
            'r' => '\r',
            't' => '\t',
            'u' => {
                let Some(unit) = self.code_unit() else {
                    return Err(self.error(start, "Syntax error, '\\u' needs four hexadecimal digits."));
                };
                self.pair_with_next(unit)
            }
            _ => {
                let message = format!(
                    "Syntax error, '\\{}' is no escape sequence. Expected one of \\' \\\" \\\\ \\/ \\b \\f \\n \\r \\t \\uXXXX.",
                    escaped.escape_default()
                );
                return Err(self.error(start, message));
            }
        });
        Ok(())
    }

    fn code_unit(&mut self) -> Option<u16> {
        let digits = self.rest().get(..4)?;
        let unit = digits.bytes().all(|byte| byte.is_ascii_hexdigit()).then_some(digits)?;
        let unit = u16::from_str_radix(unit, 16).ok()?;
        self.at += 4;
        Some(unit)
    }

    /// Joins a surrogate pair written as two escapes; half of a pair becomes the replacement character.
    fn pair_with_next(&mut self, unit: u16) -> char {
        let before = self.at;
        if (0xD800..0xDC00).contains(&unit) && self.rest().starts_with("\\u") {
            self.at += 2;
            if let Some(second) = self.code_unit()
                && let Some(Ok(joined)) = char::decode_utf16([unit, second]).next()
            {
                return joined;
            }
            self.at = before;
        }
        char::from_u32(u32::from(unit)).unwrap_or(char::REPLACEMENT_CHARACTER)
    }
}

fn is_blank(c: char) -> bool {
    c.is_whitespace() || c == '\u{FEFF}'
}

fn starts_word(c: char) -> bool {
    c == '_' || c == '$' || c.is_alphabetic()
}

fn continues_word(c: char) -> bool {
    starts_word(c) || c.is_alphanumeric()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tokens(text: &str) -> Vec<Token> {
        tokenize(text).unwrap().into_iter().map(|spanned| spanned.token).collect()
    }

    #[track_caller]
    fn check(text: &str, expected: &[Token]) {
        let mut found = tokens(text);
        assert!(found.pop().is_some_and(|token| token.is_end()));
        assert_eq!(format!("{found:?}"), format!("{expected:?}"), "text: {text}");
    }

    fn word(text: &str) -> Token {
        Token::Word(SmolStr::new(text))
    }

    fn number(value: f64) -> Token {
        Token::Number(Number::from_f64(value))
    }

    #[test]
    fn comments_and_blanks_separate_tokens() {
        check("a--b\nc/* d * / */e\u{FEFF}", &[word("a"), word("c"), word("e")]);
        check("-- only this", &[]);
    }

    #[test]
    fn numbers_in_every_notation() {
        for (text, value) in [
            ("0", 0.0),
            ("12.50", 12.5),
            (".5", 0.5),
            ("5.", 5.0),
            ("1e3", 1000.0),
            ("1E-2", 0.01),
            ("0xFF", 255.0),
            ("1.5e+2", 150.0),
        ] {
            check(text, &[number(value)]);
        }
        check("9223372036854775807", &[Token::Number(Number::Int(i64::MAX))]);
        check("18446744073709551615", &[Token::Number(Number::UInt(u64::MAX))]);
    }

    #[test]
    fn a_dot_after_a_name_is_a_path() {
        check("c.e1", &[word("c"), Token::Symbol(Symbol::Dot), word("e1")]);
    }

    #[test]
    fn strings_in_either_quote_with_every_escape() {
        for (text, expected) in [
            (r#""a'b""#, "a'b"),
            (r#"'a"b'"#, "a\"b"),
            (r#"'\'\"\\\/\b\f\n\r\t\u0041'"#, "'\"\\/\u{8}\u{c}\n\r\tA"),
            (r#""\uD83D\uDE00""#, "😀"),
            (r#""\uD83Dx""#, "\u{FFFD}x"),
            ("''", ""),
        ] {
            check(text, &[Token::String(SmolStr::new(expected))]);
        }
    }

    #[test]
    fn the_longest_symbol_wins() {
        check(
            "a>>>b<>c??d||e",
            &[
                word("a"),
                Token::Symbol(Symbol::ShiftRightUnsigned),
                word("b"),
                Token::Symbol(Symbol::NotEqualAngles),
                word("c"),
                Token::Symbol(Symbol::Coalesce),
                word("d"),
                Token::Symbol(Symbol::Concat),
                word("e"),
            ],
        );
    }

    #[test]
    fn lexical_errors_name_the_position() {
        for (text, start) in [
            ("a /* b", 2),
            ("'abc", 0),
            ("a # b", 2),
            ("'a\\x'", 2),
            ("'\\u12'", 1),
            ("@ x", 0),
            ("0xZZ", 0),
            ("1e999", 0),
            ("12abc", 0),
        ] {
            assert_eq!(tokenize(text).unwrap_err().start, start, "text: {text}");
        }
        assert!(tokenize(&" ".repeat(QUERY_TEXT_BYTES_MAX + 1)).is_err());
    }
}
