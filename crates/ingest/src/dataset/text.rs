//! Measures texts and conversations, in characters or tokens.

use super::value::Value;
use super::{Options, Tokenizer};

mod inline;
mod literal;

/// Message fields that contain text.
const TEXTS: [&str; 25] = [
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
    "input",
];

/// Maximum nesting depth of messages.
const DEEPEST: usize = 16;

/// Measured size of the texts in a row.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(super) struct Extent {
    /// Characters, without media placeholders.
    pub(super) characters: u64,
    /// UTF-8 size of these characters, in bytes.
    pub(super) bytes: u64,
    /// Words separated by white space; 0 if they are not counted.
    pub(super) word_count: u64,
    /// Tokens from the tokenizer; 0 without a tokenizer.
    pub(super) tokens: u64,
    /// Images named in texts and in message parts.
    pub(super) images: u32,
    /// Numbers below 64 of these images, one bit each. A number that occurs again is the same image.
    numbered: u64,
    /// True if the tokenizer could not encode a text.
    pub(super) is_unreadable: bool,
}

impl Extent {
    /// Adds the image of a numbered placeholder.
    fn see_image(&mut self, number: u16) {
        let bit = 1_u64.checked_shl(number.into()).unwrap_or(0);
        if self.numbered & bit == 0 {
            self.images = self.images.saturating_add(1);
        }
        self.numbered |= bit;
    }
}

#[derive(Debug, Clone, Copy)]
pub(super) struct Meter<'o> {
    pub(super) characters_per_token: f64,
    pub(super) tokenizer: Option<&'o Tokenizer>,
    /// True if words are also counted.
    pub(super) has_word_count: bool,
}

impl<'o> Meter<'o> {
    pub(super) const fn new(options: &Options<'o>) -> Self {
        Self { characters_per_token: options.characters_per_token, tokenizer: options.tokenizer, has_word_count: false }
    }

    /// Adds a text, a list of texts, or conversation messages.
    pub(super) fn add(&self, value: &Value<'_>, extent: &mut Extent) {
        match value {
            Value::Text(text) => match messages(text) {
                Some(messages) => self.add_within(&messages, extent, 0),
                None => self.add_text(text, extent),
            },
            value => self.add_within(value, extent, 0),
        }
    }

    /// Adds the first text of a list, or of the list `text` in an object (SQuAD layout).
    pub(super) fn add_first(&self, value: &Value<'_>, extent: &mut Extent) {
        match value {
            Value::List(list) => {
                if let Some(first) = list.items.iter().find(|item| !is_void(item)) {
                    self.add_within(first, extent, 0);
                }
            }
            Value::Object(members) => {
                let texts = members.iter().find(|(name, _)| name == "text").map(|(_, value)| value);
                match texts {
                    Some(list @ Value::List(_)) => self.add_first(list, extent),
                    Some(text) => self.add_within(text, extent, 0),
                    None => {}
                }
            }
            value => self.add_within(value, extent, 0),
        }
    }

    /// Adds the names and values of a document.
    pub(super) fn add_document(&self, value: &Value<'_>, extent: &mut Extent) {
        self.add_json(value, extent, 0);
    }

    /// Adds all texts inside an object or a list, except identifiers, labels and file names.
    pub(super) fn add_inside(&self, value: &Value<'_>, extent: &mut Extent) {
        self.add_every(value, extent, 0);
    }

    fn add_every(&self, value: &Value<'_>, extent: &mut Extent, depth: usize) {
        match value {
            Value::Object(members) if depth <= DEEPEST && !is_message(&members.iter().map(|(name, _)| &**name)) => {
                let is_text = |name: &str| {
                    use super::Meaning;
                    let meaning = super::names::meaning(name).0;
                    !matches!(meaning, Meaning::Identifier | Meaning::Label | Meaning::Media | Meaning::Time)
                };
                let texts = members.iter().filter(|(name, _)| is_text(name));
                texts.for_each(|(_, value)| self.add_every(value, extent, depth + 1));
            }
            Value::List(list) if depth <= DEEPEST => {
                list.items.iter().for_each(|item| self.add_every(item, extent, depth + 1));
            }
            Value::Number(_) => {}
            other => self.add_within(other, extent, depth),
        }
    }

    /// Returns the tokens of an extent; 0 if there is no text.
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
        let is_call = members
            .iter()
            .any(|(name, value)| name == "type" && matches!(value, Value::Text(kind) if kind.ends_with("tool_use")));
        let has = |known: &str| members.iter().any(|(name, _)| name == known);
        for (name, value) in members {
            match &**name {
                "image" | "image_url" | "input_image" if !is_void(value) => extent.images += 1,
                // OpenAI writes `"type": "image"` and a field with the image. The type counts only
                // without such a field.
                "type" if is_image(value) => {
                    let has_image = members.iter().any(|(name, value)| name.contains("image") && !is_void(value));
                    extent.images += u32::from(!has_image);
                }
                // Gemini message parts.
                "inline_data" | "inlineData" => extent.images += u32::from(is_inline_image(value)),
                // Anthropic tool calls.
                "input" if is_call => self.add_json(value, extent, depth + 1),
                // Call arguments are text in OpenAI files and an object in other files.
                "arguments" if matches!(value, Value::Object(_)) => self.add_json(value, extent, depth + 1),
                "name" if is_call || has("arguments") => self.add_within(value, extent, depth + 1),
                // In a conversation tree, the first reply continues the first conversation.
                "replies" => {
                    if let Value::List(list) = value
                        && let Some(first) = list.items.first()
                    {
                        self.add_within(first, extent, depth + 1);
                    }
                }
                known if TEXTS.contains(&known) => self.add_within(value, extent, depth + 1),
                _ => {}
            }
        }
    }

    /// Adds the names and values of an object.
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
        match inline::without_media(text) {
            Some(inline::Plain { text, images, numbered }) => {
                extent.images = extent.images.saturating_add(u32::try_from(images).unwrap_or(u32::MAX));
                for number in numbered {
                    extent.see_image(number);
                }
                self.add_plain(&text, extent);
            }
            None => self.add_plain(text, extent),
        }
    }

    fn add_plain(&self, text: &str, extent: &mut Extent) {
        extent.characters += text.chars().count() as u64;
        extent.bytes += text.len() as u64;
        if self.has_word_count {
            extent.word_count += text.split_whitespace().count() as u64;
        }
        if let Some(tokenizer) = self.tokenizer {
            match tokenizer.count(text) {
                Some(tokens) => extent.tokens += tokens as u64,
                None => extent.is_unreadable = true,
            }
        }
    }
}

/// Returns the number of image placeholders in a text.
pub(super) fn image_placeholders(text: &str) -> usize {
    inline::images(text)
}

/// Returns whether a conversation has parts or placeholders of a medium: "video" or "audio".
pub(super) fn has_medium(value: &Value<'_>, medium: &str) -> bool {
    match value {
        Value::Text(text) => match messages(text) {
            Some(messages) => is_within(&messages, medium, 0),
            None => inline::has(text, medium),
        },
        value => is_within(value, medium, 0),
    }
}

fn is_within(value: &Value<'_>, medium: &str, depth: usize) -> bool {
    match value {
        Value::Text(text) => inline::has(text, medium),
        Value::List(list) if depth <= DEEPEST => list.items.iter().any(|item| is_within(item, medium, depth + 1)),
        Value::Object(members) if depth <= DEEPEST => members.iter().any(|(name, value)| match value {
            Value::Text(kind) if name == "type" => {
                **kind == *medium || [format!("{medium}_url"), format!("input_{medium}")].contains(&kind.to_string())
            }
            value => (name == medium && !is_void(value)) || is_within(value, medium, depth + 1),
        }),
        _ => false,
    }
}

fn is_image(value: &Value<'_>) -> bool {
    matches!(value, Value::Text(kind) if matches!(&**kind, "image" | "image_url" | "input_image"))
}

/// Returns whether a Gemini message part contains an image.
fn is_inline_image(value: &Value<'_>) -> bool {
    let Value::Object(members) = value else { return false };
    let is_kind = |name: &str| matches!(name, "mime_type" | "mimeType");
    members
        .iter()
        .any(|(name, value)| is_kind(name) && matches!(value, Value::Text(kind) if kind.starts_with("image/")))
}

/// Returns whether a value is empty: missing, an empty text, or a list or object with only empty
/// values.
pub(super) fn is_void(value: &Value<'_>) -> bool {
    match value {
        Value::Missing => true,
        Value::Text(text) => {
            let text = text.trim();
            text.is_empty() || ["null", "none", "nan"].iter().any(|word| text.eq_ignore_ascii_case(word))
        }
        Value::List(list) => list.count == list.items.len() && list.items.iter().all(is_void),
        Value::Object(members) => members.iter().all(|(_, value)| is_void(value)),
        Value::Boolean(_) | Value::Number(_) | Value::Other(_) => false,
    }
}

/// Returns the names of message fields with text that is not counted.
pub(super) fn unread_members<'v, 'w: 'v>(conversations: impl Iterator<Item = &'v Value<'w>>) -> Vec<String> {
    /// Maximum number of names.
    const MAX_NAMES: usize = 5;
    let mut names: Vec<String> = Vec::new();
    for conversation in conversations {
        let messages = match conversation {
            Value::List(list) => list.items.as_slice(),
            message => std::slice::from_ref(message),
        };
        let members = messages.iter().filter_map(|message| match message {
            Value::Object(members) => Some(members),
            _ => None,
        });
        for (name, value) in members.flatten() {
            let is_read = TEXTS.contains(&&**name) || &**name == "replies" || name.contains("image");
            if !is_read && value.has_text() && names.len() < MAX_NAMES && names.iter().all(|known| known != name) {
                names.push(name.clone().into_owned());
            }
        }
    }
    names
}

/// Returns the JSON of a Python literal; `None` if it ends inside a string.
pub(super) fn literal(text: &str) -> Option<String> {
    literal::json(text)
}

/// Parses conversation messages from a text, in JSON or Python notation.
pub(super) fn messages(text: &str) -> Option<Value<'_>> {
    let start = text.trim_start();
    let names = ["\"role\"", "\"from\"", "'role'", "'from'"];
    if !start.starts_with(['[', '{']) || !names.iter().any(|name| text.contains(name)) {
        return None;
    }
    let value = match serde_json::from_str::<Value<'_>>(start) {
        Ok(value) => value,
        Err(_) => serde_json::from_str::<Value<'_>>(&literal::json(start)?).ok()?.into_owned(),
    };
    let first = match &value {
        Value::List(list) => list.items.first()?,
        other => other,
    };
    let is_chat = matches!(first, Value::Object(members) if is_message(&members.iter().map(|(name, _)| &**name)));
    is_chat.then_some(value)
}

/// Returns whether a conversation starts with an assistant message.
pub(super) fn starts_with_assistant(value: &Value<'_>) -> bool {
    let Value::List(list) = value else { return false };
    let Some(Value::Object(first)) = list.items.first() else { return false };
    first.iter().any(|(name, value)| {
        matches!(&**name, "role" | "from" | "speaker")
            && matches!(value, Value::Text(author) if matches!(&**author, "assistant" | "gpt" | "model" | "bot"))
    })
}

/// Returns whether a conversation ends with a user message, so that the completion is in another
/// column.
pub(super) fn ends_with_user(value: &Value<'_>) -> bool {
    let Value::List(list) = value else { return false };
    let Some(Value::Object(last)) = list.items.last() else { return false };
    list.items.len() == list.count
        && last.iter().any(|(name, value)| {
            matches!(&**name, "role" | "from" | "speaker")
                && matches!(value, Value::Text(author) if matches!(&**author, "user" | "human" | "prompter"))
        })
}

/// Returns whether an object has the fields of a message: a role and a text, or a text per side.
pub(super) fn is_message<'n>(members: &(impl Iterator<Item = &'n str> + Clone)) -> bool {
    let has = |names: &[&str]| members.clone().any(|name| names.contains(&name));
    (has(&["role", "from", "speaker"]) && has(&["content", "value", "text", "tool_calls", "parts"]))
        || (has(&["user", "human", "question", "prompt"]) && has(&["assistant", "gpt", "bot", "answer", "response"]))
        || (has(&["input"]) && has(&["output"]))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn extent(json: &str) -> Extent {
        let value: Value<'_> = serde_json::from_str(json).expect("JSON");
        let mut extent = Extent::default();
        Meter { characters_per_token: 4.0, tokenizer: None, has_word_count: false }.add(&value, &mut extent);
        extent
    }

    /// Expected characters and images are counted by hand.
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
            // An Anthropic tool call and its result.
            (
                r#"[{"role": "assistant", "content": [{"type": "tool_use", "id": "x", "name": "get", "input": {"city": "Rome"}}]},
                {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "x", "content": "sun"}]}]"#,
                3 + 8 + 3,
                0,
            ),
            // Table columns contain all fields; null means that the field is absent.
            (
                r#"[{"role": "user", "content": [{"type": "text", "text": "abc", "image": null}, {"type": "image", "text": null, "image": null}]}]"#,
                3,
                1,
            ),
            (r#"[{"role": "user", "content": [{"type": "image_url", "image_url": {"url": null}}]}]"#, 0, 1),
            (r#"[{"role": "user", "content": "abc ![](data:image/png;base64,iVBORw0KGgo=)"}]"#, 4 + 5, 1),
            (
                r#"[{"role": "user", "parts": [{"text": "abc"}, {"inline_data": {"mime_type": "image/png", "data": "QUJD"}}]}]"#,
                3,
                1,
            ),
            // Messages as JSON inside a text.
            (r#""[{\"role\": \"user\", \"content\": \"abc\"}]""#, 3, 0),
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
