//! Token counts of the sections of a sample, such as title and body, and of other quantities.

use super::super::names::{self, Counted};
use super::super::profile::Profile;
use super::super::{Kind, Meaning};
use super::automatic::among;

/// Token counts beside a length.
pub(super) enum Sections {
    /// The length includes all of them.
    Single,
    /// Columns that are added to the length.
    Sum(Vec<usize>),
    /// A pivot: each column counts the tokens of another group.
    Unclear,
}

/// Returns the relation of a length to the token counts beside it.
pub(super) fn sections(profiles: &[Profile], length: usize) -> Sections {
    let name = &profiles[length].name;
    if names::counted(name) != Some(Counted::Section) {
        return Sections::Single;
    }
    let neighbours = |counted: Counted| -> Vec<usize> {
        let all = among(profiles, name, &|other| names::counted(other) == Some(counted));
        all.into_iter().filter(|&index| index != length).collect()
    };
    let is_text = names::is_same(name.rsplit('.').next().unwrap_or(name), "text_tokens");
    if !is_text && !neighbours(Counted::Other).is_empty() {
        return Sections::Unclear;
    }
    // Counted images have separate tokens.
    let has_images = profiles.iter().any(|profile| profile.meaning == Meaning::Images && profile.has_values);
    let has_sides = profiles.iter().any(|profile| matches!(profile.meaning, Meaning::Prompt | Meaning::Completion));
    let is_added = |index: &usize| {
        let name = &profiles[*index].name;
        let is_included = has_sides && names::sample_part(name).is_some();
        let is_counted = has_images && names::is_media_tokens(name);
        !(is_included || is_counted)
    };
    let further: Vec<usize> = neighbours(Counted::Section).into_iter().filter(is_added).collect();
    if further.is_empty() {
        return Sections::Single;
    }
    let total = profiles.iter().position(is_sum);
    let mut all: Vec<usize> = std::iter::once(length).chain(further).collect();
    all.sort_unstable();
    Sections::Sum(total.map_or(all, |total| vec![total]))
}

fn is_sum(profile: &Profile) -> bool {
    profile.kind == Kind::Number
        && names::is_total_tokens(&profile.name)
        && !profile.is_constant
        && !profile.is_fractional
}
