//! What every list has in common: how it is asked, what it says of all its things, and what people write on them.

use serde::{Deserialize, Serialize};

/// Most things of one page of a list.
pub const MAX_PAGE: u32 = 200;
/// Longest search, in characters.
pub const MAX_SEARCH: usize = 200;

/// Which part of a list is asked for. Pinned things come first, whatever the order.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::IntoParams))]
#[cfg_attr(feature = "openapi", into_params(parameter_in = Query))]
#[serde(default)]
pub struct ListQuery {
    /// Words that must all stand somewhere in what is said of a thing, at most 200 characters.
    pub q: Option<String>,
    /// Another name of `q`.
    pub search: Option<String>,
    /// Tag that it must bear.
    pub tag: Option<String>,
    /// Order, with a minus in front for the other way round: `-created` by default, `name`, and what the list has columns of.
    pub sort: Option<String>,
    /// The thing that the page stands behind; absent: the first page.
    pub after: Option<String>,
    /// Most things of the page, 200 at most.
    pub limit: Option<u32>,
    /// Deleted things that can still come back, in place of the others.
    pub deleted: Option<bool>,
}

impl ListQuery {
    /// The query of an address, with its question mark; `encode` makes a text safe.
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

/// What a list says of all its things, and where its other pages are.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct ListPage {
    /// How many there are in all, under the same question.
    #[serde(default)]
    pub total: u64,
    /// How many of them stand before this page.
    #[serde(default)]
    pub before: u64,
    /// Every tag in use, in alphabetical order.
    #[serde(default)]
    pub tags: Vec<String>,
    /// Bytes of all of them in the database, whatever was asked for; of runs and profiles deleted ones are among them.
    #[serde(default)]
    pub stored_bytes: u64,
    /// Bytes of deleted ones that can still come back.
    #[serde(default)]
    pub deleted_bytes: u64,
    /// Days that a deleted thing can come back.
    #[serde(default)]
    pub retention_days: u32,
    /// What `after` of the next page is; absent: there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<String>,
    /// What `after` of the page before is, empty for the first one; absent: this is the first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub previous: Option<String>,
}

/// What is to be changed of what people say of a thing; what is absent stays.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(default, deny_unknown_fields)]
pub struct Words {
    /// Name to show.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Note beside it; empty for none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
    /// All its tags.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tags: Option<Vec<String>>,
    /// Whether it stands in front of its list.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pinned: Option<bool>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_asked_for_stands_in_the_query() {
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
