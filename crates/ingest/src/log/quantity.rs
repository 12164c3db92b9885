//! Values with units: numbers with a suffix (`45.3TFLOPS`, `1.02K`), names with a unit (`elapsed
//! time (ms)`), durations.

use super::text::{number, number_with_commas};

/// A number and its suffix.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Quantity<'a> {
    /// Parsed number, possibly NaN or infinite.
    pub(super) value: f64,
    /// Suffix without blanks: a unit, a multiplier, or empty.
    pub(super) suffix: &'a str,
}

/// Parses a number with an optional suffix (letters, `%` and `/`). Returns `None` for other text.
pub(super) fn quantity(text: &str) -> Option<Quantity<'_>> {
    let text = text.trim();
    if let Some(value) = number(text) {
        return Some(Quantity { value, suffix: "" });
    }
    let is_numeric = |c: char| c.is_ascii_digit() || matches!(c, '.' | ',' | '+' | '-');
    let mut end = text.find(|c| !is_numeric(c)).unwrap_or(text.len());
    // An exponent is part of the number; the letter E in a unit is not.
    let rest = text.get(end..)?;
    if let Some(exponent) = rest.strip_prefix(['e', 'E']) {
        let digits = exponent.strip_prefix(['+', '-']).unwrap_or(exponent);
        let count = digits.bytes().take_while(u8::is_ascii_digit).count();
        if count > 0 {
            end += rest.len() - digits.len() + count;
        }
    }
    let (digits, suffix) = text.split_at_checked(end)?;
    let suffix = suffix.trim_start();
    let is_suffix = suffix.len() <= 12 && suffix.chars().all(|c| c.is_ascii_alphabetic() || matches!(c, '%' | '/'));
    let value = number_with_commas(digits)?;
    is_suffix.then_some(Quantity { value, suffix })
}

/// Returns the factor of a decimal multiplier, such as `K` in 1.02K; `None` for other suffixes.
pub(super) fn multiplier(suffix: &str) -> Option<f64> {
    Some(match suffix {
        "K" | "k" => 1e3,
        "M" => 1e6,
        "B" | "G" => 1e9,
        "T" => 1e12,
        _ => return None,
    })
}

/// Physical dimension of a unit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Dimension {
    /// Base unit: second.
    Time,
    /// Base unit: GiB.
    Memory,
    /// Base unit: TFLOP/s.
    Flops,
    /// Ratio; base unit: 1.
    Share,
}

/// Returns the dimension of a unit and the number of units per base unit.
pub(super) fn unit(text: &str) -> Option<(Dimension, f64)> {
    use Dimension::{Flops, Memory, Share, Time};
    const GIB: f64 = 1_073_741_824.0;
    Some(match text.trim().to_ascii_lowercase().as_str() {
        "s" | "sec" | "secs" | "second" | "seconds" => (Time, 1.0),
        "ms" | "msec" | "millis" | "milliseconds" => (Time, 1e3),
        "us" | "usec" | "µs" | "micros" | "microseconds" => (Time, 1e6),
        "ns" | "nsec" | "nanos" | "nanoseconds" => (Time, 1e9),
        "min" | "minutes" => (Time, 1.0 / 60.0),
        "h" | "hour" | "hours" => (Time, 1.0 / 3600.0),
        "gib" => (Memory, 1.0),
        "mib" => (Memory, 1024.0),
        "kib" => (Memory, 1_048_576.0),
        "bytes" | "byte" => (Memory, GIB),
        "gb" => (Memory, GIB / 1e9),
        "mb" => (Memory, GIB / 1e6),
        "tflops" | "tflop/s" | "tflop/s/gpu" | "tflop/s/device" | "tflops/gpu" => (Flops, 1.0),
        "gflops" | "gflop/s" => (Flops, 1e3),
        "pflops" | "pflop/s" => (Flops, 1e-3),
        "flops" | "flop/s" => (Flops, 1e12),
        "%" | "percent" => (Share, 100.0),
        "fraction" => (Share, 1.0),
        _ => return None,
    })
}

/// Splits a name and its trailing unit: `step_time (ms)`, `step_time_ms`, `timing in s`.
pub(super) fn name_and_unit(name: &str) -> (&str, Option<&str>) {
    let name = name.trim();
    if let Some((base, inside)) = name.strip_suffix(')').and_then(|name| name.rsplit_once('(')) {
        return (base.trim_end_matches([' ', '_']), Some(inside));
    }
    for separator in [" in ", "_", "-", " "] {
        if let Some((base, last)) = name.rsplit_once(separator)
            && unit(last).is_some()
        {
            return (base, Some(last));
        }
    }
    (name, None)
}

/// Parses a duration to seconds: `1h 2m 3s`, `2m 25s`, `12s`, `0:01:23`, `1 day, 0:01:23`, `22:29`.
pub(super) fn duration_s(text: &str) -> Option<f64> {
    let text = text.trim();
    if text.len() > 40 {
        return None;
    }
    let (days, clock) = match text.split_once(" day") {
        Some((days, rest)) => (number(days)?, rest.trim_start_matches(['s', ',', ' '])),
        None => (0.0, text),
    };
    if clock.contains(':') {
        let sum = clock.split(':').try_fold(0.0, |sum, part| {
            let part = number(part).filter(|part| (0.0..1e7).contains(part))?;
            Some(sum * 60.0 + part)
        })?;
        return Some(days * 86_400.0 + sum);
    }
    let mut sum = 0.0;
    for part in clock.split_whitespace() {
        let at = part.find(|c: char| !c.is_ascii_digit() && c != '.')?;
        let (value, letter) = part.split_at(at);
        let seconds = match letter {
            "d" => 86_400.0,
            "h" => 3600.0,
            "m" => 60.0,
            "s" => 1.0,
            _ => return None,
        };
        sum += number(value)? * seconds;
    }
    (!clock.is_empty()).then_some(sum)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_with_suffixes() {
        let read = |text| quantity(text).map(|quantity| (quantity.value, quantity.suffix));
        assert_eq!(read("45.3TFLOPS"), Some((45.3, "TFLOPS")));
        assert_eq!(read("1.02K"), Some((1.02, "K")));
        assert_eq!(read("65.04 ms"), Some((65.04, "ms")));
        assert_eq!(read("1.5e-05"), Some((1.5e-5, "")));
        assert_eq!(read("1.5E+01s"), Some((15.0, "s")));
        assert_eq!(read("4,376"), Some((4376.0, "")));
        assert_eq!(read("150.21GB"), Some((150.21, "GB")));
        assert_eq!((read("2.0[INFO]"), read("0x10"), read("n/a"), read("")), (None, None, None, None));
    }

    #[test]
    fn names_with_units() {
        assert_eq!(name_and_unit("elapsed time per iteration (ms)"), ("elapsed time per iteration", Some("ms")));
        assert_eq!(name_and_unit("elapsed_time_per_iteration_ms"), ("elapsed_time_per_iteration", Some("ms")));
        assert_eq!(name_and_unit("train_step_timing in s"), ("train_step_timing", Some("s")));
        assert_eq!(name_and_unit("lm loss"), ("lm loss", None));
    }

    #[test]
    fn durations() {
        assert_eq!(
            (duration_s("2m 25s"), duration_s("12s"), duration_s("1h 2m 3s")),
            (Some(145.0), Some(12.0), Some(3723.0))
        );
        assert_eq!((duration_s("0:01:23"), duration_s("22:29")), (Some(83.0), Some(1349.0)));
        assert_eq!((duration_s("1 day, 0:00:05"), duration_s("soon"), duration_s("")), (Some(86_405.0), None, None));
    }
}
