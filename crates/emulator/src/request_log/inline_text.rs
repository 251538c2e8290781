//! Short text without an allocation, for the request log.

/// The longest text; longer ones are truncated.
const TEXT_BYTES_MAX: usize = 1_024;

/// Text that is stored inline up to `INLINE` bytes (at most 255), and truncated after a kilobyte.
#[derive(Clone)]
pub(crate) enum InlineText<const INLINE: usize> {
    /// The text is stored inline.
    Short { length: u8, bytes: [u8; INLINE] },
    /// The text is stored on the heap.
    Long(Box<str>),
}

impl<const INLINE: usize> InlineText<INLINE> {
    pub(crate) fn new(text: &str) -> InlineText<INLINE> {
        match u8::try_from(text.len()) {
            Ok(length) if text.len() <= INLINE => {
                let mut bytes = [0; INLINE];
                bytes[..text.len()].copy_from_slice(text.as_bytes());
                InlineText::Short { length, bytes }
            }
            _ => {
                let cut = (0..=TEXT_BYTES_MAX.min(text.len())).rev().find(|&at| text.is_char_boundary(at));
                InlineText::Long(text[..cut.unwrap_or(0)].into())
            }
        }
    }

    pub(crate) fn as_str(&self) -> &str {
        match self {
            InlineText::Short { length, bytes } => {
                std::str::from_utf8(&bytes[..usize::from(*length)]).expect("copied from text, whole")
            }
            InlineText::Long(text) => text,
        }
    }
}

impl<const INLINE: usize> std::fmt::Debug for InlineText<INLINE> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.as_str().fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const INLINE: usize = 94;
    type Text = super::InlineText<INLINE>;

    #[test]
    fn text_is_unchanged_up_to_a_kilobyte() {
        for length in [0, 1, INLINE, INLINE + 1, TEXT_BYTES_MAX] {
            let text = "x".repeat(length);
            assert_eq!(Text::new(&text).as_str(), text);
        }
        assert_eq!(Text::new(&"é".repeat(TEXT_BYTES_MAX)).as_str(), "é".repeat(TEXT_BYTES_MAX / 2));
        assert_eq!(Text::new(&format!("x{}", "é".repeat(TEXT_BYTES_MAX))).as_str().len(), TEXT_BYTES_MAX - 1);
    }
}
