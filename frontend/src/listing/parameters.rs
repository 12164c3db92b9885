//! List parameters in the page URL and in the API URL.

use api::listing::ListQuery;

/// Objects per page.
const PAGE: u32 = 50;

/// List parameters: `?q=&tag=&sort=&page=&deleted=`, and an additional filter.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct ListParameters {
    /// Search text.
    pub(crate) q: String,
    /// Tag filter. Empty for no filter.
    pub(crate) tag: String,
    /// Sort key, with a minus prefix for descending order. Empty for newest first.
    pub(crate) sort: String,
    /// Cursor: the page starts after this object. Empty for the first page.
    pub(crate) page: String,
    /// True to list deleted objects instead of existing objects.
    pub(crate) deleted: bool,
    /// Value of the additional filter. Empty for no filter.
    pub(crate) filter: String,
}

impl ListParameters {
    /// Parses URL values.
    pub(crate) fn read(get: impl Fn(&str) -> Option<String>, filter_key: Option<&str>) -> Self {
        let text = |key: &str| get(key).unwrap_or_default();
        Self {
            q: text("q"),
            tag: text("tag"),
            sort: text("sort"),
            page: text("page"),
            deleted: text("deleted") == "true",
            filter: filter_key.map(text).unwrap_or_default(),
        }
    }

    /// True if no filter is active.
    pub(crate) fn is_open(&self) -> bool {
        let Self { q, tag, page, deleted, filter, sort: _ } = self;
        q.trim().is_empty() && tag.is_empty() && page.is_empty() && filter.is_empty() && !deleted
    }

    /// Returns the query string for the page URL. `encode` escapes a value.
    pub(crate) fn address(&self, filter_key: Option<&str>, encode: impl Fn(&str) -> String) -> String {
        let deleted = if self.deleted { "true" } else { "" };
        let pairs = [
            ("q", self.q.as_str()),
            ("tag", &self.tag),
            ("sort", &self.sort),
            ("page", &self.page),
            ("deleted", deleted),
            (filter_key.unwrap_or_default(), &self.filter),
        ];
        let pairs = pairs.into_iter().filter(|(key, text)| !key.is_empty() && !text.is_empty());
        let pairs: Vec<String> = pairs.map(|(key, text)| format!("{key}={}", encode(text))).collect();
        if pairs.is_empty() { String::new() } else { format!("?{}", pairs.join("&")) }
    }

    /// Returns the query string for the API.
    pub(crate) fn query(&self, filter_key: Option<&str>, encode: impl Fn(&str) -> String) -> String {
        let given = |text: &str| Some(text.trim().to_owned()).filter(|text| !text.is_empty());
        let query = ListQuery {
            q: given(&self.q).map(|q| q.chars().take(api::listing::MAX_SEARCH).collect()),
            search: None,
            tag: given(&self.tag),
            sort: given(&self.sort),
            after: given(&self.page),
            limit: Some(PAGE),
            deleted: Some(self.deleted),
        };
        let mut text = query.write(&encode);
        if let Some(key) = filter_key.filter(|_| !self.filter.is_empty()) {
            text.extend(["&", key, "=", &encode(&self.filter)]);
        }
        text
    }

    /// Sorts by a column: ascending first, descending on the second call.
    pub(crate) fn sort_by(&mut self, order: &str) {
        self.sort = if self.sort == order { format!("-{order}") } else { order.to_owned() };
        self.page.clear();
    }

    /// Returns the sort state of a column: `None` if unsorted, true if descending.
    pub(crate) fn sorted(&self, order: &str) -> Option<bool> {
        let sort = if self.sort.is_empty() { "-created" } else { &self.sort };
        let (name, descends) = sort.strip_prefix('-').map_or((sort, false), |name| (name, true));
        (name == order).then_some(descends)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plain(text: &str) -> String {
        text.replace(' ', "%20")
    }

    #[test]
    fn an_address_is_read_as_it_was_written() {
        let parameters = ListParameters {
            q: "a b".into(),
            tag: "night".into(),
            sort: "-name".into(),
            page: "abc".into(),
            deleted: true,
            filter: "live".into(),
        };
        let address = parameters.address(Some("state"), plain);
        assert_eq!(address, "?q=a%20b&tag=night&sort=-name&page=abc&deleted=true&state=live");
        let get = |key: &str| {
            let pairs = address.trim_start_matches('?').split('&').filter_map(|pair| pair.split_once('='));
            pairs.into_iter().find(|(name, _)| *name == key).map(|(_, value)| value.replace("%20", " "))
        };
        assert_eq!(ListParameters::read(get, Some("state")), parameters);
        assert_eq!(
            parameters.query(Some("state"), plain),
            "?q=a%20b&tag=night&sort=-name&after=abc&limit=50&deleted=true&state=live"
        );
        assert!(!parameters.is_open() && ListParameters::default().is_open());
        assert_eq!(ListParameters::default().address(Some("state"), plain), "");
    }

    #[test]
    fn column_sort_toggles_between_directions() {
        let mut parameters = ListParameters { page: "abc".into(), ..ListParameters::default() };
        assert_eq!(parameters.sorted("created"), Some(true));
        for descends in [false, true, false] {
            parameters.sort_by("name");
            assert_eq!((parameters.sorted("name"), parameters.sorted("created")), (Some(descends), None));
        }
        assert_eq!(parameters.page, "", "another order begins at its first page");
    }
}
