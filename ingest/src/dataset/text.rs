//! Length of texts and conversations, in characters or in tokens.

use super::value::Value;
use super::{Options, Tokenizer};

/// Placeholders of media inside texts. They are no text; `<image>` is counted as an image.
const PLACEHOLDERS: [&str; 3] = ["<image>", "<video>", "<audio>"];

/// Members of a message that hold its text.
const TEXTS: [&str; 24] = [
    "content",
    "value",
    "text",
    "user",
    "assistant",
    "human",
    "gpt",
    "bot",
    "system",
    "prompt",
    "response",
    "question",
    "answer",
    "reasoning_content",
    "reasoning",
    "thinking",
    "tool_calls",
    "function_call",
    "function",
    "arguments",
    "output",
    "message",
    "query",
    "parts",
];

/// Deepest nesting of messages.
const DEEPEST: usize = 16;

/// What the texts of a row come to.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(super) struct Extent {
    /// Characters, without placeholders of media.
    pub(super) characters: u64,
    /// Bytes of these characters in UTF-8.
    pub(super) bytes: u64,
    /// Tokens by the tokenizer; 0 without one.
    pub(super) tokens: u64,
    /// Images named in texts and in parts of messages.
    pub(super) images: u32,
    /// Whether a text could not be encoded by the tokenizer.
    pub(super) is_unreadable: bool,
}

/// Measures texts.
#[derive(Debug, Clone, Copy)]
pub(super) struct Meter<'o> {
    pub(super) characters_per_token: f64,
    pub(super) tokenizer: Option<&'o Tokenizer>,
}

impl<'o> Meter<'o> {
    pub(super) const fn new(options: &Options<'o>) -> Self {
        Self { characters_per_token: options.characters_per_token, tokenizer: options.tokenizer }
    }

    /// Adds a text, a list of texts, or the messages of a conversation.
    pub(super) fn add(&self, value: &Value<'_>, extent: &mut Extent) {
        self.add_within(value, extent, 0);
    }

    /// Tokens of an extent; 0 if there is no text.
    pub(super) fn tokens(&self, extent: &Extent) -> f64 {
        match self.tokenizer {
            Some(_) => extent.tokens as f64,
            None => (extent.characters as f64 / self.characters_per_token).ceil(),
        }
    }

    fn add_within(&self, value: &Value<'_>, extent: &mut Extent, depth: usize) {
        if depth > DEEPEST {
            return;
        }
        match value {
            Value::Text(text) => self.add_text(text, extent),
            Value::Number(number) => self.add_text(&number.value().to_string(), extent),
            Value::List(list) => list.items.iter().for_each(|item| self.add_within(item, extent, depth + 1)),
            Value::Object(members) => self.add_message(members, extent, depth),
            Value::Missing | Value::Boolean(_) | Value::Other(_) => {}
        }
    }

    fn add_message(&self, members: &[(std::borrow::Cow<'_, str>, Value<'_>)], extent: &mut Extent, depth: usize) {
        for (name, value) in members {
            match &**name {
                "image" | "image_url" | "input_image" if !matches!(value, Value::Missing) => extent.images += 1,
                // OpenAI writes `"type": "image"` beside the member that holds it; only the type of a part without one counts.
                "type" if is_image(value) && !members.iter().any(|(name, _)| name.contains("image")) => {
                    extent.images += 1;
                }
                // Arguments of a call are text in OpenAI's files and an object in others.
                "arguments" if matches!(value, Value::Object(_)) => self.add_json(value, extent, depth + 1),
                "name" if members.iter().any(|(name, _)| name == "arguments") => {
                    self.add_within(value, extent, depth + 1);
                }
                known if TEXTS.contains(&known) => self.add_within(value, extent, depth + 1),
                _ => {}
            }
        }
    }

    /// Adds names and values of an object.
    fn add_json(&self, value: &Value<'_>, extent: &mut Extent, depth: usize) {
        match value {
            Value::Object(members) if depth <= DEEPEST => {
                for (name, value) in members {
                    self.add_text(name, extent);
                    self.add_json(value, extent, depth + 1);
                }
            }
            Value::List(list) if depth <= DEEPEST => {
                list.items.iter().for_each(|item| self.add_json(item, extent, depth + 1));
            }
            other => self.add_within(other, extent, depth),
        }
    }

    fn add_text(&self, text: &str, extent: &mut Extent) {
        if PLACEHOLDERS.iter().any(|placeholder| text.contains(placeholder)) {
            extent.images += u32::try_from(text.matches("<image>").count()).unwrap_or(u32::MAX);
            let plain = PLACEHOLDERS.iter().fold(text.to_owned(), |text, placeholder| text.replace(placeholder, ""));
            self.add_plain(&plain, extent);
        } else {
            self.add_plain(text, extent);
        }
    }

    fn add_plain(&self, text: &str, extent: &mut Extent) {
        extent.characters += text.chars().count() as u64;
        extent.bytes += text.len() as u64;
        if let Some(tokenizer) = self.tokenizer {
            match tokenizer.count(text) {
                Some(tokens) => extent.tokens += tokens as u64,
                None => extent.is_unreadable = true,
            }
        }
    }
}

fn is_image(value: &Value<'_>) -> bool {
    matches!(value, Value::Text(kind) if matches!(&**kind, "image" | "image_url" | "input_image"))
}

/// Whether the members of an object are those of a message: a role and a text, or a text for each side.
pub(super) fn is_message<'n>(members: &(impl Iterator<Item = &'n str> + Clone)) -> bool {
    let has = |names: &[&str]| members.clone().any(|name| names.contains(&name));
    (has(&["role", "from", "speaker"]) && has(&["content", "value", "text", "tool_calls", "parts"]))
        || (has(&["user", "human", "question", "prompt"]) && has(&["assistant", "gpt", "bot", "answer", "response"]))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn extent(json: &str) -> Extent {
        let value: Value<'_> = serde_json::from_str(json).expect("JSON");
        let mut extent = Extent::default();
        Meter { characters_per_token: 4.0, tokenizer: None }.add(&value, &mut extent);
        extent
    }

    /// Characters and images, counted by hand.
    #[test]
    fn conversations_in_every_layout() {
        for (json, characters, images) in [
            (r#""twelve chars""#, 12, 0),
            (r#"["abc", "de"]"#, 5, 0),
            (r#"[{"role": "user", "content": "abc"}, {"role": "assistant", "content": "de"}]"#, 5, 0),
            (r#"[{"from": "human", "value": "<image>\nabc"}, {"from": "gpt", "value": "de"}]"#, 6, 1),
            (r#"[{"user": "abc", "assistant": "de", "source": "ignored"}]"#, 5, 0),
            (r#"[["abc", "de"], ["f", "g"]]"#, 7, 0),
            (
                r#"[{"role": "user", "content": [{"type": "text", "text": "abc"}, {"type": "image_url", "image_url": {"url": "x"}}]}]"#,
                3,
                1,
            ),
            (r#"[{"role": "user", "content": [{"type": "image"}, {"type": "text", "text": "abc"}]}]"#, 3, 1),
            (r#"[{"role": "user", "content": [{"image": "file:///a.png"}, {"text": "abc"}]}]"#, 3, 1),
            (
                r#"[{"role": "assistant", "content": null, "tool_calls": [{"id": "x", "type": "function", "function": {"name": "get", "arguments": "{\"a\": 1}"}}]}]"#,
                3 + 8,
                0,
            ),
            (r#"[{"role": "assistant", "function_call": {"name": "get", "arguments": {"city": "Rome"}}}]"#, 3 + 8, 0),
            (r#"[{"role": "user", "content": "漢字"}]"#, 2, 0),
        ] {
            let found = extent(json);
            assert_eq!((found.characters, found.images), (characters, images), "{json}");
        }
    }

    #[test]
    fn messages_are_recognised_by_their_members() {
        for (members, expected) in [
            (&["role", "content"][..], true),
            (&["from", "value"], true),
            (&["user", "assistant", "source"], true),
            (&["width", "height"], false),
            (&["start", "text"], false),
        ] {
            assert_eq!(is_message(&members.iter().copied()), expected, "{members:?}");
        }
    }
}
