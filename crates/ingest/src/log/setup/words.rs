//! Finds values by key in a lower-case log line.

/// Maximum distance between key and value in bytes. Megatron-LM pads with dots.
const MAX_GAP: usize = 80;

/// Returns the text after each occurrence of a key. "data_parallel_world_size" and
/// "decoder_seq_length" do not match "world_size" and "seq_length"; "--seq-length" is an argument.
fn after<'a>(line: &'a str, names: &'a [&str]) -> impl Iterator<Item = &'a str> {
    names.iter().flat_map(move |name| {
        line.match_indices(name).filter_map(move |(at, _)| {
            let before = line[..at].chars().next_back();
            before.is_none_or(|c| !c.is_alphanumeric() && c != '_').then(|| &line[at + name.len()..])
        })
    })
}

/// Returns the integer after a key: "using world size: 64,", "seq_length ........ 2048",
/// "world_size=8".
pub(super) fn named(line: &str, names: &[&str]) -> Option<u32> {
    after(line, names).find_map(number)
}

/// Returns the values after the keys without leading punctuation.
pub(super) fn values<'a>(line: &'a str, names: &'a [&str]) -> impl Iterator<Item = &'a str> {
    after(line, names).filter_map(|after| {
        let text = after.trim_start_matches([' ', '.', ':', '=', '"', '\'', '\t']);
        (text.len() < after.len()).then_some(text)
    })
}

/// Returns the word after a key.
pub(super) fn word<'a>(line: &'a str, names: &'a [&str]) -> Option<&'a str> {
    values(line, names).find_map(|text| {
        let end = text.find(|c: char| !c.is_ascii_alphanumeric()).unwrap_or(text.len());
        (end > 0).then(|| &text[..end])
    })
}

/// Returns the boolean after a key.
pub(super) fn flag(line: &str, names: &[&str]) -> Option<bool> {
    match word(line, names)? {
        "true" => Some(true),
        "false" => Some(false),
        _ => None,
    }
}

/// True if a Megatron-LM argument is `None`.
pub(super) fn is_none(line: &str, names: &[&str]) -> bool {
    line.contains("...") && word(line, names) == Some("none")
}

/// Parses an integer preceded only by blanks, dots and punctuation.
fn number(text: &str) -> Option<u32> {
    let gap = text.find(|c: char| !matches!(c, ' ' | '.' | ':' | '=' | '"' | '\'' | '(' | '\t'))?;
    let digits = text[gap..].find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len() - gap);
    let value: u32 = text[gap..gap + digits].parse().ok()?;
    // "8.5" and "8k" are not counts.
    let mut after = text[gap + digits..].chars();
    let is_integer = match (after.next(), after.next()) {
        (Some('.'), Some(next)) => !next.is_ascii_digit(),
        (next, _) => next.is_none_or(|c| !c.is_alphanumeric() && c != '_'),
    };
    (gap > 0 && gap <= MAX_GAP && value > 0 && is_integer).then_some(value)
}
