//! Warnings about texts for which the usual number of characters per token is wrong: scripts without
//! blanks, encoded data, and sequences of letters.

use super::super::value::{Row, Value};
use super::{Measure, Part};

/// Number of rows compared.
const ROWS: usize = 200;
/// Maximum number of characters compared per text.
const CHARACTERS: usize = 5000;
/// Minimum length of a text that has blanks in most languages.
const LONG: usize = 64;

/// Members of a message that are no text.
const LABELS: [&str; 5] = ["role", "from", "type", "name", "id"];

/// Characters and texts of the first rows.
#[derive(Debug, Default)]
struct Seen {
    characters: usize,
    /// Characters of scripts in which a token has one or two.
    dense: usize,
    long_texts: usize,
    /// Long texts without blanks.
    solid: usize,
}

impl Seen {
    fn add(&mut self, value: &Value<'_>, depth: usize) {
        match value {
            Value::Text(text) => {
                let start = || text.trim().chars().take(CHARACTERS);
                let (characters, dense) = (start().count(), start().filter(|&c| is_dense(c)).count());
                self.characters += characters;
                self.dense += dense;
                self.long_texts += usize::from(characters >= LONG);
                let is_solid = characters >= LONG && dense * 10 < characters && !start().any(char::is_whitespace);
                self.solid += usize::from(is_solid);
            }
            Value::List(list) if depth > 0 => {
                for item in &list.items {
                    self.add(item, depth - 1);
                }
            }
            Value::Object(members) if depth > 0 => {
                for (_, value) in members.iter().filter(|(name, _)| !LABELS.contains(&&**name)) {
                    self.add(value, depth - 1);
                }
            }
            _ => {}
        }
    }
}

/// Returns whether a character is Chinese, Japanese, Korean, Thai, Lao, Burmese or Khmer.
const fn is_dense(c: char) -> bool {
    matches!(
        c,
        '\u{e00}'..='\u{eff}' | '\u{1000}'..='\u{109f}' | '\u{1100}'..='\u{11ff}' | '\u{1780}'..='\u{17ff}' |
        '\u{3040}'..='\u{30ff}' | '\u{3400}'..='\u{9fff}' | '\u{ac00}'..='\u{d7af}' | '\u{20000}'..='\u{3ffff}'
    )
}

/// Returns a warning if the characters per token do not hold for the texts.
pub(super) fn sentence(parts: &[Part], head: &[&Row<'_>]) -> Option<String> {
    let texts: Vec<&Part> = parts.iter().filter(|part| part.measure == Measure::Text).collect();
    let mut seen = Seen::default();
    for row in head.iter().take(ROWS) {
        for part in &texts {
            seen.add(row.value(part.index, &part.name), 4);
        }
    }
    let names = texts.iter().map(|part| part.name.as_str()).collect::<Vec<&str>>().join(" + ");
    let remedy = "Choose the tokenizer.json of the model, or set the characters per token.";
    let share = seen.dense * 100 / seen.characters.max(1);
    if share >= 20 {
        return Some(format!(
            "{share} % of the characters of {names} are of scripts such as Chinese, Japanese, Korean and Thai, of which a token has \
             one or two. The lengths are too small. {remedy}"
        ));
    }
    (seen.solid > 0 && seen.solid * 2 > seen.long_texts).then(|| {
        format!(
            "Most texts of {names} have no blanks, like encoded data (base64) or sequences of proteins and DNA. A token of these has \
             another number of characters. {remedy}"
        )
    })
}
