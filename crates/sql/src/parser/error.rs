//! Syntax errors: the position, what was found, and what was expected.

use super::Parser;
use crate::error::{SqlError, code};

impl Parser {
    /// The error at the current token, which lists everything that was expected there.
    pub(super) fn unexpected(&self) -> SqlError {
        let mut message = format!("Syntax error, incorrect syntax near {}.", self.token());
        if let Some(fits) = enumerate(&self.expected) {
            message.push_str(" Expected ");
            message.push_str(&fits);
            message.push('.');
        }
        SqlError::new(code::SYNTAX, self.span(), message)
    }
}

/// Joins alternatives: `a`, `a or b`, `a, b or c`; `None` if there are none.
fn enumerate(words: &[&str]) -> Option<String> {
    let (last, others) = words.split_last()?;
    Some(if others.is_empty() { (*last).to_owned() } else { format!("{} or {last}", others.join(", ")) })
}
