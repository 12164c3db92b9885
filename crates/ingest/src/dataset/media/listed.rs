//! Counts images in lists, in objects with an image per name, and in lists that are written as one
//! text: `['a.jpg', 'b.jpg']`, `["a.jpg"]`, `a.jpg;b.jpg`.

use super::super::text;
use super::super::value::{Members, Value};

/// File extensions of images.
const ENDINGS: [&str; 9] = [".jpg", ".jpeg", ".png", ".webp", ".gif", ".bmp", ".tif", ".tiff", ".heic"];

/// File extensions of videos.
const VIDEOS: [&str; 6] = [".mp4", ".webm", ".mkv", ".avi", ".mov", ".m4v"];
/// File extensions of sound.
const SOUNDS: [&str; 6] = [".wav", ".mp3", ".flac", ".ogg", ".m4a", ".opus"];

/// Kind of media files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in super::super) enum Medium {
    Image,
    Video,
    Sound,
}

/// Members of an object that describes one image.
const OF_ONE: [&str; 14] = [
    "path",
    "bytes",
    "url",
    "src",
    "image",
    "image_url",
    "file",
    "file_name",
    "filename",
    "name",
    "type",
    "format",
    "data",
    "caption",
];

/// Returns the image count of a value: list elements, the images of an object, or the names in a
/// text. With `only_files`, only the names of image files count, because the column holds media of
/// any kind.
pub(in super::super) fn images(value: &Value<'_>, only_files: bool) -> u32 {
    let all = match value {
        Value::List(list) if only_files => list.items.iter().filter(|item| is_image_value(item)).count(),
        Value::List(list) => list.count - list.items.iter().filter(|item| text::is_void(item)).count(),
        Value::Object(members) if only_files => usize::from(members.iter().any(|(_, value)| is_image_value(value))),
        Value::Object(members) => in_object(members),
        Value::Text(text) if only_files => parts(text).filter(|name| is_image(name)).count(),
        Value::Text(text) => return count(text),
        Value::Missing => 0,
        Value::Boolean(_) | Value::Number(_) | Value::Other(_) => usize::from(!only_files),
    };
    u32::try_from(all).unwrap_or(u32::MAX)
}

/// Returns whether a value names a file of video or sound.
pub(in super::super) fn has_clips(value: &Value<'_>) -> bool {
    match value {
        Value::Text(text) => parts(text).any(|name| has_ending(name, &VIDEOS) || has_ending(name, &SOUNDS)),
        Value::List(list) => list.items.iter().any(has_clips),
        Value::Object(members) => members.iter().any(|(_, value)| has_clips(value)),
        _ => false,
    }
}

/// Returns whether a text is the name or the address of a media file.
pub(in super::super) fn is_file(name: &str, medium: Medium) -> bool {
    /// Maximum length of an address.
    const LONG: usize = 1000;
    let endings: &[&str] = match medium {
        Medium::Image => &ENDINGS,
        Medium::Video => &VIDEOS,
        Medium::Sound => &SOUNDS,
    };
    let path = name.trim().split(['?', '#']).next().unwrap_or_default();
    name.len() <= LONG && has_ending(path, endings)
}

/// Returns whether a value is the name of a media file, a list of names, or an object with a name.
pub(in super::super) fn is_file_value(value: &Value<'_>, medium: Medium) -> bool {
    match value {
        Value::Text(text) => is_file(text, medium),
        Value::List(list) => !list.items.is_empty() && list.items.iter().all(|item| is_file_value(item, medium)),
        Value::Object(members) => {
            members.iter().any(|(name, value)| OF_ONE.contains(&&**name) && is_file_value(value, medium))
        }
        _ => false,
    }
}

/// Returns whether a value is the name of a media file, or a list with one.
pub(in super::super) fn holds_file(value: &Value<'_>, medium: Medium) -> bool {
    match value {
        Value::List(list) => list.items.iter().any(|item| is_file_value(item, medium)),
        value => is_file_value(value, medium),
    }
}

/// Splits a text into file names.
fn parts(text: &str) -> impl Iterator<Item = &str> {
    let is_separator = |c: char| matches!(c, ';' | '|' | ',' | '\n' | '[' | ']' | '"' | '\'') || c.is_whitespace();
    text.split(is_separator).filter(|name| !name.is_empty())
}

/// Returns whether a value is the name of an image file, or an object of type image.
fn is_image_value(value: &Value<'_>) -> bool {
    match value {
        Value::Text(text) => is_image(text.trim()) || matches!(&**text, "image" | "image_url"),
        Value::Object(members) => members.iter().any(|(_, value)| is_image_value(value)),
        _ => false,
    }
}

/// Returns the image count of an object: an image per name (`{"<image_00>": "a.jpg", ..}`), or one
/// image with its properties.
fn in_object(members: &Members<'_>) -> usize {
    let named = || members.iter().filter(|(_, value)| !text::is_void(value));
    let is_numbered = |name: &str| name.trim_end_matches(['>', '|']).ends_with(|c: char| c.is_ascii_digit());
    let is_image_of = |(name, value): &(std::borrow::Cow<'_, str>, Value<'_>)| match value {
        Value::Text(text) => is_numbered(name) || (!OF_ONE.contains(&&**name) && is_image(text)),
        Value::Object(_) | Value::Other(_) => is_numbered(name),
        _ => false,
    };
    if named().all(is_image_of) { named().count() } else { 1 }
}

/// Returns the image count of a text: list elements, separated file names, or one.
pub(in super::super) fn count(text: &str) -> u32 {
    let text = text.trim();
    if text.is_empty() {
        return 0;
    }
    if let Some(inner) = text.strip_prefix('[').and_then(|text| text.strip_suffix(']')) {
        return u32::try_from(elements(inner)).unwrap_or(u32::MAX);
    }
    if text.starts_with('{')
        && let Some(document) = text::literal(text)
        && let Ok(Value::Object(members)) = serde_json::from_str::<Value<'_>>(&document)
    {
        return u32::try_from(in_object(&members)).unwrap_or(u32::MAX);
    }
    let separator = [';', '|', ',', '\n', ' '].into_iter().find(|&separator| {
        let mut names = text.split(separator).map(str::trim).filter(|name| !name.is_empty()).peekable();
        text.contains(separator) && names.peek().is_some() && names.all(is_image)
    });
    let names = separator.map_or(1, |separator| text.split(separator).filter(|name| !name.trim().is_empty()).count());
    u32::try_from(names).unwrap_or(u32::MAX)
}

fn is_image(name: &str) -> bool {
    has_ending(name, &ENDINGS)
}

fn has_ending(name: &str, endings: &[&str]) -> bool {
    let name = name.to_ascii_lowercase();
    endings.iter().any(|ending| name.ends_with(ending))
}

/// Counts the elements of a list without brackets. NumPy prints no commas between elements.
fn elements(inner: &str) -> usize {
    let (mut depth, mut quote, mut is_escaped) = (0_u32, None, false);
    let (mut separated, mut quoted, mut has_value) = (0, 0, false);
    for letter in inner.chars() {
        if let Some(open) = quote {
            if !is_escaped && letter == open {
                quote = None;
            }
            is_escaped = letter == '\\' && !is_escaped;
            continue;
        }
        match letter {
            '\'' | '"' => {
                quote = Some(letter);
                quoted += usize::from(depth == 0);
                has_value = true;
            }
            '[' | '{' | '(' => {
                depth += 1;
                has_value = true;
            }
            ']' | '}' | ')' => depth = depth.saturating_sub(1),
            ',' if depth == 0 => {
                separated += usize::from(has_value);
                has_value = false;
            }
            letter => has_value |= !letter.is_whitespace(),
        }
    }
    (separated + usize::from(has_value)).max(quoted)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn images_in_text() {
        for (text, expected) in [
            ("", 0),
            ("[]", 0),
            ("a.jpg", 1),
            ("my cat.jpg", 1),
            ("['a.jpg', 'b.jpg', 'c.jpg']", 3),
            ("['a.jpg' 'b.jpg']", 2),
            (r#"["a,b.jpg", "c.jpg"]"#, 2),
            ("[{'path': 'a.jpg', 'bytes': None}, {'path': 'b.jpg', 'bytes': None}]", 2),
            ("a.jpg;b.jpg", 2),
            ("a.jpg, b.PNG", 2),
            ("a.jpg,", 1),
            ("{'path': 'a.jpg', 'bytes': None}", 1),
            ("{'<image_00>': 'a.jpg', '<image_01>': 'b.jpg'}", 2),
        ] {
            assert_eq!(count(text), expected, "{text}");
        }
    }

    #[test]
    fn images_in_values() {
        for (json, all, files) in [
            (r#"{"<image_00>": "a.jpg", "<image_01>": "b.jpg"}"#, 2, 1),
            (r#"{"image1": "a", "image2": "b", "image3": null}"#, 2, 0),
            (r#"{"left": "a.jpg", "right": "b.jpg"}"#, 2, 1),
            (r#"{"path": "a.jpg", "bytes": null}"#, 1, 1),
            (r#"{"url": "http://x/a.jpg", "width": 5, "height": 6}"#, 1, 1),
            (r#"["a.jpg", null, "b.mp4"]"#, 2, 1),
            (r#"[{"type": "image", "path": "a"}, {"type": "video", "path": "b"}]"#, 2, 1),
            (r#""a.jpg;b.wav""#, 1, 1),
            (r#""CNN""#, 1, 0),
            ("null", 0, 0),
        ] {
            let value: Value<'_> = serde_json::from_str(json).expect(json);
            assert_eq!((images(&value, false), images(&value, true)), (all, files), "{json}");
            assert_eq!(has_clips(&value), json.contains(".mp4") || json.contains(".wav"), "{json}");
        }
    }
}
