//! Parses numbers in human and program notation.
//!
//! `1.261` is 1261 in some files and 1.261 in others. [`Notation::detect`] determines the notation per
//! column.

/// A parsed number.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Number {
    /// Written as an integer.
    Integer(i128),
    /// Written with thousands separators, decimals, an exponent or a suffix.
    Repaired(f64),
}

impl Number {
    pub(super) const fn value(self) -> f64 {
        match self {
            Self::Integer(integer) => integer as f64,
            Self::Repaired(value) => value,
        }
    }
}

/// Thousands and decimal notation of a column. Apostrophes, underscores and narrow spaces separate
/// thousands in both notations.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum Notation {
    /// `1,234.5`
    #[default]
    Point,
    /// `1.234,5`
    Comma,
}

/// Unit suffix of a number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Suffix {
    /// Bytes: `12 KB`.
    Bytes,
    /// Seconds: `3.2 s`.
    Seconds,
    /// `12 %`
    Percent,
}

/// Error for a column whose numbers have two interpretations.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Ambiguous {
    /// A value of the column.
    pub(super) value: String,
}

impl Notation {
    /// Determines the notation of a column.
    pub(super) fn detect<'v>(values: impl Iterator<Item = &'v str>) -> Result<Self, Ambiguous> {
        let (mut point, mut comma, mut small, mut large) = (0_u32, 0_u32, 0_u32, 0_u32);
        let mut ambiguous: Option<&str> = None;
        for value in values {
            let value = value.trim();
            let digits = value.trim_start_matches(['-', '+']);
            let (digits, has_exponent) = mantissa(digits).map_or((digits, false), |mantissa| (mantissa, true));
            if digits.is_empty()
                || digits.len() > 40
                || digits.contains(|c: char| !c.is_ascii_digit() && c != '.' && c != ',')
            {
                continue;
            }
            let (points, commas) = (digits.matches('.').count(), digits.matches(',').count());
            match (points, commas) {
                // A number with an exponent has no thousands separators.
                (1, 0) if has_exponent => point += 1,
                (0, 1) if has_exponent => comma += 1,
                _ if has_exponent => {}
                (0, 0) if digits.len() <= 3 => small += 1,
                (0, 0) => large += 1,
                (1, 0) if is_grouped(digits, '.') => ambiguous = ambiguous.or(Some(value)),
                (1, 0) => point += 1,
                (_, 0) => comma += u32::from(is_grouped(digits, '.')),
                // `1,234` is interpreted as English notation, as in spreadsheets with English
                // settings.
                (0, 1) if is_grouped(digits, ',') => {}
                (0, 1) => comma += 1,
                (0, _) => point += u32::from(is_grouped(digits, ',')),
                _ if digits.find(',') < digits.find('.') => point += 1,
                _ => comma += 1,
            }
        }
        match (ambiguous, point, comma) {
            (_, _, 1..) if comma > point => Ok(Self::Comma),
            (Some(_), 0, 0) if small > 0 && large == 0 => Ok(Self::Comma),
            (Some(value), 0, 0) => Err(Ambiguous { value: value.chars().take(40).collect() }),
            _ => Ok(Self::Point),
        }
    }

    /// Parses a number in this notation; returns `None` if the text is not a number. NaN and
    /// infinities are missing values.
    pub(super) fn read(self, text: &str) -> Option<Number> {
        let text = text.trim();
        if text.len() > 40 {
            return None;
        }
        // Fast path: short integers parse directly as i64.
        if let Ok(integer) = text.parse::<i64>() {
            return Some(Number::Integer(integer.into()));
        }
        if let Ok(integer) = text.parse::<i128>() {
            return Some(Number::Integer(integer));
        }
        if !text.starts_with(|c: char| c.is_ascii_digit() || matches!(c, '-' | '+' | '.')) {
            return None;
        }
        let (text, factor) = thousands_suffix(text);
        let (group, decimal) = match self {
            Self::Point => (',', '.'),
            Self::Comma => ('.', ','),
        };
        let (integer_part, rest) = text.split_at(text.find([decimal, 'e', 'E']).unwrap_or(text.len()));
        let is_group = |c: char| c == group || matches!(c, '_' | '\'' | '’' | '\u{202f}' | '\u{a0}' | '\u{2009}' | ' ');
        let plain = if integer_part.contains(is_group) {
            if rest.contains(['e', 'E']) {
                return None;
            }
            let unsigned = integer_part.trim_start_matches(['-', '+']);
            let mut groups = unsigned.split(is_group);
            let first = groups.next().unwrap_or_default();
            let sound = (1..=3).contains(&first.len())
                && groups.all(|group| group.len() == 3 && group.bytes().all(|byte| byte.is_ascii_digit()));
            if !sound {
                return None;
            }
            integer_part.replace(is_group, "")
        } else {
            integer_part.to_owned()
        };
        let rest = if decimal == ',' { rest.replacen(',', ".", 1) } else { rest.to_owned() };
        let number = format!("{plain}{rest}").parse::<f64>().ok()? * factor;
        number.is_finite().then_some(Number::Repaired(number))
    }
}

/// Parses a number with a decimal point.
pub(super) fn read(text: &str) -> Option<Number> {
    Notation::Point.read(text)
}

/// Parses a number with a unit suffix: bytes, seconds or percent.
pub(super) fn quantity(text: &str) -> Option<(f64, Suffix)> {
    let text = text.trim();
    let end = text.rfind(|c: char| c.is_ascii_digit() || c == '.')? + 1;
    let (number, unit) = text.split_at(end);
    let value = read(number)?.value();
    let unit = unit.trim().to_ascii_lowercase();
    let (factor, suffix) = match unit.as_str() {
        "b" | "byte" | "bytes" => (1.0, Suffix::Bytes),
        "kb" => (1e3, Suffix::Bytes),
        "mb" => (1e6, Suffix::Bytes),
        "gb" => (1e9, Suffix::Bytes),
        "kib" => (1024.0, Suffix::Bytes),
        "mib" => (1_048_576.0, Suffix::Bytes),
        "gib" => (1_073_741_824.0, Suffix::Bytes),
        "s" | "sec" | "secs" | "second" | "seconds" => (1.0, Suffix::Seconds),
        "ms" => (1e-3, Suffix::Seconds),
        "min" | "minutes" => (60.0, Suffix::Seconds),
        "%" => (1.0, Suffix::Percent),
        _ => return None,
    };
    Some((value * factor, suffix))
}

/// Returns whether a character separates words. Narrow and no-break spaces separate thousands.
pub(super) fn is_blank(c: char) -> bool {
    c.is_whitespace() && !matches!(c, '\u{202f}' | '\u{a0}' | '\u{2009}')
}

/// Splits a line at blanks.
pub(super) fn words(line: &str) -> impl Iterator<Item = &str> {
    line.split(is_blank).filter(|word| !word.is_empty())
}

/// Returns whether the line is one number with blanks before each group of three digits, as in `1 024`.
pub(super) fn is_spaced(line: &str) -> bool {
    let line = line.trim();
    line.contains(' ') && line.bytes().all(|byte| byte.is_ascii_digit() || byte == b' ') && is_grouped(line, ' ')
}

/// Returns whether the line is one number with a unit, as in `1.5 kB` or `512 tokens`.
pub(super) fn has_unit(line: &str) -> bool {
    let line = line.trim();
    let is_unit = |unit: &str| unit.chars().all(|c| c.is_alphabetic() || c == '%');
    matches!(words(line).collect::<Vec<_>>().as_slice(), [number, unit] if read(number).is_some() && is_unit(unit))
        && (quantity(line).is_some() || read(line).is_some())
}

/// Parses a suffix and its factor: `1.5k` is 1500, `512 tokens` is 512.
fn thousands_suffix(text: &str) -> (&str, f64) {
    let text = ["tokens", "token", "tok"].iter().find_map(|word| text.strip_suffix(word)).unwrap_or(text).trim_end();
    for (suffixes, factor) in [(['k', 'K'], 1e3), (['m', 'M'], 1e6)] {
        if let Some(number) = text.strip_suffix(suffixes) {
            return (number.trim_end(), factor);
        }
    }
    (text, 1.0)
}

/// Returns the digits before an exponent: `2,571` in `2,571e+03`.
fn mantissa(digits: &str) -> Option<&str> {
    let (mantissa, exponent) = digits.split_once(['e', 'E'])?;
    let exponent = exponent.strip_prefix(['-', '+']).unwrap_or(exponent);
    let is_exponent = !exponent.is_empty() && exponent.bytes().all(|byte| byte.is_ascii_digit());
    is_exponent.then_some(mantissa)
}

/// Returns whether a separator precedes each group of three digits, as in `12.345`, and the number
/// does not start with 0.
pub(super) fn is_grouped(digits: &str, separator: char) -> bool {
    let mut groups = digits.split(separator);
    let first = groups.next().unwrap_or_default();
    (1..=3).contains(&first.len()) && !first.starts_with('0') && groups.all(|group| group.len() == 3)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_as_people_write_them() {
        for (text, expected) in [
            ("17", Some(Number::Integer(17))),
            (" -5 ", Some(Number::Integer(-5))),
            ("1,234", Some(Number::Repaired(1234.0))),
            ("12_345_678", Some(Number::Repaired(12_345_678.0))),
            ("1'261", Some(Number::Repaired(1261.0))),
            ("1\u{202f}261", Some(Number::Repaired(1261.0))),
            ("1 261", Some(Number::Repaired(1261.0))),
            ("512.0", Some(Number::Repaired(512.0))),
            ("1e3", Some(Number::Repaired(1000.0))),
            ("1.5k", Some(Number::Repaired(1500.0))),
            ("2 K", Some(Number::Repaired(2000.0))),
            ("512 tokens", Some(Number::Repaired(512.0))),
            ("1,23", None),
            ("2,571e+03", None),
            ("2.571e+03", Some(Number::Repaired(2571.0))),
            ("12 34", None),
            ("2024-01-01", None),
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

    #[test]
    fn column_has_a_single_notation() {
        let notation = |values: &[&'static str]| Notation::detect(values.iter().copied());
        for (values, expected) in [
            (&["754,0", "1261,5"][..], Notation::Comma),
            (&["1.261,0", "754,0"], Notation::Comma),
            (&["1.234.567", "1.261"], Notation::Comma),
            (&["1.261", "754", "12.345"], Notation::Comma),
            (&["1,261", "754"], Notation::Point),
            (&["1,261.5", "754"], Notation::Point),
            (&["1.261", "1.5"], Notation::Point),
            (&["1261.000", "1.261"], Notation::Point),
            (&["0.261", "1.261"], Notation::Point),
            (&["512", "1024"], Notation::Point),
            (&["2,571e+03", "1,024e+03"], Notation::Comma),
            (&["2.571e+03", "1.024e+03"], Notation::Point),
        ] {
            assert_eq!(notation(values), Ok(expected), "{values:?}");
        }
        for values in [&["1.261", "2.345"][..], &["1.261", "2048", "512"]] {
            assert_eq!(notation(values), Err(Ambiguous { value: "1.261".to_owned() }), "{values:?}");
        }
        for (text, value) in
            [("754,0", 754.0), ("1.261", 1261.0), ("1.261,5", 1261.5), ("1'261", 1261.0), ("2,571e+03", 2571.0)]
        {
            assert_eq!(Notation::Comma.read(text), Some(Number::Repaired(value)), "{text}");
        }
    }

    #[test]
    fn quantities_have_units() {
        for (text, expected) in [
            ("12 KB", Some((12_000.0, Suffix::Bytes))),
            ("1.5MiB", Some((1_572_864.0, Suffix::Bytes))),
            ("3.2s", Some((3.2, Suffix::Seconds))),
            ("97%", Some((97.0, Suffix::Percent))),
            ("12", None),
            ("KB", None),
            ("v12b1x", None),
        ] {
            assert_eq!(quantity(text), expected, "{text}");
        }
    }
}
