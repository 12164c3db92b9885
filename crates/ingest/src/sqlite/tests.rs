use super::*;

/// A page of 512 bytes with cells at its end.
fn page(kind: u8, header: usize, cells: &[Vec<u8>], rightmost: Option<u32>) -> Vec<u8> {
    let mut page = vec![0; 512];
    page[header] = kind;
    page[header + 3..header + 5].copy_from_slice(&u16::try_from(cells.len()).expect("few").to_be_bytes());
    let mut pointers = header + 8;
    if let Some(rightmost) = rightmost {
        page[header + 8..header + 12].copy_from_slice(&rightmost.to_be_bytes());
        pointers += 4;
    }
    let mut end = 512;
    for (index, cell) in cells.iter().enumerate() {
        end -= cell.len();
        page[end..end + cell.len()].copy_from_slice(cell);
        let at = pointers + 2 * index;
        page[at..at + 2].copy_from_slice(&u16::try_from(end).expect("below 512").to_be_bytes());
    }
    page
}

/// A leaf cell with the key and one-byte types and values.
fn leaf(key: u8, types: &[u8], values: &[u8]) -> Vec<u8> {
    let header = u8::try_from(types.len() + 1).expect("short");
    let length = header + u8::try_from(values.len()).expect("short");
    [&[length, key, header], types, values].concat()
}

/// A file with a table `t (a INTEGER PRIMARY KEY, b)`, whose root is page 2.
fn file(pages: &[Vec<u8>]) -> Vec<u8> {
    let sql = "CREATE TABLE t (a INTEGER PRIMARY KEY, b)";
    let text = |text: &str| u8::try_from(13 + 2 * text.len()).expect("short");
    let values = [b"table", b"t".as_slice(), b"t", &[2], sql.as_bytes()].concat();
    let schema = leaf(1, &[text("table"), text("t"), text("t"), 1, text(sql)], &values);
    let mut first = page(TABLE_LEAF, HEADER_BYTES, &[schema], None);
    first[..MAGIC.len()].copy_from_slice(MAGIC);
    first[16..18].copy_from_slice(&512_u16.to_be_bytes());
    let count = u32::try_from(pages.len() + 1).expect("few");
    first[28..32].copy_from_slice(&count.to_be_bytes());
    [first, pages.concat()].concat()
}

/// Keys with values, and the number of missing pages.
type Rows = (Vec<(i64, Option<i64>)>, u64);

fn rows(file: &[u8]) -> Result<Rows, SqliteError> {
    let database = Database::open(file)?;
    let table = database.table("T").expect("the table").clone();
    let (a, b) = (table.column("a").expect("a"), table.column("b").expect("b"));
    let mut rows = Vec::new();
    let lost = database.scan(&table, |row| rows.push((row.get(a).integer().expect("a key"), row.get(b).integer())))?;
    Ok((rows, lost))
}

#[test]
fn rows_come_in_key_order() {
    let inner = page(TABLE_INTERIOR, 0, &[vec![0, 0, 0, 3, 2]], Some(4));
    let left = page(TABLE_LEAF, 0, &[leaf(1, &[0, 1], &[0xff]), leaf(2, &[0, 2], &[1, 0])], None);
    // A row that was written before the column b was added, and one with the constant 1.
    let right = page(TABLE_LEAF, 0, &[leaf(3, &[0], &[]), leaf(4, &[0, 9], &[])], None);
    let whole = file(&[inner.clone(), left.clone(), right]);
    assert_eq!(rows(&whole), Ok((vec![(1, Some(-1)), (2, Some(256)), (3, None), (4, Some(1))], 0)));
    // The last page is missing.
    assert_eq!(rows(&whole[..512 * 3]), Ok((vec![(1, Some(-1)), (2, Some(256))], 1)));
    let error = |file: &[u8]| rows(file).expect_err("broken").to_string();
    let twice = page(TABLE_INTERIOR, 0, &[vec![0, 0, 0, 3, 2]], Some(3));
    assert_eq!(error(&file(&[twice, left.clone()])), "page 3 is used twice in a table");
    let cycle = page(TABLE_INTERIOR, 0, &[vec![0, 0, 0, 2, 2]], Some(3));
    assert_eq!(error(&file(&[cycle, left.clone()])), "page 2 is used twice in a table");
    assert_eq!(error(&file(&[inner, left])), "page 4 is outside of the file");
    assert_eq!(error(&file(&[vec![0; 512]])), "page 2 is not a page of a table");
    let cut = page(TABLE_LEAF, 0, &[vec![90, 1, 2, 1]], None);
    assert_eq!(error(&file(&[cut])), "page 2 has a cut cell");
    let mut many = page(TABLE_LEAF, 0, &[], None);
    many[3..5].copy_from_slice(&[9, 9]);
    assert_eq!(error(&file(&[many])), "page 2 has more cells than fit");
    let reserved = page(TABLE_LEAF, 0, &[leaf(1, &[0, 10], &[])], None);
    assert_eq!(error(&file(&[reserved])), "page 2 has a broken record");
}

#[test]
fn headers_are_checked() {
    let error = |at: usize, bytes: &[u8]| {
        let mut file = file(&[page(TABLE_LEAF, 0, &[], None)]);
        file[at..at + bytes.len()].copy_from_slice(bytes);
        Database::open(&file).expect_err("a wrong header").to_string()
    };
    assert!(error(16, &[0, 3]).contains("power of two"));
    assert!(error(20, &[200]).contains("480"));
    assert!(error(56, &[0, 0, 0, 3]).contains("UTF-16"));
    assert!(Database::open(&[0; 99]).is_err());
}
