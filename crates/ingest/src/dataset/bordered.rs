//! Removes the borders of printed tables: psql, MySQL, Spark `show()`, DuckDB, polars, Markdown.
//! Also handles Excel's `sep=;` line.
//!
//! The result is a table with bars at both ends of each line, or a table without its first line.
//! Dropped lines become empty, so that line numbers in messages match the file.

/// Warning for a printed table that omits rows.
pub(super) const SHORTENED: &str =
    "The printed table is shortened: some rows are missing. Export the table as CSV or Parquet to read all of them.";

/// Number of lines used to detect borders.
const HEAD: usize = 20;

/// A table without borders, and a flag for rows that the print omits.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Plain {
    pub(super) text: String,
    pub(super) is_shortened: bool,
}

/// Returns the text without table borders; `None` if the text is not a printed table.
pub(super) fn strip(text: &str) -> Option<Plain> {
    if let Some(text) = without_separator_line(text) {
        return Some(Plain { text, is_shortened: false });
    }
    if let Some(text) = single_column(text).or_else(|| under_dashes(text)) {
        return Some(Plain { text, is_shortened: false });
    }
    let head: Vec<&str> = text.lines().filter(|line| !line.trim().is_empty()).take(HEAD).collect();
    let has_rule = head.iter().any(|line| is_rule(line));
    let columns = head.iter().find(|line| is_row(line)).map(|line| cells(line).len())?;
    // A single column between two bars has corners above it.
    let has_corners = || head.iter().any(|line| is_rule(line) && line.contains(is_corner));
    if !has_rule || (columns < 2 && !has_corners()) {
        return None;
    }
    let mut is_shortened = false;
    let mut rows = 0;
    let lines: Vec<String> = text
        .lines()
        .map(|line| {
            if is_row(line) {
                let cells = cells(line);
                is_shortened |= cells.iter().all(|cell| matches!(*cell, "…" | "·" | "..."));
                let is_data = !is_filler(&cells) && (rows == 0 || !cells.iter().all(|cell| is_type(cell)));
                rows += usize::from(is_data);
                return if is_data { format!("| {} |", cells.join(" | ")) } else { String::new() };
            }
            let lower = line.trim().to_lowercase();
            // A print that omits columns states "12 columns (9 shown)".
            let omits_rows = lower.contains(" shown)") && (lower.contains("rows (") || !lower.contains("columns ("));
            is_shortened |= lower.starts_with("only showing") || omits_rows;
            String::new()
        })
        .collect();
    (rows > 1).then(|| Plain { text: lines.join("\n"), is_shortened })
}

/// Removes the line `sep=;`, in which Excel declares the cell separator.
fn without_separator_line(text: &str) -> Option<String> {
    let (first, rest) = text.split_once('\n')?;
    let separator = first.trim().strip_prefix("sep=")?;
    (separator.chars().count() <= 1).then(|| format!("\n{rest}"))
}

/// Converts a one-column table that psql prints: a name, a line of dashes, values, and the row
/// count.
fn single_column(text: &str) -> Option<String> {
    let mut lines = text.lines();
    let (name, rule) = (lines.next()?.trim(), lines.next()?.trim());
    let is_rule = rule.len() > 2 && rule.bytes().all(|byte| byte == b'-');
    let last = text.trim_end().lines().next_back()?.trim();
    if !is_rule || !is_row_count(last) || name.is_empty() || text.contains('|') {
        return None;
    }
    let values = lines.map(|line| if line.trim() == last { "" } else { line.trim() });
    Some(std::iter::once(name).chain(std::iter::once("")).chain(values).collect::<Vec<_>>().join("\n"))
}

/// Returns whether a line states the number of rows, as psql, sqlcmd and `SQL*Plus` print it.
fn is_row_count(line: &str) -> bool {
    let line = line.trim().to_lowercase();
    let inside = line.strip_prefix('(').and_then(|line| line.strip_suffix(')')).unwrap_or(&line);
    let ends = [" rows", " row", " rows affected", " row affected", " rows selected.", " row selected."];
    ends.iter()
        .find_map(|end| inside.strip_suffix(end))
        .is_some_and(|count| !count.is_empty() && count.bytes().all(|byte| byte.is_ascii_digit() || byte == b','))
}

/// Converts a table whose names have a line of dashes per column below them, as sqlcmd and `SQL*Plus`
/// print it. The dashes state the places of the columns.
fn under_dashes(text: &str) -> Option<String> {
    let expanded: Vec<String> = text.lines().map(without_tabs).collect();
    let is_dashes = |line: &String| {
        line.split_whitespace().nth(1).is_some() && line.bytes().all(|byte| matches!(byte, b'-' | b' '))
    };
    let at = expanded.iter().take(HEAD).position(is_dashes).filter(|&at| at > 0)?;
    let has_count = expanded.iter().rev().filter(|line| !line.trim().is_empty()).take(2).any(|line| is_row_count(line));
    if !(has_count || text.lines().nth(at - 1).is_some_and(|line| line.contains('\t'))) || text.contains('|') {
        return None;
    }
    let (header, dashes) = (&expanded[at - 1], &expanded[at]);
    let starts: Vec<usize> = (0..dashes.len())
        .filter(|&place| {
            let bytes = dashes.as_bytes();
            bytes[place] == b'-' && (place == 0 || bytes[place - 1] == b' ')
        })
        .collect();
    let cells = |line: &str| -> Vec<String> {
        let letters: Vec<char> = line.chars().collect();
        let part = |from: usize, to: usize| letters.iter().take(to).skip(from).collect::<String>().trim().to_owned();
        let ends = starts.iter().skip(1).copied().chain([usize::MAX]);
        let from = |index: usize, start: usize| if index == 0 { 0 } else { start };
        starts.iter().zip(ends).enumerate().map(|(index, (&start, end))| part(from(index, start), end)).collect()
    };
    let lines = expanded.iter().enumerate().map(|(index, line)| {
        // SQL*Plus repeats the names on every page.
        let is_repeated = index != at - 1 && line == header;
        let is_data = index + 1 >= at && !line.trim().is_empty() && !is_dashes(line) && !is_row_count(line);
        if is_data && !is_repeated { format!("| {} |", cells(line).join(" | ")) } else { String::new() }
    });
    Some(lines.collect::<Vec<_>>().join("\n"))
}

/// Replaces tabs by blanks up to the next multiple of eight.
fn without_tabs(line: &str) -> String {
    let mut plain = String::with_capacity(line.len());
    let mut width = 0_usize;
    for letter in line.chars() {
        let blanks = if letter == '\t' { 8 - width % 8 } else { 0 };
        plain.extend(std::iter::repeat_n(' ', blanks));
        if blanks == 0 {
            plain.push(letter);
        }
        width += blanks.max(1);
    }
    plain
}

/// Returns whether a line contains only dashes and corners, such as `+----+-----+`, `---- | ----`
/// or `├────┼────┤`.
fn is_rule(line: &str) -> bool {
    let line = line.trim();
    let is_border = |c: char| matches!(c, '-' | '=' | '+' | '|' | ':' | ' ' | '\u{2500}'..='\u{257f}');
    let is_dash = |c: char| matches!(c, '-' | '=' | '\u{2500}' | '\u{2501}' | '\u{2550}' | '\u{2504}');
    line.chars().all(is_border) && line.chars().filter(|&c| is_dash(c)).count() > 2
}

/// Returns whether a line has cells between bars.
fn is_row(line: &str) -> bool {
    !is_rule(line) && line.contains(is_bar)
}

const fn is_corner(c: char) -> bool {
    matches!(c, '+' | '\u{250c}'..='\u{254b}' | '\u{2552}'..='\u{256c}')
}

const fn is_bar(c: char) -> bool {
    matches!(c, '|' | '\u{2502}' | '\u{2503}' | '\u{2506}' | '\u{250a}' | '\u{2551}')
}

fn cells(line: &str) -> Vec<&str> {
    line.trim().trim_matches(is_bar).split(is_bar).map(str::trim).collect()
}

/// Returns whether all cells are dashes or ellipses. polars prints them between names and types,
/// and in place of omitted rows.
fn is_filler(cells: &[&str]) -> bool {
    cells.iter().all(|cell| cell.chars().all(|c| matches!(c, '-' | '…' | '·' | '.')))
}

/// Returns whether a cell is a column type as polars and DuckDB print it below the name.
fn is_type(cell: &str) -> bool {
    let name = cell.to_lowercase();
    let name = name.trim_end_matches("[]");
    let base = name.trim_end_matches(|c: char| c.is_ascii_digit());
    matches!(
        base,
        "i" | "u"
            | "f"
            | "int"
            | "uint"
            | "hugeint"
            | "bigint"
            | "integer"
            | "double"
            | "float"
            | "varchar"
            | "str"
            | "cat"
    ) && (name != base || !matches!(base, "i" | "u" | "f"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plain(text: &str) -> Vec<String> {
        let plain = strip(text).unwrap_or_else(|| panic!("no table: {text}"));
        plain.text.lines().filter(|line| !line.is_empty()).map(str::to_owned).collect()
    }

    #[test]
    fn printed_tables_become_tables_between_bars() {
        for text in [
            " length | count \n--------+-------\n    512 |     3\n   1024 |     2\n(2 rows)\n",
            "+--------+-------+\n| length | count |\n+--------+-------+\n|    512 |     3 |\n|   1024 |     2 |\n+--------+-------+\n2 rows in set (0.00 sec)\n",
            "length | count\n--- | ---:\n512 | 3\n1024 | 2\n",
            "shape: (2, 2)\n┌────────┬───────┐\n│ length ┆ count │\n│ ---    ┆ ---   │\n│ i64    ┆ u32   │\n╞════════╪═══════╡\n│ 512    ┆ 3     │\n│ 1024   ┆ 2     │\n└────────┴───────┘\n",
            "┌────────┬───────┐\n│ length │ count │\n│ int64  │ int64 │\n├────────┼───────┤\n│    512 │     3 │\n│   1024 │     2 │\n└────────┴───────┘\n",
        ] {
            assert_eq!(plain(text), ["| length | count |", "| 512 | 3 |", "| 1024 | 2 |"], "{text}");
        }
        for text in [
            "+----------+\n|num_tokens|\n+----------+\n|       512|\n|      1024|\n+----------+\n",
            "┌────────────┐\n│ num_tokens │\n│   int64    │\n├────────────┤\n│        512 │\n│       1024 │\n└────────────┘\n",
            "shape: (2, 1)\n┌────────────┐\n│ num_tokens │\n│ ---        │\n│ i64        │\n╞════════════╡\n│ 512        │\n│ 1024       │\n└────────────┘\n",
        ] {
            assert_eq!(plain(text), ["| num_tokens |", "| 512 |", "| 1024 |"], "{text}");
        }
        assert_eq!(
            strip("sep=;\nlength;count\n512;3\n").map(|plain| plain.text),
            Some("\nlength;count\n512;3\n".to_owned())
        );
    }

    #[test]
    fn dashes_state_the_places_of_columns() {
        for text in [
            "name         num_tokens \n------------ -----------\nfirst part           512\nb                   1024\n\n(2 rows affected)\n",
            "\nNAME\t\tNUM_TOKENS\n------------ ----------\nfirst part\t   512\n\nNAME\t\tNUM_TOKENS\n------------ ----------\nb\t\t  1024\n\n2 rows selected.\n",
        ] {
            let name = if text.starts_with('\n') { "| NAME | NUM_TOKENS |" } else { "| name | num_tokens |" };
            assert_eq!(plain(text), [name, "| first part | 512 |", "| b | 1024 |"], "{text}");
        }
        let single = "num_tokens \n-----------\n        512\n       1024\n\n(2 rows affected)\n";
        assert_eq!(plain(single), ["num_tokens", "512", "1024"]);
    }

    #[test]
    fn missing_rows_are_noticed() {
        let spark = "+------+\n|length|n|\n+------+\n|512|3|\n|1024|2|\n+------+\nonly showing top 2 rows\n";
        assert!(strip(spark).is_some_and(|plain| plain.is_shortened));
        let polars = "┌───┬───┐\n│ length ┆ n │\n╞═══╪═══╡\n│ 512 ┆ 3 │\n│ … ┆ … │\n│ 1024 ┆ 2 │\n└───┴───┘";
        assert!(strip(polars).is_some_and(|plain| plain.is_shortened));
    }

    #[test]
    fn other_texts_are_unchanged() {
        for text in
            ["512\n1024\n", "length,count\n512,3\n", "a|b\n1|2\n", "a - b\n---\n1 2\n", "", "|512|\n|---|\n|600|\n"]
        {
            assert_eq!(strip(text), None, "{text}");
        }
    }
}
