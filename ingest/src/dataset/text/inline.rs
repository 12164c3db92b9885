//! Removes media from texts: placeholders and base64 data.

/// Media placeholders. `<image>` counts as an image.
const PLACEHOLDERS: [&str; 3] = ["<image>", "<video>", "<audio>"];
/// End marker of a data URI header.
const BASE64: &str = ";base64,";
/// Maximum length of a data URI header, such as `data:image/png`.
const MAX_HEAD: usize = 100;

/// Returns the text without media, and the image count; `None` if the text contains no media.
pub(super) fn without_media(text: &str) -> Option<(String, usize)> {
    let has_placeholders = PLACEHOLDERS.iter().any(|placeholder| text.contains(placeholder));
    let has_data = text.contains(BASE64);
    if !has_placeholders && !has_data {
        return None;
    }
    let (plain, images) = if has_data { without_data(text) } else { (text.to_owned(), 0) };
    let placed = plain.matches("<image>").count();
    let plain = PLACEHOLDERS.iter().fold(plain, |text, placeholder| text.replace(placeholder, ""));
    Some((plain, images + placed))
}

/// Removes data URIs (`data:image/png;base64,...`) from a text. Returns the text and the image
/// count.
fn without_data(text: &str) -> (String, usize) {
    let (mut plain, mut images, mut rest) = (String::new(), 0, text);
    while let Some(at) = rest.find("data:") {
        let (before, uri) = rest.split_at(at);
        plain.push_str(before);
        let head = uri.as_bytes().windows(BASE64.len()).take(MAX_HEAD).position(|part| part == BASE64.as_bytes());
        let Some(head) = head else {
            plain.push_str("data:");
            rest = uri.strip_prefix("data:").unwrap_or_default();
            continue;
        };
        images += usize::from(uri.starts_with("data:image/"));
        let (_, data) = uri.split_at(head + BASE64.len());
        rest = data.trim_start_matches(|c: char| c.is_ascii_alphanumeric() || matches!(c, '+' | '/' | '-' | '_' | '='));
    }
    plain.push_str(rest);
    (plain, images)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn media_are_taken_out() {
        for (text, plain, images) in [
            ("a<image>b<video>", "ab", 1),
            ("![x](data:image/png;base64,iVBORw0KGgo=) abc", "![x]() abc", 1),
            ("data:audio/wav;base64,AAAA and data:image/jpeg;base64,BBBB", " and ", 1),
            ("data: 5;base64,x", "", 0),
        ] {
            assert_eq!(without_media(text), Some((plain.to_owned(), images)), "{text}");
        }
        assert_eq!(without_media("data: 5"), None);
    }
}
