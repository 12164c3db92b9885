//! Parsing options of a file, as upload query parameters.

use api::dataset::TokenizerSummary;
use api::path;
use api::planner::workload::preprocessing::Preprocessing;

/// Column assignment.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) enum Purpose {
    /// Detected from column names.
    #[default]
    ByName,
    /// No column.
    None,
    /// Explicit column.
    Column(String),
}

impl Purpose {
    fn query(&self) -> Option<&str> {
        match self {
            Self::ByName => None,
            Self::None => Some(""),
            Self::Column(name) => Some(name),
        }
    }
}

/// Tokenizer stored on the server, and its file name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct SelectedTokenizer {
    pub(super) file: String,
    pub(super) summary: TokenizerSummary,
}

/// Parsing options.
#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct ImportOptions {
    /// Length column. `None`: detected from column names.
    pub(super) column: Option<String>,
    /// Column with lengths to add.
    pub(super) add: Purpose,
    /// Column with the sample count per row.
    pub(super) weight: Purpose,
    /// Unit of the column values. `None`: detected from the column name.
    pub(super) unit: Option<&'static str>,
    /// Characters per token. `None`: server default.
    pub(super) characters_per_token: Option<f64>,
    /// Tokenizer for texts.
    pub(super) tokenizer: Option<SelectedTokenizer>,
    /// Media conversion rule.
    pub(super) preprocessing: Option<Preprocessing>,
}

/// Units of column values, as named in the API.
pub(super) const UNITS: [&str; 3] = ["tokens", "characters", "bytes"];

impl ImportOptions {
    /// Returns the options that also apply to another file. Column options are excluded.
    pub(super) fn for_another_file(&self) -> Self {
        Self {
            characters_per_token: self.characters_per_token,
            tokenizer: self.tokenizer.clone(),
            preprocessing: self.preprocessing,
            ..Self::default()
        }
    }

    /// Returns the URL of a file request. `encode` escapes a query value.
    pub(super) fn url(
        &self,
        path: &str,
        name: &str,
        more: &[(&str, String)],
        encode: impl Fn(&str) -> String,
    ) -> String {
        let mut url = format!("{path}?name={}", encode(name));
        let mut add = |key: &str, value: &str| {
            url.push('&');
            url.push_str(key);
            url.push('=');
            url.push_str(&encode(value));
        };
        let given = [
            ("column", self.column.as_deref()),
            ("add", self.add.query()),
            ("weight", self.weight.query()),
            ("unit", self.unit),
            ("tokenizer", self.tokenizer.as_ref().map(|tokenizer| tokenizer.summary.id.as_str())),
            ("preprocessing", self.preprocessing.map(Preprocessing::id)),
        ];
        given.into_iter().filter_map(|(key, value)| Some((key, value?))).for_each(|(key, value)| add(key, value));
        if let Some(ratio) = self.characters_per_token {
            add("characters_per_token", &ratio.to_string());
        }
        for (key, value) in more {
            add(key, value);
        }
        url
    }

    /// Returns the URL of an upload that stores nothing.
    pub(super) fn preview_url(&self, name: &str, more: &[(&str, String)], encode: impl Fn(&str) -> String) -> String {
        let more = [&[("preview", "true".to_owned())], more].concat();
        self.url(path::DATASETS, name, &more, encode)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn query_contains_selected_options() {
        let encode = |text: &str| text.replace(' ', "%20");
        let default_options = ImportOptions::default();
        assert_eq!(default_options.preview_url("a b.csv", &[], encode), "/api/v1/datasets?name=a%20b.csv&preview=true");
        let options = ImportOptions {
            column: Some("n tokens".to_owned()),
            add: Purpose::None,
            weight: Purpose::Column("count".to_owned()),
            unit: Some("bytes"),
            characters_per_token: Some(3.5),
            ..ImportOptions::default()
        };
        assert_eq!(
            options.url("/x", "a", &[("length", "9".to_owned())], encode),
            "/x?name=a&column=n%20tokens&add=&weight=count&unit=bytes&characters_per_token=3.5&length=9"
        );
        let another = options.for_another_file();
        assert_eq!((another.column, another.unit, another.characters_per_token), (None, None, Some(3.5)));
    }
}
