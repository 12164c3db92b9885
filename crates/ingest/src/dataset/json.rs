//! Reads JSON documents: a list of rows, named columns, one row, or a histogram.

use std::cell::Cell;
use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, Error, MapAccess, SeqAccess, Visitor};

use super::media::Field;
use super::number::Number;
use super::profile::{Column, Profile};
use super::reader::Reader;
use super::stated::{self, Stated};
use super::value::{List, Location, Members, Name, Row, TOO_LONG, Value, ValueSeed};
use super::{ImportError, Imported, Kind, MAX_ROWS, Meaning, Options, Unit, histogram, names, token_ids};

mod frames;
mod paragraphs;
mod several;

/// Maximum number of keys in a top-level object that contains columns.
const MAX_KEYS: usize = 1000;
/// Maximum number of values in a top-level object, including nested values.
const MAX_VALUES: usize = 2 * MAX_ROWS;
/// Keys of row lists inside an object.
const ROWS: [&str; 8] = ["data", "rows", "samples", "examples", "instances", "items", "train", "requests"];

/// Prefixes of split names.
const SPLITS: [&str; 5] = ["train", "test", "val", "dev", "eval"];

/// Reads one or several consecutive JSON documents.
pub(super) fn import(text: &str, options: &Options<'_>) -> Result<Imported, ImportError> {
    match document(text, options) {
        Err(broken @ ImportError::Json { .. }) => several::read(text, options).unwrap_or(Err(broken)),
        outcome => outcome,
    }
}

fn document(text: &str, options: &Options<'_>) -> Result<Imported, ImportError> {
    let budget = Cell::new(MAX_VALUES);
    let mut state = Document {
        reader: Reader::new(options),
        shape: Shape::List,
        fields: Vec::new(),
        refusal: None,
        budget: &budget,
    };
    let mut deserializer = serde_json::Deserializer::from_str(text);
    let outcome = DocumentSeed(&mut state).deserialize(&mut deserializer).and_then(|()| deserializer.end());
    if let Some(refusal) = state.refusal {
        return Err(refusal);
    }
    outcome.map_err(|error| ImportError::Json { detail: error.to_string() })?;
    match state.shape {
        Shape::List => state.reader.finish("JSON list"),
        Shape::Object => object(state.fields, options),
    }
}

/// Reads a top-level object.
fn object(mut fields: Members<'_>, options: &Options<'_>) -> Result<Imported, ImportError> {
    let text = |key: &str| {
        fields.iter().find_map(|(name, value)| match value {
            Value::Text(text) if name == key => Some(text.to_string()),
            _ => None,
        })
    };
    let has = |key: &str| fields.iter().any(|(name, _)| name == key);
    let schema = text("schema");
    if schema.as_deref() == Some(histogram::SCHEMA) || (schema.is_none() && has("edges") && has("counts")) {
        let unit = text("unit");
        let (edges, counts) = (numbers(&fields, "edges")?, numbers(&fields, "counts")?);
        return match unit.as_deref() {
            Some(unit) if unit == Unit::Characters.id() => {
                let read = histogram::import(Some(Unit::Tokens.id()), edges, counts)?;
                histogram::scale::by_unit(read, "The histogram", Unit::Characters, options)
            }
            unit => histogram::import(unit, edges, counts),
        };
    }
    if let Some(schema) = schema {
        let schema: String = schema.chars().take(80).collect();
        return Err(ImportError::Shape { found: format!("a document of schema {schema:?}") });
    }
    if let Some(found) = shard_index(&fields) {
        return Err(ImportError::Shape { found: found.to_owned() });
    }
    if let Some((name, split, list)) = split_lists(&fields) {
        let lists = vec![(std::borrow::Cow::Owned(name.to_owned()), Value::List(list.clone()))];
        let mut imported = columns(lists, options)?;
        imported
            .report
            .warnings
            .push(format!("Only the lengths of {split} are read, and not those of other parts of {name}."));
        return Ok(imported);
    }
    if let Some((name, inner)) = only_lists(&fields) {
        if stated::parse(name) == Stated::Other && options.column.is_none() {
            let detail = format!("the lists are inside {name:?}, which names another quantity than lengths in tokens");
            return Err(ImportError::Histogram { detail });
        }
        let sentence = check_texts(&fields, options)?;
        let mut imported = columns(inner.clone(), options)?;
        imported.report.warnings.extend(sentence);
        imported.report.warnings.push(format!("Only the lists inside {name} are read."));
        return Ok(imported);
    }
    if let Some(frame) = frames::frame(&fields) {
        return frames::read(frame, fields, options);
    }
    if frames::are_named_numbers(&fields) {
        return frames::read_named_numbers(fields, options);
    }
    if fields.len() > MAX_KEYS {
        return Err(ImportError::Shape { found: format!("an object of more than {MAX_KEYS} keys") });
    }
    if is_row(&fields) {
        let mut reader = Reader::new(options);
        reader.push(Location { item: "row", number: 1 }, Row::Object(fields))?;
        return reader.finish("JSON object");
    }
    // `{"version": 1, "data": [{..}, {..}]}`: the rows are nested.
    let has_rows = |value: &Value<'_>| matches!(value, Value::List(List { items, .. }) if matches!(items.first(), Some(Value::Object(_))));
    let is_rows = |(name, value): &(std::borrow::Cow<'_, str>, Value<'_>)| ROWS.contains(&&**name) && has_rows(value);
    if let Some(index) = fields.iter().position(is_rows) {
        let (name, Value::List(list)) = fields.swap_remove(index) else {
            return Err(ImportError::Shape { found: "no list".to_owned() });
        };
        let others =
            fields.iter().filter(|(name, value)| (ROWS.contains(&&**name) || is_split(name)) && has_rows(value));
        let others: Vec<&str> = others.map(|(name, _)| &**name).take(10).collect();
        let warning = (!others.is_empty())
            .then(|| format!("Only the rows of {name} are read. Those of {} are not.", others.join(", ")));
        let page = page(&fields, &list);
        let mut reader = Reader::new(options);
        if let Some(rows) = paragraphs::rows(&list.items) {
            for (number, row) in (1..).zip(rows) {
                reader.push(Location { item: "question", number }, row)?;
            }
            return reader.finish("JSON of articles with questions");
        }
        for (number, value) in (1..).zip(list.items) {
            let row = match value {
                // Rows of the dataset viewer: `{"row_idx": 0, "row": {..}}`.
                Value::Object(mut fields) => {
                    match fields.iter().position(|(name, value)| name == "row" && matches!(value, Value::Object(_))) {
                        Some(inner) => match fields.swap_remove(inner).1 {
                            Value::Object(fields) => Row::Object(fields),
                            other => Row::Single(other),
                        },
                        None => Row::Object(fields),
                    }
                }
                other => Row::Single(other),
            };
            reader.push(Location { item: "row", number }, row)?;
        }
        let mut imported = reader.finish("JSON list inside an object")?;
        imported.report.warnings.extend(warning);
        imported.report.warnings.extend(page);
        return Ok(imported);
    }
    columns(fields, options)
}

/// Returns warnings about data that a response of the dataset viewer omits: further rows, and
/// truncated values.
fn page(fields: &Members<'_>, rows: &List<'_>) -> Vec<String> {
    let mut found = Vec::new();
    let total = fields.iter().find_map(|(name, value)| match value {
        Value::Number(number) if name == "num_rows_total" => Some(number.value()),
        _ => None,
    });
    if let Some(total) = total.filter(|&total| total > rows.count as f64) {
        found.push(format!(
            "The file is a page of the dataset: {} of {total} rows. Other pages are not read.",
            rows.count
        ));
    }
    let is_cut = |row: &&Value<'_>| {
        let Value::Object(members) = row else { return false };
        members
            .iter()
            .any(|(name, value)| name == "truncated_cells" && matches!(value, Value::List(cells) if cells.count > 0))
    };
    let cut = rows.items.iter().filter(is_cut).count();
    if cut > 0 {
        found.push(format!(
            "{cut} rows have values that the server shortened (truncated_cells): their lengths may be too small. Upload the Parquet files of the dataset."
        ));
    }
    found
}

/// Returns whether a name denotes a dataset split.
fn is_split(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    SPLITS.iter().any(|split| name.starts_with(split))
}

/// Returns the single nested object of an object without lists, or the first object of several
/// splits, if it contains lists of lengths: `{"stats": {"lengths": [..]}}`.
fn only_lists<'f, 'v>(fields: &'f Members<'v>) -> Option<(&'f str, &'f Members<'v>)> {
    let objects: Vec<(&str, &Members<'v>)> = fields
        .iter()
        .filter_map(|(name, value)| match value {
            Value::Object(inner) => Some((&**name, inner)),
            _ => None,
        })
        .collect();
    let &first = objects.first()?;
    let are_lengths = |(name, value): &(std::borrow::Cow<'_, str>, Value<'_>)| {
        matches!(value, Value::List(List { items, .. }) if matches!(items.first(), Some(Value::Number(_))))
            && matches!(names::meaning(name).0, Meaning::Length(_))
            && !token_ids::are_listed(name)
    };
    let has_list = fields.iter().any(|(_, value)| matches!(value, Value::List(_)));
    let is_clear = objects.len() == 1 || objects.iter().all(|(name, _)| is_split(name));
    (is_clear && !has_list && first.1.iter().any(are_lengths)).then_some(first)
}

/// Returns the first list of a nested object that has a length name and one list per split:
/// `{"lengths": {"train": [..], "val": [..]}}`.
fn split_lists<'f, 'v>(fields: &'f Members<'v>) -> Option<(&'f str, &'f str, &'f List<'v>)> {
    let [(name, Value::Object(inner))] = fields.as_slice() else { return None };
    let lists: Vec<(&str, &List<'v>)> = inner
        .iter()
        .map(|(split, value)| match value {
            Value::List(list) if matches!(list.items.first(), Some(Value::Number(_))) && is_split(split) => {
                Some((&**split, list))
            }
            _ => None,
        })
        .collect::<Option<_>>()?;
    let &(split, list) = lists.first()?;
    let is_length = matches!(names::meaning(name).0, Meaning::Length(_)) && !token_ids::is_single(name);
    is_length.then_some((name, split, list))
}

/// Checks the texts of an object with number lists. Returns a warning about texts that are not
/// understood.
fn check_texts(fields: &Members<'_>, options: &Options<'_>) -> Result<Option<String>, ImportError> {
    let is_text = |value: &Value<'_>| matches!(value, Value::List(List { items, .. }) if matches!(items.first(), Some(Value::Text(_))));
    let has_numbers = !fields.iter().any(|(_, value)| is_text(value));
    let inner = fields.iter().filter_map(|(_, value)| match value {
        Value::Object(inner) => Some(inner),
        _ => None,
    });
    let texts = fields.iter().chain(inner.flatten()).filter_map(|(name, value)| match value {
        Value::Text(text) => Some((&**name, &**text)),
        _ => None,
    });
    match stated::check(texts) {
        _ if !has_numbers => Ok(None),
        Err(_) if options.column.is_some() || options.unit.is_some() => Ok(None),
        checked => checked.map_err(|detail| ImportError::Histogram { detail }),
    }
}

/// Reads named columns.
fn columns(fields: Members<'_>, options: &Options<'_>) -> Result<Imported, ImportError> {
    let sentence = check_texts(&fields, options)?;
    let lists: Vec<(String, List<'_>)> = fields
        .into_iter()
        .filter_map(|(name, value)| match value {
            Value::List(list) => Some((name.into_owned(), list)),
            _ => None,
        })
        .collect();
    let columns: Vec<Column> = lists.iter().map(|(name, _)| Column { name: name.clone(), kind: None }).collect();
    let rows = lists.iter().map(|(_, list)| list.items.len()).max().unwrap_or(0);
    let mut reader = Reader::keyed(options, columns);
    let cell = |index: usize, row: usize| lists[index].1.items.get(row).cloned().unwrap_or(Value::Missing);
    for row in 0..rows {
        if row == super::reader::HEAD_ROWS {
            reader.decide()?;
            check_lengths(&lists, &reader)?;
        }
        let is_needed = |index: usize| row < super::reader::HEAD_ROWS || reader.is_needed(index);
        let cells = (0..lists.len()).map(|index| if is_needed(index) { cell(index, row) } else { Value::Missing });
        let cells = Row::Cells(cells.collect());
        reader.push(Location { item: "row", number: row as u64 + 1 }, cells)?;
    }
    if rows > 0 {
        reader.decide()?;
        check_lengths(&lists, &reader)?;
    }
    let is_tokens = (0..lists.len()).any(|index| reader.is_needed(index) && lists[index].0 == "tokens");
    let mut imported = reader.finish("JSON lists by name")?;
    imported.report.warnings.extend(sentence);
    if is_tokens && options.column.is_none() {
        let sentence = "The numbers of tokens are read as lengths. If they are identifiers, write them as input_ids.";
        imported.report.warnings.push(sentence.to_owned());
    }
    Ok(imported)
}

/// Checks that all columns without media have equal length.
fn check_lengths(lists: &[(String, List<'_>)], reader: &Reader<'_>) -> Result<(), ImportError> {
    if reader.reads_media() {
        return Ok(());
    }
    let mut needed = lists.iter().enumerate().filter(|(index, _)| reader.is_needed(*index)).map(|(_, list)| list);
    let Some((first, first_list)) = needed.next() else { return Ok(()) };
    match needed.find(|(_, list)| list.count != first_list.count) {
        Some((name, other)) => {
            let found = format!("{} values under {first} and {} under {name}", first_list.count, other.count);
            Err(ImportError::Shape { found })
        }
        None => Ok(()),
    }
}

/// Returns whether an object is one row, and not named columns.
fn is_row(fields: &Members<'_>) -> bool {
    let lists: Vec<(&str, &List<'_>, Profile)> = fields
        .iter()
        .filter_map(|(name, value)| match value {
            Value::List(list) => {
                let column = Column { name: name.clone().into_owned(), kind: None };
                Some((&**name, list, Profile::new(&column, std::iter::once(value))))
            }
            _ => None,
        })
        .collect();
    let is_column = |(name, _, profile): &(&str, &List<'_>, Profile)| {
        profile.kind == Kind::NumberList && matches!(profile.meaning, Meaning::Length(_)) && !token_ids::is_single(name)
    };
    if lists.iter().any(is_column) {
        return false;
    }
    lists.is_empty()
        || lists.iter().any(|(name, list, profile)| match Field::from_name(name) {
            Some(Field::Images) => profile.has_sizes,
            Some(Field::Frame | Field::Clips) => {
                fields.len() > 1 && list.items.iter().any(|item| matches!(item, Value::Number(_)))
            }
            _ => {
                profile.kind == Kind::Chat
                    // The tokens of one sample.
                    || (profile.kind == Kind::NumberList && token_ids::is_single(name))
            }
        })
}

/// Returns the name of a shard index, which contains shard sizes and no lengths.
fn shard_index(fields: &Members<'_>) -> Option<&'static str> {
    let is_shard =
        |name: &str| [".tar", ".mds", ".zst", ".parquet", ".bin", ".gz"].iter().any(|end| name.ends_with(end));
    let has = |key: &str| fields.iter().any(|(name, _)| name == key);
    if !fields.is_empty() && fields.iter().all(|(name, value)| is_shard(name) && matches!(value, Value::Number(_))) {
        return Some("sizes of shards in bytes, not lengths of samples; upload a shard or a list of lengths");
    }
    if has("_data_files") && has("_fingerprint") {
        return Some("the state of a Hugging Face dataset, which has no lengths of samples; upload its .arrow files");
    }
    let is_card = ["splits", "download_size", "dataset_size", "citation", "builder_name"].iter().any(|key| has(key));
    if has("features") && is_card {
        return Some(
            "the description of a Hugging Face dataset, which has no lengths of samples; upload its Parquet or .arrow files",
        );
    }
    if has("weight_map") && has("metadata") {
        return Some("an index of model weights, not lengths of samples");
    }
    if has("architectures") || (has("model_type") && has("hidden_size")) {
        return Some("the configuration of a model, not lengths of samples");
    }
    if has("log_history") && has("global_step") {
        return Some("the log of a training, not lengths of samples; import it as a run");
    }
    if has("chunks") && has("config") {
        return Some("an index of chunks, which has no lengths of samples; upload a list of lengths");
    }
    if has("shards") && (has("version") || has("shard_counts") || has("shardlist"))
        || has("shard_counts")
        || has("shardlist")
    {
        return Some("an index of shards, which has no lengths of samples; upload a shard or a list of lengths");
    }
    None
}

fn numbers(fields: &Members<'_>, key: &str) -> Result<Vec<f64>, ImportError> {
    let Some((_, Value::List(list))) = fields.iter().find(|(name, _)| name == key) else {
        return Err(ImportError::Histogram { detail: format!("{key} must be a list of numbers") });
    };
    list.items
        .iter()
        .enumerate()
        .map(|(index, value)| match value {
            Value::Number(Number::Integer(integer)) => Ok(*integer as f64),
            Value::Number(Number::Repaired(number)) => Ok(*number),
            _ => Err(ImportError::Histogram { detail: format!("{key} {} is not a number", index + 1) }),
        })
        .collect()
}

/// A partially read document.
struct Document<'o, 'b, 'de> {
    reader: Reader<'o>,
    shape: Shape,
    /// Object fields.
    fields: Members<'de>,
    refusal: Option<ImportError>,
    /// Number of values that may still be stored.
    budget: &'b Cell<usize>,
}

enum Shape {
    List,
    Object,
}

struct DocumentSeed<'d, 'o, 'b, 'de>(&'d mut Document<'o, 'b, 'de>);

impl<'de> DeserializeSeed<'de> for DocumentSeed<'_, '_, '_, 'de> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for DocumentSeed<'_, '_, '_, 'de> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list or an object")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<(), A::Error> {
        self.0.shape = Shape::List;
        let mut number = 0;
        while let Some(row) = seq.next_element::<Row<'de>>()? {
            number += 1;
            if let Err(refusal) = self.0.reader.push(Location { item: "row", number }, row) {
                self.0.refusal = Some(refusal);
                return Err(A::Error::custom("refused"));
            }
        }
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        self.0.shape = Shape::Object;
        while let Some(Name(name)) = map.next_key()? {
            if self.0.fields.len() >= MAX_ROWS {
                self.0.refusal = Some(ImportError::TooManyRows);
                return Err(A::Error::custom("refused"));
            }
            match map.next_value_seed(ValueSeed::whole(self.0.budget, MAX_ROWS, &name)) {
                Ok(value) => self.0.fields.push((name, value)),
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
