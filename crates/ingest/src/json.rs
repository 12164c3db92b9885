//! Streaming JSON tokenizer that tolerates common writer errors.
//!
//! Unlike a strict parser, it returns numbers as text to avoid rounding. It accepts bare `NaN` and
//! `Infinity`, trailing and missing commas, and in strings control characters, invalid UTF-8 and
//! lone surrogates. A truncated document produces [`Token::End`] at any depth.

use std::io::Read;

/// Limits for a document.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Bounds {
    /// Maximum nesting depth.
    pub(crate) depth: usize,
    /// Maximum string length in bytes. Further bytes are skipped.
    pub(crate) string_bytes: usize,
    /// Maximum input size in bytes.
    pub(crate) bytes: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Token<'a> {
    /// `{`
    BeginObject,
    /// `}`
    EndObject,
    /// `[`
    BeginArray,
    /// `]`
    EndArray,
    /// Member name. The value follows.
    Key(&'a str),
    String(&'a str),
    /// Number as written, including `NaN` and infinities.
    Number(&'a str),
    /// `true` or `false`.
    Bool(bool),
    /// `null`
    Null,
    /// End of the document, or of truncated input.
    End,
}

/// Syntax or limit error.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum JsonError {
    /// Invalid byte at this position.
    #[error("byte {offset}: {found} cannot stand there")]
    Unexpected {
        offset: u64,
        /// Description of the byte.
        found: String,
    },
    /// Nesting exceeds the limit.
    #[error("byte {offset}: nested more than {limit} deep")]
    Depth {
        offset: u64,
        /// Maximum depth.
        limit: usize,
    },
    /// Input exceeds the size limit.
    #[error("more than {limit} bytes, unpacked")]
    TooLarge {
        /// Maximum size in bytes.
        limit: u64,
    },
}

/// Counts of repaired errors.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Repairs {
    /// Strings with control characters, invalid UTF-8, lone surrogates or unknown escapes.
    pub(crate) strings: u64,
    /// End offset of the first repaired string.
    pub(crate) first: u64,
    /// Strings truncated to the length limit.
    pub(crate) cut: u64,
}

/// The tokenizer.
pub(crate) struct Scanner<R> {
    input: R,
    bounds: Bounds,
    buffer: Vec<u8>,
    at: usize,
    filled: usize,
    /// Offset of the first buffered byte.
    base: u64,
    /// Stack of open brackets: true for objects.
    open: Vec<bool>,
    expects_value: bool,
    started: bool,
    text: Vec<u8>,
    repairs: Repairs,
    /// I/O error message if reading failed.
    broken_off: Option<String>,
    too_large: bool,
}

impl<R: Read> Scanner<R> {
    pub(crate) fn new(input: R, bounds: Bounds) -> Self {
        Self {
            input,
            bounds,
            buffer: vec![0; 64 << 10],
            at: 0,
            filled: 0,
            base: 0,
            open: Vec::new(),
            expects_value: false,
            started: false,
            text: Vec::new(),
            repairs: Repairs::default(),
            broken_off: None,
            too_large: false,
        }
    }

    /// Number of consumed bytes.
    pub(crate) fn offset(&self) -> u64 {
        self.base + self.at as u64
    }

    /// Current nesting depth.
    pub(crate) fn depth(&self) -> usize {
        self.open.len()
    }

    pub(crate) fn repairs(&self) -> &Repairs {
        &self.repairs
    }

    /// Returns the I/O error message if reading failed.
    pub(crate) fn broken_off(&self) -> Option<&str> {
        self.broken_off.as_deref()
    }

    /// Returns whether other text follows the document.
    pub(crate) fn has_more(&mut self) -> bool {
        while matches!(self.peek(), Some(b' ' | b'\t' | b'\n' | b'\r' | b',' | 0)) {
            self.at += 1;
        }
        self.open.is_empty() && self.peek().is_some()
    }

    /// Returns the next token.
    pub(crate) fn next(&mut self) -> Result<Token<'_>, JsonError> {
        loop {
            let Some(byte) = self.peek() else {
                return if self.too_large {
                    Err(JsonError::TooLarge { limit: self.bounds.bytes })
                } else {
                    Ok(Token::End)
                };
            };
            match byte {
                b' ' | b'\t' | b'\n' | b'\r' | b',' => self.at += 1,
                _ if self.started && self.open.is_empty() => return Ok(Token::End),
                _ => break,
            }
        }
        self.started = true;
        let in_object = self.open.last() == Some(&true);
        let byte = self.buffer[self.at];
        if in_object && !self.expects_value {
            return match byte {
                b'}' => self.close(true),
                b'"' => {
                    self.at += 1;
                    self.string(true);
                    self.colon()?;
                    self.expects_value = true;
                    Ok(Token::Key(self.as_text()))
                }
                _ => Err(self.unexpected()),
            };
        }
        self.expects_value = false;
        match byte {
            b'{' | b'[' => {
                if self.open.len() >= self.bounds.depth {
                    return Err(JsonError::Depth { offset: self.offset(), limit: self.bounds.depth });
                }
                self.at += 1;
                self.open.push(byte == b'{');
                Ok(if byte == b'{' { Token::BeginObject } else { Token::BeginArray })
            }
            b']' if !in_object => self.close(false),
            b'"' => {
                self.at += 1;
                self.string(true);
                Ok(Token::String(self.as_text()))
            }
            b'-' | b'+' | b'.' | b'0'..=b'9' | b'a'..=b'z' | b'A'..=b'Z' => self.word(),
            _ => Err(self.unexpected()),
        }
    }

    /// Skips the next value.
    pub(crate) fn skip(&mut self) -> Result<(), JsonError> {
        let depth = self.open.len();
        loop {
            let token = match self.peek() {
                // Strings in a skipped value are not stored.
                Some(b'"') if self.expects_value || self.open.last() == Some(&false) => {
                    self.at += 1;
                    self.expects_value = false;
                    self.string(false);
                    Token::Null
                }
                _ => self.next()?,
            };
            let ended = matches!(token, Token::End);
            if ended || (self.open.len() <= depth && !self.expects_value) {
                return Ok(());
            }
        }
    }

    fn close(&mut self, object: bool) -> Result<Token<'_>, JsonError> {
        if self.open.last() != Some(&object) {
            return Err(self.unexpected());
        }
        self.at += 1;
        self.open.pop();
        Ok(if object { Token::EndObject } else { Token::EndArray })
    }

    fn colon(&mut self) -> Result<(), JsonError> {
        loop {
            match self.peek() {
                Some(b' ' | b'\t' | b'\n' | b'\r') => self.at += 1,
                Some(b':') => {
                    self.at += 1;
                    return Ok(());
                }
                Some(_) => return Err(self.unexpected()),
                None => return Ok(()),
            }
        }
    }

    fn word(&mut self) -> Result<Token<'_>, JsonError> {
        const MAX: usize = 400;
        let offset = self.offset();
        self.text.clear();
        while let Some(byte) = self.peek() {
            if !(byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'+' | b'.')) {
                break;
            }
            if self.text.len() < MAX {
                self.text.push(byte);
            }
            self.at += 1;
        }
        match self.text.as_slice() {
            b"true" => Ok(Token::Bool(true)),
            b"false" => Ok(Token::Bool(false)),
            b"null" | b"None" => Ok(Token::Null),
            b"NaN" | b"nan" | b"Infinity" | b"inf" | [b'-' | b'+' | b'.' | b'0'..=b'9', ..] => {
                Ok(Token::Number(self.as_text()))
            }
            // The input stops inside a word.
            _ if self.filled == 0 => Ok(Token::End),
            _ => {
                let found = format!("{:?}", self.as_text().chars().take(20).collect::<String>());
                Err(JsonError::Unexpected { offset, found })
            }
        }
    }

    /// Reads a string up to the closing quote. Stores it if `keep` is true.
    fn string(&mut self, keep: bool) {
        self.text.clear();
        let mut repaired = false;
        let mut cut = false;
        loop {
            if self.at == self.filled && !self.fill() {
                break;
            }
            let rest = &self.buffer[self.at..self.filled];
            let plain = rest.iter().position(|&byte| matches!(byte, b'"' | b'\\' | 0..=0x1f)).unwrap_or(rest.len());
            if keep {
                let capacity = self.bounds.string_bytes.saturating_sub(self.text.len());
                cut |= plain > capacity;
                self.text.extend_from_slice(&rest[..plain.min(capacity)]);
            }
            let stop = rest.get(plain).copied();
            self.at += plain;
            match stop {
                None => {}
                Some(b'"') => {
                    self.at += 1;
                    break;
                }
                Some(b'\\') => {
                    self.at += 1;
                    repaired |= !self.escape(keep);
                }
                Some(_) => {
                    self.at += 1;
                    repaired = true;
                    self.push(b" ", keep);
                }
            }
        }
        if keep && std::str::from_utf8(&self.text).is_err() {
            // Truncation may split a character.
            repaired |= !cut;
            self.text = String::from_utf8_lossy(&self.text).into_owned().into_bytes();
        }
        if repaired {
            if self.repairs.strings == 0 {
                self.repairs.first = self.offset();
            }
            self.repairs.strings += 1;
        }
        self.repairs.cut += u64::from(cut);
    }

    /// Reads an escape sequence. Returns false if it was replaced.
    fn escape(&mut self, keep: bool) -> bool {
        let Some(byte) = self.peek() else { return false };
        self.at += 1;
        let plain: &[u8] = match byte {
            b'n' => b"\n",
            b't' => b"\t",
            b'r' => b"\r",
            b'b' => b"\x08",
            b'f' => b"\x0c",
            b'"' => b"\"",
            b'\\' => b"\\",
            b'/' => b"/",
            b'u' => return self.unicode(keep),
            _ => {
                self.push(&[b'\\', byte], keep);
                return false;
            }
        };
        self.push(plain, keep);
        true
    }

    fn unicode(&mut self, keep: bool) -> bool {
        let first = self.four_digits();
        let c = match first {
            Some(high @ 0xd800..=0xdbff) => {
                let low = (self.peek() == Some(b'\\')).then(|| {
                    self.at += 1;
                    (self.peek() == Some(b'u')).then(|| {
                        self.at += 1;
                        self.four_digits()
                    })
                });
                match low.flatten().flatten() {
                    Some(low @ 0xdc00..=0xdfff) => char::from_u32(0x10000 + ((high - 0xd800) << 10) + (low - 0xdc00)),
                    _ => None,
                }
            }
            first => first.and_then(char::from_u32),
        };
        let mut bytes = [0; 4];
        let text = c.unwrap_or(char::REPLACEMENT_CHARACTER).encode_utf8(&mut bytes);
        self.push(text.as_bytes(), keep);
        c.is_some()
    }

    fn four_digits(&mut self) -> Option<u32> {
        let mut value = 0;
        for _ in 0..4 {
            let digit = char::from(self.peek()?).to_digit(16)?;
            self.at += 1;
            value = value << 4 | digit;
        }
        Some(value)
    }

    fn push(&mut self, bytes: &[u8], keep: bool) {
        if keep && self.text.len() + bytes.len() <= self.bounds.string_bytes {
            self.text.extend_from_slice(bytes);
        }
    }

    fn as_text(&self) -> &str {
        // Strings were converted to UTF-8, and words are ASCII.
        std::str::from_utf8(&self.text).unwrap_or_default()
    }

    fn peek(&mut self) -> Option<u8> {
        (self.at < self.filled || self.fill()).then(|| self.buffer[self.at])
    }

    /// Refills the buffer. Returns false at the end of input.
    fn fill(&mut self) -> bool {
        self.base += self.filled as u64;
        self.at = 0;
        self.filled = 0;
        if self.base >= self.bounds.bytes {
            self.too_large = true;
            return false;
        }
        if self.broken_off.is_some() {
            return false;
        }
        loop {
            match self.input.read(&mut self.buffer) {
                Ok(read) => {
                    self.filled = read;
                    return read > 0;
                }
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
                Err(error) => {
                    self.broken_off = Some(error.to_string());
                    return false;
                }
            }
        }
    }

    fn unexpected(&self) -> JsonError {
        let byte = self.buffer.get(self.at).copied().unwrap_or_default();
        let found =
            if byte.is_ascii_graphic() { format!("{:?}", char::from(byte)) } else { format!("byte {byte:#04x}") };
        JsonError::Unexpected { offset: self.offset(), found }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const BOUNDS: Bounds = Bounds { depth: 32, string_bytes: 100, bytes: 1 << 20 };

    /// A reader that returns one byte per call.
    struct Drops<'a>(&'a [u8]);

    impl Read for Drops<'_> {
        fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
            let Some((&first, rest)) = self.0.split_first() else { return Ok(0) };
            buffer[0] = first;
            self.0 = rest;
            Ok(1)
        }
    }

    fn describe<R: Read>(mut scanner: Scanner<R>) -> (String, Repairs) {
        let mut output = Vec::new();
        loop {
            match scanner.next() {
                Ok(Token::End) => break,
                Ok(token) => output.push(format!("{token:?}")),
                Err(error) => {
                    output.push(error.to_string());
                    break;
                }
            }
        }
        (output.join(" "), scanner.repairs().clone())
    }

    fn tokens(text: &[u8]) -> (String, Repairs) {
        let expected = describe(Scanner::new(text, BOUNDS));
        assert_eq!(describe(Scanner::new(Drops(text), BOUNDS)), expected);
        expected
    }

    #[test]
    fn documents_are_tokenized() {
        let (output, repairs) = tokens(br#" {"a": [1.250, -3e5, true, null,], "b\u00e9\n": {} }"#);
        assert_eq!(
            output,
            r#"BeginObject Key("a") BeginArray Number("1.250") Number("-3e5") Bool(true) Null EndArray Key("bé\n") BeginObject EndObject EndObject"#
        );
        assert_eq!(repairs, Repairs::default());
    }

    #[test]
    fn common_syntax_mistakes_are_repaired() {
        for (text, expected, repaired) in [
            (&b"[NaN, -Infinity]"[..], r#"BeginArray Number("NaN") Number("-Infinity") EndArray"#, 0),
            (b"[\"a\x01b\"]", r#"BeginArray String("a b") EndArray"#, 1),
            (b"[\"a\xffb\"]", "BeginArray String(\"a\u{fffd}b\") EndArray", 1),
            (br#"["\ud800"]"#, "BeginArray String(\"\u{fffd}\") EndArray", 1),
            (br#"["\ud83d\ude00"]"#, "BeginArray String(\"\u{1f600}\") EndArray", 0),
            (br#"[{"a": 1"#, r#"BeginArray BeginObject Key("a") Number("1")"#, 0),
            (br#"[{"a"#, r#"BeginArray BeginObject Key("a")"#, 0),
        ] {
            let (output, repairs) = tokens(text);
            assert_eq!((output.as_str(), repairs.strings), (expected, repaired), "{text:?}");
        }
    }

    #[test]
    fn invalid_json_is_reported_by_offset() {
        for (text, expected) in [
            (&b"{1: 2}"[..], "BeginObject byte 1: '1' cannot stand there"),
            (b"[1}", "BeginArray Number(\"1\") byte 2: '}' cannot stand there"),
            (b"[what ]", "BeginArray byte 1: \"what\" cannot stand there"),
            (b"{\"a\" 1}", "BeginObject byte 5: '1' cannot stand there"),
        ] {
            assert_eq!(tokens(text).0, expected);
        }
        let deep = tokens("[".repeat(100_000).as_bytes()).0;
        assert!(deep.ends_with("byte 32: nested more than 32 deep"), "{deep}");
    }

    #[test]
    fn values_are_passed_over() {
        let mut scanner = Scanner::new(&br#"{"a": [1, {"b": "]}"}], "c": "x", "d": 5, "e": 6}"#[..], BOUNDS);
        let mut keys = Vec::new();
        assert_eq!(scanner.next(), Ok(Token::BeginObject));
        while let Ok(Token::Key(key)) = scanner.next() {
            keys.push(key.to_owned());
            scanner.skip().expect("a value");
        }
        assert_eq!(keys, ["a", "c", "d", "e"]);
    }

    #[test]
    fn long_strings_are_cut() {
        let text = format!("[\"{}\", 1]", "x".repeat(500));
        let (output, repairs) = tokens(text.as_bytes());
        assert_eq!((output.len(), repairs.cut), ("BeginArray String(\"\") Number(\"1\") EndArray".len() + 100, 1));
    }

    proptest! {
        #[test]
        fn any_bytes_end(bytes in prop::collection::vec(prop::sample::select(b"{}[]\",:\\u12eNa \xff\x01".to_vec()), 0..60)) {
            tokens(&bytes);
            let mut scanner = Scanner::new(&bytes[..], BOUNDS);
            while scanner.skip().is_ok() && scanner.offset() < bytes.len() as u64 && scanner.depth() > 0 {}
        }

        /// Valid documents give the same values as in a strict parser.
        #[test]
        fn sound_documents_are_read(text in "[a-z\\\\\"\u{e9}\u{1f600}\n]{0,20}", number in any::<f64>()) {
            let document = serde_json::json!({"k": [text, number]}).to_string();
            let mut scanner = Scanner::new(document.as_bytes(), BOUNDS);
            for _ in 0..3 {
                scanner.next().expect("sound");
            }
            prop_assert_eq!(scanner.next(), Ok(Token::String(&text)));
            if number.is_finite() {
                let Ok(Token::Number(read)) = scanner.next() else { panic!("{document}") };
                prop_assert_eq!(read.parse::<f64>(), Ok(number));
            }
        }
    }
}
