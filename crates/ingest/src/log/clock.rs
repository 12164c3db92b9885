//! Parses timestamps in text lines.

use jiff::civil::DateTime;
use jiff::tz::Offset;

/// Year first, the most common format; `/` may separate the date fields.
const YEAR_FIRST: &[u8] = b"0000-00-00 00:00:00";
/// Year last: `05/29/2024 16:22:01` and `29/05/2024 16:22:01`.
const YEAR_LAST: &[u8] = b"00/00/0000 00:00:00";

/// Date without separators, as in Primus.
const COMPACT: &[u8] = b"00000000 00:00:00";

/// Returns the last timestamp in a text as microseconds since 1970. Supported: `2024-05-06
/// 07:08:09` with a blank, comma or `T`; `20240506 07:08:09`; `05/06/2024 07:08:09 PM`; Unix seconds or
/// milliseconds as the first word. A fraction may follow after a point or comma.
pub(super) fn time_us(text: &str) -> Option<i64> {
    year_first(text).or_else(|| year_last(text)).or_else(|| compact(text)).or_else(|| since_1970(text))
}

/// Returns the last match position. Zeros in the pattern match any digit.
fn find(text: &[u8], form: &[u8]) -> Option<usize> {
    let matches = |window: &[u8]| {
        window.iter().zip(form).all(|(&byte, &form)| match form {
            b'0' => byte.is_ascii_digit(),
            b'-' => matches!(byte, b'-' | b'/'),
            b' ' => matches!(byte, b' ' | b'T' | b','),
            form => byte == form,
        })
    };
    (0..=text.len().checked_sub(form.len())?).rev().find(|&at| matches(&text[at..at + form.len()]))
}

fn year_first(text: &str) -> Option<i64> {
    let bytes = text.as_bytes();
    let at = find(bytes, YEAR_FIRST)?;
    let (date_time, after) = bytes[at..].split_at(YEAR_FIRST.len());
    instant((digits(&date_time[..4]), digits(&date_time[5..7]), digits(&date_time[8..10])), &date_time[11..], after)
}

/// Interprets the first number as the month unless it exceeds 12.
fn year_last(text: &str) -> Option<i64> {
    let bytes = text.as_bytes();
    let at = find(bytes, YEAR_LAST)?;
    let (date_time, after) = bytes[at..].split_at(YEAR_LAST.len());
    let (first, second) = (digits(&date_time[..2]), digits(&date_time[3..5]));
    let (month, day) = if first > 12 { (second, first) } else { (first, second) };
    instant((digits(&date_time[6..10]), month, day), &date_time[11..], after)
}

fn compact(text: &str) -> Option<i64> {
    let bytes = text.as_bytes();
    let at = find(bytes, COMPACT).filter(|&at| at == 0 || !bytes[at - 1].is_ascii_digit())?;
    let (date_time, after) = bytes[at..].split_at(COMPACT.len());
    instant((digits(&date_time[..4]), digits(&date_time[4..6]), digits(&date_time[6..8])), &date_time[9..], after)
}

fn since_1970(text: &str) -> Option<i64> {
    let word = text.split_whitespace().next()?.trim_matches(['[', ']', ':', ',']);
    let (integer, fraction) = word.split_once('.').unwrap_or((word, ""));
    if !word.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.')
        || !fraction.bytes().all(|byte| byte.is_ascii_digit())
    {
        return None;
    }
    let count: i64 = integer.parse().ok()?;
    match integer.len() {
        10 => count.checked_mul(1_000_000)?.checked_add(i64::from(micros(fraction.as_bytes()))),
        13 => count.checked_mul(1000),
        _ => None,
    }
}

/// Converts year, month, day, the bytes of `00:00:00` and the remaining text.
fn instant((year, month, day): (i16, i16, i16), clock: &[u8], after: &[u8]) -> Option<i64> {
    let fraction = after.strip_prefix(b".").or_else(|| after.strip_prefix(b",")).unwrap_or_default();
    let half = after.strip_prefix(b" ").and_then(|after| after.get(..2));
    let hour = match (digits(&clock[..2]), half) {
        (12, Some(b"AM")) => 0,
        (hour @ 1..=11, Some(b"PM")) => hour + 12,
        (hour, _) => hour,
    };
    let small = |number: i16| i8::try_from(number).ok();
    let (month, day, hour) = (small(month)?, small(day)?, small(hour)?);
    let (minute, second) = (small(digits(&clock[3..5]))?, small(digits(&clock[6..8]))?);
    let civil = DateTime::new(year, month, day, hour, minute, second, micros(fraction) * 1000).ok()?;
    Offset::UTC.to_timestamp(civil).ok().map(jiff::Timestamp::as_microsecond)
}

/// Parses a short digit sequence that fits the type.
fn digits(bytes: &[u8]) -> i16 {
    bytes.iter().fold(0, |sum, byte| sum * 10 + i16::from(byte - b'0'))
}

/// Converts fraction digits to microseconds.
fn micros(fraction: &[u8]) -> i32 {
    let digits = fraction.iter().take_while(|byte| byte.is_ascii_digit()).take(6);
    digits.fold((0, 100_000), |(sum, unit), digit| (sum + i32::from(digit - b'0') * unit, unit / 10)).0
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 2023-11-07T01:55:23Z is Unix time 1,699,322,123 (`date -u -d ... +%s`).
    #[test]
    fn clock_times() {
        assert_eq!(time_us("[2023-11-07 01:55:23,711] [INFO]"), Some(1_699_322_123_711_000));
        assert_eq!(time_us("x 2023-11-07T01:55:23.5Z"), Some(1_699_322_123_500_000));
        assert_eq!(time_us("[2023-11-07 01:55:23]"), Some(1_699_322_123_000_000));
        assert_eq!(time_us("[2023-13-07 01:55:23]"), None);
        assert_eq!(time_us("2023"), None);
        assert_eq!(time_us("[20231107 01:55:23][rank-7/8]"), Some(1_699_322_123_000_000));
        assert_eq!((time_us("120231107 01:55:23"), time_us("20231307 01:55:23")), (None, None));
        assert_eq!(time_us("2023/11/07 01:55:23 - mmengine - INFO"), Some(1_699_322_123_000_000));
        assert_eq!(time_us("11/07/2023 01:55:23 - INFO"), Some(1_699_322_123_000_000));
        assert_eq!(time_us("11/07/2023 12:55:23 AM"), Some(1_699_318_523_000_000));
        assert_eq!(time_us("11/07/2023 01:55:23 PM"), Some(1_699_365_323_000_000));
        assert_eq!(time_us("31/12/2023 00:00:00.5"), Some(1_703_980_800_500_000));
        assert_eq!(
            (time_us("1699322123.25 root"), time_us("1699322123250 x")),
            (Some(1_699_322_123_250_000), Some(1_699_322_123_250_000))
        );
        assert_eq!((time_us("169932 x"), time_us("16993x2123 y")), (None, None));
    }
}
