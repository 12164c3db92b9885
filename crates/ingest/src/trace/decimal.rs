//! Converts decimal numbers to integer nanoseconds without floating point.

/// A parsed time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Exact {
    pub(super) nanos: i64,
    /// True if digits below one nanosecond were rounded.
    pub(super) rounded: bool,
}

/// Parses a decimal number in units of 10^`power` nanoseconds; `None` if it is not a number or
/// exceeds 292 years.
pub(super) fn nanos(text: &str, power: i32) -> Option<Exact> {
    let text = text.trim();
    let (negative, unsigned) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    let (mantissa, exponent) = match unsigned.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => {
            (mantissa, exponent.parse::<i32>().ok().filter(|power| (-399..400).contains(power))?)
        }
        None => (unsigned, 0),
    };
    let (integer, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    if integer.is_empty() && fraction.is_empty() {
        return None;
    }
    let mut digits: u128 = 0;
    let mut lost = 0;
    let mut inexact = false;
    for byte in integer.bytes().chain(fraction.bytes()) {
        let digit = char::from(byte).to_digit(10)?;
        // Beyond thirty digits, the time is out of range or the digits are below one nanosecond.
        if digits > 10_u128.pow(30) {
            lost += 1;
            inexact |= digit > 0;
        } else {
            digits = digits * 10 + u128::from(digit);
        }
    }
    let shift = exponent.checked_add(power)?.checked_sub(i32::try_from(fraction.len()).ok()?)?.checked_add(lost)?;
    let ten = |power: i32| 10_u128.checked_pow(u32::try_from(power).ok()?);
    let value = if digits == 0 {
        0
    } else if shift >= 0 {
        digits.checked_mul(ten(shift)?)?
    } else if let Some(unit) = ten(-shift) {
        inexact |= !digits.is_multiple_of(unit);
        digits / unit + u128::from(digits % unit >= unit.div_ceil(2))
    } else {
        inexact = true;
        0
    };
    let nanos = i64::try_from(value).ok()?;
    Some(Exact { nanos: if negative { -nanos } else { nanos }, rounded: inexact })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn microseconds_keep_their_nanoseconds() {
        for (text, expected) in [
            ("1712195495519689.012", Some((1_712_195_495_519_689_012, false))),
            ("4458676524670.502", Some((4_458_676_524_670_502, false))),
            ("1.28", Some((1280, false))),
            ("92", Some((92_000, false))),
            ("1.712195495519689012e15", Some((1_712_195_495_519_689_012, false))),
            ("0.0005", Some((1, true))),
            ("0.0004", Some((0, true))),
            ("-3.5", Some((-3500, false))),
            ("0e300", Some((0, false))),
            ("1e-300", Some((0, true))),
            ("1e30", None),
            ("9223372036854775.807", Some((i64::MAX, false))),
            ("9223372036854775.808", None),
            ("NaN", None),
            ("", None),
            (".", None),
            ("1e", None),
            ("1e-2147483648", None),
            ("1e2147483647", None),
            ("1e-399", Some((0, true))),
            ("1.2.3", None),
        ] {
            let read = nanos(text, 3).map(|exact| (exact.nanos, exact.rounded));
            assert_eq!(read, expected, "{text}");
        }
    }

    proptest! {
        #[test]
        fn every_nanosecond_comes_back(value in 0..i64::MAX) {
            let text = format!("{}.{:03}", value / 1000, value % 1000);
            prop_assert_eq!(nanos(&text, 3), Some(Exact { nanos: value, rounded: false }));
            prop_assert_eq!(nanos(&value.to_string(), 0), Some(Exact { nanos: value, rounded: false }));
        }

        #[test]
        fn any_text_is_read_or_rejected(text in "[-+0-9.eE]{0,60}", power in -3..9) {
            let _ = nanos(&text, power);
        }
    }
}
