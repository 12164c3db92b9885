//! A value that is not taken.

/// Why a value is refused, and where it stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Refused {
    /// One of few reasons, by which refusals are counted.
    pub(super) reason: &'static str,
    /// The place and what stands there.
    pub(super) first: String,
}

impl Refused {
    /// A refusal of what stands at `first`.
    pub(super) fn new(reason: &'static str, first: impl Into<String>) -> Self {
        Self { reason, first: first.into() }
    }
}
