//! Which columns hold the lengths, by the choices of the user or by the table of names.

use super::names;
use super::number::{Notation, Number};
use super::profile::{self, Profile};
use super::text::{Extent, Meter};
use super::value::{Row, Value};
use super::{Candidate, ImportError, Kind, Meaning, Options, Unit};

/// A column whose values are added to the length of a sample.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Part {
    /// Place among the columns.
    pub(super) index: usize,
    pub(super) name: String,
    pub(super) measure: Measure,
}

/// Reason of a row without text.
pub(super) const NO_TEXT: &str = "there is no text";

/// How a value becomes a length.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Measure {
    /// The number itself, in tokens or divided by the characters per token.
    Number(Notation, Unit),
    /// The elements of a list.
    Elements,
    /// The text or the messages.
    Text,
}

/// The columns of a file that are read.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Choice {
    /// Their lengths are added.
    pub(super) parts: Vec<Part>,
    /// Number of samples of each row.
    pub(super) weight: Option<(usize, String, Notation)>,
    /// Images of each row.
    pub(super) images: Option<(usize, String, Kind, Notation)>,
    /// Assumptions, one sentence each.
    pub(super) warnings: Vec<String>,
}

/// What a row holds.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Sample {
    pub(super) length: Length,
    /// Images; `None` if the row names none.
    pub(super) images: Option<Images>,
}

/// Images of a row.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Images {
    /// A number in a column of numbers.
    Counted(Number),
    /// Entries of a list, paths, or placeholders in texts.
    Listed(u32),
    /// A column of numbers without a number in this row.
    Unreadable,
}

/// Length of a row.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Length {
    Tokens(Number),
    /// No value at all.
    Missing,
    /// The reason why there is no length.
    Unreadable(String),
}

impl Choice {
    /// The columns by the choices of the user, or by names. `head` holds the first rows.
    pub(super) fn new(profiles: &[Profile], head: &[&Row<'_>], options: &Options<'_>) -> Result<Self, ImportError> {
        let parts = match options.column {
            Some(name) => chosen(profiles, name, options)?,
            None => {
                let meter = Meter { tokenizer: None, ..Meter::new(options) };
                automatic(profiles, head, meter).ok_or(ImportError::Unclear { candidates: Vec::new() })?
            }
        };
        for part in &parts {
            if let (Measure::Number(..), Err(ambiguous)) = (part.measure, &profiles[part.index].notation) {
                return Err(ImportError::TwoReadings { column: part.name.clone(), value: ambiguous.value.clone() });
            }
        }
        let is_part = |index: usize| parts.iter().any(|part| part.index == index);
        let mut warnings = Vec::new();
        let weight = match options.weight {
            Some("") => None,
            Some(name) => Some(find(profiles, name)?),
            None => match weight(profiles, &parts) {
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
            },
        };
        if let Some(index) = weight {
            let own = &profiles[index];
            if is_part(index) || own.kind != Kind::Number {
                let kind = if is_part(index) { "the lengths" } else { own.kind.title() };
                return Err(ImportError::NoLengths { column: own.name.clone(), kind });
            }
        }
        let weight = weight.map(|index| {
            let own = &profiles[index];
            (index, own.name.clone(), *own.notation.as_ref().unwrap_or(&Notation::Point))
        });
        let images = profiles
            .iter()
            .enumerate()
            .filter(|(index, own)| own.meaning == Meaning::Images && own.has_values && !is_part(*index))
            .min_by_key(|(_, own)| own.rank)
            .map(|(index, own)| {
                (index, own.name.clone(), own.kind, *own.notation.as_ref().unwrap_or(&Notation::Point))
            });
        warnings.splice(0..0, sentences(profiles, &parts, options));
        Ok(Self { parts, weight, images, warnings })
    }

    /// Source of the lengths, for example "column prompt_tokens + completion_tokens".
    pub(super) fn source(&self, noun: &str, has_tokenizer: bool) -> String {
        let names: Vec<&str> = self.parts.iter().map(|part| part.name.as_str()).collect();
        let what = match self.parts.first().map(|part| part.measure) {
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
        format!("{what}{noun}{plural} {}{weight}", names.join(" + "))
    }

    /// Whether a column is read.
    pub(super) fn reads(&self, index: usize) -> bool {
        self.parts.iter().any(|part| part.index == index)
            || self.weight.as_ref().is_some_and(|(own, ..)| *own == index)
            || self.images.as_ref().is_some_and(|(own, ..)| *own == index)
    }

    /// Length and images of a row.
    pub(super) fn sample(&self, row: &Row<'_>, meter: &Meter<'_>) -> Sample {
        let mut extent = Extent::default();
        let length = self.length(row, meter, &mut extent);
        let images = match &self.images {
            Some((index, name, kind, notation)) => match (row.value(*index, name), kind) {
                (value, Kind::Number) => {
                    Some(profile::number(value, *notation).map_or(Images::Unreadable, Images::Counted))
                }
                (Value::Missing, _) => Some(Images::Listed(0)),
                (Value::List(list), _) => Some(Images::Listed(u32::try_from(list.count).unwrap_or(u32::MAX))),
                (Value::Text(text), _) if text.trim().is_empty() => Some(Images::Listed(0)),
                (Value::Number(number), _) => Some(Images::Counted(*number)),
                _ => Some(Images::Listed(1)),
            },
            None if extent.images > 0 => Some(Images::Listed(extent.images)),
            None => None,
        };
        Sample { length, images }
    }

    fn length(&self, row: &Row<'_>, meter: &Meter<'_>, extent: &mut Extent) -> Length {
        let (mut total, mut exact, mut found) = (0.0, None, 0);
        for part in &self.parts {
            let value = row.value(part.index, &part.name);
            match part.measure {
                Measure::Text => {
                    found += usize::from(!matches!(value, Value::Missing));
                    meter.add(value, extent);
                }
                Measure::Elements => match value {
                    Value::List(list) => {
                        found += 1;
                        exact = Some(Number::Whole(list.count as i128));
                        total += list.count as f64;
                    }
                    Value::Missing => {}
                    Value::Text(text) if text.trim().is_empty() => {}
                    Value::Text(text) => match profile::elements(text) {
                        Some(count) => {
                            found += 1;
                            exact = Some(Number::Whole(count as i128));
                            total += count as f64;
                        }
                        None => return Length::Unreadable(format!("{:?} is not a list", value.shown())),
                    },
                    other => return Length::Unreadable(format!("{:?} is not a list", other.shown())),
                },
                Measure::Number(notation, unit) => match value {
                    Value::Missing => {}
                    Value::Text(text) if text.trim().is_empty() => {}
                    // A list under a name of numbers counts by its elements.
                    Value::List(list) => {
                        found += 1;
                        exact = Some(Number::Whole(list.count as i128));
                        total += list.count as f64;
                    }
                    value => {
                        let Some(number) = profile::number(value, notation) else {
                            return Length::Unreadable(match value {
                                Value::Text(_) => format!("{:?} is not a number", value.shown()),
                                other => format!("{} is not a number", other.shown()),
                            });
                        };
                        found += 1;
                        let per_token = if unit == Unit::Tokens { 1.0 } else { meter.characters_per_token };
                        total += number.value() / per_token;
                        exact = match (unit, number) {
                            (Unit::Tokens, number) => Some(number),
                            (_, number) => Some(Number::Repaired((number.value() / per_token).ceil())),
                        };
                    }
                },
            }
        }
        if found == 0 {
            return Length::Missing;
        }
        if self.parts.iter().any(|part| part.measure == Measure::Text) {
            if extent.is_unreadable {
                return Length::Unreadable("the tokenizer cannot encode the text".to_owned());
            }
            let tokens = meter.tokens(extent);
            return if tokens > 0.0 {
                Length::Tokens(Number::Whole(tokens as i128))
            } else {
                Length::Unreadable(NO_TEXT.to_owned())
            };
        }
        match exact {
            Some(number) if self.parts.len() == 1 => Length::Tokens(number),
            _ if found < self.parts.len() => Length::Tokens(Number::Repaired(total)),
            _ if total.fract() == 0.0 => Length::Tokens(Number::Whole(total as i128)),
            _ => Length::Tokens(Number::Repaired(total)),
        }
    }
}

/// The only column of a file without names: plain numbers are lengths.
pub(super) fn unnamed(own: &Profile, options: &Options<'_>) -> Result<Choice, ImportError> {
    if own.kind != Kind::Number {
        return Err(ImportError::Unclear { candidates: Vec::new() });
    }
    let notation = own
        .notation
        .clone()
        .map_err(|ambiguous| ImportError::TwoReadings { column: own.name.clone(), value: ambiguous.value })?;
    let unit = options.unit.unwrap_or_default();
    let parts = vec![Part { index: 0, name: own.name.clone(), measure: Measure::Number(notation, unit) }];
    let warnings = sentences(std::slice::from_ref(own), &parts, options);
    Ok(Choice { parts, weight: None, images: None, warnings })
}

/// The column of a name: equal, or equal by its letters and digits.
fn find(profiles: &[Profile], name: &str) -> Result<usize, ImportError> {
    profiles
        .iter()
        .position(|own| own.name == name)
        .or_else(|| profiles.iter().position(|own| names::is_same(&own.name, name)))
        .ok_or_else(|| ImportError::NoSuchColumn {
            asked: name.chars().take(80).collect(),
            available: profiles.iter().map(|own| own.name.chars().take(80).collect()).take(50).collect(),
        })
}

/// The columns that the user chooses.
fn chosen(profiles: &[Profile], name: &str, options: &Options<'_>) -> Result<Vec<Part>, ImportError> {
    let mut parts = Vec::new();
    for name in [Some(name), options.add.filter(|name| !name.is_empty())].into_iter().flatten() {
        let index = find(profiles, name)?;
        let own = &profiles[index];
        let unit = options.unit.unwrap_or(match own.meaning {
            Meaning::Length(unit) => unit,
            _ => Unit::Tokens,
        });
        let measure = measure(own, unit)
            .ok_or_else(|| ImportError::NoLengths { column: own.name.clone(), kind: own.kind.title() })?;
        parts.push(Part { index, name: own.name.clone(), measure });
    }
    Ok(parts)
}

/// How the values of a column become lengths; `None` if they do not.
pub(super) fn measure(own: &Profile, unit: Unit) -> Option<Measure> {
    Some(match own.kind {
        Kind::Number | Kind::Empty => Measure::Number(*own.notation.as_ref().unwrap_or(&Notation::Point), unit),
        Kind::ListOfNumbers => Measure::Elements,
        Kind::ListOfTexts if names::counts_tokens(&own.name) => Measure::Elements,
        Kind::Text | Kind::Chat | Kind::ListOfTexts => Measure::Text,
        _ => return None,
    })
}

/// The columns by their names.
fn automatic(profiles: &[Profile], head: &[&Row<'_>], meter: Meter<'_>) -> Option<Vec<Part>> {
    let part = |index: usize, unit: Unit| {
        let own = &profiles[index];
        Some(Part { index, name: own.name.clone(), measure: measure(own, unit)? })
    };
    let best = |test: &dyn Fn(&Profile) -> bool| {
        let of = profiles.iter().enumerate().filter(|(_, own)| test(own));
        of.min_by_key(|(_, own)| own.rank).map(|(index, _)| index)
    };
    let counts = |own: &Profile, meaning: Meaning| {
        own.meaning == meaning
            && match own.kind {
                Kind::Number => !own.is_fractional,
                Kind::ListOfNumbers => true,
                Kind::ListOfTexts => names::counts_tokens(&own.name),
                _ => false,
            }
    };
    let texts = texts(profiles);
    if let Some(length) = best(&|own| counts(own, Meaning::Length(Unit::Tokens))) {
        let own = part(length, Unit::Tokens)?;
        let is_certain = profiles[length].kind != Kind::Number || profiles[length].name.to_lowercase().contains("tok");
        if is_certain || texts.is_empty() {
            return Some(vec![own]);
        }
        let of_texts: Vec<Part> = texts.iter().filter_map(|&index| part(index, Unit::Tokens)).collect();
        match compare(&own, &of_texts, head, meter) {
            Some(Unit::Tokens) => return Some(vec![own]),
            Some(_) => return Some(of_texts),
            None => return None,
        }
    }
    let prompt = best(&|own| counts(own, Meaning::Prompt));
    let completion = best(&|own| counts(own, Meaning::Completion));
    match (prompt, completion) {
        (Some(prompt), Some(completion)) => {
            return Some(vec![part(prompt, Unit::Tokens)?, part(completion, Unit::Tokens)?]);
        }
        (Some(only), None) | (None, Some(only)) if texts.is_empty() => return Some(vec![part(only, Unit::Tokens)?]),
        _ => {}
    }
    if !texts.is_empty() {
        return texts.into_iter().map(|index| part(index, Unit::Tokens)).collect();
    }
    if let Some(characters) = best(&|own| counts(own, Meaning::Length(Unit::Characters))) {
        return Some(vec![part(characters, Unit::Characters)?]);
    }
    None
}

/// Columns of text that make a sample: a conversation, an instruction with its answer, a preferred answer, or a document.
fn texts(profiles: &[Profile]) -> Vec<usize> {
    let textual = |name: &str| profiles.iter().position(|own| own.is_textual() && names::is_same(&own.name, name));
    let any = |names: &[&str]| names.iter().find_map(|name| textual(name));
    let best = |meaning: Meaning| {
        let of = profiles.iter().enumerate().filter(|(_, own)| own.is_textual() && own.meaning == meaning);
        of.min_by_key(|(_, own)| own.rank).map(|(index, _)| index)
    };
    let is_chat = |index: &usize| profiles[*index].kind == Kind::Chat;
    let around = [any(&["system", "system_prompt"]), any(&["tools"])];
    let with_system =
        |parts: &[Option<usize>]| -> Vec<usize> { around.iter().chain(parts).copied().flatten().collect() };
    let named_chat = best(Meaning::Chat);
    if let Some(chat) = named_chat {
        return with_system(&[Some(chat)]);
    }
    // A preferred conversation repeats the prompt.
    if let Some(chosen) = textual("chosen").filter(is_chat) {
        return vec![chosen];
    }
    let answer = best(Meaning::AnswerText);
    let question = any(&["instruction", "prompt", "question", "query", "problem", "input"]);
    if let (Some(question), Some(answer)) = (question, answer) {
        let is_instruction = names::is_same(&profiles[question].name, "instruction");
        let input = if is_instruction { textual("input") } else { None };
        return with_system(&[any(&["history"]), any(&["context"]), Some(question), input, Some(answer)]);
    }
    if let Some(text) = best(Meaning::Text) {
        return vec![text];
    }
    if let Some(chosen) = textual("chosen") {
        return vec![chosen];
    }
    // Messages are a conversation under any name, if there is one such column.
    let mut chats = profiles.iter().enumerate().filter(|(_, own)| own.kind == Kind::Chat).map(|(index, _)| index);
    match (chats.next(), chats.next()) {
        (Some(only), None) => vec![only],
        _ => Vec::new(),
    }
}

/// Compares a column that is called "length" with the texts of the same rows: its unit, or `None` if it fits neither characters nor tokens.
fn compare(length: &Part, texts: &[Part], head: &[&Row<'_>], meter: Meter<'_>) -> Option<Unit> {
    let meter = Meter { characters_per_token: 1.0, ..meter };
    let choice = |parts: &[Part]| Choice { parts: parts.to_vec(), weight: None, images: None, warnings: Vec::new() };
    let (length, texts) = (choice(std::slice::from_ref(length)), choice(texts));
    let mut ratios: Vec<f64> = head
        .iter()
        .take(200)
        .filter_map(|row| match (length.sample(row, &meter).length, texts.sample(row, &meter).length) {
            (Length::Tokens(length), Length::Tokens(characters)) => Some(characters.value() / length.value()),
            _ => None,
        })
        .filter(|ratio| ratio.is_finite())
        .collect();
    ratios.sort_by(f64::total_cmp);
    match ratios.get(ratios.len() / 2) {
        None => Some(Unit::Tokens),
        Some(median) if (0.97..=1.03).contains(median) => Some(Unit::Characters),
        Some(median) if (1.03..=15.0).contains(median) => Some(Unit::Tokens),
        // Chinese and Japanese texts have fewer characters than bytes; their UTF-8 has 3 bytes per character.
        Some(median) if (0.3..0.97).contains(median) => Some(Unit::Bytes),
        Some(_) => None,
    }
}

/// The column that holds the number of samples of each row.
enum Weight {
    None,
    Column(usize),
    /// There is a column by such a name, beside others.
    Doubtful(usize),
    /// The rows look like a table of a distribution.
    Unclear,
}

fn weight(profiles: &[Profile], parts: &[Part]) -> Weight {
    let [Part { index, measure: Measure::Number(..), .. }] = parts else { return Weight::None };
    let others: Vec<(usize, &Profile)> = profiles
        .iter()
        .enumerate()
        .filter(|(other, own)| other != index && own.has_values && own.meaning != Meaning::Identifier)
        .collect();
    let is_distribution = |own: &Profile| matches!(own.meaning, Meaning::Score | Meaning::BinEdge);
    let weight = others.iter().filter(|(_, own)| own.meaning == Meaning::Weight && own.kind == Kind::Number);
    if let Some((weight, _)) = weight.min_by_key(|(_, own)| own.rank).copied() {
        let is_table = others.iter().all(|(other, own)| *other == weight || is_distribution(own));
        return if is_table { Weight::Column(weight) } else { Weight::Doubtful(weight) };
    }
    let is_number =
        |own: &Profile| own.kind == Kind::Number && (is_distribution(own) || own.meaning == Meaning::Unknown);
    if profiles[*index].is_strictly_sorted && !others.is_empty() && others.iter().all(|(_, own)| is_number(own)) {
        return Weight::Unclear;
    }
    Weight::None
}

/// Assumptions behind a choice.
fn sentences(profiles: &[Profile], parts: &[Part], options: &Options<'_>) -> Vec<String> {
    let mut found = Vec::new();
    let meaning = |part: &Part| profiles[part.index].meaning;
    if options.column.is_none() {
        match parts {
            [prompt, completion]
                if meaning(prompt) == Meaning::Prompt && meaning(completion) == Meaning::Completion =>
            {
                found.push(
                    "Prompt and completion are added: training reads both. To read one of them, choose its column."
                        .to_owned(),
                );
            }
            [only] if meaning(only) == Meaning::Prompt => {
                found.push(
                    "Only the tokens of the prompt are counted: no column holds those of the completion.".to_owned(),
                );
            }
            [only] if meaning(only) == Meaning::Completion => {
                found.push(
                    "Only the tokens of the completion are counted: no column holds those of the prompt.".to_owned(),
                );
            }
            _ => {}
        }
    }
    let per_token = options.characters_per_token;
    let texts = parts.iter().any(|part| part.measure == Measure::Text);
    if texts && options.tokenizer.is_none() {
        found.push(format!(
            "Characters are divided by {per_token} characters per token. Choose the tokenizer.json of the model for exact counts."
        ));
    }
    if parts.iter().any(|part| part.measure == Measure::Text && profiles[part.index].kind == Kind::Chat) {
        found.push("The chat template adds some tokens per message. They are not counted.".to_owned());
    }
    for part in parts {
        if let Measure::Number(_, unit @ (Unit::Characters | Unit::Bytes)) = part.measure {
            found.push(format!(
                "{} counts {}. They are divided by {per_token} characters per token.",
                part.name,
                unit.id()
            ));
        }
        if part.measure == Measure::Elements && profiles[part.index].kind == Kind::ListOfTexts {
            found.push(format!("The elements of {} are counted as tokens.", part.name));
        }
    }
    for own in profiles.iter().filter(|own| own.meaning == Meaning::Media && own.has_values) {
        let is_file =
            matches!(own.kind, Kind::Text | Kind::ListOfTexts | Kind::Object | Kind::ListOfObjects | Kind::Binary);
        if is_file {
            found.push(format!("{} is not counted: the file does not hold its frames or its duration.", own.name));
        }
    }
    found
}

/// Columns for a person to choose from, each with the lengths that it gives in the first rows.
pub(super) fn candidates(
    profiles: &[Profile],
    head: &[&Row<'_>],
    options: &Options<'_>,
    without: &[Part],
) -> Vec<Candidate> {
    /// Rows whose texts are encoded for a preview.
    const ENCODED: usize = 100;
    let meter = Meter::new(options);
    let candidate = |(index, own): (usize, &Profile)| {
        let unit = match own.meaning {
            Meaning::Length(unit) => unit,
            _ => Unit::Tokens,
        };
        let measure = if own.has_values { measure(own, unit).filter(|_| own.notation.is_ok()) } else { None };
        let preview = measure.and_then(|measure| {
            let rows = if measure == Measure::Text && meter.tokenizer.is_some() { ENCODED } else { head.len() };
            let part = Part { index, name: own.name.clone(), measure };
            let choice = Choice { parts: vec![part], weight: None, images: None, warnings: Vec::new() };
            let lengths: Vec<u32> = head
                .iter()
                .take(rows)
                .filter_map(|row| match choice.sample(row, &meter).length {
                    Length::Tokens(number) => Some(number.value().round()),
                    _ => None,
                })
                .filter(|length| (1.0..=f64::from(super::MAX_LENGTH)).contains(length))
                .map(|length| length as u32)
                .collect();
            planner::outcome::HistogramColumns::of_values(&lengths)
        });
        let note = match &own.notation {
            Err(ambiguous) if own.kind == Kind::Number => {
                Some(format!("{} has two readings: thousands or decimals", ambiguous.value))
            }
            _ => own.note.clone(),
        };
        Candidate {
            name: own.name.chars().take(80).collect(),
            kind: own.kind,
            meaning: own.meaning,
            samples: own.samples.clone(),
            preview,
            note,
        }
    };
    profiles
        .iter()
        .enumerate()
        .filter(|(index, own)| {
            // Every member of a list of records has the name of the list in Parquet.
            let is_repeated = profiles[..*index].iter().any(|before| before.name == own.name);
            !is_repeated && without.iter().all(|part| part.index != *index)
        })
        .take(super::candidate::MAX_CANDIDATES)
        .map(candidate)
        .collect()
}
