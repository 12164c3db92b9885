//! Generic list pages: search, tag filter, sort order, pinned items first, and links to other
//! pages.
//!
//! Pages are identified by the preceding item, not by a page number, so concurrent inserts do not
//! shift items between pages.

use api::listing::ListPage;
use sqlx::{QueryBuilder, Sqlite};

use super::{Reader, StoreError};

/// Sort order.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Order {
    /// Name in URLs.
    pub(crate) name: &'static str,
    /// SQL sort key; never NULL.
    pub(crate) key: &'static str,
}

/// List definition as SQL fragments. The table has columns `id`, `pinned_at_ms` and
/// `deleted_at_ms`.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ListDefinition {
    /// Table or view.
    pub(crate) table: &'static str,
    /// Text to search.
    pub(crate) text: &'static str,
    /// Tags as a JSON list.
    pub(crate) tags: &'static str,
    /// Condition for listed rows.
    pub(crate) listed: &'static str,
    /// Condition for deleted rows that can be restored.
    pub(crate) can_return: &'static str,
    /// Total size in bytes.
    pub(crate) stored: &'static str,
    /// Total size in bytes for deleted items that can be restored.
    pub(crate) deleted: &'static str,
    /// Sort orders. The default is the first order, descending.
    pub(crate) orders: &'static [Order],
}

/// Additional condition: SQL prefix, value, and SQL suffix.
pub(crate) type Filter = (String, String, &'static str);

/// List request parameters.
#[derive(Debug, Clone, Default)]
pub(crate) struct Wanted {
    /// Search words; all must match.
    pub(crate) terms: Vec<String>,
    /// Required tag.
    pub(crate) tag: Option<String>,
    /// Sort order name.
    pub(crate) order: String,
    pub(crate) is_descending: bool,
    /// Last item on the preceding page.
    pub(crate) after: Option<String>,
    /// Maximum number of items.
    pub(crate) limit: u32,
    /// If true, lists deleted items only.
    pub(crate) is_deleted: bool,
    /// Additional conditions.
    pub(crate) filters: Vec<Filter>,
}

/// A page as an ordered list of identifiers.
#[derive(Debug, Clone, Default)]
pub(crate) struct Found {
    pub(crate) ids: Vec<String>,
    /// Metadata for the complete list.
    pub(crate) page: ListPage,
}

impl Found {
    /// Returns the identifiers as a JSON list for `json_each`.
    pub(crate) fn json(&self) -> String {
        serde_json::to_string(&self.ids).expect("texts")
    }

    /// Sorts items into page order.
    pub(crate) fn in_order<T>(&self, mut things: Vec<T>, id: impl Fn(&T) -> &str) -> Vec<T> {
        things.sort_by_key(|thing| self.ids.iter().position(|known| known == id(thing)));
        things
    }
}

impl ListDefinition {
    /// Returns the sort order with this name.
    pub(crate) fn order(&self, name: &str) -> Option<Order> {
        self.orders.iter().copied().find(|order| order.name == name)
    }

    /// Returns the sort keys: pinned flag, order key and identifier.
    fn keys(&self, wanted: &Wanted) -> [&'static str; 3] {
        let key = self.order(&wanted.order).unwrap_or(self.orders[0]).key;
        let pinned = if wanted.is_descending { "pinned_at_ms IS NOT NULL" } else { "pinned_at_ms IS NULL" };
        [pinned, key, "id"]
    }

    /// Appends the filter conditions to the query.
    fn push_filters(&self, query: &mut QueryBuilder<Sqlite>, wanted: &Wanted) {
        query.push(" WHERE ").push(self.listed).push(" AND ");
        if wanted.is_deleted {
            query.push("deleted_at_ms IS NOT NULL AND (").push(self.can_return).push(")");
        } else {
            query.push("deleted_at_ms IS NULL");
        }
        for word in &wanted.terms {
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

    /// Appends a condition: the row is before or after the given row in sort order.
    fn push_boundary(&self, query: &mut QueryBuilder<Sqlite>, wanted: &Wanted, sign: &str, id: &str) {
        let keys = self.keys(wanted).join(", ");
        query.push(format!(" AND ({keys}) {sign} (SELECT {keys} FROM {} WHERE id = ", self.table));
        query.push_bind(id.to_owned()).push(")");
    }
}

impl Reader {
    /// Returns a page.
    pub(crate) async fn page(&self, definition: &ListDefinition, wanted: &Wanted) -> Result<Found, StoreError> {
        let (forth, back) = ((">", "ASC"), ("<", "DESC"));
        let ((onwards, direction), (backwards, back)) =
            if wanted.is_descending { (back, forth) } else { (forth, back) };
        let ordered = |direction: &str| {
            let columns = definition.keys(wanted).map(|key| format!("({key}) {direction}"));
            format!(" ORDER BY {}", columns.join(", "))
        };
        let table = definition.table;

        let mut query = QueryBuilder::new(format!("SELECT id FROM {table}"));
        definition.push_filters(&mut query, wanted);
        if let Some(after) = &wanted.after {
            definition.push_boundary(&mut query, wanted, onwards, after);
        }
        query.push(ordered(direction)).push(" LIMIT ").push_bind(i64::from(wanted.limit) + 1);
        let mut ids: Vec<String> = query.build_query_scalar().fetch_all(self.pool()).await?;
        let has_more = ids.len() as u64 > u64::from(wanted.limit);
        ids.truncate(wanted.limit as usize);

        let mut query = QueryBuilder::new(format!("SELECT count(*) FROM {table}"));
        definition.push_filters(&mut query, wanted);
        let total: i64 = query.build_query_scalar().fetch_one(self.pool()).await?;

        let (mut before, mut previous) = (0_i64, None);
        if let Some(first) = ids.first().filter(|_| wanted.after.is_some()) {
            let mut query = QueryBuilder::new(format!("SELECT count(*) FROM {table}"));
            definition.push_filters(&mut query, wanted);
            definition.push_boundary(&mut query, wanted, backwards, first);
            before = query.build_query_scalar().fetch_one(self.pool()).await?;
            let mut query = QueryBuilder::new(format!("SELECT id FROM {table}"));
            definition.push_filters(&mut query, wanted);
            definition.push_boundary(&mut query, wanted, backwards, first);
            query.push(ordered(back)).push(" LIMIT 1 OFFSET ").push_bind(i64::from(wanted.limit));
            let behind: Option<String> = query.build_query_scalar().fetch_optional(self.pool()).await?;
            previous = (before > 0).then(|| behind.unwrap_or_default());
        }

        let tags = QueryBuilder::<Sqlite>::new(format!(
            "SELECT DISTINCT value FROM {table}, json_each({}) WHERE {} AND deleted_at_ms IS NULL ORDER BY value",
            definition.tags, definition.listed
        ))
        .build_query_scalar()
        .fetch_all(self.pool())
        .await?;
        let (stored, deleted): (i64, i64) =
            QueryBuilder::<Sqlite>::new(format!("SELECT ({}), ({})", definition.stored, definition.deleted))
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
