//! Short text without an allocation.

/// Bytes that are kept at all.
const KEPT: usize = 1_024;

/// Text that is usually no longer than so many bytes, 255 at the most. What is longer than a kilobyte is cut.
#[derive(Clone)]
pub(crate) enum Text<const INLINE: usize> {
    /// In place.
    Short { length: u8, bytes: [u8; INLINE] },
    /// On the heap.
    Long(Box<str>),
}

impl<const INLINE: usize> Text<INLINE> {
    pub(crate) fn new(text: &str) -> Text<INLINE> {
        match u8::try_from(text.len()) {
            Ok(length) if text.len() <= INLINE => {
                let mut bytes = [0; INLINE];
                bytes[..text.len()].copy_from_slice(text.as_bytes());
                Text::Short { length, bytes }
            }
            _ => {
                let cut = (0..=KEPT.min(text.len())).rev().find(|&at| text.is_char_boundary(at));
                Text::Long(text[..cut.unwrap_or(0)].into())
            }
        }
    }

    pub(crate) fn as_str(&self) -> &str {
        match self {
            Text::Short { length, bytes } => {
                std::str::from_utf8(&bytes[..usize::from(*length)]).expect("copied from text, whole")
            }
            Text::Long(text) => text,
        }
    }
}

impl<const INLINE: usize> std::fmt::Debug for Text<INLINE> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.as_str().fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const INLINE: usize = 94;
    type Text = super::Text<INLINE>;

    #[test]
    fn text_comes_back_as_it_was_up_to_a_kilobyte() {
        for length in [0, 1, INLINE, INLINE + 1, KEPT] {
            let text = "x".repeat(length);
            assert_eq!(Text::new(&text).as_str(), text);
        }
        assert_eq!(Text::new(&"é".repeat(KEPT)).as_str(), "é".repeat(KEPT / 2));
        assert_eq!(Text::new(&format!("x{}", "é".repeat(KEPT))).as_str().len(), KEPT - 1);
    }
}
