//! Reads the tables of an SQLite 3 file in memory: table b-trees and overflow pages. Indexes,
//! journals and `WITHOUT ROWID` tables are not read.
//!
//! The file is untrusted: every offset is checked, and a page that occurs twice in a table is an
//! error, so the work is linear in the file size.

mod record;
mod schema;

pub(crate) use record::{Row, Value};
use schema::Columns;

/// First bytes of every SQLite 3 file.
pub(crate) const MAGIC: &[u8] = b"SQLite format 3\0";
/// Size of the file header, which precedes the b-tree header on page 1.
const HEADER_BYTES: usize = 100;
/// The smallest usable page size in the format.
const MIN_USABLE: usize = 480;
/// Page types.
const TABLE_INTERIOR: u8 = 0x05;
const TABLE_LEAF: u8 = 0x0d;

/// Error in the file.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum SqliteError {
    /// The file header is not usable.
    #[error("the header states {0}")]
    Header(&'static str),
    /// A page is malformed.
    #[error("page {page} {detail}")]
    Page {
        /// Page number, from 1.
        page: u32,
        /// Description.
        detail: &'static str,
    },
}

/// A table of the file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Table {
    pub(crate) name: String,
    root: u32,
    columns: Columns,
}

impl Table {
    /// Returns the index of a column.
    pub(crate) fn column(&self, name: &str) -> Option<usize> {
        self.columns.names.iter().position(|column| column.eq_ignore_ascii_case(name))
    }
}

/// An SQLite file in memory.
#[derive(Debug)]
pub(crate) struct Database<'f> {
    file: &'f [u8],
    page_bytes: usize,
    /// Page size without the bytes reserved for extensions.
    usable: usize,
    pub(crate) tables: Vec<Table>,
    /// True if the file is shorter than its header states.
    pub(crate) cut: bool,
}

impl<'f> Database<'f> {
    /// Reads the header and the list of tables.
    pub(crate) fn open(file: &'f [u8]) -> Result<Self, SqliteError> {
        let header = file.get(..HEADER_BYTES).ok_or(SqliteError::Header("fewer than 100 bytes"))?;
        let page_bytes = match u16::from_be_bytes([header[16], header[17]]) {
            1 => 1 << 16,
            bytes => usize::from(bytes),
        };
        if !page_bytes.is_power_of_two() || page_bytes < 512 {
            return Err(SqliteError::Header("a page size that is no power of two from 512 to 65,536"));
        }
        let usable = page_bytes - usize::from(header[20]);
        if usable < MIN_USABLE {
            return Err(SqliteError::Header("pages with less than 480 usable bytes"));
        }
        if be_u32(header, 56) > 1 {
            return Err(SqliteError::Header("text in UTF-16; nsys writes UTF-8"));
        }
        let cut = (file.len() as u64) < u64::from(be_u32(header, 28)) * page_bytes as u64;
        let mut database = Self { file, page_bytes, usable, tables: Vec::new(), cut };
        let schema = Table { name: "sqlite_schema".to_owned(), root: 1, columns: Columns::of_schema() };
        let mut tables = Vec::new();
        database.scan(&schema, |row| tables.extend(schema::table(row)))?;
        database.tables = tables;
        Ok(database)
    }

    /// Returns the table with a name.
    pub(crate) fn table(&self, name: &str) -> Option<&Table> {
        self.tables.iter().find(|table| table.name.eq_ignore_ascii_case(name))
    }

    /// Calls a function with every row in key order. Returns the number of pages that a truncated
    /// file lacks.
    pub(crate) fn scan(&self, table: &Table, mut visit: impl FnMut(&Row<'_>)) -> Result<u64, SqliteError> {
        let mut seen = Seen { pages: vec![false; self.file.len() / self.page_bytes + 1] };
        let mut lost = 0;
        let mut stack = vec![table.root];
        let mut assembled = Vec::new();
        while let Some(number) = stack.pop() {
            let Some(page) = self.page(number, &mut seen)? else {
                lost += 1;
                continue;
            };
            let broken = |detail| SqliteError::Page { page: number, detail };
            let start = if number == 1 { HEADER_BYTES } else { 0 };
            let cells = usize::from(be_u16(page, start + 3));
            let pointers = start + if page[start] == TABLE_INTERIOR { 12 } else { 8 };
            if pointers + 2 * cells > self.usable {
                return Err(broken("has more cells than fit"));
            }
            let cell = |index: usize| {
                let at = usize::from(be_u16(page, pointers + 2 * index));
                page.get(at..self.usable).ok_or(broken("has a cell outside of the page"))
            };
            match page[start] {
                TABLE_INTERIOR => {
                    stack.push(be_u32(page, start + 8));
                    for index in (0..cells).rev() {
                        let child = cell(index)?.first_chunk().ok_or(broken("has a cut cell"))?;
                        stack.push(u32::from_be_bytes(*child));
                    }
                }
                TABLE_LEAF => {
                    // Cells that overlap could multiply the work.
                    let mut used = 0;
                    for index in 0..cells {
                        let Some(leaf) = Leaf::read(cell(index)?, self.usable) else {
                            return Err(broken("has a cut cell"));
                        };
                        used += leaf.local.len() + 2;
                        if used > self.usable {
                            return Err(broken("has cells that overlap"));
                        }
                        let payload = match leaf.overflow {
                            None => leaf.local,
                            Some(first) => {
                                if !self.assemble(&leaf, first, &mut seen, &mut assembled)? {
                                    lost += 1;
                                    continue;
                                }
                                &assembled
                            }
                        };
                        let row =
                            Row::read(payload, leaf.rowid, &table.columns).ok_or(broken("has a broken record"))?;
                        visit(&row);
                    }
                }
                _ => return Err(broken("is not a page of a table")),
            }
        }
        Ok(lost)
    }

    /// Returns a page that was not read before; `None` if a truncated file lacks it.
    fn page(&self, number: u32, seen: &mut Seen) -> Result<Option<&'f [u8]>, SqliteError> {
        let broken = |detail| SqliteError::Page { page: number, detail };
        let index = (number as usize).checked_sub(1).ok_or(broken("does not exist"))?;
        let start = index.checked_mul(self.page_bytes).ok_or(broken("is outside of the file"))?;
        match self.file.get(start..start.saturating_add(self.page_bytes)) {
            None if self.cut => Ok(None),
            None => Err(broken("is outside of the file")),
            Some(_) if std::mem::replace(&mut seen.pages[index], true) => Err(broken("is used twice in a table")),
            page => Ok(page),
        }
    }

    /// Assembles a payload from its overflow pages. Returns false if a truncated file lacks one.
    fn assemble(
        &self,
        leaf: &Leaf<'_>,
        first: u32,
        seen: &mut Seen,
        payload: &mut Vec<u8>,
    ) -> Result<bool, SqliteError> {
        payload.clear();
        payload.extend_from_slice(leaf.local);
        let mut next = first;
        while payload.len() < leaf.length {
            let Some(page) = self.page(next, seen)? else { return Ok(false) };
            next = be_u32(page, 0);
            let rest = (leaf.length - payload.len()).min(self.usable - 4);
            payload.extend_from_slice(&page[4..4 + rest]);
        }
        Ok(true)
    }
}

/// Pages of a table that were read.
struct Seen {
    pages: Vec<bool>,
}

/// A cell of a leaf page.
struct Leaf<'p> {
    rowid: i64,
    /// Payload length, including overflow pages.
    length: usize,
    /// Payload on the page.
    local: &'p [u8],
    /// First overflow page.
    overflow: Option<u32>,
}

impl<'p> Leaf<'p> {
    /// Reads a cell from its start to the end of the page.
    fn read(cell: &'p [u8], usable: usize) -> Option<Self> {
        let (length, used) = record::varint(cell)?;
        let (rowid, more) = record::varint(&cell[used..])?;
        let body = &cell[used + more..];
        let length = usize::try_from(length).ok()?;
        let rowid = rowid.cast_signed();
        if length <= usable - 35 {
            return Some(Self { rowid, length, local: body.get(..length)?, overflow: None });
        }
        // The format keeps between a minimum and a maximum on the page, so that overflow pages are
        // full.
        let minimum = (usable - 12) * 32 / 255 - 23;
        let fitting = minimum + (length - minimum) % (usable - 4);
        let kept = if fitting <= usable - 35 { fitting } else { minimum };
        let overflow = u32::from_be_bytes(*body.get(kept..)?.first_chunk()?);
        Some(Self { rowid, length, local: &body[..kept], overflow: Some(overflow) })
    }
}

/// Reads a number from bytes that are known to be long enough.
fn be_u16(bytes: &[u8], at: usize) -> u16 {
    u16::from_be_bytes([bytes[at], bytes[at + 1]])
}

fn be_u32(bytes: &[u8], at: usize) -> u32 {
    u32::from_be_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
}

#[cfg(test)]
mod tests;
