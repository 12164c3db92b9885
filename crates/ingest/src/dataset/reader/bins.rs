//! Detects histograms in files that are read by row: bins with edge columns, and maps of lengths to
//! counts.

use std::collections::BTreeMap;

use super::super::value::Value;
use super::super::{ImportError, Imported, MAX_LENGTH, Meaning, Report, Unit, histogram, names};
use super::Reader;

impl Reader<'_> {
    /// Returns the histogram if the rows are bins and all rows are still stored; `None` for other
    /// rows.
    pub(in super::super) fn bins(&self, format: &str) -> Option<Result<Imported, ImportError>> {
        let has_selection = self.options.column.is_some() || self.options.weight.is_some();
        if self.decision.is_some() || has_selection {
            return None;
        }
        if let Some((name, weights)) = self.counts_by_length() {
            let warning = format!("The keys of {name} are read as lengths, and the values as numbers of samples.");
            let report = Report {
                format: format.to_owned(),
                source: format!("keys and values of {} {name}", self.noun),
                parsed: weights.values().sum::<f64>().round() as u64,
                warnings: vec![warning],
                ..Report::default()
            };
            let unit = match names::meaning(name).0 {
                Meaning::Length(unit) => unit,
                _ => Unit::Tokens,
            };
            let read = histogram::weighted(weights, report);
            return Some(read.and_then(|imported| histogram::scale::by_unit(imported, name, unit, self.options)));
        }
        let header: Vec<String> = self.columns.iter().map(|column| column.name.clone()).collect();
        let cell =
            |value: &Value<'_>| if matches!(value, Value::Missing) { String::new() } else { value.display_text() };
        let mut rows = self.head.iter().map(|(_, row)| {
            header.iter().enumerate().map(|(index, name)| cell(row.value(index, name))).collect::<Vec<String>>()
        });
        histogram::from_edges(format, &header, &mut rows, self.options)
    }

    /// Returns samples by length if the only row contains a map of lengths to counts in a column
    /// with a length name.
    fn counts_by_length(&self) -> Option<(&str, BTreeMap<u32, f64>)> {
        let [(_, row)] = self.head.as_slice() else { return None };
        let is_length = |name: &str| ["len", "tok"].iter().any(|word| name.to_lowercase().contains(word));
        self.columns.iter().enumerate().filter(|(_, column)| is_length(&column.name)).find_map(|(index, column)| {
            let Value::Object(members) = row.value(index, &column.name) else { return None };
            let mut weights = BTreeMap::new();
            for (key, count) in members {
                let length: u32 = key.parse().ok().filter(|length| (1..=MAX_LENGTH).contains(length))?;
                let Value::Number(count) = count else { return None };
                *weights.entry(length).or_default() += count.value();
            }
            let are_counts = weights.len() > 1 && weights.values().all(|&count| count >= 0.0);
            are_counts.then_some((column.name.as_str(), weights))
        })
    }
}
