//! Reads articles with paragraphs and questions, in SQuAD layout.

use super::super::value::{List, Members, Row, Value};

/// Returns one row per question, with the text of its paragraph; `None` if the articles have no
/// such paragraphs.
pub(super) fn rows<'v>(articles: &[Value<'v>]) -> Option<Vec<Row<'v>>> {
    let mut rows = Vec::new();
    for article in articles {
        for paragraph in objects(article, "paragraphs")? {
            let context = member(paragraph, "context")?;
            for entry in list(paragraph, "qas")? {
                let Value::Object(members) = entry else { return None };
                let row: Members<'v> =
                    [("context".into(), context.clone())].into_iter().chain(members.clone()).collect();
                rows.push(Row::Object(row));
            }
        }
    }
    (!rows.is_empty()).then_some(rows)
}

fn member<'m, 'v>(members: &'m Members<'v>, name: &str) -> Option<&'m Value<'v>> {
    members.iter().find(|(key, _)| key == name).map(|(_, value)| value)
}

fn list<'m, 'v>(members: &'m Members<'v>, name: &str) -> Option<&'m [Value<'v>]> {
    match member(members, name)? {
        Value::List(List { count, items, .. }) if items.len() == *count => Some(items),
        _ => None,
    }
}

/// Returns the objects of a list inside an object.
fn objects<'m, 'v>(value: &'m Value<'v>, name: &str) -> Option<Vec<&'m Members<'v>>> {
    let Value::Object(members) = value else { return None };
    let object = |item: &'m Value<'v>| match item {
        Value::Object(members) => Some(members),
        _ => None,
    };
    list(members, name)?.iter().map(object).collect()
}
