//! Columns that can be chosen as the lengths.

use planner::outcome::HistogramColumns;

use super::{Kind, Meaning};

/// Most candidates of a file.
pub(super) const MAX_CANDIDATES: usize = 50;

/// A column or key that can be chosen as the lengths of the samples.
#[derive(Debug, Clone, PartialEq)]
pub struct Candidate {
    /// Its name; columns without a header are numbered from 1.
    pub name: String,
    /// Kind of its values.
    pub kind: Kind,
    /// Its meaning by the table of names.
    pub meaning: Meaning,
    /// Up to five values as the file shows them, clipped to 40 characters.
    pub samples: Vec<String>,
    /// Lengths in tokens of the first rows if this column is chosen; `None` if it gives no length.
    pub preview: Option<HistogramColumns>,
    /// What the values look like, in one sentence.
    pub note: Option<String>,
}

impl Candidate {
    /// A candidate of which only the name is known.
    pub(super) fn named(name: String) -> Self {
        Self { name, kind: Kind::Empty, meaning: Meaning::Unknown, samples: Vec::new(), preview: None, note: None }
    }
}
