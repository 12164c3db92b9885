//! Parses medians from the output of a divan benchmark.

/// Returns benchmark names with arguments ("portfolio/(512, 64, 1.1)") and medians in ms.
pub(super) fn medians_ms(printed: &str) -> Vec<(String, f64)> {
    let mut above: Vec<String> = Vec::new();
    let mut found = Vec::new();
    for line in printed.lines() {
        let Some((depth, rest)) = branch(line) else { continue };
        let mut columns = rest.split('│');
        let first = columns.next().unwrap_or_default();
        // At least two spaces separate the name from the first time.
        let name = first.split("  ").next().unwrap_or_default().trim();
        if name.is_empty() {
            continue;
        }
        above.truncate(depth);
        above.push(name.to_owned());
        if let Some(ms) = columns.nth(1).and_then(milliseconds) {
            found.push((above.join("/"), ms));
        }
    }
    found
}

/// Returns the depth of a line in the tree, starting at 0, and the text after the branch symbol.
fn branch(line: &str) -> Option<(usize, &str)> {
    let offset = line.find(['├', '╰'])?;
    let depth = line[..offset].chars().count() / 3;
    Some((depth, line[offset..].trim_start_matches(['├', '╰', '─', ' '])))
}

fn milliseconds(column: &str) -> Option<f64> {
    let mut parts = column.split_whitespace();
    let value: f64 = parts.next()?.parse().ok()?;
    let unit = match parts.next()? {
        "ps" => 1e-9,
        "ns" => 1e-6,
        "µs" => 1e-3,
        "ms" => 1.0,
        "s" => 1e3,
        _ => return None,
    };
    Some(value * unit)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tree_yields_the_median_per_leaf() {
        let printed = "\
Timer precision: 20 ns
ranking                     fastest       │ slowest       │ median        │ mean          │ samples │ iters
├─ one_interleaving                       │               │               │               │         │
│  ├─ 16                    94.33 µs      │ 1.2 ms        │ 101.5 µs      │ 110 µs        │ 100     │ 100
│  │                        8.5 Mitem/s   │ 1 Mitem/s     │ 7 Mitem/s     │ 7 Mitem/s     │         │
│  ╰─ (512, 64, 1.1)        1 ms          │ 2 ms          │ 1.5 ms        │ 1 ms          │ 100     │ 100
╰─ closed                   3 s           │ 4 s           │ 3.5 s         │ 3 s           │ 5       │ 5
";
        let medians = medians_ms(printed);
        let names: Vec<_> = medians.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names, ["one_interleaving/16", "one_interleaving/(512, 64, 1.1)", "closed"]);
        let values: Vec<_> = medians.iter().map(|(_, ms)| *ms).collect();
        assert!(
            (values[0] - 0.1015).abs() < 1e-12 && (values[1] - 1.5).abs() < 1e-12 && (values[2] - 3500.0).abs() < 1e-9
        );
    }
}
