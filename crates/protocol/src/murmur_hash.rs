//! MurmurHash3: the 32-bit x86 and the 128-bit x64 variant, incremental.
//!
//! By hand because a partition key is hashed on every request: its components are written one after another
//! without joining them, and nothing is allocated. Cost: linear in the bytes.

/// The 128-bit x64 variant of MurmurHash3 of some bytes, which begins with `seed`.
pub fn murmur_hash_128(bytes: &[u8], seed: u128) -> u128 {
    let mut hasher = Murmur128 { h1: seed as u64, h2: (seed >> 64) as u64, ..Murmur128::default() };
    hasher.write(bytes);
    hasher.finish()
}

/// A variant of MurmurHash3 that takes its input in parts.
pub(crate) trait Murmur {
    /// Hashes the next bytes.
    fn write(&mut self, bytes: &[u8]);
}

impl Murmur for Murmur32 {
    fn write(&mut self, bytes: &[u8]) {
        Murmur32::write(self, bytes);
    }
}

impl Murmur for Murmur128 {
    fn write(&mut self, bytes: &[u8]) {
        Murmur128::write(self, bytes);
    }
}

/// The 32-bit x86 variant of MurmurHash3.
#[derive(Clone, Debug, Default)]
pub(crate) struct Murmur32 {
    hash: u32,
    tail: [u8; 4],
    length: usize,
}

impl Murmur32 {
    const C1: u32 = 0xcc9e_2d51;
    const C2: u32 = 0x1b87_3593;

    pub(crate) fn write(&mut self, bytes: &[u8]) {
        let held = self.length % 4;
        self.length += bytes.len();
        let bytes = if held == 0 {
            bytes
        } else {
            let (fill, rest) = bytes.split_at(bytes.len().min(4 - held));
            self.tail[held..held + fill.len()].copy_from_slice(fill);
            if held + fill.len() < 4 {
                return;
            }
            self.block(self.tail);
            rest
        };
        let (blocks, rest) = bytes.as_chunks::<4>();
        for block in blocks {
            self.block(*block);
        }
        self.tail[..rest.len()].copy_from_slice(rest);
    }

    fn block(&mut self, block: [u8; 4]) {
        self.hash ^= Murmur32::mix(u32::from_le_bytes(block));
        self.hash = self.hash.rotate_left(13).wrapping_mul(5).wrapping_add(0xe654_6b64);
    }

    fn mix(k: u32) -> u32 {
        k.wrapping_mul(Murmur32::C1).rotate_left(15).wrapping_mul(Murmur32::C2)
    }

    pub(crate) fn finish(mut self) -> u32 {
        let held = self.length % 4;
        if held > 0 {
            self.tail[held..].fill(0);
            self.hash ^= Murmur32::mix(u32::from_le_bytes(self.tail));
        }
        // The algorithm counts bytes modulo 2^32.
        let mut h = self.hash ^ self.length as u32;
        h ^= h >> 16;
        h = h.wrapping_mul(0x85eb_ca6b);
        h ^= h >> 13;
        h = h.wrapping_mul(0xc2b2_ae35);
        h ^ (h >> 16)
    }
}

/// The 128-bit x64 variant of MurmurHash3.
#[derive(Clone, Debug, Default)]
pub(crate) struct Murmur128 {
    h1: u64,
    h2: u64,
    tail: [u8; 16],
    length: usize,
}

impl Murmur128 {
    const C1: u64 = 0x87c3_7b91_1142_53d5;
    const C2: u64 = 0x4cf5_ad43_2745_937f;

    pub(crate) fn write(&mut self, bytes: &[u8]) {
        let held = self.length % 16;
        self.length += bytes.len();
        let bytes = if held == 0 {
            bytes
        } else {
            let (fill, rest) = bytes.split_at(bytes.len().min(16 - held));
            self.tail[held..held + fill.len()].copy_from_slice(fill);
            if held + fill.len() < 16 {
                return;
            }
            self.block(self.tail);
            rest
        };
        let (blocks, rest) = bytes.as_chunks::<16>();
        for block in blocks {
            self.block(*block);
        }
        self.tail[..rest.len()].copy_from_slice(rest);
    }

    fn block(&mut self, block: [u8; 16]) {
        let (k1, k2) = halves(block);
        self.h1 ^= Murmur128::mix1(k1);
        self.h1 = self.h1.rotate_left(27).wrapping_add(self.h2);
        self.h1 = self.h1.wrapping_mul(5).wrapping_add(0x52dc_e729);
        self.h2 ^= Murmur128::mix2(k2);
        self.h2 = self.h2.rotate_left(31).wrapping_add(self.h1);
        self.h2 = self.h2.wrapping_mul(5).wrapping_add(0x3849_5ab5);
    }

    fn mix1(k: u64) -> u64 {
        k.wrapping_mul(Murmur128::C1).rotate_left(31).wrapping_mul(Murmur128::C2)
    }

    fn mix2(k: u64) -> u64 {
        k.wrapping_mul(Murmur128::C2).rotate_left(33).wrapping_mul(Murmur128::C1)
    }

    /// The hash, with the second half in the upper bits: written big-endian, it is in the service's order.
    pub(crate) fn finish(mut self) -> u128 {
        let held = self.length % 16;
        self.tail[held..].fill(0);
        let (k1, k2) = halves(self.tail);
        // An empty half mixes to zero, so it needs no special case.
        let mut h1 = self.h1 ^ Murmur128::mix1(k1) ^ self.length as u64;
        let mut h2 = self.h2 ^ Murmur128::mix2(k2) ^ self.length as u64;
        h1 = h1.wrapping_add(h2);
        h2 = h2.wrapping_add(h1);
        h1 = spread(h1);
        h2 = spread(h2);
        h1 = h1.wrapping_add(h2);
        h2 = h2.wrapping_add(h1);
        u128::from(h2) << 64 | u128::from(h1)
    }
}

fn halves(block: [u8; 16]) -> (u64, u64) {
    let both = u128::from_le_bytes(block);
    (both as u64, (both >> 64) as u64)
}

fn spread(mut h: u64) -> u64 {
    h ^= h >> 33;
    h = h.wrapping_mul(0xff51_afd7_ed55_8ccd);
    h ^= h >> 33;
    h = h.wrapping_mul(0xc4ce_b9fe_1a85_ec53);
    h ^ (h >> 33)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn hash32(bytes: &[u8]) -> u32 {
        let mut hasher = Murmur32::default();
        hasher.write(bytes);
        hasher.finish()
    }

    fn hash128(bytes: &[u8]) -> u128 {
        murmur_hash_128(bytes, 0)
    }

    #[test]
    fn hashes_equal_those_of_the_service() {
        for (v1_bytes, v1, v2_bytes, v2) in [
            (&b"\x00"[..], 0x514E_28B7, &b"\x00"[..], 0x51622DAA78F835834610ABE56EFF5CB5),
            (b"\x01", 0xE45A_D1AB, b"\x01", 0x778867E4430E67857ACE5C908374FE16),
            (b"\x03", 0x5E2A_8076, b"\x03", 0x4E711127C5B5A8E4726AC6DD306A3E59),
            (b"\x08asdf\x00", 0xB02B_ABC2, b"\x08asdf\xFF", 0x608BF1D598F5B63AD5520F04FE58C5E8),
        ] {
            assert_eq!(hash32(v1_bytes), v1);
            assert_eq!(hash128(v2_bytes), v2);
        }
        let long = [&b"\x08"[..], &[b'a'; 101], b"\x00"].concat();
        assert_eq!(hash32(&long), 0x3B1B_5D8D, "101 times a, not cut");
    }

    #[test]
    fn the_empty_input_hashes_to_zero() {
        assert_eq!(hash32(b""), 0);
        assert_eq!(hash128(b""), 0);
    }

    proptest! {
        #[test]
        fn incremental_hashing_equals_hashing_at_once(pieces in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..40), 0..8)) {
            let whole = pieces.concat();
            let (mut small, mut large) = (Murmur32::default(), Murmur128::default());
            for piece in &pieces {
                small.write(piece);
                large.write(piece);
            }
            prop_assert_eq!(small.finish(), hash32(&whole));
            prop_assert_eq!(large.finish(), hash128(&whole));
        }
    }
}
