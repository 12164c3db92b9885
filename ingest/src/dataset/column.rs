//! Which column or key holds the lengths.

use super::ImportError;
use super::media::Field;

/// Names of length columns, best first: what training sees of a sample (prompt and answer together) before
/// what only an inference server sees of it. `input_ids` is a list whose length counts.
pub const LENGTHS: [&str; 23] = [
    "text_tokens",
    "num_total_tokens",
    "total_tokens",
    "num_tokens",
    "n_tokens",
    "token_count",
    "tokens",
    "length",
    "lengths",
    "len",
    "seq_len",
    "seqlen",
    "sequence_length",
    "input_len",
    "input_length",
    "num_prefill_tokens",
    "prefill_tokens",
    "prompt_tokens",
    "prompt_len",
    "context_tokens",
    "contexttokens",
    "num_input_tokens",
    "input_ids",
];

/// Names of columns that count the images of a sample.
pub const IMAGES: [&str; 5] = ["images", "num_images", "image_count", "n_images", "img_count"];

/// The columns that were chosen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Choice {
    /// Column of the lengths.
    pub(super) lengths: usize,
    /// Column of the image counts.
    pub(super) images: Option<usize>,
    /// Names of other columns that hold numbers.
    pub(super) alternatives: Vec<String>,
}

/// A column as a file shows it.
#[derive(Debug, Clone)]
pub(super) struct Column {
    /// Its name.
    pub(super) name: String,
    /// Whether its first value is a number (or a list that can be counted).
    pub(super) numeric: bool,
}

/// Chooses the columns: the one asked for, else the best known name, else the only one with numbers.
pub(super) fn choose(columns: &[Column], asked: Option<&str>) -> Result<Choice, ImportError> {
    let images = find(columns, &IMAGES);
    let lengths = match asked {
        Some(asked) => columns
            .iter()
            .position(|column| column.name == asked)
            .or_else(|| columns.iter().position(|column| normal(&column.name) == normal(asked)))
            .ok_or_else(|| ImportError::NoSuchColumn { asked: clip(asked), available: names(columns) })?,
        None => match find(columns, &LENGTHS) {
            Some(known) => known,
            None => only_numeric(columns, images)?,
        },
    };
    let images = images.filter(|&images| images != lengths);
    let alternatives = columns
        .iter()
        .enumerate()
        .filter(|&(index, column)| column.numeric && index != lengths && Some(index) != images)
        .map(|(_, column)| clip(&column.name))
        .take(50)
        .collect();
    Ok(Choice { lengths, images, alternatives })
}

/// The column of text where rows hold media: the one asked for, else the best known name, else the only other one with numbers.
/// Rows may have no text at all.
pub(super) fn choose_text(columns: &[Column], asked: Option<&str>) -> Result<Option<usize>, ImportError> {
    if asked.is_some() {
        return Ok(Some(choose(columns, asked)?.lengths));
    }
    let others = |&index: &usize| columns[index].numeric && Field::of(&columns[index].name).is_none();
    Ok(find(columns, &LENGTHS).or_else(|| match (0..columns.len()).filter(others).collect::<Vec<_>>().as_slice() {
        &[only] => Some(only),
        _ => None,
    }))
}

fn find(columns: &[Column], known: &[&str]) -> Option<usize> {
    known.iter().find_map(|known| columns.iter().position(|column| normal(&column.name) == *known))
}

/// A single column needs no known name; of several, the only one that holds numbers is meant.
fn only_numeric(columns: &[Column], images: Option<usize>) -> Result<usize, ImportError> {
    let numeric: Vec<usize> =
        (0..columns.len()).filter(|&index| columns[index].numeric && Some(index) != images).collect();
    match (columns.len(), numeric.as_slice()) {
        (1, _) => Ok(0),
        (_, &[only]) => Ok(only),
        _ => Err(ImportError::ColumnUnclear { available: names(columns) }),
    }
}

/// Whether a name is a known one, upper and lower case, spaces, dots and hyphens aside; asked of every key of every row.
pub(super) fn is_normally(name: &str, known: &str) -> bool {
    let plain = |byte: u8| match byte {
        b' ' | b'-' | b'.' => b'_',
        other => other.to_ascii_lowercase(),
    };
    let name = name.trim();
    name.len() == known.len() && name.bytes().map(plain).eq(known.bytes())
}

pub(super) fn normal(name: &str) -> String {
    name.trim().to_lowercase().replace([' ', '-', '.'], "_")
}

fn names(columns: &[Column]) -> Vec<String> {
    columns.iter().map(|column| clip(&column.name)).take(50).collect()
}

/// A name short enough for a message.
fn clip(name: &str) -> String {
    name.chars().take(80).collect()
}
