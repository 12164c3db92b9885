//! Which part of a list is asked for, in the address of the page and in that of the API.

use api::shelf::ListQuery;

/// Things of a page.
const PAGE: u32 = 50;

/// Which part of a list is asked for: `?q=&tag=&sort=&page=&deleted=`, and one more choice.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Question {
    /// Words.
    pub(crate) q: String,
    /// Tag; empty for any.
    pub(crate) tag: String,
    /// Order, with a minus for the other way round; empty for the newest first.
    pub(crate) sort: String,
    /// The thing that the page stands behind; empty for the first page.
    pub(crate) page: String,
    /// Deleted things in place of the others.
    pub(crate) deleted: bool,
    /// Value of the list's own choice; empty for any.
    pub(crate) choice: String,
}

impl Question {
    /// Reads it from an address.
    pub(crate) fn read(get: impl Fn(&str) -> Option<String>, choice: Option<&str>) -> Self {
        let text = |key: &str| get(key).unwrap_or_default();
        Self {
            q: text("q"),
            tag: text("tag"),
            sort: text("sort"),
            page: text("page"),
            deleted: text("deleted") == "true",
            choice: choice.map(text).unwrap_or_default(),
        }
    }

    /// Whether it asks for all.
    pub(crate) fn is_open(&self) -> bool {
        let Self { q, tag, page, deleted, choice, sort: _ } = self;
        q.trim().is_empty() && tag.is_empty() && page.is_empty() && choice.is_empty() && !deleted
    }

    /// The query of the page's address; `encode` makes a text safe.
    pub(crate) fn address(&self, choice: Option<&str>, encode: impl Fn(&str) -> String) -> String {
        let deleted = if self.deleted { "true" } else { "" };
        let pairs = [
            ("q", self.q.as_str()),
            ("tag", &self.tag),
            ("sort", &self.sort),
            ("page", &self.page),
            ("deleted", deleted),
            (choice.unwrap_or_default(), &self.choice),
        ];
        let pairs = pairs.into_iter().filter(|(key, text)| !key.is_empty() && !text.is_empty());
        let pairs: Vec<String> = pairs.map(|(key, text)| format!("{key}={}", encode(text))).collect();
        if pairs.is_empty() { String::new() } else { format!("?{}", pairs.join("&")) }
    }

    /// The query of the API.
    pub(crate) fn query(&self, choice: Option<&str>, encode: impl Fn(&str) -> String) -> String {
        let given = |text: &str| Some(text.trim().to_owned()).filter(|text| !text.is_empty());
        let query = ListQuery {
            q: given(&self.q).map(|q| q.chars().take(api::shelf::MAX_SEARCH).collect()),
            search: None,
            tag: given(&self.tag),
            sort: given(&self.sort),
            after: given(&self.page),
            limit: Some(PAGE),
            deleted: Some(self.deleted),
        };
        let mut text = query.write(&encode);
        if let Some(key) = choice.filter(|_| !self.choice.is_empty()) {
            text.extend(["&", key, "=", &encode(&self.choice)]);
        }
        text
    }

    /// Sorts by a column: ascending, then the other way round.
    pub(crate) fn sort_by(&mut self, order: &str) {
        self.sort = if self.sort == order { format!("-{order}") } else { order.to_owned() };
        self.page.clear();
    }

    /// How a column is sorted: None, or whether it descends.
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
        let question = Question {
            q: "a b".into(),
            tag: "night".into(),
            sort: "-name".into(),
            page: "abc".into(),
            deleted: true,
            choice: "live".into(),
        };
        let address = question.address(Some("state"), plain);
        assert_eq!(address, "?q=a%20b&tag=night&sort=-name&page=abc&deleted=true&state=live");
        let get = |key: &str| {
            let pairs = address.trim_start_matches('?').split('&').filter_map(|pair| pair.split_once('='));
            pairs.into_iter().find(|(name, _)| *name == key).map(|(_, value)| value.replace("%20", " "))
        };
        assert_eq!(Question::read(get, Some("state")), question);
        assert_eq!(
            question.query(Some("state"), plain),
            "?q=a%20b&tag=night&sort=-name&after=abc&limit=50&deleted=true&state=live"
        );
        assert!(!question.is_open() && Question::default().is_open());
        assert_eq!(Question::default().address(Some("state"), plain), "");
    }

    #[test]
    fn a_column_is_sorted_one_way_and_then_the_other() {
        let mut question = Question { page: "abc".into(), ..Question::default() };
        assert_eq!(question.sorted("created"), Some(true));
        for descends in [false, true, false] {
            question.sort_by("name");
            assert_eq!((question.sorted("name"), question.sorted("created")), (Some(descends), None));
        }
        assert_eq!(question.page, "", "another order begins at its first page");
    }
}
