//! What a column holds: the kind of its values, its meaning, and the unit of its numbers.

/// Kind of the values of a column, by the type of the file or by the first values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// No value.
    Empty,
    /// Numbers: whole, floating-point, decimal, or text that holds a number.
    Number,
    /// Text.
    Text,
    /// Messages of a conversation with a role and a text each.
    Chat,
    /// Lists of numbers.
    ListOfNumbers,
    /// Lists of texts.
    ListOfTexts,
    /// Lists of objects that are not messages.
    ListOfObjects,
    /// Lists of lists.
    ListOfLists,
    /// Objects.
    Object,
    /// True or false.
    Boolean,
    /// Instants.
    Timestamp,
    /// Days.
    Date,
    /// Times of a day, or durations with a unit.
    Duration,
    /// Bytes that are not text.
    Binary,
}

impl Kind {
    /// Name in a sentence, for example "numbers".
    pub const fn title(self) -> &'static str {
        match self {
            Self::Empty => "no values",
            Self::Number => "numbers",
            Self::Text => "text",
            Self::Chat => "messages",
            Self::ListOfNumbers => "lists of numbers",
            Self::ListOfTexts => "lists of texts",
            Self::ListOfObjects => "lists of objects",
            Self::ListOfLists => "lists of lists",
            Self::Object => "objects",
            Self::Boolean => "true or false",
            Self::Timestamp => "timestamps",
            Self::Date => "dates",
            Self::Duration => "durations",
            Self::Binary => "bytes",
        }
    }
}

/// Unit of the numbers of a column.
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

    /// Stable identifier, also the name in a sentence.
    pub const fn id(self) -> &'static str {
        match self {
            Self::Tokens => "tokens",
            Self::Characters => "characters",
            Self::Bytes => "bytes",
        }
    }

    /// The unit of an identifier.
    pub fn from_id(id: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|unit| unit.id() == id)
    }
}

/// Meaning of a column, by the table of names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Meaning {
    /// Length of the whole sample.
    Length(Unit),
    /// Length of the prompt.
    Prompt,
    /// Length of the completion.
    Completion,
    /// Number of samples of the row.
    Weight,
    /// Edge of a bin of a histogram.
    BinEdge,
    /// Messages of a conversation.
    Chat,
    /// Text of the sample.
    Text,
    /// Text in front of the answer.
    PromptText,
    /// Text of the answer.
    AnswerText,
    /// Images of the sample, or their number.
    Images,
    /// Sizes, frames, or other properties of media.
    Media,
    /// Identifier of the row, or its position.
    Identifier,
    /// Instant or day.
    Time,
    /// Seconds.
    Duration,
    /// Score, rating or probability.
    Score,
    /// Class of the row.
    Label,
    /// The name is not in the table.
    Unknown,
}

impl Meaning {
    /// Name in a sentence, for example "identifier".
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
            Self::AnswerText => "text of the answer",
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
