//! Where the text leaves the grammar, what was found, and what would have fit.

use super::Parser;
use crate::error::{SqlError, code};

impl Parser {
    /// An error at the current token that lists everything looked for there.
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

/// `a`, `a or b`, `a, b or c`; nothing for nothing.
fn enumerate(words: &[&str]) -> Option<String> {
    let (last, others) = words.split_last()?;
    Some(if others.is_empty() { (*last).to_owned() } else { format!("{} or {last}", others.join(", ")) })
}
