//! Changes of seeds: bytes, cuts, repetitions, pieces of other seeds, words of the formats.

/// Largest changed input. Seeds themselves may be larger.
pub(crate) const SMALL: usize = 8192;

/// What parsers compare with, or compute with.
const TOKENS: [&[u8]; 34] = [
    b"{",
    b"}",
    b"[",
    b"]",
    b"\"",
    b",",
    b":",
    b"\n",
    b"\r\n",
    b"\0",
    b"---",
    b"null",
    b"true",
    b"NaN",
    b"Infinity",
    b"-1",
    b"0",
    b"1e400",
    b"1e-400",
    b"9223372036854775807",
    b"-9223372036854775808",
    b"18446744073709551616",
    b"0.1",
    b"\xff\xff\xff\xff",
    b"\x00\x00\x00\x80",
    b"\xff\xff\xff\x7f",
    b"\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01",
    b"\x1f\x8b\x08",
    b"PAR1",
    b"ARROW1",
    b"\xef\xbb\xbf",
    b"\xff\xfe",
    b"\\u0000",
    b"tokens",
];

/// The seeds as they are, then changes of them without end.
pub(crate) struct Mutations {
    seeds: Vec<Vec<u8>>,
    next: usize,
    random: Random,
}

impl Mutations {
    pub(crate) fn new(seeds: Vec<Vec<u8>>, seed: u64) -> Self {
        Self { seeds, next: 0, random: Random(seed) }
    }

    fn changed(&mut self) -> Vec<u8> {
        let mut bytes = self.seeds[self.random.below(self.seeds.len())].clone();
        bytes.truncate(SMALL);
        for _ in 0..=self.random.below(4) {
            self.change(&mut bytes);
        }
        bytes.truncate(SMALL);
        bytes
    }

    fn change(&mut self, bytes: &mut Vec<u8>) {
        let random = &mut self.random;
        let at = random.below(bytes.len() + 1);
        let end = (at + 1 + random.below(32)).min(bytes.len());
        match random.below(9) {
            0 => bytes.truncate(at),
            1 if at < bytes.len() => bytes[at] ^= 1 << random.below(8),
            2 if at < bytes.len() => bytes[at] = random.below(256) as u8,
            3 if at < bytes.len() => drop(bytes.drain(at..end)),
            4 => {
                let word = TOKENS[random.below(TOKENS.len())];
                drop(bytes.splice(at..at, word.iter().copied()));
            }
            5 => {
                let word = TOKENS[random.below(TOKENS.len())];
                let end = (at + word.len()).min(bytes.len());
                drop(bytes.splice(at..end, word.iter().copied()));
            }
            6 if at < bytes.len() => {
                let piece = bytes[at..end].repeat(1 + random.below(64));
                drop(bytes.splice(at..at, piece));
            }
            7 => {
                let other = &self.seeds[random.below(self.seeds.len())];
                let from = random.below(other.len() + 1);
                bytes.truncate(at);
                bytes.extend_from_slice(&other[from..]);
            }
            // A number becomes another one.
            _ => {
                let digits = bytes[at..].iter().position(u8::is_ascii_digit).map(|digit| at + digit);
                if let Some(digit) = digits {
                    let word = TOKENS[13 + random.below(10)];
                    drop(bytes.splice(digit..=digit, word.iter().copied()));
                }
            }
        }
    }
}

impl Iterator for Mutations {
    type Item = Vec<u8>;

    fn next(&mut self) -> Option<Vec<u8>> {
        if let Some(seed) = self.seeds.get(self.next) {
            self.next += 1;
            return Some(seed.clone());
        }
        Some(self.changed())
    }
}

/// SplitMix64, whose numbers are the same on every machine.
struct Random(u64);

impl Random {
    fn below(&mut self, end: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((mixed ^ (mixed >> 31)) % end as u64) as usize
    }
}
