//! Common parts of all lists: query, page information, and user annotations.

use serde::{Deserialize, Serialize};

/// Maximum page size.
pub const MAX_PAGE: u32 = 200;
/// Maximum search length, in characters.
pub const MAX_SEARCH: usize = 200;

/// Query for a list page. Pinned entries are always first.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::IntoParams))]
#[cfg_attr(feature = "openapi", into_params(parameter_in = Query))]
#[serde(default)]
pub struct ListQuery {
    /// Search words, at most 200 characters. All must match.
    pub q: Option<String>,
    /// Alias for `q`.
    pub search: Option<String>,
    /// Required tag.
    pub tag: Option<String>,
    /// Sort key, with a minus for descending order: `-created` by default, `name`, or a column.
    pub sort: Option<String>,
    /// Entry before the page. Default: the first page.
    pub after: Option<String>,
    /// Page size, at most 200.
    pub limit: Option<u32>,
    /// True to list deleted entries that can be restored.
    pub deleted: Option<bool>,
}

impl ListQuery {
    /// Returns the URL query with its question mark. `encode` escapes text.
    pub fn write(&self, encode: impl Fn(&str) -> String) -> String {
        let texts = [
            ("q", &self.q),
            ("search", &self.search),
            ("tag", &self.tag),
            ("sort", &self.sort),
            ("after", &self.after),
        ];
        let mut pairs: Vec<String> = texts
            .into_iter()
            .filter_map(|(key, text)| text.as_deref().filter(|text| !text.is_empty()).map(|text| (key, text)))
            .map(|(key, text)| format!("{key}={}", encode(text)))
            .collect();
        if let Some(limit) = self.limit {
            pairs.push(format!("limit={limit}"));
        }
        if self.deleted == Some(true) {
            pairs.push("deleted=true".to_owned());
        }
        if pairs.is_empty() { String::new() } else { format!("?{}", pairs.join("&")) }
    }
}

/// Page information.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct ListPage {
    /// Total number of matching entries.
    #[serde(default)]
    pub total: u64,
    /// Number of matching entries before the page.
    #[serde(default)]
    pub before: u64,
    /// All tags in use, in alphabetical order.
    #[serde(default)]
    pub tags: Vec<String>,
    /// Stored size for all entries, in bytes. For runs and profiles, including deleted ones.
    #[serde(default)]
    pub stored_bytes: u64,
    /// Stored size for deleted entries that can be restored, in bytes.
    #[serde(default)]
    pub deleted_bytes: u64,
    /// Days until deleted entries are removed permanently.
    #[serde(default)]
    pub retention_days: u32,
    /// Value of `after` for the next page. Omitted on the last page.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<String>,
    /// Value of `after` for the previous page; empty for the first page. Omitted on the first page.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub previous: Option<String>,
}

/// Changes to user annotations. Omitted fields are unchanged.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(default, deny_unknown_fields)]
pub struct Annotations {
    /// Display name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Note. An empty string removes it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
    /// All tags.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tags: Option<Vec<String>>,
    /// True to pin the entry to the start of the list.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pinned: Option<bool>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn query_contains_only_requested_parameters() {
        let encode = |text: &str| text.replace(' ', "%20");
        assert_eq!(ListQuery::default().write(encode), "");
        let query = ListQuery {
            q: Some("a b".into()),
            tag: Some(String::new()),
            limit: Some(5),
            deleted: Some(false),
            ..ListQuery::default()
        };
        assert_eq!(query.write(encode), "?q=a%20b&limit=5");
        assert_eq!(ListQuery { deleted: Some(true), ..ListQuery::default() }.write(encode), "?deleted=true");
    }
}
