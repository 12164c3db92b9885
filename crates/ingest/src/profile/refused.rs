//! Rejected values.

/// Reason and position of a rejected value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Rejection {
    /// Reason text, used to group rejections.
    pub(super) reason: &'static str,
    /// Position and cell text.
    pub(super) first: String,
}

impl Rejection {
    pub(super) fn new(reason: &'static str, first: impl Into<String>) -> Self {
        Self { reason, first: first.into() }
    }
}
