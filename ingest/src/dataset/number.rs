//! A whole number as people and programs write it.

/// A number that was found.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Number {
    /// Written as a whole number.
    Whole(i128),
    /// Written with thousands separators, decimals or an exponent, and rounded.
    Repaired(f64),
}

/// Reads a number; `None` where there is none. NaN and infinities are missing values, not numbers.
pub(super) fn read(text: &str) -> Option<Number> {
    let text = text.trim();
    if text.len() > 40 {
        return None;
    }
    // Nearly every number of a file is short; parsing it as such takes a fraction of the time.
    if let Ok(whole) = text.parse::<i64>() {
        return Some(Number::Whole(whole.into()));
    }
    if let Ok(whole) = text.parse::<i128>() {
        return Some(Number::Whole(whole));
    }
    if !text.starts_with(|c: char| c.is_ascii_digit() || matches!(c, '-' | '+' | '.')) {
        return None;
    }
    let plain = if has_thousands(text) { text.replace([',', '_'], "") } else { text.to_owned() };
    plain.parse::<f64>().ok().filter(|number| number.is_finite()).map(Number::Repaired)
}

/// Whether commas or underscores stand before every three digits, as in "12,345".
fn has_thousands(text: &str) -> bool {
    let digits = text.trim_start_matches(['-', '+']);
    let whole = digits.split('.').next().unwrap_or_default();
    let mut groups = whole.split([',', '_']);
    let first = groups.next().unwrap_or_default();
    (1..=3).contains(&first.len())
        && groups.clone().next().is_some()
        && groups.all(|group| group.len() == 3 && group.bytes().all(|byte| byte.is_ascii_digit()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_as_people_write_them() {
        for (text, expected) in [
            ("17", Some(Number::Whole(17))),
            (" -5 ", Some(Number::Whole(-5))),
            ("1,234", Some(Number::Repaired(1234.0))),
            ("12_345_678", Some(Number::Repaired(12_345_678.0))),
            ("512.0", Some(Number::Repaired(512.0))),
            ("1e3", Some(Number::Repaired(1000.0))),
            ("1,23", None),
            ("nan", None),
            ("inf", None),
            ("1e999", None),
            ("0x10", None),
            ("abc", None),
            ("", None),
        ] {
            assert_eq!(read(text), expected, "{text:?}");
        }
    }
}
