//! The values of a column, row by row.

use super::super::number::Number;
use super::super::{ImportError, MAX_ROWS};
use super::footer::{Chunk, Footer, Leaf, Stored};
use super::levels::Hybrid;
use super::page::{self, Content, Page};
use super::{Value, broken};

/// Most elements of all lists together: five million samples of a hundred tokens.
const MOST_ELEMENTS: usize = 500_000_000;

/// PLAIN.
const PLAIN: i64 = 0;
/// PLAIN_DICTIONARY, of older writers.
const PLAIN_DICTIONARY: i64 = 2;
/// RLE_DICTIONARY.
const DICTIONARY: i64 = 8;

/// Reads a column: numbers as they are, lists by their lengths.
pub(super) fn read(bytes: &[u8], footer: &Footer, column: usize) -> Result<Vec<Value>, ImportError> {
    let leaf = &footer.leaves[column];
    if !(leaf.is_number() || leaf.is_list()) {
        return Err(broken(format!("column {} holds neither numbers nor lists", leaf.name)));
    }
    let mut rows = Vec::new();
    let mut elements = 0_usize;
    for group in &footer.groups {
        let chunk = &group[column];
        let mut rest = body(bytes, chunk)
            .ok_or_else(|| broken(format!("a piece of column {} lies outside the file", leaf.name)))?;
        let mut left = usize::try_from(chunk.values).unwrap_or_default();
        let mut dictionary = Vec::new();
        while left > 0 {
            let (page, behind) = page::read(rest, chunk.codec)?;
            rest = behind;
            match page.content {
                Content::Dictionary if leaf.is_number() => dictionary = plain(&page.bytes, leaf.stored, page.values),
                Content::Dictionary | Content::Other => {}
                Content::Data | Content::DataV2 { .. } => {
                    if page.values == 0 || page.values > left {
                        return Err(broken("a page has another number of values than its column"));
                    }
                    left -= page.values;
                    elements += page.values;
                    if elements > MOST_ELEMENTS {
                        return Err(ImportError::TooManyRows);
                    }
                    take(&page, leaf, &dictionary, &mut rows)
                        .ok_or_else(|| broken(format!("a page of column {} is cut", leaf.name)))??;
                }
            }
            if rows.len() > MAX_ROWS {
                return Err(ImportError::TooManyRows);
            }
        }
    }
    if rows.len() as u64 == footer.rows {
        Ok(rows)
    } else {
        Err(broken(format!("column {} has {} rows, but the file has {}", leaf.name, rows.len(), footer.rows)))
    }
}

fn body<'a>(bytes: &'a [u8], chunk: &Chunk) -> Option<&'a [u8]> {
    let start = usize::try_from(chunk.start).ok()?;
    let end = start.checked_add(usize::try_from(chunk.bytes).ok()?)?;
    bytes.get(start..end)
}

/// Adds the rows of a page; `None` where it is cut.
fn take(page: &Page<'_>, leaf: &Leaf, dictionary: &[Value], rows: &mut Vec<Value>) -> Option<Result<(), ImportError>> {
    let bytes = page.bytes.as_ref();
    let (repetition, definition, values) = if let Content::DataV2 { repetition, definition } = page.content {
        let (first, rest) = bytes.split_at_checked(repetition)?;
        let (second, rest) = rest.split_at_checked(definition)?;
        (first, second, rest)
    } else {
        let (first, rest) = levels(bytes, leaf.repetition)?;
        let (second, rest) = levels(rest, leaf.definition)?;
        (first, second, rest)
    };
    let mut repetition = Levels::new(repetition, leaf.repetition);
    let mut definition = Levels::new(definition, leaf.definition);
    if leaf.is_list() {
        return lists(page.values, leaf, &mut repetition, &mut definition, rows);
    }
    let mut there = Vec::with_capacity(page.values.min(bytes.len() * 8));
    for _ in 0..page.values {
        // A page of five million values is the largest that can be taken.
        if rows.len() + there.len() > MAX_ROWS {
            return Some(Err(ImportError::TooManyRows));
        }
        there.push(definition.next()? == leaf.definition);
    }
    let count = there.iter().filter(|&&there| there).count();
    let values = match page.encoding {
        PLAIN => plain(values, leaf.stored, count),
        PLAIN_DICTIONARY | DICTIONARY if count == 0 => Vec::new(),
        PLAIN_DICTIONARY | DICTIONARY => {
            let (&width, packed) = values.split_first()?;
            let indices = Hybrid::new(packed, width.into()).take(count);
            indices.map(|index| dictionary.get(index as usize).copied()).collect::<Option<Vec<_>>>()?
        }
        encoding => {
            let detail =
                format!("column {} has encoding {encoding}; write it without, as plain or dictionary", leaf.name);
            return Some(Err(broken(detail)));
        }
    };
    if values.len() != count {
        return None;
    }
    let mut values = values.into_iter();
    rows.extend(
        there.into_iter().map(|there| if there { values.next().unwrap_or(Value::Missing) } else { Value::Missing }),
    );
    Some(Ok(()))
}

/// Counts the elements of the outermost lists; `None` where the page is cut.
fn lists(
    count: usize,
    leaf: &Leaf,
    repetition: &mut Levels<'_>,
    definition: &mut Levels<'_>,
    rows: &mut Vec<Value>,
) -> Option<Result<(), ImportError>> {
    for _ in 0..count {
        let (again, defined) = (repetition.next()?, definition.next()?);
        let there = defined >= leaf.element;
        if again == 0 {
            // A run of levels may say millions of rows in a few bytes.
            if rows.len() >= MAX_ROWS {
                return Some(Err(ImportError::TooManyRows));
            }
            // One level below its elements' a list is empty, further below there is none.
            let none = defined + 1 < leaf.element;
            rows.push(if none { Value::Missing } else { Value::Number(Number::Whole(i128::from(there))) });
        } else if again == 1 && there {
            // A page may start within a row of the page before.
            let Some(Value::Number(Number::Whole(length))) = rows.last_mut() else { return None };
            *length += 1;
        }
    }
    Some(Ok(()))
}

/// Levels behind their length, and what stands behind them; there are none where every level is zero.
fn levels(bytes: &[u8], most: u32) -> Option<(&[u8], &[u8])> {
    if most == 0 {
        return Some((&[], bytes));
    }
    let (length, rest) = bytes.split_first_chunk()?;
    rest.split_at_checked(u32::from_le_bytes(*length) as usize)
}

/// Levels one after another.
enum Levels<'a> {
    Zero,
    Some(Hybrid<'a>),
}

impl<'a> Levels<'a> {
    fn new(bytes: &'a [u8], most: u32) -> Self {
        if most == 0 { Self::Zero } else { Self::Some(Hybrid::new(bytes, Hybrid::width_of(most))) }
    }

    fn next(&mut self) -> Option<u32> {
        match self {
            Self::Zero => Some(0),
            Self::Some(levels) => levels.next(),
        }
    }
}

/// Values as they are stored, at most as many as the bytes hold.
fn plain(bytes: &[u8], stored: Stored, count: usize) -> Vec<Value> {
    let whole = |value: i64| Value::Number(Number::Whole(value.into()));
    let float = |value: f64| {
        let integral = value.fract() == 0.0 && value.abs() < 1e15;
        match value.is_finite() {
            true if integral => Value::Number(Number::Whole(value as i128)),
            true => Value::Number(Number::Repaired(value)),
            false => Value::NotFinite,
        }
    };
    let four = || bytes.as_chunks::<4>().0.iter().take(count);
    let eight = || bytes.as_chunks::<8>().0.iter().take(count);
    match stored {
        Stored::Int32 => four().map(|&four| whole(i32::from_le_bytes(four).into())).collect(),
        Stored::Int64 => eight().map(|&eight| whole(i64::from_le_bytes(eight))).collect(),
        Stored::Float => four().map(|&four| float(f32::from_le_bytes(four).into())).collect(),
        Stored::Double => eight().map(|&eight| float(f64::from_le_bytes(eight))).collect(),
        Stored::Other => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{PLAIN, bytes};
    use super::*;

    /// Six million lists, all of them missing, are two runs of five bytes: twice their number in seven-bit groups, and the level.
    #[test]
    fn lists_stop_at_the_most_rows_however_short_their_levels_are() {
        let footer = Footer::read(&bytes(PLAIN)).expect("a footer");
        let leaf = &footer.leaves[1];
        let run = [0x80, 0xb6, 0xdc, 0x05, 0];
        let (mut repetition, mut definition) = (Levels::new(&run, leaf.repetition), Levels::new(&run, leaf.definition));
        let mut rows = Vec::new();
        let read = lists(6_000_000, leaf, &mut repetition, &mut definition, &mut rows);
        assert_eq!((read, rows.len()), (Some(Err(ImportError::TooManyRows)), MAX_ROWS));
    }
}
