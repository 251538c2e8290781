//! The items: 1 KB each, everything follows from the number.

use bytes::Bytes;

/// The size of every item's JSON text.
pub const ITEM_BYTES: usize = 1024;

/// How many values the partition key has.
pub const KEYS: u64 = 200;

/// The width of the number inside an id.
const ID_DIGITS: usize = 12;

/// Where the number of an id begins in the JSON text.
const ID_AT: usize = r#"{"id":"item-"#.len();

/// The id of an item.
pub fn id(number: u64) -> String {
    format!("item-{number:0ID_DIGITS$}")
}

/// The partition key of an item.
pub fn key(number: u64) -> String {
    format!("tenant-{:06}", number % KEYS)
}

/// A number that looks like chance and is not (the finaliser of splitmix64).
pub fn scatter(number: u64) -> u64 {
    let mut z = number.wrapping_add(0x9E37_79B9_7F4A_7C15);
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

/// The texts of items, one prepared per partition key: making one is a copy and twelve digits.
#[derive(Clone, Debug)]
pub struct Items(Vec<Vec<u8>>);

impl Items {
    /// Prepares the texts.
    pub fn new() -> Items {
        Items((0..KEYS).map(|number| json(number).into_bytes()).collect())
    }

    /// The text of an item.
    pub fn body(&self, number: u64) -> Vec<u8> {
        let mut text = self.0[(number % KEYS) as usize].clone();
        let mut rest = number;
        for digit in text[ID_AT..ID_AT + ID_DIGITS].iter_mut().rev() {
            *digit = b'0' + (rest % 10) as u8;
            rest /= 10;
        }
        text
    }

    /// The same, as the drivers take it.
    pub fn bytes(&self, number: u64) -> Bytes {
        Bytes::from(self.body(number))
    }
}

impl Default for Items {
    fn default() -> Items {
        Items::new()
    }
}

/// The JSON text of an item, exactly [`ITEM_BYTES`] long.
pub fn json(number: u64) -> String {
    let scattered = scatter(number);
    let mut text = format!(
        concat!(
            r#"{{"id":"{id}","pk":"{key}","rank":{rank},"category":{category},"name":"Item number {number}","#,
            r#""price":{cents}.5,"active":{active},"address":{{"zip":"{zip:05}","country":"NL"}},"#,
            r#""tags":["t{tag_a}","t{tag_b}"],"payload":""#
        ),
        id = id(number),
        key = key(number),
        rank = scattered >> 24,
        category = scattered % 20,
        number = number,
        cents = scattered % 10_000,
        active = scattered.is_multiple_of(2),
        zip = scattered % 100_000,
        tag_a = scattered % 7,
        tag_b = scattered % 11,
    );
    let mut filler = scattered;
    while text.len() < ITEM_BYTES - 2 {
        filler = scatter(filler);
        text.push_str(&format!("{filler:016x}"));
    }
    text.truncate(ITEM_BYTES - 2);
    text.push_str("\"}");
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_prepared_text_is_the_item_with_that_id_and_key() {
        let items = Items::new();
        for number in [0, 7, 199, 200, 123_456_789] {
            let body = items.body(number);
            assert_eq!(body.len(), ITEM_BYTES);
            let value: serde_json::Value = serde_json::from_slice(&body).expect("it is JSON");
            assert_eq!(
                (value["id"].as_str(), value["pk"].as_str()),
                (Some(&*id(number)), Some(&*key(number)))
            );
        }
    }
}
