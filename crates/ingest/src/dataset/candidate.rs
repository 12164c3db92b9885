//! Columns that the user can choose as lengths.

use planner::outcome::HistogramColumns;

use super::choice::{self, Length, Measure, Packed, Part, Selection};
use super::profile::Profile;
use super::text::Meter;
use super::value::Row;
use super::{Kind, Meaning, Options, Unit, names};

/// Maximum number of candidates per file.
pub(super) const MAX_CANDIDATES: usize = 50;

/// Note for a list whose values may be lengths.
const LISTED: &str =
    "the elements of each list are counted; if they are lengths themselves, upload them as one list of numbers";
/// Note for a list whose name says that the values are lengths.
const LENGTHS: &str = "the elements of each list are read as lengths of samples";

/// A column or key that the user can choose as the sample lengths.
#[derive(Debug, Clone, PartialEq)]
pub struct Candidate {
    /// Column name; columns without a header are numbered from 1.
    pub name: String,
    /// Kind of its values.
    pub kind: Kind,
    /// Meaning by the table of names.
    pub meaning: Meaning,
    /// Up to five values in the file's notation, clipped to 40 characters.
    pub samples: Vec<String>,
    /// Lengths of the first rows in tokens if the user chooses this column; `None` if the column
    /// gives no length.
    pub preview: Option<HistogramColumns>,
    /// Description of the values, in one sentence.
    pub note: Option<String>,
}

impl Candidate {
    /// Creates a candidate from a name and a note.
    pub(super) fn noted(name: &str, note: &str) -> Self {
        Self { note: Some(note.to_owned()), ..Self::named(name.chars().take(80).collect()) }
    }

    /// Creates a candidate from a name.
    pub(super) fn named(name: String) -> Self {
        Self { name, kind: Kind::Empty, meaning: Meaning::Unknown, samples: Vec::new(), preview: None, note: None }
    }
}

/// Returns the candidate columns, each with a preview of the lengths in the first rows.
pub(super) fn candidates(
    profiles: &[Profile],
    head: &[&Row<'_>],
    options: &Options<'_>,
    without: &[Part],
) -> Vec<Candidate> {
    /// Number of rows that the tokenizer encodes for a preview.
    const ENCODED: usize = 100;
    let meter = Meter::new(options);
    let candidate = |(index, profile): (usize, &Profile)| {
        let unit = match profile.meaning {
            Meaning::Length(unit) => unit,
            _ => Unit::Tokens,
        };
        let measure =
            if profile.has_values { choice::measure(profile, unit).filter(|_| profile.notation.is_ok()) } else { None };
        let preview = measure.and_then(|measure| {
            let rows = if measure == Measure::Text && meter.tokenizer.is_some() { ENCODED } else { head.len() };
            let selection = Selection::from_parts(vec![Part::new(index, profile, measure)]);
            let packed = Packed::from_lists(profile, index);
            let row_lengths = |row: &&Row<'_>| match &packed {
                Some(packed) => {
                    packed.lengths(row).unwrap_or_default().into_iter().map(|length| length as f64).collect()
                }
                None => match selection.sample(row, &meter).length {
                    Length::Tokens(number) => vec![number.value().round()],
                    _ => Vec::new(),
                },
            };
            let lengths: Vec<u32> = head
                .iter()
                .take(rows)
                .flat_map(row_lengths)
                .filter(|length| (1.0..=f64::from(super::MAX_LENGTH)).contains(length))
                .map(|length| length as u32)
                .collect();
            HistogramColumns::from_values(&lengths)
        });
        let note = match &profile.notation {
            Err(ambiguous) if profile.kind == Kind::Number => {
                Some(format!("{} has two readings: thousands or decimals", ambiguous.value))
            }
            _ if choice::is_length_list(profile) => {
                Some(if names::holds_lengths(&profile.name) { LENGTHS } else { LISTED }.to_owned())
            }
            _ => profile.note.clone(),
        };
        Candidate {
            name: profile.name.chars().take(80).collect(),
            kind: profile.kind,
            meaning: profile.meaning,
            samples: profile.samples.clone(),
            preview,
            note,
        }
    };
    profiles
        .iter()
        .enumerate()
        .filter(|(index, profile)| {
            // In Parquet, all members of a list of records have the list's name.
            let is_repeated = profiles[..*index].iter().any(|before| before.name == profile.name);
            !is_repeated && without.iter().all(|part| part.index != *index)
        })
        .take(MAX_CANDIDATES)
        .map(candidate)
        .collect()
}
