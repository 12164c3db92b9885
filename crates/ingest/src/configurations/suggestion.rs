//! Finds the known name that an unknown name resembles.

/// Returns "; did you mean NAME?" for the known name that resembles `text` most, or an empty text if none does.
pub(super) fn did_you_mean<'n>(text: &str, known: impl Iterator<Item = &'n str>) -> String {
    closest(text, known).map_or_else(String::new, |name| format!("; did you mean {name}?"))
}

/// Returns the known name with the fewest other letters: at most one in five letters, and at least one. Otherwise the first
/// name that begins with the text.
fn closest<'n>(text: &str, known: impl Iterator<Item = &'n str>) -> Option<&'n str> {
    const MAX_LETTERS: usize = 40;
    let wanted = letters(text);
    if wanted.len() < 3 || wanted.len() > MAX_LETTERS {
        return None;
    }
    let limit = (wanted.len() / 5).max(1);
    let mut best: Option<(usize, &str)> = None;
    for name in known {
        let letters = letters(name);
        let distance = match distance(&wanted, &letters) {
            distance if distance <= limit => distance,
            _ if letters.starts_with(&wanted) => limit + 1,
            _ => continue,
        };
        if best.is_none_or(|(least, _)| distance < least) {
            best = Some((distance, name));
        }
    }
    best.map(|(_, name)| name)
}

fn letters(text: &str) -> Vec<char> {
    text.chars().filter(|c| c.is_alphanumeric()).flat_map(char::to_lowercase).collect()
}

/// Number of letters to change, insert, remove, or exchange with the next (optimal string alignment).
fn distance(a: &[char], b: &[char]) -> usize {
    let mut rows = vec![vec![0; b.len() + 1]; a.len() + 1];
    rows[0] = (0..=b.len()).collect();
    for row in 1..=a.len() {
        rows[row][0] = row;
        for column in 1..=b.len() {
            let changed = rows[row - 1][column - 1] + usize::from(a[row - 1] != b[column - 1]);
            let mut least = changed.min(rows[row - 1][column] + 1).min(rows[row][column - 1] + 1);
            if row > 1 && column > 1 && a[row - 1] == b[column - 2] && a[row - 2] == b[column - 1] {
                least = least.min(rows[row - 2][column - 2] + 1);
            }
            rows[row][column] = least;
        }
    }
    rows[a.len()][b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn similar_names_are_found() {
        let known = ["h100", "a100-80gb", "gpt-3-175b", "llama-3-8b", "llama-3-70b", "megatron", "torchtitan"];
        for (text, expected) in [
            ("h1000", Some("h100")),
            ("GPT-3", Some("gpt-3-175b")),
            ("lama-3-8b", Some("llama-3-8b")),
            ("Megatorn", Some("megatron")),
            ("torchtitanium", None),
            ("xy", None),
            ("", None),
        ] {
            assert_eq!(closest(text, known.into_iter()), expected, "{text}");
        }
    }
}
