//! Places of the keys of a TOML document. Keys on several lines are left out.

use super::{Place, path};

pub(super) fn places(text: &str) -> Vec<Place> {
    let (mut places, mut section, mut start) = (Vec::new(), String::new(), 0);
    for line in text.split_inclusive('\n') {
        let content = without_comment(line).trim_end();
        let indent = content.len() - content.trim_start().len();
        if let Some(name) = content.trim_start().strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
            name.trim().clone_into(&mut section);
            let key = section.clone();
            places.push(Place { key, start: start + indent, value: None, is_null: false, is_flow: false });
        } else if let Some((name, value)) = content.split_once('=') {
            let end = start + content.len();
            let value = end - value.trim_start().len()..end;
            let key = path(&section, name.trim());
            places.push(Place { key, start: start + indent, value: Some(value), is_null: false, is_flow: false });
        }
        start += line.len();
    }
    places
}

/// Removes a comment outside strings.
fn without_comment(line: &str) -> &str {
    let mut quote = None;
    let comment = line.find(|letter| match quote {
        None if letter == '#' => true,
        None => {
            quote = Some(letter).filter(|letter| matches!(letter, '"' | '\''));
            false
        }
        Some(open) => {
            quote = quote.filter(|_| letter != open);
            false
        }
    });
    comment.map_or(line, |at| &line[..at])
}
