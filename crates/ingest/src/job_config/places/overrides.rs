//! Places of words `section.key=value` in a script.

use super::Place;

pub(super) fn places(text: &str) -> Vec<Place> {
    let (mut places, mut start) = (Vec::new(), 0);
    for line in text.split_inclusive('\n') {
        if !line.trim_start().starts_with('#') {
            places.extend(line.split_whitespace().filter_map(|word| {
                // Words are slices of the line.
                let at = start + word.as_ptr().addr() - line.as_ptr().addr();
                place(word, at)
            }));
        }
        start += line.len();
    }
    places
}

fn place(word: &str, at: usize) -> Option<Place> {
    let marks = ['"', '\'', '\\'];
    let inner = word.trim_start_matches(marks).trim_start_matches('+');
    let start = at + word.len() - inner.len();
    let inner = inner.trim_end_matches(marks);
    let (key, value) = inner.split_once('=')?;
    let is_key = key.starts_with(|letter: char| letter.is_ascii_alphabetic())
        && key.chars().all(|letter| letter.is_ascii_alphanumeric() || matches!(letter, '.' | '_'));
    let quotes = value.len() - value.trim_start_matches(marks).len();
    let range = start + key.len() + 1 + quotes..start + inner.len();
    let is_null = value == "null";
    is_key.then(|| Place { key: key.to_owned(), start, value: Some(range), is_null, is_flow: false })
}
