//! Selects the columns that contain the lengths, by user options or by the table of names.

use super::media::listed;
use super::number::Notation;
use super::profile::Profile;
use super::text::Meter;
use super::value::Row;
use super::{ImportError, Kind, Meaning, Options, Unit, names, numbers, token_ids};

mod automatic;
mod contents;
mod documents;
mod doubt;
mod files;
mod groups;
mod kinds;
mod packed;
mod padding;
mod placeholders;
mod repeats;
mod rule;
mod sample;
mod sections;
mod sentences;
mod separators;
mod sides;
mod texts;
mod turns;
mod weight;
mod writing;

pub(super) use documents::{document_ends, documents};
pub(super) use packed::Packed;
pub(super) use sample::{Images, Length, NO_TEXT, Sample};

use automatic::automatic;
use documents::Documents;
use doubt::{TOTALS, unclear_error};
use placeholders::Placeholders;
use rule::{Rule, TextPart};
use sentences::sentences;
use weight::Weight;

/// A column whose values are added to the length of a sample.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Part {
    /// Column index.
    pub(super) index: usize,
    pub(super) name: String,
    pub(super) measure: Measure,
    /// Constraints from the first rows.
    rule: Rule,
}

impl Part {
    pub(super) fn new(index: usize, profile: &Profile, measure: Measure) -> Self {
        Self { index, name: profile.name.clone(), measure, rule: Rule::from_profile(profile) }
    }
}

/// Conversion of a value to a length.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Measure {
    /// The number itself, in tokens or divided by the characters per token.
    Number(Notation, Unit),
    /// Number of list elements.
    Elements,
    /// Length of the text or messages.
    Text,
}

/// The selected columns of a file.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Selection {
    /// Columns whose lengths are added.
    pub(super) parts: Vec<Part>,
    /// Number of samples per row: column index, name and notation.
    pub(super) weight: Option<(usize, String, Notation)>,
    /// Images per row: column index, name, kind and notation.
    pub(super) images: Option<(usize, String, Kind, Notation)>,
    /// Samples packed into each row.
    pub(super) packed: Option<Packed>,
    /// Documents in the text of each row.
    pub(super) documents: Option<Documents>,
    /// True if `<image>` in a text counts as an image: the texts are messages, or the file names
    /// images.
    pub(super) has_placeholders: bool,
    /// Assumptions, one sentence each.
    pub(super) warnings: Vec<String>,
}

impl Selection {
    /// Creates a choice that adds the columns, without images and weights.
    pub(super) const fn from_parts(parts: Vec<Part>) -> Self {
        let warnings = Vec::new();
        Self { parts, weight: None, images: None, packed: None, documents: None, has_placeholders: false, warnings }
    }

    /// Selects the columns by user options or by names. `head` contains the first rows.
    pub(super) fn new(profiles: &[Profile], head: &[&Row<'_>], options: &Options<'_>) -> Result<Self, ImportError> {
        let mut repeated = Vec::new();
        let parts = if let Some(name) = options.column {
            requested_parts(profiles, name, options)?
        } else {
            doubt::ask_for_turns(profiles, head)?;
            let meter = Meter { tokenizer: None, ..Meter::new(options) };
            let mut parts = automatic(profiles, head, meter, options.preprocessing.is_some())
                .ok_or(ImportError::Unclear { candidates: Vec::new() })?;
            repeated = repeats::remove(&mut parts, head);
            if let Some(selected) = options.unit {
                for part in &mut parts {
                    if let Measure::Number(_, unit) = &mut part.measure {
                        *unit = selected;
                    }
                }
            }
            parts
        };
        for part in &parts {
            if let (Measure::Number(..), Err(ambiguous)) = (part.measure, &profiles[part.index].notation) {
                return Err(ImportError::TwoReadings { column: part.name.clone(), value: ambiguous.value.clone() });
            }
        }
        if options.column.is_none() {
            doubt::ask(profiles, &parts, head)?;
        }
        let is_part = |index: usize| parts.iter().any(|part| part.index == index);
        let (repeated, mut warnings): (Vec<usize>, Vec<String>) = repeated.into_iter().unzip();
        let weight = samples_per_row(profiles, &parts, head, options, &mut warnings)?;
        let images = profiles
            .iter()
            .enumerate()
            .filter(|(index, profile)| profile.meaning == Meaning::Images && profile.has_values && !is_part(*index))
            // A column of any media holds images if one of the first rows names a file.
            .filter(|(index, profile)| {
                let has_image = |row: &&Row<'_>| listed::images(row.value(*index, &profile.name), true) > 0;
                !names::holds_any_media(&profile.name) || head.iter().any(has_image)
            })
            .min_by_key(|(_, profile)| profile.rank)
            .map(|(index, profile)| {
                (index, profile.name.clone(), profile.kind, *profile.notation.as_ref().unwrap_or(&Notation::Point))
            });
        let images = images.filter(|(_, name, ..)| {
            if weight.is_some() {
                warnings.push(format!("{name} is not counted: rows stand for several samples each."));
            }
            weight.is_none()
        });
        let has_media = parts.iter().any(|part| profiles[part.index].kind == Kind::Chat)
            || profiles
                .iter()
                .any(|profile| profile.has_values && matches!(profile.meaning, Meaning::Images | Meaning::Media));
        let tagged = if has_media { None } else { placeholders::find(&parts, head) };
        let has_placeholders = has_media || tagged.as_ref().is_some_and(Placeholders::are_images);
        if options.column.is_some() && options.unit.is_none() {
            warnings.extend(parts.iter().filter(|part| names::has_other_unit(&part.name)).map(|part| {
                format!("{} is read as a number of tokens, as chosen. Its name states another unit.", part.name)
            }));
            // Numbers with the name of another quantity.
            let is_other = |meaning| {
                use Meaning::{BinEdge, Duration, Identifier, Images, Label, Media, Score, Time, Weight};
                matches!(meaning, BinEdge | Duration | Identifier | Images | Label | Media | Score | Time | Weight)
            };
            let numbers = parts.iter().filter(|part| matches!(part.measure, Measure::Number(..)));
            let others =
                numbers.filter(|part| is_other(profiles[part.index].meaning) && !names::has_other_unit(&part.name));
            warnings.extend(others.map(|part| {
                let meaning = profiles[part.index].meaning.title();
                format!("{} is read as a number of tokens, as chosen. Its name means: {meaning}.", part.name)
            }));
        }
        warnings.splice(0..0, sentences(profiles, &parts, &repeated, head, options));
        warnings.extend(contents::sentences(profiles, &parts, &text_parts(profiles), head));
        warnings.extend(files::sentences(profiles, &is_part, images.is_some(), head));
        let packed = Packed::detect(profiles, &parts, head, options.column.is_some())
            .filter(|packed| images.is_none() || packed.is_single());
        warnings.extend(packed.as_ref().and_then(Packed::sentence));
        if packed.as_ref().is_none_or(Packed::is_inner) {
            warnings.extend(packed::unread(profiles, &parts, head).or_else(|| padding::sentence(&parts, head)));
        } else if packed.as_ref().is_some_and(Packed::is_single) {
            warnings.extend(separators::unread(&parts, head));
        }
        let is_selected = options.column.is_some();
        let documents = documents::find(&parts, head).and_then(|found| {
            if is_selected || images.is_some() || !found.is_clear() {
                warnings.push(found.sentence());
                return None;
            }
            let (documents, sentence) = found.into_documents();
            warnings.push(sentence);
            Some(documents)
        });
        warnings.extend(tagged.as_ref().map(Placeholders::sentence));
        let named = || if is_selected { None } else { kinds::named(profiles) };
        warnings.extend(kinds::sentence(profiles, &parts, head).or_else(named));
        Ok(Self { parts, weight, images, packed, documents, has_placeholders, warnings })
    }

    /// Description of the length source, for example "column prompt_tokens + completion_tokens".
    pub(super) fn source(&self, noun: &str, has_tokenizer: bool) -> String {
        if let Some(packed) = self.packed.as_ref().filter(|packed| !packed.is_single()) {
            return format!("samples in the rows of {noun} {}", packed.name);
        }
        let names: Vec<&str> = self.parts.iter().map(|part| part.name.as_str()).collect();
        let prefix = match self.parts.first().map(|part| part.measure) {
            Some(Measure::Elements) => "lengths of the lists of ",
            Some(Measure::Text) if has_tokenizer => "tokens of the text of ",
            Some(Measure::Text) => "characters of the text of ",
            Some(Measure::Number(_, Unit::Characters)) => "number of characters in ",
            Some(Measure::Number(_, Unit::Bytes)) => "number of bytes in ",
            Some(Measure::Number(_, Unit::Tokens)) | None => "",
        };
        let plural = if names.len() > 1 { "s" } else { "" };
        let weight =
            self.weight.as_ref().map_or_else(String::new, |(_, name, _)| format!(", samples per row in {noun} {name}"));
        format!("{prefix}{noun}{plural} {}{weight}", names.join(" + "))
    }

    /// Returns whether the lengths are numbers from the file.
    pub(super) fn reads_numbers(&self) -> bool {
        self.parts.iter().all(|part| matches!(part.measure, Measure::Number(..)))
    }

    pub(super) fn reads(&self, index: usize) -> bool {
        self.parts.iter().any(|part| part.index == index)
            || self.weight.as_ref().is_some_and(|(column, ..)| *column == index)
            || self.images.as_ref().is_some_and(|(column, ..)| *column == index)
            || self.packed.as_ref().is_some_and(|packed| packed.index == index)
    }
}

/// Returns the column with the number of samples per row: index, name and notation.
fn samples_per_row(
    profiles: &[Profile],
    parts: &[Part],
    head: &[&Row<'_>],
    options: &Options<'_>,
    warnings: &mut Vec<String>,
) -> Result<Option<(usize, String, Notation)>, ImportError> {
    let weight = match options.weight {
        Some("") => None,
        Some(name) => Some(find(profiles, name)?),
        None => match weight::weight(profiles, parts, head) {
            Weight::None => None,
            Weight::Column(index) => Some(index),
            Weight::Doubtful(index) => {
                warnings.push(format!(
                    "Column {} may hold the number of samples of each row. It is not used. If it does, choose it as the weight.",
                    profiles[index].name
                ));
                None
            }
            Weight::Unclear => return Err(ImportError::Unclear { candidates: Vec::new() }),
            Weight::Totals => return Err(unclear_error(parts, TOTALS)),
        },
    };
    if let Some(index) = weight {
        let own = &profiles[index];
        let is_part = parts.iter().any(|part| part.index == index);
        if is_part || own.kind != Kind::Number {
            let kind = if is_part { "the lengths" } else { own.kind.title() };
            return Err(ImportError::NoLengths { column: own.name.clone(), kind });
        }
    }
    if let Some(index) = weight
        && let Err(ambiguous) = &profiles[index].notation
    {
        return Err(ImportError::TwoReadings { column: profiles[index].name.clone(), value: ambiguous.value.clone() });
    }
    Ok(weight.map(|index| {
        let profile = &profiles[index];
        (index, profile.name.clone(), *profile.notation.as_ref().unwrap_or(&Notation::Point))
    }))
}

/// Returns the text columns of a sample as parts.
fn text_parts(profiles: &[Profile]) -> Vec<Part> {
    let part = |index: usize| Some(Part::new(index, &profiles[index], measure(&profiles[index], Unit::Tokens)?));
    texts::texts(profiles).into_iter().filter_map(part).collect()
}

/// Selects the only column of a file without names: plain numbers are lengths.
pub(super) fn unnamed(own: &Profile, head: &[&Row<'_>], options: &Options<'_>) -> Result<Selection, ImportError> {
    options.check_columns(&[&own.name])?;
    if own.has_paths {
        return Err(ImportError::NoLengths { column: own.name.clone(), kind: "paths or addresses" });
    }
    if matches!(own.kind, Kind::Text | Kind::Chat) {
        let parts = vec![Part::new(0, own, Measure::Text)];
        let mut warnings = sentences(std::slice::from_ref(own), &parts, &[], &[], options);
        let found =
            documents::find(&parts, head).filter(documents::Found::is_clear).map(documents::Found::into_documents);
        let (documents, sentence) = found.unzip();
        warnings.extend(sentence);
        return Ok(Selection { documents, warnings, ..Selection::from_parts(parts) });
    }
    // Numbers with decimals are probably seconds, shares or scores, not tokens.
    let has_decimals = own.is_fractional && own.notation.is_ok() && options.unit.is_none();
    if own.kind != Kind::Number || has_decimals {
        return Err(ImportError::Unclear { candidates: Vec::new() });
    }
    let notation = own
        .notation
        .clone()
        .map_err(|ambiguous| ImportError::TwoReadings { column: own.name.clone(), value: ambiguous.value })?;
    let unit = options.unit.unwrap_or_default();
    let parts = vec![Part::new(0, own, Measure::Number(notation, unit))];
    let mut warnings = sentences(std::slice::from_ref(own), &parts, &[], &[], options);
    if options.column.is_none() && unit == Unit::Tokens {
        warnings.push(numbers::PLAIN.to_owned());
    }
    Ok(Selection { warnings, ..Selection::from_parts(parts) })
}

/// Finds a column by exact name, or by a name with equal letters and digits.
fn find(profiles: &[Profile], name: &str) -> Result<usize, ImportError> {
    profiles
        .iter()
        .position(|profile| profile.name == name)
        .or_else(|| profiles.iter().position(|profile| names::is_same(&profile.name, name)))
        .ok_or_else(|| ImportError::NoSuchColumn {
            requested: name.chars().take(80).collect(),
            available: profiles.iter().map(|profile| profile.name.chars().take(80).collect()).take(50).collect(),
        })
}

/// Returns the columns that the user names.
fn requested_parts(profiles: &[Profile], name: &str, options: &Options<'_>) -> Result<Vec<Part>, ImportError> {
    let mut parts = Vec::new();
    for name in [Some(name), options.add.filter(|name| !name.is_empty())].into_iter().flatten() {
        let index = find(profiles, name)?;
        let own = &profiles[index];
        if parts.iter().any(|part: &Part| part.index == index) {
            return Err(ImportError::AddedTwice { column: own.name.clone() });
        }
        let unit = options.unit.unwrap_or(match own.meaning {
            Meaning::Length(unit) => unit,
            _ => Unit::Tokens,
        });
        let kind = if own.has_paths { "paths or addresses" } else { own.kind.title() };
        let measure = measure(own, unit).ok_or_else(|| ImportError::NoLengths { column: own.name.clone(), kind })?;
        parts.push(Part::new(index, own, measure));
    }
    Ok(parts)
}

/// Returns whether list values may be lengths themselves, as in `seqlens: [512, 733]`.
pub(super) fn is_length_list(profile: &Profile) -> bool {
    profile.kind == Kind::NumberList
        && matches!(profile.meaning, Meaning::Length(_) | Meaning::Prompt | Meaning::Completion)
        && !token_ids::are_listed(&profile.name)
}

/// Returns the conversion of column values to lengths; `None` if there is none.
pub(super) fn measure(profile: &Profile, unit: Unit) -> Option<Measure> {
    if profile.has_paths {
        return None;
    }
    if rule::text_part(profile) != TextPart::Full {
        return Some(Measure::Text);
    }
    Some(match profile.kind {
        Kind::Number | Kind::Empty => Measure::Number(*profile.notation.as_ref().unwrap_or(&Notation::Point), unit),
        Kind::NumberList => Measure::Elements,
        Kind::NestedList if token_ids::are_listed(&profile.name) => Measure::Elements,
        Kind::TextList if names::counts_tokens(&profile.name) => Measure::Elements,
        Kind::Text | Kind::Chat | Kind::TextList => Measure::Text,
        _ => return None,
    })
}
