//! Tokens and reserved words of SQL.

use std::fmt;

use smol_str::SmolStr;

use crate::value::Number;

/// A span `start..end` of bytes of the query text.
///
/// All spans compare equal, so that two ASTs compare by meaning and not by position.
#[derive(Clone, Copy, Debug, Default)]
pub struct Span {
    /// The first byte of the span.
    pub start: usize,
    /// One past the last byte of the span.
    pub end: usize,
}

impl PartialEq for Span {
    fn eq(&self, _: &Span) -> bool {
        true
    }
}

impl Span {
    /// The span from the start of `self` to the end of `other`.
    pub(crate) fn to(self, other: Span) -> Span {
        Span { start: self.start, end: other.end.max(self.end) }
    }
}

/// A token. Words are not yet divided into keywords and names, which depends on the position.
#[derive(Clone, Debug)]
pub(crate) enum Token {
    /// A keyword or a name.
    Word(SmolStr),
    /// A parameter `@name`; the name is stored without the sign.
    Parameter(SmolStr),
    /// A string literal, unescaped.
    String(SmolStr),
    /// A number literal; never negative.
    Number(Number),
    /// Punctuation or an operator.
    Symbol(Symbol),
    /// The end of the text.
    End,
}

macro_rules! symbols {
    ($($name:ident $text:literal,)*) => {
        /// Punctuation and operator symbols.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub(crate) enum Symbol { $($name,)* }

        impl Symbol {
            /// Every symbol, longest text first, so that the first match is the right one.
            pub(crate) const LONGEST_FIRST: &[Symbol] = &[$(Symbol::$name,)*];

            /// The symbol as SQL text.
            pub(crate) const fn text(self) -> &'static str {
                match self { $(Symbol::$name => $text,)* }
            }

            /// The symbol in quotes, for error messages.
            pub(crate) const fn quoted(self) -> &'static str {
                match self { $(Symbol::$name => concat!("'", $text, "'"),)* }
            }
        }
    };
}

symbols! {
    ShiftRightUnsigned ">>>",
    ShiftLeft "<<",
    ShiftRight ">>",
    LessOrEqual "<=",
    GreaterOrEqual ">=",
    NotEqual "!=",
    NotEqualAngles "<>",
    Coalesce "??",
    Concat "||",
    Less "<",
    Greater ">",
    Equal "=",
    Plus "+",
    Minus "-",
    Star "*",
    Slash "/",
    Percent "%",
    And "&",
    Or "|",
    Xor "^",
    Complement "~",
    Question "?",
    Colon ":",
    Comma ",",
    Dot ".",
    OpenParenthesis "(",
    CloseParenthesis ")",
    OpenBracket "[",
    CloseBracket "]",
    OpenBrace "{",
    CloseBrace "}",
}

impl Token {
    /// Whether the token is this symbol.
    pub(crate) fn is(&self, symbol: Symbol) -> bool {
        matches!(self, Token::Symbol(found) if *found == symbol)
    }

    /// Whether this is the end of the text.
    pub(crate) fn is_end(&self) -> bool {
        matches!(self, Token::End)
    }
}

/// The token as an error message shows it.
impl fmt::Display for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Token::Word(word) => write!(f, "'{word}'"),
            Token::Parameter(name) => write!(f, "'@{name}'"),
            Token::String(text) => write!(f, "the string \"{}\"", shortened(text)),
            Token::Number(number) => write!(f, "'{number}'"),
            Token::Symbol(symbol) => f.write_str(symbol.quoted()),
            Token::End => f.write_str("the end of the query"),
        }
    }
}

/// At most 40 characters of a literal, for error messages.
fn shortened(text: &str) -> String {
    match text.char_indices().nth(40) {
        Some((at, _)) => format!("{}…", &text[..at]),
        None => text.to_owned(),
    }
}

/// Reserved words, which cannot be an alias or a source unless a preceding dot, AS or brace requires a
/// name.
pub(crate) const RESERVED: &[&str] = &[
    "AND",
    "ARRAY",
    "AS",
    "ASC",
    "BETWEEN",
    "BY",
    "DESC",
    "DISTINCT",
    "ESCAPE",
    "EXISTS",
    "FALSE",
    "FROM",
    "GROUP",
    "IN",
    "JOIN",
    "LIKE",
    "LIMIT",
    "NOT",
    "NULL",
    "OFFSET",
    "OR",
    "ORDER",
    "SELECT",
    "TOP",
    "TRUE",
    "UNDEFINED",
    "VALUE",
    "WHERE",
];

/// Whether `word` is one of [`RESERVED`], in any case.
pub(crate) fn is_reserved(word: &str) -> bool {
    RESERVED.iter().any(|reserved| reserved.eq_ignore_ascii_case(word))
}
