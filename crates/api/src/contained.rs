//! Self-contained links: `/c/#z1.` followed by the scenario as JSON, deflated, in base64url without
//! padding.
//!
//! The server stores nothing for such a link, and the link must stay readable. A new format gets a
//! new prefix.

use crate::planner::scenario::SCHEMA;
use data_encoding::{BASE64URL_NOPAD, DecodeKind};
use miniz_oxide::deflate::compress_to_vec;
use miniz_oxide::inflate::{TINFLStatus, decompress_to_vec_with_limit};
use serde_json::Value;

/// Prefix of the first link format.
pub const FIRST_FORM: &str = "z1.";
/// Maximum link length after the `#`, in characters.
pub const MAX: usize = 8 << 10;
/// Maximum size of an unpacked scenario, in bytes.
pub const MAX_BYTES: usize = 1 << 20;
/// Compression level. Higher levels hardly shorten links.
const LEVEL: u8 = 9;

/// Reason why a link contains no readable scenario.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ContainedError {
    /// The link is longer than the limit.
    TooLong(usize),
    /// The prefix is unknown.
    UnknownForm,
    /// The link contains an invalid character.
    NotBase64,
    /// The link is truncated or not compressed.
    NotPacked,
    /// The unpacked scenario exceeds the limit.
    TooLarge,
    /// The unpacked content is not JSON.
    NotJson(String),
    /// The JSON is not a scenario.
    NotAScenario,
    /// A newer version wrote the link.
    Newer {
        /// Schema in the link.
        schema: String,
        /// Unpacked JSON.
        text: String,
    },
}

impl std::fmt::Display for ContainedError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::TooLong(length) => write!(
                f,
                "the link has {length} characters, and at most {MAX} are passed on safely: keep the scenario and copy its \
                 short link"
            ),
            Self::UnknownForm => {
                write!(f, "the link does not begin with {FIRST_FORM}; a newer version may have made it")
            }
            Self::NotBase64 => {
                write!(f, "the link holds a character that does not belong there; it was changed on its way")
            }
            Self::NotPacked => write!(f, "the link is damaged: a part of it is missing or was changed on its way"),
            Self::TooLarge => {
                write!(f, "the link unpacks to more than {} MiB, which no scenario needs", MAX_BYTES >> 20)
            }
            Self::NotJson(detail) => write!(f, "the link holds no scenario: {detail}"),
            Self::NotAScenario => write!(f, "the link holds something other than a scenario"),
            Self::Newer { schema, .. } => {
                write!(f, "the scenario was made by a newer version ({schema}; this one reads {SCHEMA})")
            }
        }
    }
}

impl std::error::Error for ContainedError {}

/// Returns the link text after the `#` for a scenario.
///
/// # Errors
/// The link would exceed the maximum length.
pub fn write(scenario: &str) -> Result<String, ContainedError> {
    let packed = compress_to_vec(scenario.as_bytes(), LEVEL);
    let link = format!("{FIRST_FORM}{}", BASE64URL_NOPAD.encode(&packed));
    if link.len() > MAX { Err(ContainedError::TooLong(link.len())) } else { Ok(link) }
}

/// The scenario of a link, from the part behind the `#`. At most [`MAX_BYTES`] are unpacked, whatever the link says.
pub fn read(fragment: &str) -> Result<Value, ContainedError> {
    if fragment.len() > MAX {
        return Err(ContainedError::TooLong(fragment.len()));
    }
    // Mail programs and chats append a full stop or padding.
    let text = fragment.strip_prefix(FIRST_FORM).ok_or(ContainedError::UnknownForm)?;
    let decoded = BASE64URL_NOPAD.decode(text.trim_end_matches(['=', '.']).as_bytes());
    let packed = decoded.map_err(|error| match error.kind {
        DecodeKind::Symbol => ContainedError::NotBase64,
        // A truncated link has leftover characters.
        DecodeKind::Length | DecodeKind::Trailing | DecodeKind::Padding => ContainedError::NotPacked,
    })?;
    let bytes = decompress_to_vec_with_limit(&packed, MAX_BYTES).map_err(|error| match error.status {
        TINFLStatus::HasMoreOutput => ContainedError::TooLarge,
        _ => ContainedError::NotPacked,
    })?;
    let text = String::from_utf8(bytes).map_err(|error| ContainedError::NotJson(error.to_string()))?;
    let scenario: Value = serde_json::from_str(&text).map_err(|error| ContainedError::NotJson(error.to_string()))?;
    match scenario.get("schema").and_then(Value::as_str) {
        Some(SCHEMA) => Ok(scenario),
        Some(schema) if schema.starts_with("scenario/") => {
            Err(ContainedError::Newer { schema: schema.chars().take(40).collect(), text })
        }
        _ => Err(ContainedError::NotAScenario),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn link_round_trip() {
        let scenario = format!(r#"{{"schema":"{SCHEMA}","title":"Über 10 % — <b>","seed":3}}"#);
        let link = write(&scenario).expect("a short one");
        assert!(link.starts_with("z1.") && link.is_ascii() && !link.contains(['+', '/', '=']), "{link}");
        assert_eq!(read(&link).expect("as written"), serde_json::from_str::<Value>(&scenario).expect("JSON"));
        assert_eq!(read(&format!("{link}=.")).expect("with what a chat adds")["seed"], 3);
    }

    #[test]
    fn invalid_links_report_the_error() {
        let good = write(&format!(r#"{{"schema":"{SCHEMA}"}}"#)).expect("a short one");
        let encoded =
            |text: &str| format!("{FIRST_FORM}{}", BASE64URL_NOPAD.encode(&compress_to_vec(text.as_bytes(), 9)));
        for (link, wrong) in [
            (String::new(), ContainedError::UnknownForm),
            ("z2.abc".to_owned(), ContainedError::UnknownForm),
            ("z1.a b".to_owned(), ContainedError::NotBase64),
            ("z1.".to_owned(), ContainedError::NotPacked),
            (good[..good.len() - 6].to_owned(), ContainedError::NotPacked),
            (encoded("[]"), ContainedError::NotAScenario),
            (encoded(r#"{"schema":"plan/99"}"#), ContainedError::NotAScenario),
            ("z1.".to_owned() + &"a".repeat(MAX), ContainedError::TooLong(MAX + 3)),
        ] {
            assert_eq!(read(&link), Err(wrong), "{link:.60}");
        }
        assert!(matches!(read(&encoded("{")), Err(ContainedError::NotJson(_))));
        let newer = read(&encoded(r#"{"schema":"scenario/99"}"#)).expect_err("of the future");
        assert_eq!(
            newer,
            ContainedError::Newer { schema: "scenario/99".into(), text: r#"{"schema":"scenario/99"}"#.into() }
        );
        let nested = "[".repeat(100_000);
        assert!(matches!(read(&encoded(&nested)), Err(ContainedError::NotJson(_))), "no stack overflow");
    }

    #[test]
    fn compression_bombs_and_long_scenarios_are_rejected() {
        // Four megabytes of spaces compress to four kilobytes.
        let bomb = format!("{FIRST_FORM}{}", BASE64URL_NOPAD.encode(&compress_to_vec(&vec![b' '; 4 << 20], 9)));
        assert!(bomb.len() < MAX, "{}", bomb.len());
        assert_eq!(read(&bomb), Err(ContainedError::TooLarge));
        // Random numbers do not compress.
        let random: Vec<String> =
            (0_u64..4000).map(|x| (x.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 20).to_string()).collect();
        let long = format!(r#"{{"schema":"{SCHEMA}","values":[{}]}}"#, random.join(","));
        assert!(matches!(write(&long), Err(ContainedError::TooLong(_))));
    }

    #[test]
    fn any_text_is_answered() {
        // Truncated or modified links must return an error and never panic.
        let good = write(&format!(r#"{{"schema":"{SCHEMA}","title":"abcabcabc"}}"#)).expect("a short one");
        for at in 0..good.len() {
            let cut = read(&good[..at]);
            assert!(cut.is_err(), "{at}");
            for other in ["A", "_", "!", "é"] {
                let changed = format!("{}{other}{}", &good[..at], &good[at + 1..]);
                drop(read(&changed));
            }
        }
    }
}
