//! One page of rows, written directly into the response body.

use sql::Value;
use sql::value::write_json;

use crate::items::Item;

/// Bytes after which a page takes no more rows.
pub(crate) const PAGE_BYTES_MAX: usize = 4 * 1024 * 1024;

/// Rows for which capacity is reserved at once.
const ROWS_RESERVED: usize = 32;

/// A response body under construction: `{"_rid":…,"Documents":[…],"_count":n}`.
#[derive(Debug)]
pub struct PageBody {
    text: Vec<u8>,
    rows_at: usize,
    count: usize,
    rows_max: usize,
    /// Whether items are written without their system properties.
    without_system_properties: bool,
}

impl PageBody {
    /// An empty page of at most `rows_max` rows of `container`, whose plural name is `Documents`.
    pub fn new(container_rid: &str, rows_max: usize) -> PageBody {
        let mut text = Vec::with_capacity(1024);
        text.extend_from_slice(b"{\"_rid\":\"");
        text.extend_from_slice(container_rid.as_bytes());
        text.extend_from_slice(b"\",\"Documents\":[");
        PageBody { rows_at: text.len(), text, count: 0, rows_max, without_system_properties: false }
    }

    /// Whether the next row has to wait for the next page. The first one never does.
    pub(crate) fn is_full(&self) -> bool {
        self.count >= self.rows_max || (self.count > 0 && self.bytes() >= PAGE_BYTES_MAX)
    }

    /// The number of rows it takes at most.
    pub(crate) fn rows_max(&self) -> usize {
        self.rows_max
    }

    /// The number of rows so far.
    pub fn count(&self) -> usize {
        self.count
    }

    /// Bytes of the rows so far.
    pub fn bytes(&self) -> usize {
        self.text.len() - self.rows_at
    }

    /// Writes items without their system properties.
    #[must_use]
    pub fn without_system_properties(self) -> PageBody {
        PageBody { without_system_properties: true, ..self }
    }

    /// Adds an item as it is stored.
    pub(crate) fn add_item(&mut self, item: &Item) {
        match self.without_system_properties {
            true => self.add_text(&item.user_body()),
            false => self.add_text(item.body_bytes()),
        }
    }

    /// Adds a row that is JSON already.
    pub(crate) fn add_text(&mut self, row: &[u8]) {
        if self.count == 0 {
            // The rows of a page resemble each other, and growing by doubling copies them all.
            self.text.reserve(self.rows_max.min(ROWS_RESERVED) * (row.len() + 1));
        }
        self.begin_row();
        self.text.extend_from_slice(row);
    }

    /// Adds a row to the page.
    pub(crate) fn add(&mut self, row: &Value) {
        self.begin_row();
        let start = self.text.len();
        write_json(row, &mut self.text);
        if self.text.len() == start {
            // A number JSON cannot hold stands for nothing, and nothing is no row.
            self.count -= 1;
            if self.count > 0 {
                self.text.pop();
            }
        }
    }

    /// The complete response body.
    pub fn finish(mut self) -> Vec<u8> {
        self.text.extend_from_slice(b"],\"_count\":");
        self.text.extend_from_slice(self.count.to_string().as_bytes());
        self.text.push(b'}');
        self.text
    }

    fn begin_row(&mut self) {
        if self.count > 0 {
            self.text.push(b',');
        }
        self.count += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_joined_and_counted() {
        let mut page = PageBody::new("abc=", 3);
        page.add_text(b"{}");
        page.add(&Value::from(f64::NAN));
        page.add(&Value::from(1));
        assert!(!page.is_full());
        page.add(&Value::Null);
        assert!(page.is_full());
        let text = String::from_utf8(page.finish()).unwrap();
        assert_eq!(text, r#"{"_rid":"abc=","Documents":[{},1,null],"_count":3}"#);
    }
}
