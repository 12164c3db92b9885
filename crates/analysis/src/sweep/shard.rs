//! Point distribution across machines.

use std::fmt;
use std::str::FromStr;

/// A shard of the points. Shard I of N contains the points I-1, I-1+N, I-1+2N, ... Neighbouring
/// points have similar costs, so different machines plan them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Shard {
    index: u32,
    count: u32,
}

impl Shard {
    /// The shard with all points.
    pub const FULL: Self = Self { index: 1, count: 1 };

    /// Builds shard `index` of `count`, from 1.
    pub const fn new(index: u32, count: u32) -> Result<Self, NotAShard> {
        if index >= 1 && index <= count { Ok(Self { index, count }) } else { Err(NotAShard) }
    }

    /// Shard number, from 1.
    pub const fn index(self) -> u32 {
        self.index
    }

    /// Number of shards.
    pub const fn count(self) -> u32 {
        self.count
    }

    /// Points in this shard, given the total number `all`.
    pub fn points(self, all: u32) -> impl Iterator<Item = u32> + Clone {
        (self.index - 1..all).step_by(self.count as usize)
    }

    /// Returns true if the shard contains the point.
    pub const fn has(self, point: u32) -> bool {
        point % self.count == self.index - 1
    }
}

impl fmt::Display for Shard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.index, self.count)
    }
}

impl FromStr for Shard {
    type Err = NotAShard;

    fn from_str(text: &str) -> Result<Self, NotAShard> {
        let (index, count) = text.split_once('/').ok_or(NotAShard)?;
        let number = |text: &str| text.parse::<u32>().map_err(|_| NotAShard);
        Self::new(number(index)?, number(count)?)
    }
}

/// Error: the text is not a shard.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("not a shard: I/N is needed, with I from 1 to N")]
pub struct NotAShard;

/// Groups ascending numbers into consecutive runs, given by first and last number.
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

/// Formats runs, for example "0-3, 7, 9-12".
pub fn ranges(runs: &[[u32; 2]]) -> String {
    let format_run = |&[first, last]: &[u32; 2]| {
        if first == last { first.to_string() } else { format!("{first}-{last}") }
    };
    runs.iter().map(format_run).collect::<Vec<_>>().join(", ")
}
