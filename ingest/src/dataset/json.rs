//! JSON documents, read row by row: what is not needed is never held.

use std::fmt;

use planner::data_aware::Preprocessing;
use serde::Deserialize;
use serde::de::{DeserializeSeed, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};

use super::cell::Cell;
use super::column::{self, Choice, Column};
use super::media::{Entries, Field as Medium, RowMedia};
use super::number::Number;
use super::rows::{ReadMedia, Rows};
use super::{ImportError, Imported, MAX_ROWS, histogram};

/// Reads one JSON document.
pub(super) fn import(text: &str, asked: Option<&str>, rule: Option<Preprocessing>) -> Result<Imported, ImportError> {
    if text.trim_start().starts_with('{')
        && let Ok(row) = serde_json::from_str::<Row>(text)
        && row.is_one_with_media()
    {
        let (mut rows, mut reader) = (Rows::of(rule), RowReader::new(asked));
        reader.take(&mut rows, || "row 1".to_owned(), &row)?;
        return reader.finish(rows, "JSON object");
    }
    let mut state = Document::new(asked, rule);
    let mut deserializer = serde_json::Deserializer::from_str(text);
    let outcome = DocumentSeed(&mut state).deserialize(&mut deserializer).and_then(|()| deserializer.end());
    if let Some(refusal) = state.refusal {
        return Err(refusal);
    }
    outcome.map_err(|error| ImportError::Json { detail: error.to_string() })?;
    match state.shape {
        Shape::List => state.reader.finish(state.rows, "JSON list"),
        Shape::Object => columns_of(state.fields, asked, rule),
        Shape::Other(found) => Err(ImportError::Shape { found: found.to_owned() }),
    }
}

/// A value, of which only what can be a length is kept.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Value {
    Number(Number),
    Text(String),
    /// A list, by the number of its elements.
    List(usize),
    /// A list of media, of which more is kept.
    Media(Entries),
    Null,
    Other(&'static str),
}

impl Value {
    fn cell(&self) -> Cell<'_> {
        match self {
            Self::Number(number) => Cell::Number(*number),
            Self::Text(text) => Cell::Text(text),
            Self::List(length) | Self::Media(Entries { count: length, .. }) => {
                Cell::Number(Number::Whole(*length as i128))
            }
            Self::Null => Cell::Missing,
            Self::Other(what) => Cell::Other(what),
        }
    }

    fn is_numeric(&self) -> bool {
        match self {
            Self::Number(_) | Self::List(_) | Self::Media(_) => true,
            Self::Text(text) => super::number::read(text).is_some(),
            Self::Null | Self::Other(_) => false,
        }
    }
}

/// A row of a list.
#[derive(Debug)]
pub(super) enum Row {
    /// A single value.
    Value(Value),
    /// Values by name.
    Object(Vec<(String, Value)>),
}

impl Row {
    /// Whether it is one row that holds media, and not lists by name.
    fn is_one_with_media(&self) -> bool {
        let Self::Object(fields) = self else { return false };
        let is_column = |(name, value): &(String, Value)| match (Medium::of(name), value) {
            (Some(Medium::Images | Medium::Frame | Medium::Clips), _) => false,
            (Some(_), Value::Media(_)) => true,
            (_, Value::List(_)) => column::LENGTHS.contains(&column::normal(name).as_str()) && name != "input_ids",
            _ => false,
        };
        fields.iter().any(|(name, value)| is_media(name, value)) && !fields.iter().any(is_column)
    }
}

/// Whether a key says more of media than how many there are.
fn is_media(name: &str, value: &Value) -> bool {
    match (Medium::of(name), value) {
        (Some(Medium::Images), Value::Media(entries)) => entries.has_sizes(),
        (None | Some(Medium::Images), _) | (_, Value::Null) => false,
        (Some(_), _) => true,
    }
}

/// What an object says of media.
fn media_of(fields: &[(String, Value)]) -> ReadMedia {
    let mut own = RowMedia::default();
    for (name, value) in fields {
        let Some(field) = Medium::of(name) else { continue };
        match value {
            Value::Media(entries) => own.list(field, entries),
            other => own.cell(field, other.cell()),
        }
        .map_err(|why| format!("{name}: {why}"))?;
    }
    own.finish()
}

/// Rows that are looked through for media where no rule is to read them.
const LOOKED_THROUGH: u32 = 1000;

/// Reads rows; the first object says which keys are meant.
#[derive(Debug)]
pub(super) struct RowReader<'a> {
    asked: Option<&'a str>,
    keys: Option<Keys>,
    /// The key of the text where a rule reads media.
    text: Option<String>,
    looked_through: u32,
}

#[derive(Debug)]
struct Keys {
    lengths: String,
    images: Option<String>,
    alternatives: Vec<String>,
}

impl<'a> RowReader<'a> {
    pub(super) fn new(asked: Option<&'a str>) -> Self {
        Self { asked, keys: None, text: None, looked_through: 0 }
    }

    pub(super) fn take(&mut self, rows: &mut Rows, place: impl Fn() -> String, row: &Row) -> Result<(), ImportError> {
        match row {
            // A list of token numbers per line says its length; a list inside a list does the same.
            Row::Value(value) => rows.push(place, value.cell()),
            Row::Object(fields) if rows.has_rule() => {
                saw_media(rows, fields);
                let text = self.text_of(fields)?;
                rows.push_with_media(place, text, media_of(fields))
            }
            Row::Object(fields) => {
                if self.looked_through < LOOKED_THROUGH {
                    self.looked_through += 1;
                    saw_media(rows, fields);
                }
                let keys = match &mut self.keys {
                    Some(keys) => keys,
                    none => none.insert(choose(fields, self.asked)?),
                };
                let find = |key: &str| {
                    fields.iter().find(|(name, _)| name == key).map_or(Cell::Missing, |(_, value)| value.cell())
                };
                match &keys.images {
                    Some(images) => rows.push_with_images(place, find(&keys.lengths), find(images)),
                    None => rows.push(place, find(&keys.lengths)),
                }
            }
        }
    }

    /// The text of a row that holds media: not every row says the same.
    fn text_of<'v>(&mut self, fields: &'v [(String, Value)]) -> Result<Cell<'v>, ImportError> {
        let find = |key: &str| fields.iter().find(|(name, _)| name == key).map(|(_, value)| value.cell());
        if let Some(cell) = self.text.as_deref().and_then(find) {
            return Ok(cell);
        }
        let is_first = self.looked_through == 0;
        self.looked_through = 1;
        if self.asked.is_some() && !is_first {
            return Ok(Cell::Missing);
        }
        let Some(chosen) = column::choose_text(&shown(fields), self.asked)? else { return Ok(Cell::Missing) };
        let (name, value) = &fields[chosen];
        self.text = Some(name.clone());
        Ok(value.cell())
    }

    pub(super) fn finish(self, rows: Rows, format: &'static str) -> Result<Imported, ImportError> {
        match self.keys {
            Some(keys) => rows.finish(format, format!("key {}", keys.lengths), keys.alternatives),
            None if rows.has_rule() => {
                let source = self.text.map_or_else(|| "no key of text".to_owned(), |text| format!("key {text}"));
                rows.finish(format, source, Vec::new())
            }
            None => rows.finish(format, "every number of the file".to_owned(), Vec::new()),
        }
    }
}

fn saw_media(rows: &mut Rows, fields: &[(String, Value)]) {
    for (name, _) in fields.iter().filter(|(name, value)| is_media(name, value)) {
        rows.saw_media(name);
    }
}

fn shown(fields: &[(String, Value)]) -> Vec<Column> {
    fields.iter().map(|(name, value)| Column { name: name.clone(), numeric: value.is_numeric() }).collect()
}

fn choose(fields: &[(String, Value)], asked: Option<&str>) -> Result<Keys, ImportError> {
    let columns = shown(fields);
    if columns.is_empty() {
        return Err(ImportError::Shape { found: "objects without keys".to_owned() });
    }
    let Choice { lengths, images, alternatives } = column::choose(&columns, asked)?;
    let name = |index: usize| columns[index].name.clone();
    Ok(Keys { lengths: name(lengths), images: images.map(name), alternatives })
}

/// What stands at the top of the document, as far as it was read.
struct Document<'a> {
    shape: Shape,
    rows: Rows,
    reader: RowReader<'a>,
    fields: Vec<(String, Field)>,
    refusal: Option<ImportError>,
}

enum Shape {
    List,
    Object,
    Other(&'static str),
}

/// A field of a top-level object.
enum Field {
    Value(Value),
    List(Vec<Value>),
}

impl<'a> Document<'a> {
    fn new(asked: Option<&'a str>, rule: Option<Preprocessing>) -> Self {
        Self {
            shape: Shape::Other("a single value"),
            rows: Rows::of(rule),
            reader: RowReader::new(asked),
            fields: Vec::new(),
            refusal: None,
        }
    }
}

/// Lists by name: a histogram, a column of lengths (and one of images), or a single row.
fn columns_of(
    mut fields: Vec<(String, Field)>,
    asked: Option<&str>,
    rule: Option<Preprocessing>,
) -> Result<Imported, ImportError> {
    let text = |fields: &[(String, Field)], key: &str| {
        fields.iter().find_map(|(name, field)| match field {
            Field::Value(Value::Text(text)) if name == key => Some(text.clone()),
            _ => None,
        })
    };
    let schema = text(&fields, "schema");
    let has = |key: &str| fields.iter().any(|(name, _)| name == key);
    if schema.as_deref() == Some(histogram::SCHEMA) || (schema.is_none() && has("edges") && has("counts")) {
        let unit = text(&fields, "unit");
        let edges = numbers(&mut fields, "edges")?;
        let counts = numbers(&mut fields, "counts")?;
        return histogram::import(unit.as_deref(), edges, counts);
    }
    if let Some(schema) = schema {
        return Err(ImportError::Shape { found: format!("a document of schema {schema:?}") });
    }
    let mut lists: Vec<(String, Vec<Value>)> = Vec::new();
    let mut scalars: Vec<(String, Value)> = Vec::new();
    for (name, field) in fields {
        match field {
            Field::List(values) => lists.push((name, values)),
            Field::Value(value) => scalars.push((name, value)),
        }
    }
    if lists.is_empty() {
        let mut rows = Rows::default();
        let mut reader = RowReader::new(asked);
        reader.take(&mut rows, || "row 1".to_owned(), &Row::Object(scalars))?;
        return reader.finish(rows, "JSON object");
    }
    let columns: Vec<Column> = lists
        .iter()
        .map(|(name, values)| Column { name: name.clone(), numeric: values.first().is_some_and(Value::is_numeric) })
        .collect();
    let of_media = super::media::columns(&columns);
    let mut rows = Rows::of(rule.filter(|_| !of_media.is_empty()));
    for &(_, index) in &of_media {
        rows.saw_media(&columns[index].name);
    }
    if rows.has_rule() {
        return lists_with_media(&lists, rows, column::choose_text(&columns, asked)?, &of_media);
    }
    let Choice { lengths, images, alternatives } = column::choose(&columns, asked)?;
    let texts = &lists[lengths].1;
    if let Some(images) = images {
        let counts = &lists[images].1;
        if counts.len() != texts.len() {
            let found = format!(
                "{} values under {} and {} under {}",
                texts.len(),
                columns[lengths].name,
                counts.len(),
                columns[images].name
            );
            return Err(ImportError::Shape { found });
        }
        for (index, (length, images)) in texts.iter().zip(counts).enumerate() {
            rows.push_with_images(|| format!("row {}", index + 1), length.cell(), images.cell())?;
        }
    } else {
        for (index, length) in texts.iter().enumerate() {
            rows.push(|| format!("row {}", index + 1), length.cell())?;
        }
    }
    rows.finish("JSON lists by name", format!("key {}", columns[lengths].name), alternatives)
}

/// Lists of media beside one of text; what a shorter list does not say is missing.
fn lists_with_media(
    lists: &[(String, Vec<Value>)],
    mut rows: Rows,
    text: Option<usize>,
    of_media: &[(Medium, usize)],
) -> Result<Imported, ImportError> {
    let cell = |list: usize, row: usize| lists[list].1.get(row).map_or(Cell::Missing, Value::cell);
    let used = of_media.iter().map(|&(_, index)| index).chain(text);
    let count = used.map(|index| lists[index].1.len()).max().unwrap_or(0);
    for row in 0..count {
        let mut own = RowMedia::default();
        let read_all = of_media.iter().try_for_each(|&(field, list)| own.cell(field, cell(list, row)));
        let media = read_all.and_then(|()| own.finish());
        rows.push_with_media(|| format!("row {}", row + 1), text.map_or(Cell::Missing, |text| cell(text, row)), media)?;
    }
    let source = text.map_or_else(|| "no key of text".to_owned(), |text| format!("key {}", lists[text].0));
    rows.finish("JSON lists by name", source, Vec::new())
}

fn numbers(fields: &mut [(String, Field)], key: &str) -> Result<Vec<f64>, ImportError> {
    let field = fields.iter_mut().find(|(name, _)| name == key).map(|(_, field)| field);
    let Some(Field::List(values)) = field else {
        return Err(ImportError::Histogram { detail: format!("{key} must be a list of numbers") });
    };
    values
        .iter()
        .enumerate()
        .map(|(index, value)| match value {
            Value::Number(Number::Whole(whole)) => Ok(*whole as f64),
            Value::Number(Number::Repaired(number)) => Ok(*number),
            _ => Err(ImportError::Histogram { detail: format!("{key} {} is not a number", index + 1) }),
        })
        .collect()
}

struct DocumentSeed<'d, 'a>(&'d mut Document<'a>);

impl<'de> DeserializeSeed<'de> for DocumentSeed<'_, '_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for DocumentSeed<'_, '_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list or an object")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<(), A::Error> {
        self.0.shape = Shape::List;
        let mut index = 0_u64;
        while let Some(row) = seq.next_element::<Row>()? {
            index += 1;
            if let Err(refusal) = self.0.reader.take(&mut self.0.rows, || format!("row {index}"), &row) {
                self.0.refusal = Some(refusal);
                return Err(A::Error::custom("refused"));
            }
        }
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        self.0.shape = Shape::Object;
        while let Some(key) = map.next_key::<String>()? {
            if self.0.fields.len() >= 1000 {
                self.0.refusal = Some(ImportError::Shape { found: "an object of more than 1000 keys".to_owned() });
                return Err(A::Error::custom("refused"));
            }
            match map.next_value::<Field>() {
                Ok(field) => self.0.fields.push((key, field)),
                Err(error) => {
                    if error.to_string().starts_with(TOO_LONG) {
                        self.0.refusal = Some(ImportError::TooManyRows);
                    }
                    return Err(error);
                }
            }
        }
        Ok(())
    }
}

/// Marks a list that is longer than a file may be.
const TOO_LONG: &str = "list too long";

/// Values that are no numbers, told apart only for messages.
macro_rules! scalars {
    ($wrap:expr) => {
        fn visit_bool<E: Error>(self, _: bool) -> Result<Self::Value, E> {
            Ok($wrap(Value::Other("true or false")))
        }
        fn visit_unit<E: Error>(self) -> Result<Self::Value, E> {
            Ok($wrap(Value::Null))
        }
        fn visit_i64<E: Error>(self, value: i64) -> Result<Self::Value, E> {
            Ok($wrap(Value::Number(Number::Whole(value.into()))))
        }
        fn visit_u64<E: Error>(self, value: u64) -> Result<Self::Value, E> {
            Ok($wrap(Value::Number(Number::Whole(value.into()))))
        }
        fn visit_f64<E: Error>(self, value: f64) -> Result<Self::Value, E> {
            Ok($wrap(Value::Number(Number::Repaired(value))))
        }
        fn visit_str<E: Error>(self, value: &str) -> Result<Self::Value, E> {
            Ok($wrap(Value::Text(value.chars().take(64).collect())))
        }
    };
}

mod media;

fn count<'de, A: SeqAccess<'de>>(mut seq: A) -> Result<usize, A::Error> {
    let mut length = 0;
    while seq.next_element::<IgnoredAny>()?.is_some() {
        length += 1;
    }
    Ok(length)
}

fn skip<'de, A: MapAccess<'de>>(mut map: A) -> Result<(), A::Error> {
    while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
    Ok(())
}

impl<'de> Deserialize<'de> for Value {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Values;
        impl<'de> Visitor<'de> for Values {
            type Value = Value;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a value")
            }
            scalars!(std::convert::identity);
            fn visit_seq<A: SeqAccess<'de>>(self, seq: A) -> Result<Value, A::Error> {
                count(seq).map(Value::List)
            }
            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Value, A::Error> {
                skip(map).map(|()| Value::Other("an object"))
            }
        }
        deserializer.deserialize_any(Values)
    }
}

impl<'de> Deserialize<'de> for Row {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Rows;
        impl<'de> Visitor<'de> for Rows {
            type Value = Row;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a row")
            }
            scalars!(Row::Value);
            fn visit_seq<A: SeqAccess<'de>>(self, seq: A) -> Result<Row, A::Error> {
                count(seq).map(|length| Row::Value(Value::List(length)))
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Row, A::Error> {
                let mut fields = Vec::new();
                while let Some(key) = map.next_key::<String>()? {
                    // Rows are narrow; what stands beyond is skipped.
                    if fields.len() < 200 {
                        let value = if Medium::of(&key).is_some() {
                            map.next_value_seed(media::MediaSeed)?
                        } else {
                            map.next_value()?
                        };
                        fields.push((key, value));
                    } else {
                        map.next_value::<IgnoredAny>()?;
                    }
                }
                Ok(Row::Object(fields))
            }
        }
        deserializer.deserialize_any(Rows)
    }
}

impl<'de> Deserialize<'de> for Field {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Fields;
        impl<'de> Visitor<'de> for Fields {
            type Value = Field;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a value or a list")
            }
            scalars!(Field::Value);
            fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Field, A::Error> {
                let mut values = Vec::new();
                while let Some(value) = seq.next_element()? {
                    if values.len() >= MAX_ROWS {
                        return Err(A::Error::custom(TOO_LONG));
                    }
                    values.push(value);
                }
                Ok(Field::List(values))
            }
            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Field, A::Error> {
                skip(map).map(|()| Field::Value(Value::Other("an object")))
            }
        }
        deserializer.deserialize_any(Fields)
    }
}
