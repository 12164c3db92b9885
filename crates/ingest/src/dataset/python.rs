//! Removes type names from Python output: `[np.int64(512)]`, `tensor([512, 1024])`,
//! `OrderedDict([(512, 3)])`, and lists with a comma before the closing bracket.

use std::borrow::Cow;
use std::sync::LazyLock;

use regex::Regex;

use super::stated::{self, Stated};

/// Maximum length of a text that is rewritten, in bytes; printed values are short.
const MAX_BYTES: usize = 16 << 20;

/// A pattern and its replacement.
struct Rule {
    pattern: Option<Regex>,
    replacement: &'static str,
}

fn rule(pattern: &str, replacement: &'static str) -> Rule {
    Rule { pattern: Regex::new(pattern).ok(), replacement }
}

static RULES: LazyLock<[Rule; 5]> = LazyLock::new(|| {
    [
        rule(r"\b(?:np|numpy)\.(?:u?int|float)\d*\(\s*([-+0-9.eE]+)\s*\)", "$1"),
        rule(r"^\s*(?:torch\.|np\.|numpy\.)?(?:tensor|array)\(\s*(\[[^\]()]*\])(?:,\s*\w+=[^()]*)?\)\s*$", "$1"),
        rule(r"^\s*(?:collections\.)?deque\(\s*(\[[^\]()]*\])(?:,\s*maxlen=\w+)?\)\s*$", "$1"),
        // Applies only to a complete list or object.
        rule(r"^(\s*[\[{][^\n]*\S)\s*,\s*([\]}])\s*$", "$1$2"),
        rule(r"^\s*OrderedDict\(\[(.*)\]\)\s*$", "{$1}"),
    ]
});

static PAIR: LazyLock<Option<Regex>> =
    LazyLock::new(|| Regex::new(r"\(\s*([-+0-9.eE]+)\s*,\s*([-+0-9.eE]+)\s*\)").ok());

/// Returns the text without type names; `None` if it contains none.
pub(super) fn plain(text: &str) -> Option<String> {
    const STARTS: [&str; 10] = [
        "[",
        "{",
        "tensor(",
        "torch.tensor(",
        "array(",
        "np.array(",
        "Counter(",
        "OrderedDict(",
        "deque(",
        "collections.deque(",
    ];
    // The reader rejects a truncated array.
    if text.len() > MAX_BYTES || text.contains("...") {
        return None;
    }
    // A dictionary of lengths with counts.
    if let Some((name, map)) = text.split_once('=')
        && map.trim().starts_with('{')
        && name.trim().bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
        && stated::parse(name.trim()) == Stated::Lengths
    {
        return Some(plain(map).unwrap_or_else(|| map.trim().to_owned()));
    }
    if let Some((name, list)) = assignment(text) {
        let list = plain(list).unwrap_or_else(|| list.to_owned());
        return list.trim_start().starts_with('[').then(|| format!("{{\"{name}\": {list}}}"));
    }
    if let Some(vector) = from_r(text) {
        return Some(vector);
    }
    if !STARTS.iter().any(|start| text.trim_start().starts_with(start)) {
        return None;
    }
    let is_list = |byte: u8| byte.is_ascii_digit() || byte.is_ascii_whitespace() || b"[],_".contains(&byte);
    if text.bytes().all(is_list) {
        let list = text.replace('_', "");
        // Python allows a trailing comma in a list.
        let open = list.trim_end().strip_suffix(']').map(str::trim_end).and_then(|open| open.strip_suffix(','));
        let list = open.map_or_else(|| list.clone(), |open| format!("{open}]"));
        return (list != text).then_some(list);
    }
    let mut plain = Cow::Borrowed(text);
    for Rule { pattern, replacement } in RULES.iter() {
        if let Cow::Owned(replaced) = pattern.as_ref()?.replace_all(&plain, *replacement) {
            plain = Cow::Owned(replaced);
        }
    }
    if text.trim_start().starts_with("OrderedDict(") {
        plain = Cow::Owned(PAIR.as_ref()?.replace_all(&plain, "$1: $2").into_owned());
    }
    match plain {
        Cow::Owned(plain) if plain != text => Some(plain),
        _ => None,
    }
}

/// Splits an assignment such as `lengths = [512, 1024]` into name and value.
fn assignment(text: &str) -> Option<(&str, &str)> {
    // A colon denotes assignment in YAML.
    let (name, value) = text.split_once("<-").or_else(|| text.split_once(['=', ':']))?;
    let (name, value) = (name.trim(), value.trim());
    let is_name = !name.is_empty()
        && name.len() <= 80
        && !name.starts_with(|c: char| c.is_ascii_digit())
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'.');
    let is_value = value.starts_with('[') && value.ends_with(']') || value.starts_with("c(") && value.ends_with(')');
    (is_name && is_value).then_some((name, value))
}

/// Converts an R vector to a list: `c(735L, 512L)`, or printed lines that start with `[1]`.
fn from_r(text: &str) -> Option<String> {
    let text = text.trim();
    let is_number = |word: &&str| !word.is_empty() && word.parse::<f64>().is_ok();
    if let Some(inside) = text.strip_prefix("c(").and_then(|text| text.strip_suffix(')')) {
        let terms: Vec<&str> = inside.split(',').map(|word| word.trim().trim_end_matches('L')).collect();
        return terms.iter().all(is_number).then(|| format!("[{}]", terms.join(", ")));
    }
    if !text.starts_with("[1] ") {
        return None;
    }
    let mut values: Vec<&str> = Vec::new();
    for line in text.lines() {
        let (index, numbers) = line.trim().strip_prefix('[')?.split_once(']')?;
        // The number in brackets is the index of the line's first value.
        if index.trim().parse() != Ok(values.len() + 1) {
            return None;
        }
        values.extend(numbers.split_whitespace());
    }
    values.iter().all(is_number).then(|| format!("[{}]", values.join(", ")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_are_removed() {
        for (text, expected) in [
            ("[np.int64(512), np.int64(1024)]", "[512, 1024]"),
            ("Counter({np.int64(512): 3})", "Counter({512: 3})"),
            ("tensor([512, 1024])", "[512, 1024]"),
            ("array([512, 1024], dtype=int32)\n", "[512, 1024]"),
            ("[512, 1024,]", "[512, 1024]"),
            ("OrderedDict([(512, 3), (1024, 5)])", "{512: 3, 1024: 5}"),
            ("deque([512, 1024])", "[512, 1024]"),
            ("deque([512, 1024], maxlen=5)", "[512, 1024]"),
            ("[1_024, 512]", "[1024, 512]"),
            ("lengths = [\n  512,\n  1024,\n]\n", "{\"lengths\": [\n  512,\n  1024]}"),
            ("lengths = [512, 1024]\n", "{\"lengths\": [512, 1024]}"),
            ("lengths = [np.int64(512)]\n", "{\"lengths\": [512]}"),
            ("lengths = {512: 3}\n", "{512: 3}"),
            ("lengths: [512, 1024]\n", "{\"lengths\": [512, 1024]}"),
            ("lens <- c(735L, 512L)", "{\"lens\": [735, 512]}"),
            ("c(735L, 512L)", "[735, 512]"),
            (" [1] 735 512\n [3] 90\n", "[735, 512, 90]"),
        ] {
            assert_eq!(plain(text).as_deref(), Some(expected), "{text}");
        }
    }

    #[test]
    fn other_texts_stay() {
        for text in [
            "[512, 1024]",
            "512\n1024\n",
            "{\"a\": 1}",
            "tensor([1, ..., 2])",
            "{\"text\": \"np.int64\"}",
            "[{\"a\": 1}]",
            "[1] 735\n[2] 512\n[5] 90\n",
            "a = b\n",
        ] {
            assert_eq!(plain(text), None, "{text}");
        }
    }
}
