//! Lists and dictionaries as Python prints them, with types around the values: `[np.int64(512)]`, `tensor([512, 1024])`,
//! `OrderedDict([(512, 3)])`, and lists with a comma before the closing bracket.

use std::borrow::Cow;
use std::sync::LazyLock;

use regex::Regex;

/// Longest text that is rewritten, in bytes; printed values are short.
const MAX_BYTES: usize = 16 << 20;

/// A pattern and its replacement.
struct Rule {
    pattern: Option<Regex>,
    replacement: &'static str,
}

fn rule(pattern: &str, replacement: &'static str) -> Rule {
    Rule { pattern: Regex::new(pattern).ok(), replacement }
}

static RULES: LazyLock<[Rule; 4]> = LazyLock::new(|| {
    [
        rule(r"\b(?:np|numpy)\.(?:u?int|float)\d*\(\s*([-+0-9.eE]+)\s*\)", "$1"),
        rule(r"^\s*(?:torch\.|np\.|numpy\.)?(?:tensor|array)\(\s*(\[[^\]()]*\])(?:,\s*\w+=[^()]*)?\)\s*$", "$1"),
        // Only of a list or an object as a whole.
        rule(r"^(\s*[\[{][^\n]*\S)\s*,\s*([\]}])\s*$", "$1$2"),
        rule(r"^\s*OrderedDict\(\[(.*)\]\)\s*$", "{$1}"),
    ]
});

static PAIR: LazyLock<Option<Regex>> =
    LazyLock::new(|| Regex::new(r"\(\s*([-+0-9.eE]+)\s*,\s*([-+0-9.eE]+)\s*\)").ok());

/// The text without the types; `None` where there are none.
pub(super) fn plain(text: &str) -> Option<String> {
    const STARTS: [&str; 8] = ["[", "{", "tensor(", "torch.tensor(", "array(", "np.array(", "Counter(", "OrderedDict("];
    let is_python = STARTS.iter().any(|start| text.trim_start().starts_with(start));
    // A shortened array is refused where it is read.
    if !is_python || text.len() > MAX_BYTES || text.contains("...") {
        return None;
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
        ] {
            assert_eq!(plain(text), None, "{text}");
        }
    }
}
