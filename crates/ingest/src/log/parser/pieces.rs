//! Separates messages of several ranks in one line.

/// Splits a line before each inner `[Rank 7] (after `. The prefix of the line, in bytes, belongs to the
/// first piece.
pub(super) fn pieces(text: &str, prefix: usize) -> Vec<&str> {
    const TAG: &str = "[Rank ";
    let is_start = |at: &usize| {
        let rest = &text[at + TAG.len()..];
        let digits = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
        digits > 0 && rest[digits..].starts_with("] (after ")
    };
    let mut starts: Vec<usize> = text.match_indices(TAG).map(|(at, _)| at).filter(is_start).collect();
    let before = |first: usize| text.get(prefix..first).unwrap_or_default().trim();
    // Text without figures is a prefix too.
    let is_prefix = |before: &str| {
        !before.contains(['|', '=']) && !["iteration", "step", "loss"].iter().any(|word| before.contains(word))
    };
    if starts.first().is_none_or(|&first| !is_prefix(before(first))) {
        starts.insert(0, 0);
    } else if let Some(first) = starts.first_mut() {
        *first = 0;
    }
    let ends = starts.iter().skip(1).copied().chain([text.len()]);
    starts.iter().zip(ends).map(|(&start, end)| &text[start..end]).collect()
}
