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
        let distance = match strsim::osa_distance(&wanted, &letters) {
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

fn letters(text: &str) -> String {
    text.chars().filter(|c| c.is_alphanumeric()).flat_map(char::to_lowercase).collect()
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
