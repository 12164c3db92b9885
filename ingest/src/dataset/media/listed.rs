//! Counts images in lists that are written as one text: `['a.jpg', 'b.jpg']`, `["a.jpg"]`,
//! `a.jpg;b.jpg`.

/// File extensions of images.
const ENDINGS: [&str; 9] = [".jpg", ".jpeg", ".png", ".webp", ".gif", ".bmp", ".tif", ".tiff", ".heic"];

/// Returns the image count of a text: list elements, separated file names, or one.
pub(in super::super) fn count(text: &str) -> u32 {
    let text = text.trim();
    if text.is_empty() {
        return 0;
    }
    if let Some(inner) = text.strip_prefix('[').and_then(|text| text.strip_suffix(']')) {
        return u32::try_from(elements(inner)).unwrap_or(u32::MAX);
    }
    let separator = [';', '|', ',', '\n', ' '].into_iter().find(|&separator| {
        let mut names = text.split(separator).map(str::trim).filter(|name| !name.is_empty()).peekable();
        text.contains(separator) && names.peek().is_some() && names.all(is_image)
    });
    let names = separator.map_or(1, |separator| text.split(separator).filter(|name| !name.trim().is_empty()).count());
    u32::try_from(names).unwrap_or(u32::MAX)
}

fn is_image(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    ENDINGS.iter().any(|ending| name.ends_with(ending))
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
        ] {
            assert_eq!(count(text), expected, "{text}");
        }
    }
}
