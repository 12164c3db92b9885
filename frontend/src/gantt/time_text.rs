//! Time formats: SI units with three significant digits, or abstract units on pages without
//! physical times.

use std::cell::Cell;

/// Time units, largest first: nanoseconds per unit, and symbol.
pub(crate) const UNITS: [(f64, &str); 4] = [(1e9, "s"), (1e6, "ms"), (1e3, "µs"), (1.0, "ns")];

/// Symbol of the abstract time unit.
const UNIT_SYMBOL: &str = "u";

/// Meaning of times and bytes in the page's timelines.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(crate) enum Measure {
    /// Physical times and bytes.
    #[default]
    Physical,
    /// Abstract time units and activations.
    Units {
        /// Nanoseconds per abstract time unit.
        unit_ns: f64,
        /// Bytes per activation.
        activation_bytes: f64,
    },
}

thread_local! {
    static MEASURE: Cell<Measure> = const { Cell::new(Measure::Physical) };
}

pub(crate) fn measure() -> Measure {
    MEASURE.get()
}

pub(crate) fn set_measure(measure: Measure) {
    MEASURE.set(measure);
}

/// Largest unit not greater than a time; nanoseconds for times below 1 ns.
pub(crate) fn time_unit(ns: f64) -> (f64, &'static str) {
    if let Measure::Units { unit_ns, .. } = measure() {
        return (unit_ns, UNIT_SYMBOL);
    }
    UNITS.into_iter().find(|&(size, _)| ns.abs() >= size).unwrap_or(UNITS[UNITS.len() - 1])
}

/// Number of decimals for three significant digits.
fn value_decimals(value: f64) -> usize {
    match value.abs() {
        v if v >= 99.95 => 0,
        v if v >= 9.995 => 1,
        _ => 2,
    }
}

/// Formats a duration, for example "12.4 ms".
pub(crate) fn duration(ns: f64) -> String {
    if let Measure::Units { unit_ns, .. } = measure() {
        return format!("{} {UNIT_SYMBOL}", plain(ns / unit_ns, value_decimals(ns / unit_ns)));
    }
    let (mut size, mut symbol) = time_unit(ns);
    // 999.7 µs would be rounded to "1000 µs".
    if ns.abs() / size >= 999.5
        && let Some(&larger) = UNITS.iter().rev().find(|unit| unit.0 > size)
    {
        (size, symbol) = larger;
    }
    let value = ns / size;
    let decimals = if symbol == "ns" { 0 } else { value_decimals(value) };
    format!("{value:.decimals$} {symbol}")
}

/// Formats start and end of an interval in a common unit and returns the unit. Adds digits if three
/// digits cannot distinguish the values.
pub(crate) fn interval(start_ns: f64, end_ns: f64) -> (String, String, &'static str) {
    let (size, symbol) = time_unit(end_ns);
    let (start, end) = (start_ns / size, end_ns / size);
    let in_units = matches!(measure(), Measure::Units { .. });
    let mut decimals = if symbol == "ns" { 0 } else { value_decimals(end) };
    let mut resolution = [1.0, 0.1, 0.01][decimals];
    // The resolution must be at most 1/10 of the length. Digits below one nanosecond are
    // meaningless.
    while end > start && resolution > (end - start) / 10.0 && resolution * size > 1.5 {
        decimals += 1;
        resolution /= 10.0;
    }
    if in_units {
        return (plain(start, decimals), plain(end, decimals), symbol);
    }
    (format!("{start:.decimals$}"), format!("{end:.decimals$}"), symbol)
}

/// Formats bytes: "12.4 GiB", or "2.5 activations".
pub(crate) fn memory(bytes: u64) -> String {
    match measure() {
        Measure::Physical => format!("{:.1} GiB", bytes as f64 / (1_u64 << 30) as f64),
        Measure::Units { activation_bytes, .. } => {
            format!("{} activations", plain(bytes as f64 / activation_bytes, 2))
        }
    }
}

/// Removes trailing zeros, because abstract times are often integers.
fn plain(value: f64, decimals: usize) -> String {
    let text = format!("{value:.decimals$}");
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').to_owned() } else { text }
}

/// Formats an interval, for example "12.4 – 19.1 ms".
pub(crate) fn range(start_ns: f64, end_ns: f64) -> String {
    let (start, end, symbol) = interval(start_ns, end_ns);
    format!("{start} – {end} {symbol}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_have_three_digits_and_a_unit() {
        for (ns, expected) in [
            (0.0, "0 ns"),
            (7.0, "7 ns"),
            (999.0, "999 ns"),
            (1_000.0, "1.00 µs"),
            (12_345.0, "12.3 µs"),
            (999_700.0, "1.00 ms"),
            (9_999_000.0, "10.0 ms"),
            (123_456_789.0, "123 ms"),
            (16_230_000_000.0, "16.2 s"),
            (1_234_000_000_000.0, "1234 s"),
        ] {
            assert_eq!(duration(ns), expected);
        }
    }

    #[test]
    fn both_ends_share_a_unit_and_differ() {
        assert_eq!(range(12_400_000.0, 19_100_000.0), "12.4 – 19.1 ms");
        assert_eq!(range(9_410_000_000.0, 9_980_000_000.0), "9.41 – 9.98 s");
        // 3 ms after 12 s: 1/10 of the length is 0.3 ms, which needs four decimals of a second.
        assert_eq!(range(12_400_000_000.0, 12_403_000_000.0), "12.4000 – 12.4030 s");
        assert_eq!(range(12_400_000_000.0, 12_400_000_003.0), "12.400000000 – 12.400000003 s");
        assert_eq!(range(5.0, 5.0), "5 – 5 ns");
    }

    #[test]
    fn units_are_plain_numbers() {
        set_measure(Measure::Units { unit_ns: 1e6, activation_bytes: 1e6 });
        assert_eq!(duration(12e6), "12 u");
        assert_eq!(duration(2.5e6), "2.5 u");
        assert_eq!(range(0.0, 33e6), "0 – 33 u");
        assert_eq!(memory(2_500_000), "2.5 activations");
        set_measure(Measure::Physical);
        assert_eq!(memory(3 << 30), "3.0 GiB");
    }
}
