//! The footer: columns and where their chunks lie.

use super::super::ImportError;
use super::broken;
use super::thrift::{Reader, kind};

/// Most elements of a schema: wider tables hold no lengths.
const MOST_ELEMENTS: usize = 10_000;
/// Most chunks, of all columns of all row groups.
const MOST_CHUNKS: usize = 10_000_000;

/// What is needed of a footer.
#[derive(Debug)]
pub(super) struct Footer {
    /// Rows of the file.
    pub(super) rows: u64,
    /// Columns that hold values.
    pub(super) leaves: Vec<Leaf>,
    /// Row group by row group, the chunk of each leaf.
    pub(super) groups: Vec<Vec<Chunk>>,
}

/// A type that values are stored as.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stored {
    /// Four bytes.
    Int32,
    /// Eight bytes.
    Int64,
    /// Four bytes.
    Float,
    /// Eight bytes.
    Double,
    /// Anything else.
    Other,
}

/// A column that holds values.
#[derive(Debug, Clone)]
pub(super) struct Leaf {
    /// Its name; of what is nested, the outermost.
    pub(super) name: String,
    /// What its values are stored as.
    pub(super) stored: Stored,
    /// Definition level of a value that is there.
    pub(super) definition: u32,
    /// Definition level from which an element of the outermost list is there, though it may be missing itself.
    pub(super) element: u32,
    /// Lists within lists.
    pub(super) repetition: u32,
    /// How many names lead to it.
    depth: usize,
}

impl Leaf {
    /// Whether it is a plain column of numbers.
    pub(super) fn is_number(&self) -> bool {
        self.stored != Stored::Other && self.repetition == 0 && self.depth == 1
    }

    /// Whether it is a list, at the outermost level or within others.
    pub(super) fn is_list(&self) -> bool {
        self.repetition > 0
    }
}

/// A piece of a column.
#[derive(Debug, Clone, Default)]
pub(super) struct Chunk {
    /// Compression.
    pub(super) codec: i64,
    /// Values, with those that are missing.
    pub(super) values: i64,
    /// First byte.
    pub(super) start: i64,
    /// Bytes.
    pub(super) bytes: i64,
    /// Least and most value, as stored.
    least: Option<Vec<u8>>,
    most: Option<Vec<u8>>,
}

/// An element of the schema.
#[derive(Debug, Default)]
struct Element {
    stored: Option<i64>,
    repetition: i64,
    name: String,
    children: i64,
}

impl Footer {
    /// Finds and reads the footer.
    pub(super) fn read(bytes: &[u8]) -> Result<Self, ImportError> {
        let ends = bytes.len() >= 12 && bytes.ends_with(super::MAGIC);
        let tail = ends.then(|| bytes[..bytes.len() - 4].split_last_chunk::<4>()).flatten();
        let Some((body, length)) = tail else {
            return Err(broken("it does not end with PAR1: it is cut, or encrypted"));
        };
        let length = u32::from_le_bytes(*length) as usize;
        let Some(start) = body.len().checked_sub(length).filter(|&start| start >= super::MAGIC.len()) else {
            return Err(broken(format!("its footer of {length} bytes is longer than the file")));
        };
        let mut rows = 0;
        let mut elements = Vec::new();
        let mut groups = Vec::new();
        let read = Reader::new(&body[start..]).fields(|reader, id, kind| {
            match (id, kind) {
                (2, kind::LIST) => elements = schema(reader)?,
                (3, kind::I64) => rows = reader.number()?,
                (4, kind::LIST) => groups = row_groups(reader)?,
                _ => return Some(false),
            }
            Some(true)
        });
        let known = read.and_then(|()| Some((u64::try_from(rows).ok()?, leaves(&elements)?)));
        let Some((rows, leaves)) = known else {
            return Err(broken("its footer cannot be read"));
        };
        if groups.iter().any(|group| group.len() != leaves.len()) {
            return Err(broken("a row group has another number of columns than the schema"));
        }
        Ok(Self { rows, leaves, groups })
    }

    /// Least and most value of a column of whole numbers, where every row group says them.
    #[expect(dead_code, reason = "the crate parquet replaces this reader")]
    pub(super) fn range(&self, column: usize) -> Option<(i64, i64)> {
        let whole = |bytes: &Vec<u8>| match self.leaves[column].stored {
            Stored::Int32 => Some(i32::from_le_bytes(bytes.as_slice().try_into().ok()?).into()),
            Stored::Int64 => Some(i64::from_le_bytes(bytes.as_slice().try_into().ok()?)),
            _ => None,
        };
        if self.leaves[column].is_list() {
            return None;
        }
        let mut range: Option<(i64, i64)> = None;
        for group in &self.groups {
            let chunk = &group[column];
            let (least, most) = (whole(chunk.least.as_ref()?)?, whole(chunk.most.as_ref()?)?);
            range = Some(range.map_or((least, most), |(low, high)| (low.min(least), high.max(most))));
        }
        range
    }
}

fn schema(reader: &mut Reader<'_>) -> Option<Vec<Element>> {
    let (element_kind, count) = reader.list()?;
    if element_kind != kind::STRUCT || count > MOST_ELEMENTS {
        return None;
    }
    let mut elements = Vec::with_capacity(count);
    for _ in 0..count {
        let mut element = Element::default();
        reader.fields(|reader, id, kind| {
            match (id, kind) {
                (1, kind::I32) => element.stored = Some(reader.number()?),
                (3, kind::I32) => element.repetition = reader.number()?,
                (4, kind::BINARY) => {
                    element.name = String::from_utf8_lossy(reader.binary()?).chars().take(200).collect();
                }
                (5, kind::I32) => element.children = reader.number()?,
                _ => return Some(false),
            }
            Some(true)
        })?;
        elements.push(element);
    }
    Some(elements)
}

/// The leaves of a schema, whose elements stand depth first.
fn leaves(elements: &[Element]) -> Option<Vec<Leaf>> {
    /// Deepest nesting.
    const MOST_DEPTH: usize = 50;
    /// A group whose children follow.
    struct Open {
        left: i64,
        definition: u32,
        repetition: u32,
        element: u32,
    }
    let (root, rest) = elements.split_first()?;
    // Children are counted down to zero; groups with none below them are leaves.
    if root.children < 0 {
        return None;
    }
    let mut open = vec![Open { left: root.children, definition: 0, repetition: 0, element: 0 }];
    let mut outermost = String::new();
    let mut leaves = Vec::new();
    for element in rest {
        while open.last()?.left == 0 {
            open.pop();
        }
        let depth = open.len();
        let group = open.last_mut()?;
        group.left -= 1;
        let (optional, repeated) = (element.repetition == 1, element.repetition == 2);
        let definition = group.definition + u32::from(optional || repeated);
        let repetition = group.repetition + u32::from(repeated);
        let first_list = repeated && group.repetition == 0;
        let of_element = if first_list { definition } else { group.element };
        if depth == 1 {
            outermost.clone_from(&element.name);
        }
        if element.children > 0 {
            if depth > MOST_DEPTH {
                return None;
            }
            open.push(Open { left: element.children, definition, repetition, element: of_element });
            continue;
        }
        let stored = match element.stored? {
            1 => Stored::Int32,
            2 => Stored::Int64,
            4 => Stored::Float,
            5 => Stored::Double,
            _ => Stored::Other,
        };
        leaves.push(Leaf { name: outermost.clone(), stored, definition, element: of_element, repetition, depth });
    }
    open.iter().all(|group| group.left == 0).then_some(leaves)
}

fn row_groups(reader: &mut Reader<'_>) -> Option<Vec<Vec<Chunk>>> {
    let (group_kind, count) = reader.list()?;
    let mut groups = Vec::new();
    let mut chunks_left = MOST_CHUNKS;
    for _ in 0..count {
        let mut chunks = Vec::new();
        if group_kind != kind::STRUCT {
            return None;
        }
        reader.fields(|reader, id, kind| {
            if (id, kind) != (1, kind::LIST) {
                return Some(false);
            }
            let (chunk_kind, count) = reader.list()?;
            chunks_left = chunks_left.checked_sub(count)?;
            for _ in 0..count {
                chunks.push(if chunk_kind == kind::STRUCT { chunk(reader)? } else { return None });
            }
            Some(true)
        })?;
        groups.push(chunks);
    }
    Some(groups)
}

fn chunk(reader: &mut Reader<'_>) -> Option<Chunk> {
    let mut chunk = Chunk::default();
    let mut dictionary = None;
    reader.fields(|reader, id, kind| {
        if (id, kind) != (3, kind::STRUCT) {
            return Some(false);
        }
        reader.fields(|reader, id, kind| {
            match (id, kind) {
                (4, kind::I32) => chunk.codec = reader.number()?,
                (5, kind::I64) => chunk.values = reader.number()?,
                (7, kind::I64) => chunk.bytes = reader.number()?,
                (9, kind::I64) => chunk.start = reader.number()?,
                (11, kind::I64) => dictionary = Some(reader.number()?),
                (12, kind::STRUCT) => reader.fields(|reader, id, kind| {
                    match (id, kind) {
                        // The first two of older writers are ordered as signed numbers too.
                        (5, kind::BINARY) => chunk.most = Some(short(reader.binary()?)),
                        (6, kind::BINARY) => chunk.least = Some(short(reader.binary()?)),
                        (1, kind::BINARY) if chunk.most.is_none() => chunk.most = Some(short(reader.binary()?)),
                        (2, kind::BINARY) if chunk.least.is_none() => chunk.least = Some(short(reader.binary()?)),
                        _ => return Some(false),
                    }
                    Some(true)
                })?,
                _ => return Some(false),
            }
            Some(true)
        })?;
        Some(true)
    })?;
    // Some writers give 0 where there is no dictionary.
    if let Some(dictionary) = dictionary.filter(|&dictionary| dictionary > 0 && dictionary < chunk.start) {
        chunk.start = dictionary;
    }
    Some(chunk)
}

/// Numbers take eight bytes at most; longer extremes are texts.
fn short(bytes: &[u8]) -> Vec<u8> {
    bytes[..bytes.len().min(9)].to_vec()
}
