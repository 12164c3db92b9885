//! One page of any list: search, tag, order, pinned first, and where the other pages are.
//!
//! Pages are told by the thing they stand behind, not by a number, so that what is stored meanwhile moves nothing from one
//! page to another.

use api::shelf::ListPage;
use sqlx::{QueryBuilder, Sqlite};

use super::{Reader, StoreError};

/// An order of a list.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Order {
    /// Its name in addresses.
    pub(crate) name: &'static str,
    /// SQL of what is compared; never NULL.
    pub(crate) key: &'static str,
}

/// A list: SQL of where it stands and of what it looks at. Every table has `id`, `pinned_at_ms` and `deleted_at_ms`.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Shelf {
    /// Table or view.
    pub(crate) table: &'static str,
    /// All that a search looks at.
    pub(crate) text: &'static str,
    /// Tags, a JSON list.
    pub(crate) tags: &'static str,
    /// Which rows stand on it.
    pub(crate) listed: &'static str,
    /// Which of the deleted rows can come back.
    pub(crate) can_return: &'static str,
    /// Sum of the bytes of what is stored.
    pub(crate) stored: &'static str,
    /// Sum of the bytes of what is deleted and can come back.
    pub(crate) deleted: &'static str,
    /// Orders; the first one, the other way round, is that of a list that is asked for none.
    pub(crate) orders: &'static [Order],
}

/// One more condition: SQL before a value, the value, SQL behind it.
pub(crate) type Filter = (String, String, &'static str);

/// Which part of a list is wanted.
#[derive(Debug, Clone, Default)]
pub(crate) struct Wanted {
    /// Words that must all be found.
    pub(crate) words: Vec<String>,
    /// Tag that it must bear.
    pub(crate) tag: Option<String>,
    /// Name of the order.
    pub(crate) order: String,
    /// Whether the order is the other way round.
    pub(crate) is_descending: bool,
    /// The thing before the page.
    pub(crate) after: Option<String>,
    /// Most things.
    pub(crate) limit: u32,
    /// Deleted things in place of the others.
    pub(crate) is_deleted: bool,
    /// Further conditions.
    pub(crate) filters: Vec<Filter>,
}

/// A page, as identifiers in their order.
#[derive(Debug, Clone, Default)]
pub(crate) struct Found {
    /// Identifiers.
    pub(crate) ids: Vec<String>,
    /// What is said of the whole list.
    pub(crate) page: ListPage,
}

impl Found {
    /// The identifiers as a JSON list, for `json_each`.
    pub(crate) fn json(&self) -> String {
        serde_json::to_string(&self.ids).expect("texts")
    }

    /// Things put into the order of the page.
    pub(crate) fn in_order<T>(&self, mut things: Vec<T>, id: impl Fn(&T) -> &str) -> Vec<T> {
        things.sort_by_key(|thing| self.ids.iter().position(|known| known == id(thing)));
        things
    }
}

impl Shelf {
    /// The order of that name, where there is one.
    pub(crate) fn order(&self, name: &str) -> Option<Order> {
        self.orders.iter().copied().find(|order| order.name == name)
    }

    /// What is compared: pinned things first, the key, the identifier.
    fn keys(&self, wanted: &Wanted) -> [&'static str; 3] {
        let key = self.order(&wanted.order).unwrap_or(self.orders[0]).key;
        let pinned = if wanted.is_descending { "pinned_at_ms IS NOT NULL" } else { "pinned_at_ms IS NULL" };
        [pinned, key, "id"]
    }

    /// Adds the conditions of the question.
    fn matching(&self, query: &mut QueryBuilder<Sqlite>, wanted: &Wanted) {
        query.push(" WHERE ").push(self.listed).push(" AND ");
        if wanted.is_deleted {
            query.push("deleted_at_ms IS NOT NULL AND (").push(self.can_return).push(")");
        } else {
            query.push("deleted_at_ms IS NULL");
        }
        for word in &wanted.words {
            query.push(" AND instr(lower(").push(self.text).push("), lower(").push_bind(word.clone()).push(")) > 0");
        }
        if let Some(tag) = &wanted.tag {
            let tags = self.tags;
            query.push(format!(" AND EXISTS (SELECT 1 FROM json_each({tags}) WHERE value = ")).push_bind(tag.clone());
            query.push(")");
        }
        for (before, value, behind) in &wanted.filters {
            query.push(" AND ").push(before).push_bind(value.clone()).push(behind);
        }
    }

    /// Adds that a row stands on one side of another.
    fn beside(&self, query: &mut QueryBuilder<Sqlite>, wanted: &Wanted, sign: &str, id: &str) {
        let keys = self.keys(wanted).join(", ");
        query.push(format!(" AND ({keys}) {sign} (SELECT {keys} FROM {} WHERE id = ", self.table));
        query.push_bind(id.to_owned()).push(")");
    }
}

impl Reader {
    /// One page of a list.
    pub(crate) async fn page(&self, shelf: &Shelf, wanted: &Wanted) -> Result<Found, StoreError> {
        let (forth, back) = ((">", "ASC"), ("<", "DESC"));
        let ((onwards, direction), (backwards, back)) =
            if wanted.is_descending { (back, forth) } else { (forth, back) };
        let ordered = |direction: &str| {
            let columns = shelf.keys(wanted).map(|key| format!("({key}) {direction}"));
            format!(" ORDER BY {}", columns.join(", "))
        };
        let table = shelf.table;

        let mut query = QueryBuilder::new(format!("SELECT id FROM {table}"));
        shelf.matching(&mut query, wanted);
        if let Some(after) = &wanted.after {
            shelf.beside(&mut query, wanted, onwards, after);
        }
        query.push(ordered(direction)).push(" LIMIT ").push_bind(i64::from(wanted.limit) + 1);
        let mut ids: Vec<String> = query.build_query_scalar().fetch_all(self.pool()).await?;
        let has_more = ids.len() as u64 > u64::from(wanted.limit);
        ids.truncate(wanted.limit as usize);

        let mut query = QueryBuilder::new(format!("SELECT count(*) FROM {table}"));
        shelf.matching(&mut query, wanted);
        let total: i64 = query.build_query_scalar().fetch_one(self.pool()).await?;

        let (mut before, mut previous) = (0_i64, None);
        if let Some(first) = ids.first().filter(|_| wanted.after.is_some()) {
            let mut query = QueryBuilder::new(format!("SELECT count(*) FROM {table}"));
            shelf.matching(&mut query, wanted);
            shelf.beside(&mut query, wanted, backwards, first);
            before = query.build_query_scalar().fetch_one(self.pool()).await?;
            let mut query = QueryBuilder::new(format!("SELECT id FROM {table}"));
            shelf.matching(&mut query, wanted);
            shelf.beside(&mut query, wanted, backwards, first);
            query.push(ordered(back)).push(" LIMIT 1 OFFSET ").push_bind(i64::from(wanted.limit));
            let behind: Option<String> = query.build_query_scalar().fetch_optional(self.pool()).await?;
            previous = (before > 0).then(|| behind.unwrap_or_default());
        }

        let tags = QueryBuilder::<Sqlite>::new(format!(
            "SELECT DISTINCT value FROM {table}, json_each({}) WHERE {} AND deleted_at_ms IS NULL ORDER BY value",
            shelf.tags, shelf.listed
        ))
        .build_query_scalar()
        .fetch_all(self.pool())
        .await?;
        let (stored, deleted): (i64, i64) =
            QueryBuilder::<Sqlite>::new(format!("SELECT ({}), ({})", shelf.stored, shelf.deleted))
                .build_query_as()
                .fetch_one(self.pool())
                .await?;
        let page = ListPage {
            total: total.unsigned_abs(),
            before: before.unsigned_abs(),
            tags,
            stored_bytes: stored.unsigned_abs(),
            deleted_bytes: deleted.unsigned_abs(),
            retention_days: 0,
            next: ids.last().filter(|_| has_more).cloned(),
            previous,
        };
        Ok(Found { ids, page })
    }
}
