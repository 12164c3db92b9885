//! Which points one of several machines plans.

use std::fmt;
use std::str::FromStr;

/// One of so many shares of the points, from 1: share I of N has the points I-1, I-1+N, I-1+2N, ..., so that neighbours, which cost
/// about the same, go to different machines.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Shard {
    index: u32,
    of: u32,
}

impl Shard {
    /// All points.
    pub const WHOLE: Self = Self { index: 1, of: 1 };

    /// Share `index` of `of`.
    pub const fn new(index: u32, of: u32) -> Result<Self, NotAShard> {
        if index >= 1 && index <= of { Ok(Self { index, of }) } else { Err(NotAShard) }
    }

    /// Which share, from 1.
    pub const fn index(self) -> u32 {
        self.index
    }

    /// How many there are.
    pub const fn of(self) -> u32 {
        self.of
    }

    /// Its points, of so many.
    pub fn points(self, all: u32) -> impl Iterator<Item = u32> + Clone {
        (self.index - 1..all).step_by(self.of as usize)
    }

    /// Whether a point is its.
    pub const fn has(self, point: u32) -> bool {
        point % self.of == self.index - 1
    }
}

impl fmt::Display for Shard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.index, self.of)
    }
}

impl FromStr for Shard {
    type Err = NotAShard;

    fn from_str(text: &str) -> Result<Self, NotAShard> {
        let (index, of) = text.split_once('/').ok_or(NotAShard)?;
        let number = |text: &str| text.parse::<u32>().map_err(|_| NotAShard);
        Self::new(number(index)?, number(of)?)
    }
}

/// The text is not a shard.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("not a shard: I/N is needed, with I from 1 to N")]
pub struct NotAShard;

/// Rising numbers as runs of neighbours, first and last of each.
pub fn runs(numbers: impl IntoIterator<Item = u32>) -> Vec<[u32; 2]> {
    let mut runs: Vec<[u32; 2]> = Vec::new();
    for number in numbers {
        match runs.last_mut() {
            Some([_, last]) if last.checked_add(1) == Some(number) => *last = number,
            _ => runs.push([number, number]),
        }
    }
    runs
}

/// Runs in words: "0-3, 7, 9-12".
pub fn ranges(runs: &[[u32; 2]]) -> String {
    let words = |&[first, last]: &[u32; 2]| {
        if first == last { first.to_string() } else { format!("{first}-{last}") }
    };
    runs.iter().map(words).collect::<Vec<_>>().join(", ")
}
