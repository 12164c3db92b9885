//! Number formats with SI prefixes and three significant digits.

use api::planner::certainty::Interval;

/// Formats with three significant digits, including trailing zeros for column alignment.
pub(crate) fn three_digits(value: f64) -> String {
    if !value.is_finite() {
        return "–".to_owned();
    }
    if value == 0.0 {
        return "0".to_owned();
    }
    let rounded = round_to_three(value);
    // More digits than these are no number that a reader can compare.
    if rounded.abs() >= 1e15 {
        return format!("{rounded:.2e}").replace('-', "−");
    }
    let magnitude = rounded.abs().log10().floor() as i32;
    let decimals = (2 - magnitude).clamp(0, 9) as usize;
    let sign = if rounded < 0.0 { "−" } else { "" };
    let text = format!("{:.decimals$}", rounded.abs());
    if magnitude >= 3 { format!("{sign}{}", group(&text)) } else { format!("{sign}{text}") }
}

/// Rounds before the unit is chosen, so that 999.6 ms is not shown as "1000 ms".
fn round_to_three(value: f64) -> f64 {
    format!("{value:.2e}").parse().unwrap_or(value)
}

fn scaled(value: f64, steps: &[(f64, &str)]) -> String {
    let rounded = round_to_three(value);
    let (unit, name) =
        steps.iter().find(|(unit, _)| rounded.abs() >= *unit).or(steps.last()).copied().unwrap_or((1.0, ""));
    if name.is_empty() { three_digits(value / unit) } else { format!("{}\u{202f}{name}", three_digits(value / unit)) }
}

/// Formats a duration, for example "16.2 s", "431 ms" or "12.3 µs".
pub(crate) fn seconds(value: f64) -> String {
    if value == 0.0 {
        return "0\u{202f}s".to_owned();
    }
    scaled(value, &[(1.0, "s"), (1e-3, "ms"), (1e-6, "µs"), (1e-9, "ns")])
}

/// Formats the 80 % interval of a duration.
pub(crate) fn seconds_interval(interval: Interval) -> String {
    format!("80 %: {} to {}", seconds(interval.low), seconds(interval.high))
}

/// Formats a difference of durations with its sign, for example "−9.9 s".
pub(crate) fn seconds_difference(value: f64) -> String {
    let sign = if value < 0.0 { "−" } else { "+" };
    format!("{sign}{}", seconds(value.abs()))
}

/// Formats memory in GiB, for example "71.3 GiB".
pub(crate) fn gib(value: f64) -> String {
    format!("{}\u{202f}GiB", three_digits(value))
}

/// Writes the memory in a text of the engine as the page does: "needs 193.1 GiB" becomes "needs 193 GiB".
pub(crate) fn gib_in(text: &str) -> String {
    let mut parts = text.split(" GiB").peekable();
    let mut written = String::new();
    while let Some(part) = parts.next() {
        let head = part.trim_end_matches(|sign: char| sign.is_ascii_digit() || sign == '.');
        match (parts.peek(), part[head.len()..].parse()) {
            (None, _) => written.push_str(part),
            (Some(_), Ok(value)) => written.extend([head, &gib(value)]),
            (Some(_), Err(_)) => written.extend([part, " GiB"]),
        }
    }
    written
}

/// Adds thousands separators to the whole numbers in a sentence, for example "8192 tokens". Years and parts of names
/// stay.
pub(crate) fn grouped_in(sentence: &str) -> String {
    let word = |word: &str| {
        let (start, text) = word.strip_prefix('(').map_or(("", word), |text| ("(", text));
        let number = text.trim_end_matches(['.', ',', ';', ':', ')']);
        let is_year = number.len() == 4 && number.starts_with("202");
        match number.parse::<u64>() {
            Ok(value) if value >= 1000 && !is_year => format!("{start}{}{}", count(value), &text[number.len()..]),
            _ => word.to_owned(),
        }
    };
    sentence.split(' ').map(word).collect::<Vec<_>>().join(" ")
}

/// Formats a fraction in percent with at most two decimals, for example "41.2 %" or "0.31 %". Exactly zero is "0 %", to
/// distinguish it from a rounded value.
pub(crate) fn percent(share: f64) -> String {
    let percent = share * 100.0;
    if !percent.is_finite() {
        return "–".to_owned();
    }
    if percent == 0.0 {
        return "0\u{202f}%".to_owned();
    }
    if percent.abs() >= 1.0 {
        return format!("{}\u{202f}%", three_digits(percent));
    }
    let text = format!("{:.2}\u{202f}%", percent.abs());
    if percent <= -0.005 { format!("−{text}") } else { text }
}

/// Formats a probability. Probabilities near 0 and 1 are bounds, because their exact value is not known.
pub(crate) fn probability(share: f64) -> String {
    const NEAR: f64 = 0.001;
    if share < NEAR {
        "below 0.1\u{202f}%".to_owned()
    } else if share > 1.0 - NEAR {
        "above 99.9\u{202f}%".to_owned()
    } else {
        percent(share)
    }
}

/// States the highest probability of running out of memory.
pub(crate) fn max_risk(share: f64) -> String {
    format!("at most {}\u{202f}% risk of running out of memory", three_digits(100.0 * share))
}

/// Formats a number of tokens or items: integers and values from 100 without rounding to three digits.
pub(crate) fn length(value: f64) -> String {
    if value >= 0.0 && (value >= 100.0 || value.fract() == 0.0) {
        count(value.round() as u64)
    } else {
        three_digits(value)
    }
}

/// Formats a count with its noun, for example "1 line" or "12 lines".
pub(crate) fn counted(value: u64, one: &str, many: &str) -> String {
    format!("{} {}", count(value), if value == 1 { one } else { many })
}

/// Formats a fraction in percent with its sign, for example "+1.34 %" or "−14.3 %".
pub(crate) fn signed_percent(share: f64) -> String {
    let sign = match share {
        ..0.0 => "−",
        0.0 => "",
        _ => "+",
    };
    format!("{sign}{}", percent(share.abs()))
}

/// Prevents line breaks between a number and its percent sign.
pub(crate) fn nonbreaking_units(text: &str) -> String {
    text.replace(" %", "\u{202f}%")
}

/// Formats a ratio, for example "1.61×".
pub(crate) fn ratio(value: f64) -> String {
    format!("{}×", three_digits(value))
}

/// Formats a speed-up with two decimals, for example "1.04×" or "0.90×".
pub(crate) fn speedup(value: f64) -> String {
    if value.is_finite() { format!("{value:.2}×") } else { "–".to_owned() }
}

/// Writes a reason of a plan as a sentence with the numbers of the page.
pub(crate) fn reason(text: &str) -> String {
    nonbreaking_units(&grouped_in(&sentence(text)))
}

/// Formats a count with thousands separators, for example "8,192".
pub(crate) fn count(value: u64) -> String {
    group(&value.to_string())
}

/// Formats a large count, for example "6.74 B" or "1.2 M".
pub(crate) fn large(value: f64) -> String {
    scaled(value, &[(1e12, "T"), (1e9, "B"), (1e6, "M"), (1e3, "k"), (1.0, "")])
}

/// Formats a number of floating-point operations, for example "1.20 TFLOP".
pub(crate) fn flop(value: f64) -> String {
    scaled(value, &[(1e15, "PFLOP"), (1e12, "TFLOP"), (1e9, "GFLOP"), (1e6, "MFLOP"), (1e3, "kFLOP"), (1.0, "FLOP")])
}

/// Formats a number of bytes with decimal prefixes, for example "4.00 MB".
pub(crate) fn bytes(value: f64) -> String {
    scaled(value, &[(1e12, "TB"), (1e9, "GB"), (1e6, "MB"), (1e3, "kB"), (1.0, "B")])
}

/// Formats an RFC 3339 timestamp to the minute, for example "2026-11-21 00:50".
pub(crate) fn moment(rfc3339: &str) -> String {
    rfc3339.get(..16).map_or_else(|| rfc3339.to_owned(), |minutes| minutes.replace('T', " "))
}

/// Formats a cluster, for example "4 x 8 A100-80GB" as "4 nodes × 8 A100-80GB".
pub(crate) fn cluster(text: &str) -> String {
    match text.split_once(" x ") {
        Some(("1", devices)) => format!("1 node × {devices}"),
        Some((nodes, devices)) if nodes.parse::<u32>().is_ok() => format!("{nodes} nodes × {devices}"),
        _ => text.to_owned(),
    }
}

/// Capitalizes the first letter.
pub(crate) fn capitalised(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map(|first| first.to_uppercase().chain(letters).collect()).unwrap_or_default()
}

/// True if the text begins with a name, for example of a file: its letters stay as they are.
fn begins_with_name(text: &str) -> bool {
    let word = text.split_whitespace().next().unwrap_or_default().trim_end_matches(['.', ',', ';', ':', '!', '?']);
    word.contains(['.', '_', '/'])
}

/// Capitalizes the first letter, unless it is that of a file or field, and adds a full stop if the text has no final
/// punctuation.
pub(crate) fn sentence(text: &str) -> String {
    let text = text.trim();
    let text = if begins_with_name(text) { text.to_owned() } else { capitalised(text) };
    if text.is_empty() || text.ends_with(['.', '!', '?']) { text } else { text + "." }
}

fn group(digits: &str) -> String {
    let mut grouped = String::with_capacity(digits.len() + digits.len() / 3);
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    grouped
}

/// Order of values as text: numbers by value, then other texts by letters.
pub(crate) fn numbers_first(first: &str, other: &str) -> std::cmp::Ordering {
    let number = |text: &str| text.parse::<f64>().unwrap_or(f64::INFINITY);
    number(first).total_cmp(&number(other)).then_with(|| first.cmp(other))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plain(text: &str) -> String {
        text.replace('\u{202f}', " ")
    }

    #[test]
    fn names_of_files_are_not_capitalised() {
        assert_eq!(sentence("gemm_bf16.csv: no known profile"), "gemm_bf16.csv: no known profile.");
        assert_eq!(sentence("a log. It is short"), "A log. It is short.");
    }

    #[test]
    fn texts_become_sentences() {
        assert_eq!(sentence("exhaustive search over VPP"), "Exhaustive search over VPP.");
        assert_eq!(sentence("48 stages, 2 layers each."), "48 stages, 2 layers each.");
        assert_eq!(sentence(" out of memory! "), "Out of memory!");
        assert_eq!((sentence("é"), sentence(" "), capitalised("")), ("É.".to_owned(), String::new(), String::new()));
    }

    #[test]
    fn numbers_in_texts_have_the_format_of_the_page() {
        let text = "rank 0 needs 193.1 GiB of 1.5 TiB; 76.0 GiB available (many GiB)";
        assert_eq!(plain(&gib_in(text)), "rank 0 needs 193 GiB of 1.5 TiB; 76.0 GiB available (many GiB)");
        let text = "Every sample has 8192 tokens, as in 2021: 51200. PP 16 of job-1152 (4176 steps, 1000).";
        assert_eq!(
            grouped_in(text),
            "Every sample has 8,192 tokens, as in 2021: 51,200. PP 16 of job-1152 (4,176 steps, 1,000)."
        );
    }

    #[test]
    fn a_cluster_names_its_nodes() {
        assert_eq!(cluster("4 x 8 A100-80GB"), "4 nodes × 8 A100-80GB");
        assert_eq!(cluster("1 x 8 H100"), "1 node × 8 H100");
        assert_eq!(cluster("Frontier x"), "Frontier x");
    }

    #[test]
    fn durations_use_prefix_with_up_to_three_leading_digits() {
        for (value, text) in [
            (16.23, "16.2 s"),
            (1234.0, "1,230 s"),
            (0.4314, "431 ms"),
            (0.9996, "1.00 s"),
            (0.999_4, "999 ms"),
            (1.2345e-5, "12.3 µs"),
            (3e-9, "3.00 ns"),
            (0.0, "0 s"),
        ] {
            assert_eq!(plain(&seconds(value)), text, "{value}");
        }
        assert_eq!(plain(&seconds_difference(-9.9)), "−9.90 s");
        assert_eq!(plain(&seconds_difference(0.25)), "+250 ms");
    }

    #[test]
    fn other_quantities() {
        assert_eq!(plain(&gib(71.32)), "71.3 GiB");
        assert_eq!(plain(&gib(0.5)), "0.500 GiB");
        assert_eq!(plain(&percent(0.4118)), "41.2 %");
        assert_eq!(plain(&percent(0.003_14)), "0.31 %");
        assert_eq!(plain(&percent(1.0)), "100 %");
        assert_eq!(plain(&percent(-0.5)), "−50.0 %");
        assert_eq!(plain(&percent(-0.003)), "−0.30 %");
        assert_eq!(plain(&percent(0.0)), "0 %");
        assert_eq!(plain(&percent(-0.000_01)), "0.00 %", "no sign before nothing");
        assert_eq!(three_digits(-2520.0), "−2,520");
        assert_eq!(plain(&signed_percent(-0.143)), "−14.3 %");
        assert_eq!(plain(&signed_percent(0.0134)), "+1.34 %");
        assert_eq!(
            (plain(&signed_percent(0.0)), plain(&signed_percent(-0.2))),
            ("0 %".to_owned(), "−20.0 %".to_owned())
        );
        assert_eq!(nonbreaking_units("mean 8.4 %; largest"), "mean 8.4\u{202f}%; largest");
        assert_eq!(plain(&probability(0.000_2)), "below 0.1 %");
        assert_eq!(plain(&probability(1.0)), "above 99.9 %");
        assert_eq!(plain(&probability(0.557)), "55.7 %");
        assert_eq!([2992.0, 4077.4, 12.0, 12.345, 0.0].map(length), ["2,992", "4,077", "12", "12.3", "0"]);
        assert_eq!(
            (counted(1, "line", "lines"), counted(1200, "line", "lines")),
            ("1 line".into(), "1,200 lines".into())
        );
        assert_eq!(ratio(1.611), "1.61×");
        assert_eq!([1.04, 0.9, 12.5].map(speedup), ["1.04×", "0.90×", "12.50×"]);
        assert_eq!(plain(&reason("longest 18801 tokens, 0.6 % above")), "Longest 18,801 tokens, 0.6 % above.");
        assert_eq!(count(8192), "8,192");
        assert_eq!(count(999), "999");
        assert_eq!(plain(&large(6_738_415_616.0)), "6.74 B");
        assert_eq!(plain(&large(12.0)), "12.0");
        assert_eq!(three_digits(f64::NAN), "–");
        assert_eq!((three_digits(1e300), plain(&gib(-2e16))), ("1.00e300".to_owned(), "−2.00e16 GiB".to_owned()));
        assert_eq!(moment("2026-11-21T00:50:17Z"), "2026-11-21 00:50");
    }

    #[test]
    fn numbers_are_before_other_texts() {
        let mut values = ["none", "16", "8", "1.5", "full"];
        values.sort_by(|a, b| numbers_first(a, b));
        assert_eq!(values, ["1.5", "8", "16", "full", "none"]);
    }
}
