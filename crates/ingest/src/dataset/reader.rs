//! Reads rows of named values. The first rows determine which columns are read; then all rows are
//! measured.

use std::borrow::Cow;
use std::collections::BTreeSet;

use super::candidate;
use super::choice::{self, Length, Sample, Selection};
use super::media::{self, Field, MediaColumn, RowMedia};
use super::number::Number;
use super::profile::{Column, Profile};
use super::rows::{Rows, Samples};
use super::text::Meter;
use super::value::{Location, Row, Value};
use super::{ImportError, Imported, Kind, Meaning, Options, Unit};

mod aside;
mod bins;
mod nested;
mod rollup;

use aside::{Aside, DeferredRow};
use nested::Nested;

/// Maximum number of rows that are stored until the columns are chosen; the preview uses them.
pub(super) const HEAD_ROWS: usize = 10_000;
/// Maximum size of these rows, in bytes.
const HEAD_BYTES: usize = 16 << 20;
/// Maximum number of distinct keys; further keys are ignored.
const MAX_COLUMNS: usize = 200;

/// Reads rows of named values into a dataset.
#[derive(Debug)]
pub(super) struct Reader<'o> {
    options: &'o Options<'o>,
    /// Word for messages: "column" or "key".
    noun: &'static str,
    columns: Vec<Column>,
    /// Nested columns.
    nested: Nested,
    /// True if the file names the columns. A single unnamed column contains lengths.
    has_names: bool,
    head: Vec<(Location, Row<'static>)>,
    head_bytes: usize,
    decision: Option<Decision>,
    /// Rows that may be sums or statistics.
    aside: Aside,
    /// Number of rows that are sums of other rows.
    left_out: u64,
    rows: Rows,
}

/// Column selection from the first rows.
#[derive(Debug)]
struct Decision {
    /// `None` if the rows contain media and no text.
    selection: Option<Selection>,
    /// Columns with media properties; empty without a rule.
    media: Vec<MediaColumn>,
    /// Warnings about media.
    warnings: Vec<String>,
    source: String,
    candidates: Vec<super::Candidate>,
}

impl<'o> Reader<'o> {
    /// Creates a reader that discovers keys from the rows.
    pub(super) fn new(options: &'o Options<'o>) -> Self {
        Self {
            options,
            noun: "key",
            columns: Vec::new(),
            nested: Nested::new(options),
            has_names: true,
            head: Vec::new(),
            head_bytes: 0,
            decision: None,
            aside: Aside::default(),
            left_out: 0,
            rows: Rows::new(options),
        }
    }

    /// Creates a reader for table rows with known columns.
    pub(super) fn typed(options: &'o Options<'o>, columns: Vec<Column>) -> Self {
        Self { noun: "column", columns, ..Self::new(options) }
    }

    /// Creates a reader for named lists.
    pub(super) fn keyed(options: &'o Options<'o>, columns: Vec<Column>) -> Self {
        Self { columns, ..Self::new(options) }
    }

    /// Creates a reader for table rows without a header.
    pub(super) fn headerless(options: &'o Options<'o>, columns: usize) -> Self {
        let columns = (1..=columns).map(|number| Column { name: number.to_string(), kind: None }).collect();
        Self { noun: "column", columns, has_names: false, ..Self::new(options) }
    }

    pub(super) fn push(&mut self, location: Location, row: Row<'_>) -> Result<(), ImportError> {
        if self.decision.is_some() {
            return self.take(location, row);
        }
        let mut row = row;
        self.nested.flatten(&mut row, &mut self.columns);
        self.discover(&row);
        self.head_bytes += row.bytes();
        self.head.push((location, row.into_owned()));
        if self.head.len() >= HEAD_ROWS || self.head_bytes >= HEAD_BYTES {
            self.decide()?;
        }
        Ok(())
    }

    pub(super) fn skip(&mut self, location: Location, why: &str) {
        self.rows.skip(|| location.to_string(), why);
    }

    /// Selects the columns from the stored rows, and measures these rows.
    pub(super) fn decide(&mut self) -> Result<(), ImportError> {
        if self.decision.is_some() {
            return Ok(());
        }
        let head = std::mem::take(&mut self.head);
        let decision = self.decision(&head)?;
        self.rows.name_weights(decision.selection.as_ref().is_some_and(|selection| selection.weight.is_some()));
        self.decision = Some(decision);
        let sums = self.sums(&head);
        for (index, (location, row)) in head.iter().enumerate() {
            if !sums.contains(&index) {
                self.measure(*location, row, true)?;
            }
        }
        self.left_out = sums.len() as u64;
        Ok(())
    }

    /// Returns the indices of stored rows that are sums of other rows.
    fn sums(&self, head: &[(Location, Row<'static>)]) -> BTreeSet<usize> {
        let Some(selection) = self.decision.as_ref().and_then(|decision| decision.selection.as_ref()) else {
            return BTreeSet::new();
        };
        if !self.has_names || !selection.reads_numbers() {
            return BTreeSet::new();
        }
        let meter = Meter::new(self.options);
        let rows: Vec<(usize, (bool, f64))> = head
            .iter()
            .enumerate()
            .filter_map(|(index, (_, row))| {
                let Length::Tokens(number) = selection.sample(row, &meter).length else { return None };
                // Statistics labels are resolved together with the other rows.
                let label = self.label(row, true);
                if label.as_deref().is_some_and(|label| !aside::is_sum(label)) {
                    return None;
                }
                let unread = self.columns.iter().enumerate().filter(|(column, _)| !self.reads(*column));
                let is_marked = label.is_some()
                    || rollup::is_marked(unread.map(|(column, header)| row.value(column, &header.name)));
                Some((index, (is_marked, number.value())))
            })
            .collect();
        let marks: Vec<(bool, f64)> = rows.iter().map(|(_, row)| *row).collect();
        let mut marked = rows.iter().filter(|(_, (is_marked, _))| *is_marked);
        // A single labelled row is resolved together with the other rows.
        let is_single = match (marked.next(), marked.next()) {
            (Some((index, _)), None) => head.get(*index).is_some_and(|(_, row)| self.label(row, true).is_some()),
            _ => false,
        };
        if is_single || !rollup::are_sums(&marks) {
            return BTreeSet::new();
        }
        rows.into_iter().filter(|(_, (is_marked, _))| *is_marked).map(|(index, _)| index).collect()
    }

    /// Returns whether the columns are selected.
    pub(super) const fn is_decided(&self) -> bool {
        self.decision.is_some()
    }

    /// Returns whether a column or a nested column is read. Valid after [`Self::decide`].
    pub(super) fn is_needed(&self, column: usize) -> bool {
        self.reads(column) || self.nested.inside(column).any(|inner| self.reads(inner))
    }

    fn reads(&self, column: usize) -> bool {
        self.decision.as_ref().is_some_and(|decision| {
            decision.selection.as_ref().is_some_and(|selection| selection.reads(column))
                || decision.media.iter().any(|media| media.index == column)
        })
    }

    /// Returns whether token IDs are needed: for the selection, or to separate packed samples.
    pub(super) fn reads_ids(&self) -> bool {
        let choice = self.decision.as_ref().map(|decision| decision.selection.as_ref());
        choice.is_none_or(|choice| {
            choice.and_then(|choice| choice.packed.as_ref()).is_some_and(choice::Packed::reads_ids)
        })
    }

    /// Returns whether a rule reads media. Valid after [`Self::decide`].
    pub(super) fn reads_media(&self) -> bool {
        self.decision.as_ref().is_some_and(|decision| !decision.media.is_empty())
    }

    /// Returns the dataset, or an error if too many rows are unreadable.
    pub(super) fn finish(mut self, format: &'static str) -> Result<Imported, ImportError> {
        if self.head.is_empty() && self.decision.is_none() {
            return self.rows.finish(format, String::new(), Vec::new(), Vec::new());
        }
        if let Some(histogram) = self.bins(format) {
            return histogram;
        }
        self.decide()?;
        let settled = std::mem::take(&mut self.aside).settle()?;
        settled.samples.into_iter().try_for_each(|sample| self.add(sample))?;
        let Some(Decision { selection, source, candidates, warnings: doubts, .. }) = self.decision else {
            return Err(ImportError::NoNumbers { format });
        };
        let mut warnings = selection.map(|selection| selection.warnings).unwrap_or_default();
        warnings.extend(doubts);
        warnings.extend(settled.warnings);
        if self.left_out > 0 {
            warnings.push(format!(
                "{} rows are left out: they have an empty cell or a word for a sum, and are the sums of the other rows.",
                self.left_out
            ));
        }
        let mut imported = self.rows.finish(format, source, candidates, warnings)?;
        imported.report.skipped += settled.left_out + self.left_out;
        Ok(imported)
    }

    /// Adds the keys of a row to the columns.
    fn discover(&mut self, row: &Row<'_>) {
        let known = |columns: &[Column], name: &str| columns.iter().any(|column| column.name == name);
        match row {
            Row::Single(_) if self.columns.is_empty() => {
                self.has_names = false;
                self.columns.push(Column { name: "1".to_owned(), kind: None });
            }
            Row::Object(fields) => {
                for (name, _) in fields {
                    if self.columns.len() < MAX_COLUMNS && !known(&self.columns, name) {
                        self.columns.push(Column { name: name.clone().into_owned(), kind: None });
                    }
                }
            }
            Row::Single(_) | Row::Cells(_) => {}
        }
    }

    fn decision(&mut self, head: &[(Location, Row<'static>)]) -> Result<Decision, ImportError> {
        if self.columns.is_empty() {
            return Err(ImportError::Shape { found: "objects without keys".to_owned() });
        }
        let profiles: Vec<Profile> = self
            .columns
            .iter()
            .enumerate()
            .map(|(index, column)| Profile::new(column, head.iter().map(|(_, row)| row.value(index, &column.name))))
            .collect();
        let rows: Vec<&Row<'_>> = head.iter().map(|(_, row)| row).collect();
        let mut media = media::columns(&profiles, &rows);
        let mut warnings = media::doubts(&media, &rows, self.options.preprocessing);
        for column in &media {
            let is_sized = column.field != Field::Images || profiles[column.index].has_sizes || media.len() > 1;
            if column.field.is_property() && is_sized {
                self.rows.saw_media(&column.name);
            }
        }
        let with_rule = self.rows.has_rule() && !media.is_empty();
        let selection = if !self.has_names && self.options.column.is_none() && profiles.len() == 1 {
            choice::unnamed(&profiles[0], &rows, self.options)
        } else {
            Selection::new(&profiles, &rows, self.options)
        };
        let (long, short) = media::unread_text(&profiles, &rows);
        let selection = match selection {
            Ok(selection) => Some(selection),
            // Rows with media may have no text. A text must not be left out without a question.
            Err(ImportError::Unclear { .. }) if with_rule && !profiles.iter().any(is_length) && long.is_empty() => {
                if !short.is_empty() {
                    warnings.push(format!(
                        "No text is counted. Choose a column if training reads it: {}.",
                        short.join(", ")
                    ));
                }
                None
            }
            Err(ImportError::Unclear { candidates: noted }) => {
                let mut candidates = candidate::candidates(&profiles, &rows, self.options, &[]);
                for noted_candidate in noted {
                    if let Some(candidate) =
                        candidates.iter_mut().find(|candidate| candidate.name == noted_candidate.name)
                    {
                        candidate.note = noted_candidate.note;
                    }
                }
                return Err(ImportError::Unclear { candidates });
            }
            Err(error) => return Err(error),
        };
        // Each of several added columns can be read alone, the only column is read already.
        let parts = match selection.as_ref().map_or(&[][..], |selection| &selection.parts) {
            parts if parts.len() > 1 => &[],
            parts => parts,
        };
        let candidates = candidate::candidates(&profiles, &rows, self.options, parts);
        let source = match &selection {
            None => format!("no {} of text", self.noun),
            Some(selection) if !self.has_names && profiles.len() == 1 => {
                let content = if selection.reads_numbers() { "number" } else { "text" };
                format!("every {content} of the file")
            }
            Some(selection) => selection.source(self.noun, self.options.tokenizer.is_some()),
        };
        if with_rule {
            media::check(&media, &rows)?;
            media.sort_by_key(|column| column.rank);
        } else {
            media.clear();
        }
        Ok(Decision { selection, media, warnings, source, candidates })
    }

    fn take(&mut self, location: Location, mut row: Row<'_>) -> Result<(), ImportError> {
        // Nested values get names only in this step; rows without nested values skip it.
        if self.reads_nested() {
            self.nested.flatten(&mut row, &mut self.columns);
        }
        self.measure(location, &row, false)
    }

    fn reads_nested(&self) -> bool {
        let selection = self.decision.as_ref().and_then(|decision| decision.selection.as_ref());
        selection.is_some_and(|selection| {
            let weight = selection.weight.as_ref().map(|(_, name, _)| name);
            selection.parts.iter().map(|part| &part.name).chain(weight).any(|name| name.contains('.'))
        })
    }

    /// Measures a row. `is_whole` is true if the row has the values of all columns.
    fn measure(&mut self, location: Location, row: &Row<'_>, has_all_columns: bool) -> Result<(), ImportError> {
        let Some(decision) = &self.decision else { return Ok(()) };
        let meter = Meter::new(self.options);
        let sample = decision.selection.as_ref().map(|selection| selection.sample(row, &meter));
        if let Some(rule) = self.options.preprocessing.filter(|_| !decision.media.is_empty()) {
            let mut row_media = RowMedia::default();
            let read = decision.media.iter().try_for_each(|column| {
                row_media.value(column, row.value(column.index, &column.name)).map_err(|why| match row {
                    Row::Object(_) => format!("{}: {why}", column.name),
                    _ => why,
                })
            });
            let media = read.and_then(|()| row_media.finish(rule.modality()));
            return self.rows.add_with_media(location, sample.map(|sample| sample.length), media);
        }
        let Some(Sample { length, images }) = sample else { return Ok(()) };
        if let Some(packed) = decision.selection.as_ref().and_then(|selection| selection.packed.as_ref())
            && !matches!(length, Length::Missing)
        {
            let Some(lengths) = packed.lengths(row) else {
                let why = format!("{} does not hold the lengths of the samples", packed.name);
                return self.rows.add(location, Length::Unreadable(why), None, Samples::Single);
            };
            let images = images.filter(|_| lengths.len() == 1);
            return lengths.into_iter().try_for_each(|length| {
                self.rows.add(location, Length::Tokens(Number::Integer(length)), images, Samples::Single)
            });
        }
        let documents = decision.selection.as_ref().and_then(|choice| choice.documents.as_ref());
        let documents = documents.map_or_else(Vec::new, |documents| documents.lengths(row, &meter));
        if !documents.is_empty() {
            return documents.into_iter().try_for_each(|tokens| {
                self.rows.add(location, Length::Tokens(Number::Integer(tokens as i128)), None, Samples::Single)
            });
        }
        let samples = decision.selection.as_ref().and_then(|selection| selection.weight.as_ref()).map_or(
            Samples::Single,
            |(index, name, notation)| {
                super::profile::number(row.value(*index, name), *notation).map_or(Samples::Missing, Samples::Counted)
            },
        );
        let Length::Tokens(number) = length else { return self.rows.add(location, length, images, samples) };
        let is_number = decision.selection.as_ref().is_some_and(Selection::reads_numbers);
        let label = if is_number { self.label(row, has_all_columns) } else { None };
        if let Some(before) = self.aside.before_next() {
            self.add(before)?;
        }
        let tokens = number.value();
        if let Some(label) = label {
            let deferred = DeferredRow { location, label, tokens, length, images, samples };
            return self.aside.hold(deferred).into_iter().try_for_each(|sample| self.add(sample));
        }
        self.aside.see(tokens);
        if is_number && samples == Samples::Single {
            self.aside.order(tokens);
        }
        self.rows.add(location, length, images, samples)
    }

    /// Returns the label of a possible sum or statistics row; an empty label for a row in which
    /// only the length has a value.
    fn label(&self, row: &Row<'_>, has_all_columns: bool) -> Option<String> {
        let unread = self.columns.iter().enumerate().filter(|(index, _)| !self.reads(*index));
        let is_bare = || {
            self.has_names
                && has_all_columns
                && aside::is_bare(unread.map(|(index, column)| row.value(index, &column.name)))
        };
        aside::label(row).or_else(|| is_bare().then(String::new))
    }

    fn add(&mut self, row: DeferredRow) -> Result<(), ImportError> {
        self.rows.add(row.location, row.length, row.images, row.samples)
    }
}

/// Returns whether a column has numbers and a length name.
fn is_length(profile: &Profile) -> bool {
    profile.has_values && profile.kind == Kind::Number && profile.meaning == Meaning::Length(Unit::Tokens)
}

/// Converts the cells of a text line to values.
pub(super) fn cells<'v>(cells: impl Iterator<Item = &'v str>) -> Row<'v> {
    let value = |cell: &'v str| if cell.is_empty() { Value::Missing } else { Value::Text(Cow::Borrowed(cell)) };
    Row::Cells(cells.map(value).collect())
}
