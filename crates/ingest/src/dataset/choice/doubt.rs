//! Errors that request user confirmation for columns selected by name.

use super::super::candidate::Candidate;
use super::super::histogram::samples;
use super::super::profile::Profile;
use super::super::value::Row;
use super::super::{ImportError, Kind, Meaning, Unit, names, stated};
use super::{Length, Measure, Meter, Part, Selection, contents, groups, texts, turns};

/// Note for a column that may contain totals.
pub(super) const TOTALS: &str = "the numbers may be totals of several samples, such as the tokens of a shard; upload one length per sample, or lengths with the number of samples of each";

/// Note for a column of a log of training steps.
const STEPS: &str = "the file is a log of training steps: its numbers count the tokens of steps, not of samples; import it as a run, or \
                     upload one length per sample";

/// Returns the error that asks whether the columns contain lengths, with a note for each column.
pub(super) fn unclear_error(parts: &[Part], note: &str) -> ImportError {
    ImportError::Unclear { candidates: parts.iter().map(|part| Candidate::noted(&part.name, note)).collect() }
}

/// Returns an error if the rows are turns of a conversation.
pub(super) fn ask_for_turns(profiles: &[Profile], head: &[&Row<'_>]) -> Result<(), ImportError> {
    turns::reason(profiles, head).map_or(Ok(()), |(column, reason)| {
        Err(ImportError::Unclear { candidates: vec![Candidate::noted(&profiles[column].name, &reason)] })
    })
}

/// Returns whether the rows are training steps: a step increases from row to row beside metrics of training, or the token counts
/// increase with it.
fn are_steps(profiles: &[Profile], parts: &[Part]) -> bool {
    /// Rows that show an order.
    const MIN_ROWS: usize = 3;
    let is_step = |profile: &Profile| {
        profile.kind == Kind::Number && names::is_step(&profile.name) && profile.strictly_sorted >= MIN_ROWS
    };
    let has_metric =
        || profiles.iter().any(|profile| profile.kind == Kind::Number && names::is_training_metric(&profile.name));
    let increases = |part: &Part| {
        let profile = &profiles[part.index];
        names::may_be_total(&profile.name) && profile.strictly_sorted >= MIN_ROWS
    };
    profiles.iter().any(is_step) && (has_metric() || parts.iter().all(increases))
}

/// Returns an error if numbers exceed plausible sample lengths or contradict
/// the content, or if a unit column names another unit.
pub(super) fn ask(profiles: &[Profile], parts: &[Part], head: &[&Row<'_>]) -> Result<(), ImportError> {
    if let [Part { index, measure: Measure::Text, .. }] = parts
        && let Some(both) = texts::alternatives(profiles, *index)
    {
        let note = "both columns may hold the same text; choose the column that training reads";
        return Err(ImportError::Unclear {
            candidates: both.map(|index| Candidate::noted(&profiles[index].name, note)).to_vec(),
        });
    }
    if parts.is_empty() || !parts.iter().all(|part| matches!(part.measure, Measure::Number(_, Unit::Tokens))) {
        return Ok(());
    }
    let selection = Selection::from_parts(parts.to_vec());
    let meter =
        Meter { characters_per_token: super::super::CHARACTERS_PER_TOKEN, tokenizer: None, has_word_count: false };
    let lengths = head.iter().filter_map(|row| match selection.sample(row, &meter).length {
        Length::Tokens(number) => Some(number.value()),
        _ => None,
    });
    if samples::is_long(lengths) {
        return Err(unclear_error(parts, TOTALS));
    }
    let is_packed = |column: &Profile| {
        let is_count = names::counts_packed(&column.name) && column.kind == Kind::Number;
        is_count && column.samples.iter().any(|count| count != "1")
    };
    if profiles.iter().any(is_packed) || groups::are_totals(profiles, parts, head) {
        return Err(unclear_error(parts, TOTALS));
    }
    if are_steps(profiles, parts) {
        return Err(unclear_error(parts, STEPS));
    }
    if let [_] = head
        && profiles.len() > parts.len() + 1
        && profiles.iter().any(|profile| {
            let is_count = profile.meaning == Meaning::Weight && profile.kind == Kind::Number;
            is_count && profile.samples.iter().any(|count| count != "1")
        })
    {
        return Err(unclear_error(parts, TOTALS));
    }
    if let Some(reason) = contents::contradiction(profiles, parts, &super::text_parts(profiles), head) {
        return Err(unclear_error(parts, &reason));
    }
    let is_other = |profile: &&Profile| {
        names::is_unit(&profile.name)
            && profile.kind == Kind::Text
            && profile.samples.iter().any(|sample| !names::is_tokens(sample))
    };
    if let Some(unit) = profiles.iter().find(is_other) {
        let unit = unit.samples.join(", ");
        return Err(unclear_error(
            parts,
            &format!("the unit of the numbers is {unit} by the column of units, not tokens"),
        ));
    }
    // For example a column `metric` with the same text in all rows.
    let is_constant = |profile: &&Profile| {
        profile.kind == Kind::Text
            && profile.samples.len() == 1
            && head.len() > 1
            && stated::names_quantity(&profile.name)
    };
    let stated = profiles.iter().filter(is_constant).find_map(|profile| {
        let texts = profile.samples.iter().map(|text| (profile.name.as_str(), text.as_str()));
        stated::check(texts).err()
    });
    stated.map_or(Ok(()), |stated| Err(unclear_error(parts, &stated)))
}
