//! Parses bins written as text: `0-512`, `[0, 512)`, `(0.0, 512.0]`, `0..512`, `<512`, `≤512`,
//! `4096+`, `over 4096`.

use super::number;

/// Words before an upper edge.
const UP_TO: [&str; 7] = ["<=", "≤", "<", "up to ", "under ", "below ", "less than "];
/// Words before a lower edge.
const FROM: [&str; 7] = [">=", "≥", ">", "over ", "above ", "more than ", "at least "];
/// Words after a lower edge.
const AND_MORE: [&str; 6] = ["+", " and more", " or more", " and above", " and longer", " or longer"];

/// A bin written as text.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Interval {
    pub(super) left: f64,
    /// Upper edge; `None` if the bin is open.
    pub(super) right: Option<f64>,
}

/// Parses a bin; returns `None` if the text is not a bin, for example a number or a date.
pub(super) fn read(text: &str) -> Option<Interval> {
    if text.len() > 80 {
        return None;
    }
    let text = &text.trim().to_lowercase();
    let edge = |text: &str| number(text.trim()).filter(|edge| *edge >= 0.0);
    let closed = |left: f64, right: f64| (left <= right).then_some(Interval { left, right: Some(right) });
    let open = |left: f64| Some(Interval { left, right: None });
    if let Some(right) = UP_TO.iter().find_map(|phrase| text.strip_prefix(phrase)) {
        return closed(0.0, edge(right)?);
    }
    let behind = || AND_MORE.iter().find_map(|phrase| text.strip_suffix(phrase));
    if let Some(left) = FROM.iter().find_map(|phrase| text.strip_prefix(phrase)).or_else(behind) {
        return open(edge(left)?);
    }
    let inside = text.strip_prefix(['[', '(']).and_then(|text| text.strip_suffix([']', ')']));
    let (left, right) = match inside {
        Some(inside) => inside.split_once(',')?,
        None => [" to ", "..", "–", "-", "~"].iter().find_map(|separator| text.split_once(separator))?,
    };
    let right = right.trim();
    // The first interval of pandas' `cut` has an edge slightly below the first value.
    let left = number(left.trim()).filter(|left| *left > -1.0)?.max(0.0);
    match right {
        "inf" | "+inf" | "infinity" | "np.inf" | "∞" | "" => open(left),
        _ => closed(left, edge(right)?),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bins_as_people_write_them() {
        for (text, left, right) in [
            ("0-512", 0.0, Some(512.0)),
            ("513 - 1,024", 513.0, Some(1024.0)),
            ("[0, 512)", 0.0, Some(512.0)),
            ("(0.0, 512.0]", 0.0, Some(512.0)),
            ("(-0.001, 512.0]", 0.0, Some(512.0)),
            ("0..512", 0.0, Some(512.0)),
            ("512 to 1024", 512.0, Some(1024.0)),
            ("<512", 0.0, Some(512.0)),
            ("4096+", 4096.0, None),
            (">= 4096", 4096.0, None),
            ("[4096, inf)", 4096.0, None),
            ("<=512", 0.0, Some(512.0)),
            ("≤512", 0.0, Some(512.0)),
            ("≤ 512", 0.0, Some(512.0)),
            ("up to 512 tokens", 0.0, Some(512.0)),
            (">8192", 8192.0, None),
            ("≥8192", 8192.0, None),
            ("8192+", 8192.0, None),
            ("8k+", 8000.0, None),
            ("8192 and more", 8192.0, None),
            ("More than 8192", 8192.0, None),
        ] {
            assert_eq!(read(text), Some(Interval { left, right }), "{text}");
        }
        for other in ["512", "2024-05-01", "-3", "a-b", "512-0", "", "[512)", "1.5e3", "(512, 0]"] {
            assert_eq!(read(other), None, "{other}");
        }
    }
}
