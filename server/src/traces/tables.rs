//! Tables of comparisons, as CSV and as text.

mod difference;
mod ranks;
mod times;

pub(crate) use difference::difference;
pub(crate) use ranks::ranks;
pub(crate) use times::times;

/// A cell. Times are in ns.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Cell {
    Text(String),
    Count(u64),
    Time(u64),
    /// Difference of times.
    Change(i64),
    /// Fraction.
    Share(f64),
    Blank,
}

impl Cell {
    fn csv(&self) -> String {
        match self {
            Self::Text(text) => text.clone(),
            Self::Count(number) | Self::Time(number) => number.to_string(),
            Self::Change(number) => number.to_string(),
            Self::Share(share) => format!("{share:.6}"),
            Self::Blank => String::new(),
        }
    }

    /// Returns the text with times in ms.
    fn shown(&self) -> String {
        let ms = |ns: f64| ns / 1e6;
        match self {
            Self::Text(text) => shortened(text),
            Self::Count(number) => number.to_string(),
            Self::Time(ns) => format!("{:.3}", ms(*ns as f64)),
            Self::Change(ns) => format!("{:+.3}", ms(*ns as f64)),
            Self::Share(share) => format!("{:.1} %", 100.0 * share),
            Self::Blank => "-".to_owned(),
        }
    }
}

/// A table.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Table {
    /// Name in the command line and in queries.
    pub(crate) id: &'static str,
    pub(crate) title: &'static str,
    /// Column names of the CSV. Times end in `_ns`.
    pub(crate) head: &'static [&'static str],
    pub(crate) rows: Vec<Vec<Cell>>,
}

/// Maximum length of a text cell in characters.
const MAX_TEXT: usize = 72;

/// Shortens a name in the middle, because template kernels differ at both ends.
fn shortened(text: &str) -> String {
    let letters: Vec<char> = text.chars().map(|letter| if letter.is_control() { ' ' } else { letter }).collect();
    if letters.len() <= MAX_TEXT {
        return letters.into_iter().collect();
    }
    let half = MAX_TEXT / 2;
    let (start, end) = (&letters[..half - 1], &letters[letters.len() - half..]);
    start.iter().chain(&['…']).chain(end).collect()
}

impl Table {
    /// Returns all rows as CSV.
    pub(crate) fn csv(&self) -> String {
        let mut writer = csv::Writer::from_writer(Vec::new());
        let rows = self.rows.iter().map(|row| row.iter().map(Cell::csv).collect::<Vec<_>>());
        let head = self.head.iter().map(|name| (*name).to_owned()).collect();
        for record in std::iter::once(head).chain(rows) {
            writer.write_record(record).expect("rows have the same length, and memory takes every byte");
        }
        let bytes = writer.into_inner().expect("memory takes every byte");
        String::from_utf8(bytes).expect("cells are text")
    }

    /// Returns the first rows as aligned text with times in ms.
    pub(crate) fn text(&self, most: usize) -> String {
        let heads = self.head.iter().map(|name| name.trim_end_matches("_ns").replace('_', " "));
        let mut lines: Vec<Vec<String>> = vec![heads.collect()];
        lines.extend(self.rows.iter().take(most).map(|row| row.iter().map(Cell::shown).collect()));
        let width = |column: usize| lines.iter().map(|line| line[column].chars().count()).max().unwrap_or(0);
        let widths: Vec<usize> = (0..self.head.len()).map(width).collect();
        let is_text = |column: usize| self.rows.iter().any(|row| matches!(row[column], Cell::Text(_)));
        let mut text = format!("{}, times in ms\n", self.title);
        for line in &lines {
            for (column, cell) in line.iter().enumerate() {
                let pad = " ".repeat(widths[column] - cell.chars().count());
                let gap = if column == 0 { "" } else { "  " };
                text.push_str(gap);
                // Text is left-aligned, numbers are right-aligned.
                let parts = if is_text(column) { [cell.as_str(), &pad] } else { [pad.as_str(), cell] };
                text.extend(parts);
            }
            text.truncate(text.trim_end().len());
            text.push('\n');
        }
        if self.rows.len() > most {
            let more = format!("... and {} more rows\n", self.rows.len() - most);
            text.push_str(&more);
        }
        text
    }
}

/// Returns the table with a name, or the first one if the name is empty.
pub(crate) fn chosen(tables: Vec<Table>, id: &str) -> Result<Table, String> {
    let ids: Vec<&str> = tables.iter().map(|table| table.id).collect();
    let known = ids.join(", ");
    let found = tables.into_iter().find(|table| id.is_empty() || table.id == id);
    found.ok_or_else(|| format!("there is no table {id:?}; there are {known}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table() -> Table {
        Table {
            id: "kernels",
            title: "Kernels",
            head: &["name", "count", "before_ns", "difference_ns", "share"],
            rows: vec![
                vec![
                    Cell::Text("a, \"b\"".to_owned()),
                    Cell::Count(3),
                    Cell::Time(1_500_000),
                    Cell::Change(-20_000),
                    Cell::Share(0.5),
                ],
                vec![Cell::Text("x".repeat(100)), Cell::Count(12), Cell::Time(0), Cell::Change(1_000_000), Cell::Blank],
            ],
        }
    }

    #[test]
    fn csv_has_all_digits() {
        let expected = format!(
            "name,count,before_ns,difference_ns,share\n\"a, \"\"b\"\"\",3,1500000,-20000,0.500000\n{},12,0,1000000,\n",
            "x".repeat(100)
        );
        assert_eq!(table().csv(), expected);
    }

    #[test]
    fn text_is_aligned() {
        let text = table().text(1);
        assert_eq!(
            text,
            "Kernels, times in ms\nname    count  before  difference   share\na, \"b\"      3   1.500      -0.020  50.0 %\n... and 1 more rows\n"
        );
        let long = table().text(9);
        assert!(long.contains(&format!("{}…{}", "x".repeat(35), "x".repeat(36))), "{long}");
        assert_eq!(chosen(vec![table()], "").map(|table| table.id), Ok("kernels"));
        assert_eq!(chosen(vec![table()], "steps"), Err("there is no table \"steps\"; there are kernels".to_owned()));
    }
}
