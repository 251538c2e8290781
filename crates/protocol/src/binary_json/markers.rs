//! Type markers: the first byte of every value in Cosmos binary JSON. Where only the first and the last
//! marker of a family are named, those between follow in order of width.

/// The first byte of a binary JSON body.
pub(super) const FORMAT: u8 = 0x80;

/// The largest number that is its own marker.
pub(super) const LITERAL_MAX: u8 = 0x1F;
/// The first marker of the system string dictionary.
pub(super) const SYSTEM_STRING: u8 = 0x20;
/// The last marker of the system string dictionary.
pub(super) const SYSTEM_STRING_LAST: u8 = 0x3F;
/// The first marker of the user string dictionary, which is never sent.
pub(super) const USER_STRING: u8 = 0x40;
/// The last marker of the user string dictionary.
pub(super) const USER_STRING_LAST: u8 = 0x67;

pub(super) const BASE64_1: u8 = 0x71;
pub(super) const BASE64_2: u8 = 0x72;
pub(super) const BASE64_URL_1: u8 = 0x73;
pub(super) const BASE64_URL_2: u8 = 0x74;
pub(super) const GUID_LOWER: u8 = 0x75;
pub(super) const GUID_UPPER: u8 = 0x76;
pub(super) const GUID_QUOTED: u8 = 0x77;
pub(super) const HEX_LOWER: u8 = 0x78;
pub(super) const HEX_UPPER: u8 = 0x79;
pub(super) const DATE_TIME: u8 = 0x7A;
pub(super) const PACKED_4: u8 = 0x7B;
pub(super) const PACKED_5: u8 = 0x7C;
pub(super) const PACKED_6: u8 = 0x7D;
pub(super) const PACKED_7_1: u8 = 0x7E;
pub(super) const PACKED_7_2: u8 = 0x7F;

/// The first marker of strings whose length is in its low six bits.
pub(super) const SHORT_STRING: u8 = 0x80;
/// The last marker of strings whose length is in its low six bits.
pub(super) const SHORT_STRING_LAST: u8 = 0xBF;
pub(super) const STRING_1: u8 = 0xC0;
pub(super) const STRING_2: u8 = 0xC1;
pub(super) const STRING_4: u8 = 0xC2;
/// A reference to an earlier string, by its offset in one byte.
pub(super) const REFERENCE_1: u8 = 0xC3;
pub(super) const REFERENCE_4: u8 = 0xC6;

pub(super) const NUMBER_U64: u8 = 0xC7;
pub(super) const NUMBER_U8: u8 = 0xC8;
pub(super) const NUMBER_I16: u8 = 0xC9;
pub(super) const NUMBER_I32: u8 = 0xCA;
pub(super) const NUMBER_I64: u8 = 0xCB;
pub(super) const NUMBER_F64: u8 = 0xCC;
pub(super) const F32: u8 = 0xCD;
pub(super) const F64: u8 = 0xCE;
pub(super) const F16: u8 = 0xCF;

pub(super) const NULL: u8 = 0xD0;
pub(super) const FALSE: u8 = 0xD1;
pub(super) const TRUE: u8 = 0xD2;
pub(super) const GUID: u8 = 0xD3;

pub(super) const U8: u8 = 0xD7;
pub(super) const I8: u8 = 0xD8;
pub(super) const I16: u8 = 0xD9;
pub(super) const I32: u8 = 0xDA;
pub(super) const I64: u8 = 0xDB;
pub(super) const U32: u8 = 0xDC;
pub(super) const BINARY_1: u8 = 0xDD;
pub(super) const BINARY_4: u8 = 0xDF;

pub(super) const ARRAY_EMPTY: u8 = 0xE0;
pub(super) const ARRAY_ONE: u8 = 0xE1;
/// An array with a length of one byte.
pub(super) const ARRAY_L1: u8 = 0xE2;
/// An array with a length and a count of one byte each.
pub(super) const ARRAY_LC1: u8 = 0xE5;
pub(super) const ARRAY_LC4: u8 = 0xE7;

pub(super) const OBJECT_EMPTY: u8 = 0xE8;
pub(super) const OBJECT_ONE: u8 = 0xE9;
/// An object with a length of one byte.
pub(super) const OBJECT_L1: u8 = 0xEA;
/// An object with a length and a count of one byte each.
pub(super) const OBJECT_LC1: u8 = 0xED;
pub(super) const OBJECT_LC4: u8 = 0xEF;

/// An array of numbers of one type, with a count of one byte.
pub(super) const NUMBERS_1: u8 = 0xF0;
pub(super) const NUMBERS_2: u8 = 0xF1;
/// An array of number arrays that all have the same length.
pub(super) const NUMBER_ARRAYS_1: u8 = 0xF2;
pub(super) const NUMBER_ARRAYS_2: u8 = 0xF3;

/// The system string dictionary, in the order of the markers.
pub(super) const SYSTEM_STRINGS: [&str; 32] = [
    "$s",
    "$t",
    "$v",
    "_attachments",
    "_etag",
    "_rid",
    "_self",
    "_ts",
    "attachments/",
    "coordinates",
    "geometry",
    "GeometryCollection",
    "id",
    "url",
    "Value",
    "label",
    "LineString",
    "link",
    "MultiLineString",
    "MultiPoint",
    "MultiPolygon",
    "name",
    "Name",
    "Type",
    "Point",
    "Polygon",
    "properties",
    "type",
    "value",
    "Feature",
    "FeatureCollection",
    "_id",
];
