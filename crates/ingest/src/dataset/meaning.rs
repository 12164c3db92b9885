//! Column properties: kind of the values, meaning, and unit of the numbers.

/// Kind of the column values, by the file's type or by the first values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// No value.
    Empty,
    /// Integer, floating-point or decimal numbers, or texts that contain a number.
    Number,
    /// Text.
    Text,
    /// Conversation messages with a role and a text each.
    Chat,
    /// Lists of numbers.
    NumberList,
    /// Lists of texts.
    TextList,
    /// Lists of objects that are not messages.
    ObjectList,
    /// Lists of lists.
    NestedList,
    /// Objects.
    Object,
    /// True or false.
    Boolean,
    /// Timestamps.
    Timestamp,
    /// Dates.
    Date,
    /// Times of day, or durations with a unit.
    Duration,
    /// Bytes that are not text.
    Binary,
}

impl Kind {
    /// Returns the display name, for example "numbers".
    pub const fn title(self) -> &'static str {
        match self {
            Self::Empty => "no values",
            Self::Number => "numbers",
            Self::Text => "text",
            Self::Chat => "messages",
            Self::NumberList => "lists of numbers",
            Self::TextList => "lists of texts",
            Self::ObjectList => "lists of objects",
            Self::NestedList => "lists of lists",
            Self::Object => "objects",
            Self::Boolean => "true or false",
            Self::Timestamp => "timestamps",
            Self::Date => "dates",
            Self::Duration => "durations",
            Self::Binary => "bytes",
        }
    }
}

/// Unit of the numbers in a column.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Unit {
    /// Tokens.
    #[default]
    Tokens,
    /// Characters of a text; divided by the characters per token.
    Characters,
    /// Bytes of a text; divided by the characters per token, one byte per character.
    Bytes,
}

impl Unit {
    /// Every unit.
    pub const ALL: [Self; 3] = [Self::Tokens, Self::Characters, Self::Bytes];

    /// Returns the stable identifier, which is also the display name.
    pub const fn id(self) -> &'static str {
        match self {
            Self::Tokens => "tokens",
            Self::Characters => "characters",
            Self::Bytes => "bytes",
        }
    }

    /// Parses an identifier.
    pub fn from_id(id: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|unit| unit.id() == id)
    }
}

/// Meaning of a column, by the table of names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Meaning {
    /// Length of the complete sample.
    Length(Unit),
    /// Length of the prompt.
    Prompt,
    /// Length of the completion.
    Completion,
    /// Number of samples in the row.
    Weight,
    /// Edge of a histogram bin.
    BinEdge,
    /// Messages of a conversation.
    Chat,
    /// Text of the sample.
    Text,
    /// Text before the completion.
    PromptText,
    /// Text of the completion.
    CompletionText,
    /// Images of the sample, or the image count.
    Images,
    /// Sizes, frames, or other media properties.
    Media,
    /// Identifier of the row, or its position.
    Identifier,
    /// Timestamp or date.
    Time,
    /// Duration in seconds.
    Duration,
    /// Score, rating or probability.
    Score,
    /// Class of the row.
    Label,
    /// The name is not in the table.
    Unknown,
}

impl Meaning {
    /// Returns the display name, for example "identifier".
    pub const fn title(self) -> &'static str {
        match self {
            Self::Length(Unit::Tokens) => "length in tokens",
            Self::Length(Unit::Characters) => "length in characters",
            Self::Length(Unit::Bytes) => "size in bytes",
            Self::Prompt => "tokens of the prompt",
            Self::Completion => "tokens of the completion",
            Self::Weight => "number of samples",
            Self::BinEdge => "edge of a bin",
            Self::Chat => "messages",
            Self::Text => "text",
            Self::PromptText => "text of the prompt",
            Self::CompletionText => "text of the answer",
            Self::Images => "images",
            Self::Media => "property of media",
            Self::Identifier => "identifier",
            Self::Time => "time",
            Self::Duration => "duration",
            Self::Score => "score",
            Self::Label => "label",
            Self::Unknown => "unknown",
        }
    }
}
