//! String functions.
//!
//! Positions and lengths count UTF-16 code units, as in the service; `utf16` converts them. Searching is in
//! `search`, parts in `cut`, joining and repeating in `build`, type conversion in `convert`, regular
//! expressions in `pattern`.

mod build;
mod case;
mod convert;
mod cut;
mod pattern;
mod search;
mod utf16;

pub(super) use pattern::{Pattern, uncompiled_units};

use super::{Call, Family, Function, at_least, between, exactly};

pub(super) const FUNCTIONS: &[Function] = &[
    at_least("CONCAT", 2, Family::String, build::concat),
    test("CONTAINS", search::contains),
    at_least("CONTAINS_ALL_CI", 2, Family::String, search::contains_all_ci),
    at_least("CONTAINS_ALL_CS", 2, Family::String, search::contains_all_cs),
    at_least("CONTAINS_ANY_CI", 2, Family::String, search::contains_any_ci),
    at_least("CONTAINS_ANY_CS", 2, Family::String, search::contains_any_cs),
    test("ENDSWITH", search::ends_with),
    between("INDEX_OF", (2, 3), Family::String, search::index_of),
    between("LASTINDEXOF", (2, 3), Family::String, search::last_index_of),
    of("LASTSUBSTRINGAFTER", 2, cut::last_substring_after),
    of("LASTSUBSTRINGBEFORE", 2, cut::last_substring_before),
    of("LEFT", 2, cut::left),
    of("LENGTH", 1, utf16::length_of),
    of("LOWER", 1, case::lower),
    between("LTRIM", (1, 2), Family::String, cut::ltrim),
    between("REGEXMATCH", (2, 3), Family::String, pattern::regex_match),
    of("REPLACE", 3, build::replace),
    of("REPLICATE", 2, build::replicate),
    of("REVERSE", 1, build::reverse),
    of("RIGHT", 2, cut::right),
    between("RTRIM", (1, 2), Family::String, cut::rtrim),
    test("STARTSWITH", search::starts_with),
    test("STRINGEQUALS", search::string_equals),
    of("STRINGJOIN", 2, build::string_join),
    of("STRINGSPLIT", 2, cut::string_split),
    of("STRINGTOARRAY", 1, convert::string_to_array),
    of("STRINGTOBOOLEAN", 1, convert::string_to_boolean),
    of("STRINGTONULL", 1, convert::string_to_null),
    of("STRINGTONUMBER", 1, convert::string_to_number),
    of("STRINGTOOBJECT", 1, convert::string_to_object),
    of("SUBSTRING", 3, cut::substring),
    of("SUBSTRINGAFTER", 2, cut::substring_after),
    of("SUBSTRINGBEFORE", 2, cut::substring_before),
    of("TOSTRING", 1, convert::to_string),
    between("TRIM", (1, 2), Family::String, cut::trim),
    of("UPPER", 1, case::upper),
];

const fn of(name: &'static str, args: usize, call: Call) -> Function {
    exactly(name, args, Family::String, call)
}

/// A table entry for a function of two strings and an optional flag that ignores case.
const fn test(name: &'static str, call: Call) -> Function {
    between(name, (2, 3), Family::String, call)
}
