//! The items of the comparison: deterministic, 1 KB each, shaped like an order line.
//!
//! An item has fifteen user properties, one of them an array and one an object, so that an index over all paths has
//! about twenty entries to keep. Everything follows from the item's number, so expected answers can be
//! computed instead of stored.

use std::fmt::Write as _;

/// The size of every item's JSON text.
pub(crate) const ITEM_BYTES: usize = 1024;

/// Items per value of the partition key.
pub(crate) const ITEMS_PER_KEY: u64 = 10;

/// Items per value of `group`.
pub(crate) const ITEMS_PER_GROUP: u64 = 100;

/// How many values `category` has.
pub(crate) const CATEGORIES: u64 = 20;

/// The text of `rank` is always this long, so that it can be replaced in place.
pub(crate) const RANK_DIGITS: usize = 7;

/// `rank` is this plus a number below [`RANKS`].
pub(crate) const RANK_FIRST: u64 = 1_000_000;

/// How many ranks there are; a power of two times an odd multiplier visits all of them.
pub(crate) const RANKS: u64 = 1 << 20;

/// The width of the number inside an id.
pub(crate) const ID_DIGITS: usize = 12;

/// One item of a container that holds `count` of them.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Item {
    pub(crate) number: u64,
    pub(crate) count: u64,
}

impl Item {
    pub(crate) fn id(self) -> String {
        format!("item-{:0ID_DIGITS$}", self.number)
    }

    /// The partition key: ten consecutive rounds over all keys.
    pub(crate) fn key(self) -> String {
        key_text(self.number % keys(self.count))
    }

    /// The group: neighbours, and therefore of different keys.
    pub(crate) fn group(self) -> u64 {
        self.number / ITEMS_PER_GROUP
    }

    pub(crate) fn category(self) -> u64 {
        scatter(self.number) % CATEGORIES
    }

    /// Unique among any [`RANKS`] items, and in no order that an insertion would give for free.
    pub(crate) fn rank(self) -> u64 {
        RANK_FIRST + self.number.wrapping_mul(0x5851_F42D) % RANKS
    }

    /// The JSON text, exactly [`ITEM_BYTES`] long.
    pub(crate) fn json(self) -> String {
        let (number, scattered) = (self.number, scatter(self.number));
        let mut text = format!(
            concat!(
                r#"{{"id":"{id}","pk":"{pk}","rank":{rank},"group":{group},"category":{category},"#,
                r#""name":"Item number {number}","price":{cents}.5,"quantity":{quantity},"active":{active},"#,
                r#""city":"{city}","address":{{"street":"{street} Long Street","zip":"{zip:05}","country":"NL"}},"#,
                r#""tags":["t{tag_a}","t{tag_b}","t{tag_c}"],"created":{created},"note":null,"payload":""#
            ),
            id = self.id(),
            pk = self.key(),
            rank = self.rank(),
            group = self.group(),
            category = self.category(),
            number = number,
            cents = scattered % 10_000,
            quantity = scattered % 97,
            active = scattered.is_multiple_of(2),
            city = CITIES[(scattered % CITIES.len() as u64) as usize],
            street = scattered % 500,
            zip = scattered % 100_000,
            tag_a = scattered % 7,
            tag_b = scattered % 11,
            tag_c = scattered % 13,
            created = 1_700_000_000_000_u64 + number,
        );
        let mut filler = scattered;
        while text.len() < ITEM_BYTES - 2 {
            filler = scatter(filler);
            write!(text, "{filler:016x}").expect("writing to a string does not fail");
        }
        text.truncate(ITEM_BYTES - 2);
        text.push_str("\"}");
        text
    }
}

const CITIES: [&str; 8] =
    ["Amsterdam", "Berlin", "Cairo", "Dublin", "Edmonton", "Fukuoka", "Geneva", "Helsinki"];

/// How many partition keys a container of `count` items has.
pub(crate) fn keys(count: u64) -> u64 {
    (count / ITEMS_PER_KEY).max(1)
}

/// How many groups a container of `count` items has.
pub(crate) fn groups(count: u64) -> u64 {
    (count / ITEMS_PER_GROUP).max(1)
}

/// The partition key with this number.
pub(crate) fn key_text(number: u64) -> String {
    format!("tenant-{number:06}")
}

/// A number that looks like chance and is not (the finaliser of splitmix64).
pub(crate) fn scatter(number: u64) -> u64 {
    let mut z = number.wrapping_add(0x9E37_79B9_7F4A_7C15);
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use serde_json::Value;

    use super::{ITEM_BYTES, ITEMS_PER_GROUP, ITEMS_PER_KEY, Item};

    #[test]
    fn an_item_is_valid_json_of_one_kilobyte_and_agrees_with_its_parts() {
        for number in [0, 1, 99, 12_345, 999_999] {
            let item = Item { number, count: 1_000_000 };
            let text = item.json();
            assert_eq!(text.len(), ITEM_BYTES);
            let json: Value = serde_json::from_str(&text).expect("valid JSON");
            assert_eq!(json["id"], item.id());
            assert_eq!(json["pk"], item.key());
            assert_eq!(json["rank"], item.rank());
            assert_eq!(json["group"], item.group());
        }
    }

    #[test]
    fn keys_and_groups_have_their_sizes_and_ranks_are_unique() {
        let count = 2_000;
        let items: Vec<Item> = (0..count).map(|number| Item { number, count }).collect();
        let of_key = items.iter().filter(|item| item.key() == items[7].key()).count();
        let of_group = items.iter().filter(|item| item.group() == items[7].group()).count();
        assert_eq!((of_key as u64, of_group as u64), (ITEMS_PER_KEY, ITEMS_PER_GROUP));
        let ranks: HashSet<u64> = items.iter().map(|item| item.rank()).collect();
        assert_eq!(ranks.len(), items.len());
    }
}
