//! Bins with edges in columns, in files that are read row by row.

use super::super::value::Value;
use super::super::{ImportError, Imported, histogram};
use super::Reader;

impl Reader<'_> {
    /// The histogram of rows that are bins, as long as all rows are held; `None` for other rows.
    pub(in super::super) fn bins(&self, format: &str) -> Option<Result<Imported, ImportError>> {
        let has_choice = self.options.column.is_some() || self.options.weight.is_some();
        if self.decision.is_some() || has_choice {
            return None;
        }
        let header: Vec<String> = self.columns.iter().map(|column| column.name.clone()).collect();
        let cell = |value: &Value<'_>| if matches!(value, Value::Missing) { String::new() } else { value.shown() };
        let mut rows = self.head.iter().map(|(_, row)| {
            header.iter().enumerate().map(|(index, name)| cell(row.value(index, name))).collect::<Vec<String>>()
        });
        histogram::of_edges(format, &header, &mut rows)
    }
}
