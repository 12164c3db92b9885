//! Texts of the report of a fit: names of parameters as words, and numbers with three digits.

use super::effect::parameter_name;
use crate::format;

/// Units at the end of the names of fields.
const FIELD_UNITS: [(&str, &str); 5] =
    [("_us", "µs"), ("_gb_per_s", "GB/s"), ("_tflops", "TFLOP/s"), ("_gib", "GiB"), ("_bytes", "bytes")];

/// Describes a changed field with words and unit: "intra_node.curve.per_rank_us: 0.38 -> 0.40" becomes "Intra node,
/// curve, per rank: 0.38 → 0.40 µs". Other lines stay.
pub(crate) fn change_words(line: &str) -> String {
    let is_path = |text: &str| {
        text.contains('.')
            && text.chars().all(|sign| sign.is_ascii_lowercase() || sign.is_ascii_digit() || "._".contains(sign))
    };
    // A file name such as "network_h100.csv" looks like a path, but no value of it changes.
    let is_change = |(path, values): &(&str, &str)| is_path(path) && values.contains(" -> ");
    let Some((path, values)) = line.split_once(": ").filter(is_change) else { return arrows(line) };
    let values = &three_digit_values(values);
    // The name is that of the other tables of the page.
    if let Some((name, unit)) = parameter_name(path) {
        return format!("{name}: {} {unit}", arrows(values)).trim_end().to_owned();
    }
    let unit = FIELD_UNITS.into_iter().find_map(|(suffix, unit)| Some((path.strip_suffix(suffix)?, unit)));
    let (path, unit) = unit.unwrap_or((path, ""));
    let words = format::capitalised(&path.replace('.', ", ").replace('_', " "));
    format!("{words}: {} {unit}", arrows(values)).trim_end().to_owned()
}

/// Formats the numbers of a change with three digits.
fn three_digit_values(values: &str) -> String {
    let word = |word: &str| word.parse::<f64>().map_or_else(|_| word.to_owned(), format::three_digits);
    values.split(' ').map(word).collect::<Vec<_>>().join(" ")
}

/// True for a line of the report that states the change of one parameter.
pub(crate) fn is_parameter_line(line: &str) -> bool {
    line.trim_start().split_once(": ").is_some_and(|(path, values)| !path.contains(' ') && values.contains(" -> "))
}

/// Begins a name with a small letter, unless it is an abbreviation such as GEMM.
fn uncapitalised(name: &str) -> String {
    let mut letters = name.chars();
    match (letters.next(), letters.next()) {
        (Some(first), Some(second)) if second.is_lowercase() => {
            first.to_lowercase().chain(name.chars().skip(1)).collect()
        }
        _ => name.to_owned(),
    }
}

/// Replaces names of parameters by words: "device.curves.matmul.tile_small" becomes "tile small".
fn parameter_words(text: &str) -> String {
    let word = |word: &str| {
        let name = word.trim_end_matches([',', ';', '.', ':']);
        let end = &word[name.len()..];
        let is_parameter = ["device.", "intra_node.", "inter_node."].iter().any(|start| name.starts_with(start));
        if !is_parameter {
            return word.to_owned();
        }
        let last = || name.rsplit('.').next().unwrap_or(name).replace('_', " ");
        let words = parameter_name(name).map_or_else(last, |(name, _)| uncapitalised(name));
        format!("{words}{end}")
    };
    text.split(' ').map(word).collect::<Vec<_>>().join(" ")
}

/// Splits the detail of a part into the result of the fit and its parameters.
pub(crate) fn split_detail(detail: &str) -> (Vec<String>, Vec<String>) {
    let is_parameters =
        |clause: &&str| ["fitted: ", "unchanged", "warning: "].iter().any(|start| clause.starts_with(start));
    let (parameters, result): (Vec<&str>, Vec<&str>) = detail.split("; ").partition(is_parameters);
    let result = result.iter().map(|clause| line_text(&clause.replace("residual mean", "mean error"))).collect();
    (result, parameters.iter().map(|clause| format::sentence(&parameter_words(clause))).collect())
}

/// Formats a line of the report: names of fields as words, and thousands separators.
pub(crate) fn line_text(line: &str) -> String {
    let indent = line.len() - line.trim_start().len();
    let (spaces, text) = line.split_at(indent);
    format!("{spaces}{}", format::grouped_in(&change_words(text)))
}

/// Replaces `->` by an arrow character.
fn arrows(line: &str) -> String {
    line.replace("->", "→")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changed_fields_have_words_and_units() {
        for (line, words) in [
            ("intra_node.curve.per_rank_us: 0.3820 -> 0.3819", "Intra node, curve, per rank: 0.382 → 0.382 µs"),
            ("intra_node.efficiency: 0.7967 -> 0.5123", "Bandwidth share reached inside a node: 0.797 → 0.512"),
            (
                "network_h100_dgx__all_reduce.csv: Vidur profile; a line",
                "network_h100_dgx__all_reduce.csv: Vidur profile; a line",
            ),
            ("cluster H100 -> H100, fitted", "cluster H100 → H100, fitted"),
            ("3 earlier times for the same layers are replaced", "3 earlier times for the same layers are replaced"),
        ] {
            assert_eq!(change_words(line), words);
        }
        for (line, words) in [
            ("device.matmul_efficiency: 0.8062 -> 0.7599", "GEMM rate, share of the peak: 0.806 → 0.760"),
            ("  device.launch_us: 6.353 -> 6.520", "  Launch of a kernel: 6.35 → 6.52 µs"),
            ("others: not fitted, 6264 timings", "others: not fitted, 6,264 timings"),
        ] {
            assert_eq!(line_text(line), words);
        }
    }

    #[test]
    fn parameters_are_separate_from_the_result_of_the_fit() {
        let detail = "fitted to 36 timings; residual mean 8.6 % -> 8.4 %; fitted: device.launch_us, \
                      device.curves.matmul.tile_small; warning: device.curves.matmul.fill ended at 0";
        let (result, parameters) = split_detail(detail);
        assert_eq!(result, ["fitted to 36 timings", "mean error 8.6 % → 8.4 %"]);
        assert_eq!(parameters, ["Fitted: launch of a kernel, tile small.", "Warning: fill ended at 0."]);
        assert!(is_parameter_line("  device.launch_us: 6.353 -> 6.520"));
        assert!(!is_parameter_line("cluster H100 -> H100, fitted") && !is_parameter_line("a.csv: Vidur profile"));
    }
}
