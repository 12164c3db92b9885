//! Column profile from the first rows: kind, meaning, number notation, and value properties.

use super::names;
use super::number::{self, Ambiguous, Notation, Number, Suffix};
use super::text;
use super::value::{List, Members, Value};
use super::{Kind, Meaning, Unit, token_ids};

/// A column or key of a file.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Column {
    /// Column name; columns without a header are numbered from 1.
    pub(super) name: String,
    /// Kind by the file's type; `None` if the values decide.
    pub(super) kind: Option<Kind>,
}

/// Column properties derived from the first rows.
#[derive(Debug, Clone)]
#[expect(clippy::struct_excessive_bools, reason = "independent properties of a column")]
pub(super) struct Profile {
    pub(super) name: String,
    pub(super) kind: Kind,
    pub(super) meaning: Meaning,
    /// Rank in the table of names; lower is preferred.
    pub(super) rank: usize,
    pub(super) notation: Result<Notation, Ambiguous>,
    pub(super) samples: Vec<String>,
    pub(super) note: Option<String>,
    /// True if the majority of numbers have non-zero decimals.
    pub(super) is_fractional: bool,
    /// True if there are numbers, and none has non-zero decimals.
    pub(super) is_integer: bool,
    /// True if there are at least two numbers, and all are equal.
    pub(super) is_constant: bool,
    /// Unit suffix of the numbers.
    pub(super) suffix: Option<Suffix>,
    /// Count of the numbers if they are strictly increasing or strictly decreasing; else 0.
    pub(super) strictly_sorted: usize,
    /// True if the value is a single message, not a list of messages.
    pub(super) is_single_message: bool,
    /// True if conversations start with an assistant message: the prompt is in another column.
    pub(super) starts_with_assistant: bool,
    /// True if conversations end with a user message: the completion is in another column.
    pub(super) ends_with_user: bool,
    /// True if any value is or contains a text with several words.
    pub(super) has_text: bool,
    /// True if at least one value in five has several words, or before the first row.
    pub(super) has_prose: bool,
    /// True if the values are paths or addresses.
    pub(super) has_paths: bool,
    /// True if messages contain lists of replies (conversation trees).
    pub(super) has_replies: bool,
    /// Message fields with text that is not counted.
    pub(super) unread_members: Vec<String>,
    /// True if a list contains image sizes.
    pub(super) has_sizes: bool,
    /// True if any row has a value, or before the first row.
    pub(super) has_values: bool,
}

impl Profile {
    /// Builds the profile of a column from its first values.
    pub(super) fn new<'v, 'w: 'v>(column: &Column, values: impl Iterator<Item = &'v Value<'w>> + Clone) -> Self {
        let is_unseen = values.clone().next().is_none();
        let has_values = is_unseen || values.clone().any(|value| !is_blank(value));
        let present = values.filter(|value| !is_missing(value));
        let (mut meaning, rank) = meaning(&column.name);
        let mut kind = column.kind.unwrap_or_else(|| kind(present.clone()));
        if kind == Kind::Text && token_ids::is_single(&column.name) && present.clone().take(100).all(is_bare_list) {
            kind = Kind::NumberList;
        }
        let notation = Notation::detect(present.clone().filter_map(|value| match value {
            Value::Text(text) => Some(&**text),
            _ => None,
        }));
        let numbers: Vec<f64> = if kind == Kind::Number {
            let notation = *notation.as_ref().unwrap_or(&Notation::Point);
            present.clone().filter_map(|value| number(value, notation).map(Number::value)).collect()
        } else {
            Vec::new()
        };
        // A common unit suffix has priority over the name.
        let suffix = (kind == Kind::Number).then(|| common_suffix(present.clone())).flatten();
        match suffix {
            Some(Suffix::Bytes) => meaning = Meaning::Length(Unit::Bytes),
            Some(Suffix::Seconds) => meaning = Meaning::Duration,
            Some(Suffix::Percent) => meaning = Meaning::Score,
            None => {}
        }
        match kind {
            Kind::Timestamp | Kind::Date => meaning = Meaning::Time,
            Kind::Duration => meaning = Meaning::Duration,
            Kind::Boolean => meaning = Meaning::Label,
            _ => {}
        }
        let mut samples: Vec<String> = Vec::new();
        for value in present.clone().take(100) {
            let rendered = value.display_text();
            if samples.len() < 5 && !samples.contains(&rendered) {
                samples.push(rendered);
            }
        }
        let has_paths = kind == Kind::Text && share(present.clone(), &is_path) >= 0.9;
        let note = if has_paths { Some(PATHS.to_owned()) } else { note(&numbers, meaning) };
        if meaning == Meaning::Unknown && looks_like_time(&numbers) {
            meaning = Meaning::Time;
        }
        // A pandas index that is not a row number contains values: `value_counts().to_csv()`.
        let is_index = column.name.is_empty() || column.name.starts_with("Unnamed: ");
        if is_index && !numbers.is_empty() && !is_consecutive(&numbers) {
            meaning = Meaning::Unknown;
        }
        let is_sorted = numbers.is_sorted_by(|previous, next| previous < next)
            || numbers.is_sorted_by(|previous, next| previous > next);
        Self {
            name: column.name.clone(),
            kind,
            meaning,
            rank,
            notation,
            samples,
            note,
            is_fractional: numbers.iter().filter(|number| number.fract() != 0.0).count() * 2 > numbers.len(),
            is_integer: suffix.is_none() && !numbers.is_empty() && numbers.iter().all(|number| number.fract() == 0.0),
            is_constant: numbers.len() > 1 && numbers.iter().all(|number| number.total_cmp(&numbers[0]).is_eq()),
            suffix,
            strictly_sorted: if is_sorted { numbers.len() } else { 0 },
            is_single_message: kind == Kind::Chat
                && present.clone().next().is_some_and(|value| matches!(value, Value::Object(_))),
            starts_with_assistant: kind == Kind::Chat
                && present.clone().next().is_some_and(text::starts_with_assistant),
            ends_with_user: kind == Kind::Chat && present.clone().next().is_some_and(text::ends_with_user),
            has_text: present.clone().take(100).any(Value::has_text),
            has_prose: is_unseen || share(present.clone(), &is_prose) >= 0.2,
            has_paths,
            unread_members: if kind == Kind::Chat {
                text::unread_members(present.clone().take(100))
            } else {
                Vec::new()
            },
            has_replies: kind == Kind::Chat && present.clone().take(100).any(has_replies),
            has_sizes: present.clone().take(1000).any(has_sizes),
            has_values,
        }
    }

    /// Returns whether the values are texts or conversations.
    pub(super) const fn is_textual(&self) -> bool {
        matches!(self.kind, Kind::Text | Kind::Chat | Kind::TextList) && !self.has_paths
    }
}

/// Returns the meaning of a name; for a nested name, the meaning of its last part.
fn meaning(name: &str) -> (Meaning, usize) {
    match (names::meaning(name), name.rsplit_once('.')) {
        ((Meaning::Unknown, _), Some((_, last))) => match names::meaning(last) {
            known if names::counts_tokens(last) || known.0 == Meaning::Chat => known,
            _ => (Meaning::Unknown, usize::MAX),
        },
        (known, _) => known,
    }
}

/// Note for a column of paths or addresses.
const PATHS: &str = "the values are paths or addresses, not texts; upload the texts, or their lengths";

/// Returns the share of the first values with a property.
fn share<'v, 'w: 'v>(values: impl Iterator<Item = &'v Value<'w>>, has: &dyn Fn(&str) -> bool) -> f64 {
    let (mut all, mut found) = (0_u32, 0_u32);
    for value in values.take(100) {
        all += 1;
        found += u32::from(matches!(value, Value::Text(text) if has(text)));
    }
    f64::from(found) / f64::from(all.max(1))
}

/// Returns whether a text has several words or lines.
fn is_prose(text: &str) -> bool {
    let text = text.trim();
    (text.len() >= 40 && text.contains(char::is_whitespace))
        || text.split_whitespace().nth(5).is_some()
        // Some languages write no blanks.
        || (!text.is_ascii() && text.chars().count() >= 20)
}

/// Returns whether a text is a path or an address.
fn is_path(text: &str) -> bool {
    let text = text.trim();
    if text.contains(char::is_whitespace) {
        return false;
    }
    let has_scheme = text.split_once("://").is_some_and(|(scheme, rest)| {
        !rest.is_empty() && scheme.len() < 12 && scheme.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'+')
    });
    let name = text.rsplit(['/', '\\']).next().unwrap_or(text);
    let has_ending = name.rsplit_once('.').is_some_and(|(base, ending)| {
        !base.is_empty()
            && (1..=7).contains(&ending.len())
            && ending.bytes().all(|byte| byte.is_ascii_alphanumeric())
            && ending.bytes().any(|byte| byte.is_ascii_alphabetic())
    });
    let is_inside = name.len() < text.len();
    let is_rooted = ["/", "./", "../", "~/"].iter().any(|root| text.starts_with(root));
    has_scheme || (is_inside && has_ending) || (is_rooted && text.matches('/').count() > 1)
}

fn is_blank(value: &Value<'_>) -> bool {
    match value {
        Value::Missing => true,
        Value::Text(text) => text.trim().is_empty(),
        _ => false,
    }
}

pub(super) fn is_missing(value: &Value<'_>) -> bool {
    match value {
        Value::Missing => true,
        Value::Text(text) => {
            let text = text.trim();
            text.is_empty() || ["nan", "null", "none", "na", "n/a"].iter().any(|word| text.eq_ignore_ascii_case(word))
        }
        _ => false,
    }
}

/// Parses the number of a value.
pub(super) fn number(value: &Value<'_>, notation: Notation) -> Option<Number> {
    match value {
        Value::Number(number) => Some(*number),
        Value::Text(text) => {
            notation.read(text).or_else(|| number::quantity(text).map(|(number, _)| Number::Repaired(number)))
        }
        _ => None,
    }
}

/// Returns the unit suffix of at least half of the numbers.
fn common_suffix<'v, 'w: 'v>(values: impl Iterator<Item = &'v Value<'w>>) -> Option<Suffix> {
    let (mut total, mut found) = (0_u32, [0_u32; 3]);
    for value in values.take(1000) {
        total += 1;
        let Value::Text(text) = value else { continue };
        if text.ends_with(|c: char| c.is_ascii_digit()) {
            continue;
        }
        match number::quantity(text) {
            Some((_, Suffix::Bytes)) => found[0] += 1,
            Some((_, Suffix::Seconds)) => found[1] += 1,
            Some((_, Suffix::Percent)) => found[2] += 1,
            None => {}
        }
    }
    let index = found.iter().position(|&count| count > 0 && count * 2 >= total)?;
    Some([Suffix::Bytes, Suffix::Seconds, Suffix::Percent][index])
}

/// Returns the majority kind of the values.
fn kind<'v, 'w: 'v>(values: impl Iterator<Item = &'v Value<'w>>) -> Kind {
    let mut counts: Vec<(Kind, u32)> = Vec::new();
    for value in values.take(1000) {
        let kind = value_kind(value);
        match counts.iter_mut().find(|(known, _)| *known == kind) {
            Some((_, count)) => *count += 1,
            None => counts.push((kind, 1)),
        }
    }
    // The first of equal counts is chosen, so an empty list at the end has no effect.
    counts
        .iter()
        .rev()
        .filter(|(kind, _)| *kind != Kind::Empty)
        .max_by_key(|(_, count)| *count)
        .map_or(Kind::Empty, |majority| majority.0)
}

pub(super) fn value_kind(value: &Value<'_>) -> Kind {
    match value {
        Value::Missing => Kind::Empty,
        Value::Boolean(_) => Kind::Boolean,
        Value::Number(_) => Kind::Number,
        Value::Text(text) if text::messages(text).is_some() => Kind::Chat,
        Value::Text(text) => text_kind(text),
        Value::List(list) => list_kind(list),
        Value::Object(members) if is_message(members) => Kind::Chat,
        Value::Object(_) => Kind::Object,
        Value::Other(_) => Kind::Binary,
    }
}

pub(super) fn text_kind(text: &str) -> Kind {
    let text = text.trim();
    if Notation::Point.read(text).or_else(|| Notation::Comma.read(text)).is_some() || number::quantity(text).is_some() {
        return Kind::Number;
    }
    if text.eq_ignore_ascii_case("true") || text.eq_ignore_ascii_case("false") {
        return Kind::Boolean;
    }
    let has_shape = |shape: &str, text: &str| {
        text.len() >= shape.len()
            && text.bytes().zip(shape.bytes()).all(|(byte, shape)| match shape {
                b'0' => byte.is_ascii_digit(),
                shape => byte == shape,
            })
    };
    if text.len() <= 40
        && (has_shape("0000-00-00", text) || has_shape("0000/00/00", text) || has_shape("00/00/0000", text))
    {
        return if text.len() > 10 { Kind::Timestamp } else { Kind::Date };
    }
    if text.len() <= 20 && (has_shape("00:00", text) || has_shape("0:00", text)) {
        return Kind::Duration;
    }
    // A number list as text, which pandas writes for `input_ids`.
    if elements(text).is_some() {
        return Kind::NumberList;
    }
    Kind::Text
}

/// Returns the text between the brackets of a list, with or without the name of its type:
/// `[101 2009]`, `tensor([101, 2009])`, `array([101], dtype=int32)`.
pub(super) fn inner(text: &str) -> Option<&str> {
    let text = text.trim();
    if text.starts_with('[') {
        return text.strip_prefix('[')?.strip_suffix(']');
    }
    let call = ["torch.", "np.", "numpy."].iter().find_map(|module| text.strip_prefix(module)).unwrap_or(text);
    let arguments = ["tensor(", "array("].iter().find_map(|name| call.strip_prefix(name))?.strip_suffix(')')?;
    let (list, further) = arguments.strip_prefix('[')?.split_once(']')?;
    let is_further = further.is_empty() || (further.starts_with(',') && further.contains('='));
    is_further.then_some(list)
}

/// Counts the elements of an integer list written as text: `[101, 2009, 102]` or `[101 2009 102]`.
pub(super) fn elements(text: &str) -> Option<usize> {
    let inner = inner(text)?;
    let terms = || inner.split(|c: char| c == ',' || c.is_whitespace()).filter(|word| !word.is_empty());
    terms()
        .all(|word| word.bytes().all(|byte| byte.is_ascii_digit()))
        .then(|| terms().count())
        .filter(|&count| count > 0)
}

/// Returns whether an object is a message. Numbers are not texts: `{"input": 9, "output": 12}`
/// contains counts.
fn is_message(members: &Members<'_>) -> bool {
    let is_number = |value: &Value<'_>| match value {
        Value::Number(_) => true,
        Value::List(list) => matches!(list.items.first(), Some(Value::Number(_) | Value::List(_))),
        _ => false,
    };
    let texts = members.iter().filter(|(_, value)| !is_number(value));
    text::is_message(&texts.map(|(name, _)| &**name))
}

/// Returns whether a value is a text of integers separated by blanks or commas: `101 2009 102`.
fn is_bare_list(value: &Value<'_>) -> bool {
    matches!(value, Value::Text(text) if bare_elements(text).is_some())
}

/// Counts the elements of an integer list without brackets.
pub(super) fn bare_elements(text: &str) -> Option<usize> {
    elements(&format!("[{text}]"))
}

fn list_kind(list: &List<'_>) -> Kind {
    let Some(first) = list.items.iter().find(|item| !matches!(item, Value::Missing)) else {
        return if list.count > 0 { Kind::NumberList } else { Kind::Empty };
    };
    match first {
        Value::Number(_) | Value::Boolean(_) => Kind::NumberList,
        Value::Text(_) => Kind::TextList,
        // Turns with two texts each.
        Value::List(inner) if list_kind(inner) == Kind::TextList => Kind::TextList,
        Value::List(_) => Kind::NestedList,
        Value::Object(members) if is_message(members) => Kind::Chat,
        _ => Kind::ObjectList,
    }
}

fn has_replies(value: &Value<'_>) -> bool {
    let Value::Object(members) = value else { return false };
    members.iter().any(|(name, value)| name == "replies" && matches!(value, Value::List(list) if list.count > 0))
}

fn has_sizes(value: &Value<'_>) -> bool {
    let Value::List(list) = value else { return false };
    list.items.iter().any(|item| match item {
        Value::List(List { count: 2, items, .. }) => items.iter().all(|item| matches!(item, Value::Number(_))),
        Value::Object(members) => ["width", "height"].iter().all(|edge| members.iter().any(|(name, _)| name == edge)),
        _ => false,
    })
}

/// Returns whether the numbers look like seconds, milliseconds, microseconds or nanoseconds since
/// 1970, for the years 2001 to 2100.
fn looks_like_time(numbers: &[f64]) -> bool {
    numbers.len() >= 2
        && [1.0, 1e3, 1e6, 1e9]
            .iter()
            .any(|scale| numbers.iter().all(|number| (9.8e8..4.2e9).contains(&(number / scale))))
}

/// Returns whether the integers are row numbers: each exceeds the previous number by one.
fn is_consecutive(numbers: &[f64]) -> bool {
    numbers.windows(2).all(|pair| (pair[1] - pair[0] - 1.0).abs() < f64::EPSILON)
}

/// Describes the numbers for a user who chooses a column.
fn note(numbers: &[f64], meaning: Meaning) -> Option<String> {
    if numbers.len() < 3 {
        return None;
    }
    let all = |test: &dyn Fn(f64) -> bool| numbers.iter().all(|&number| test(number));
    let is_integer = all(&|number| number.fract() == 0.0);
    let note = if looks_like_time(numbers) {
        "the values look like times since 1970"
    } else if is_integer && is_consecutive(numbers) {
        "the values rise by 1, like row numbers"
    } else if is_integer && all(&|number| (1900.0..=2100.0).contains(&number)) {
        "the values look like years"
    } else if numbers.windows(2).all(|pair| pair[0].total_cmp(&pair[1]).is_eq()) {
        "all values are equal"
    } else if is_integer && all(&|number| (0.0..=10.0).contains(&number)) {
        "the values lie between 0 and 10, like labels, ratings or small counts"
    } else if !is_integer && meaning == Meaning::Unknown {
        "the values have decimals; numbers of tokens are whole"
    } else {
        return None;
    };
    Some(note.to_owned())
}
