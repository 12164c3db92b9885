//! Tables and columns, from the `CREATE TABLE` statements that the file stores.

use super::Table;
use super::record::Row;

/// Columns of a table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Columns {
    pub(super) names: Vec<String>,
    /// The column that is the key of the b-tree: `INTEGER PRIMARY KEY`.
    pub(super) key: Option<usize>,
}

/// Maximum number of columns, as in SQLite.
const MAX_COLUMNS: usize = 2000;

impl Columns {
    /// Columns of the table of tables, which has no statement.
    pub(super) fn of_schema() -> Self {
        let names = ["type", "name", "tbl_name", "rootpage", "sql"].map(str::to_owned);
        Self { names: names.into(), key: None }
    }

    /// Parses the column definitions of a statement.
    fn parse(statement: &str) -> Self {
        let (mut names, mut key) = (Vec::new(), None);
        for definition in definitions(statement).into_iter().take(MAX_COLUMNS) {
            let (name, rest) = first_word(definition.trim());
            let rest = rest.to_ascii_uppercase();
            let is_constraint = ["CONSTRAINT", "PRIMARY", "UNIQUE", "CHECK", "FOREIGN"]
                .iter()
                .any(|word| name.eq_ignore_ascii_case(word));
            if is_constraint || name.is_empty() {
                continue;
            }
            if rest.split_whitespace().next() == Some("INTEGER") && rest.contains("PRIMARY KEY") {
                key = Some(names.len());
            }
            names.push(name);
        }
        Self { names, key }
    }
}

/// Returns the table that a row of the table of tables describes.
pub(super) fn table(row: &Row<'_>) -> Option<Table> {
    if row.get(0).text()?.as_ref() != "table" {
        return None;
    }
    let root = u32::try_from(row.get(3).integer()?).ok().filter(|&root| root > 0)?;
    let columns = Columns::parse(&row.get(4).text()?);
    Some(Table { name: row.get(1).text()?.into_owned(), root, columns })
}

/// Splits the list in the outer parentheses at its commas, without comments.
fn definitions(statement: &str) -> Vec<String> {
    let (mut found, mut current) = (Vec::new(), String::new());
    let mut depth = 0_u32;
    let mut quote = None;
    let mut letters = statement.chars().peekable();
    while let Some(letter) = letters.next() {
        if let Some(end) = quote {
            quote = quote.filter(|_| letter != end);
            current.push(letter);
            continue;
        }
        match letter {
            '-' if letters.peek() == Some(&'-') => {
                letters.by_ref().find(|&letter| letter == '\n');
                current.push(' ');
            }
            '/' if letters.peek() == Some(&'*') => {
                let mut before = ' ';
                letters.by_ref().skip(1).find(|&letter| std::mem::replace(&mut before, letter) == '*' && letter == '/');
                current.push(' ');
            }
            '\'' | '"' | '`' => {
                quote = Some(letter);
                current.push(letter);
            }
            '[' => {
                quote = Some(']');
                current.push(letter);
            }
            '(' => {
                depth += 1;
                if depth == 1 {
                    current.clear();
                } else {
                    current.push(letter);
                }
            }
            ')' => {
                depth = depth.saturating_sub(1);
                if depth == 0 {
                    found.push(std::mem::take(&mut current));
                    return found;
                }
                current.push(letter);
            }
            ',' if depth == 1 => found.push(std::mem::take(&mut current)),
            _ => current.push(letter),
        }
    }
    found
}

/// Returns the first word without quotes, and the rest.
fn first_word(definition: &str) -> (String, &str) {
    let quote = match definition.chars().next() {
        Some('[') => Some(']'),
        Some(letter @ ('"' | '\'' | '`')) => Some(letter),
        _ => None,
    };
    if let Some(end) = quote {
        let (name, rest) = definition[1..].split_once(end).unwrap_or((&definition[1..], ""));
        return (name.to_owned(), rest);
    }
    let (name, rest) = definition.split_once(char::is_whitespace).unwrap_or((definition, ""));
    (name.to_owned(), rest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_read_from_statements() {
        for (statement, names, key) in [
            (
                "CREATE TABLE StringIds (id INTEGER NOT NULL PRIMARY KEY,  -- Key, of \"texts\" (all).\n value TEXT NOT NULL -- Text.\n)",
                &["id", "value"][..],
                Some(0),
            ),
            (
                "CREATE TABLE t(a, b INT DEFAULT (1, 2) PRIMARY KEY, /* c, */ d TEXT CHECK (d <> ','))",
                &["a", "b", "d"],
                None,
            ),
            ("CREATE TABLE \"x (y)\" (a, b, FOREIGN KEY (b) REFERENCES t (c))", &["a", "b"], None),
            (
                "CREATE TABLE t (\"a b\" integer primary key, [c,d] REAL, `e`, UNIQUE (e))",
                &["a b", "c,d", "e"],
                Some(0),
            ),
            ("CREATE TABLE t", &[], None),
            ("CREATE TABLE t (a, b", &["a"], None),
        ] {
            let columns = Columns::parse(statement);
            assert_eq!(
                (columns.names.as_slice(), columns.key),
                (&names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>()[..], key),
                "{statement}"
            );
        }
    }
}
