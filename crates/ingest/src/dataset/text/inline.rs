//! Removes media from texts: placeholders and base64 data.

/// Names of media in placeholders: `<image>`, `<image_00>`, `<|video|>`. `img` needs a number, because
/// `<img>` begins a path.
const PLACEHOLDERS: [&str; 4] = ["image", "video", "audio", "img"];
/// End marker of a data URI header.
const BASE64: &str = ";base64,";
/// Maximum length of a data URI header, such as `data:image/png`.
const MAX_HEAD: usize = 100;

/// A text without media.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Plain {
    pub(super) text: String,
    /// Number of images without a number: placeholders and data.
    pub(super) images: usize,
    /// Numbers of the images in numbered placeholders. A number may occur several times.
    pub(super) numbered: Vec<u16>,
}

/// A media placeholder at the start of a text.
struct Placeholder<'t> {
    /// Text after the placeholder.
    rest: &'t str,
    is_image: bool,
    number: Option<u16>,
}

/// Returns the text without media; `None` if the text contains no media.
pub(super) fn without_media(text: &str) -> Option<Plain> {
    let has_data = text.contains(BASE64);
    let is_placeholder = |(at, _): (usize, &str)| placeholder(&text[at..]).is_some();
    if !has_data && !text.match_indices('<').any(is_placeholder) {
        return None;
    }
    let (text, images) = if has_data { without_data(text) } else { (text.to_owned(), 0) };
    let mut plain = Plain { images, ..Plain::default() };
    let mut rest = text.as_str();
    while let Some(at) = rest.find('<') {
        let (before, from) = rest.split_at(at);
        plain.text.push_str(before);
        rest = if let Some(Placeholder { rest, is_image, number }) = placeholder(from) {
            match number {
                Some(number) if is_image => plain.numbered.push(number),
                _ => plain.images += usize::from(is_image),
            }
            rest
        } else {
            plain.text.push('<');
            &from[1..]
        };
    }
    plain.text.push_str(rest);
    Some(plain)
}

/// Returns the number of image placeholders in a text.
pub(super) fn images(text: &str) -> usize {
    text.match_indices('<').filter(|(at, _)| placeholder(&text[*at..]).is_some_and(|found| found.is_image)).count()
}

/// Returns whether a text has a placeholder of a medium, for example "video".
pub(super) fn has(text: &str, medium: &str) -> bool {
    text.match_indices('<').any(|(at, _)| {
        let name = text[at..].trim_start_matches(['<', '|']);
        name.starts_with(medium) && placeholder(&text[at..]).is_some()
    })
}

fn placeholder(text: &str) -> Option<Placeholder<'_>> {
    let text = text.strip_prefix('<')?;
    let (text, has_bar) = text.strip_prefix('|').map_or((text, false), |text| (text, true));
    let name = *PLACEHOLDERS.iter().find(|name| text.starts_with(**name))?;
    let behind = &text[name.len()..];
    let digits = behind.strip_prefix(['_', '-', ' ']).unwrap_or(behind);
    let end = digits.find(|c: char| !c.is_ascii_digit()).unwrap_or(digits.len());
    let number: Option<u16> = digits[..end].parse().ok();
    let rest = if number.is_some() { &digits[end..] } else { behind };
    let rest = if has_bar { rest.strip_prefix('|')? } else { rest };
    let rest = rest.strip_prefix('>')?;
    (number.is_some() || name != "img").then_some(Placeholder {
        rest,
        is_image: matches!(name, "image" | "img"),
        number,
    })
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
        for (text, plain, images, numbered) in [
            ("a<image>b<video>", "ab", 1, &[][..]),
            ("![x](data:image/png;base64,iVBORw0KGgo=) abc", "![x]() abc", 1, &[]),
            ("data:audio/wav;base64,AAAA and data:image/jpeg;base64,BBBB", " and ", 1, &[]),
            ("data: 5;base64,x", "", 0, &[]),
            ("<image_00><image_01> and <image_00>", " and ", 0, &[0, 1, 0]),
            ("<image 1>a<|image_2|><img3><|image|>", "a", 1, &[1, 2, 3]),
            ("<|audio|><video_0>x < y", "x < y", 0, &[]),
        ] {
            let expected = Plain { text: plain.to_owned(), images, numbered: numbered.to_vec() };
            assert_eq!(without_media(text), Some(expected), "{text}");
        }
        for text in ["data: 5", "<img>a.jpg</img>", "<images>", "<image", "a < b", "<|image>", "<image_pad>"] {
            assert_eq!(without_media(text), None, "{text}");
        }
        assert!(has("a <|video_3|>", "video") && !has("<image>", "video") && !has("video", "video"));
        assert_eq!(images("<image><image_1><video>"), 2);
    }
}
