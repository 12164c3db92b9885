//! The FSDP file of Hugging Face `TrainingArguments`, which `fsdp_config` names, or its JSON on the command line.

use std::collections::BTreeSet;

use super::without_effect::is_fsdp_key;
use crate::job_config::JobConfigError;
use crate::job_config::keys::Keys;

/// Key of the name of the file.
const KEY: &str = "fsdp_config";
/// Prefix of the keys of the file.
pub(super) const SECTION: &str = "fsdp_config.";

/// True for the keys of the file. Files of other programs have a few of them beside others.
pub(in crate::job_config) fn is_file(keys: &Keys) -> bool {
    let mut stated = BTreeSet::new();
    for (key, _) in keys.below("") {
        stated.insert(key.split_once('.').map_or(key, |(first, _)| first));
    }
    let known = stated.iter().filter(|name| is_fsdp_key(name)).count();
    known > 0 && known * 2 >= stated.len()
}

/// Adds the keys of JSON in the place of the name of a file.
pub(super) fn expand(keys: &mut Keys) -> Result<(), JobConfigError> {
    let Some(text) = keys.peek(KEY).filter(|text| is_json(text)).map(str::to_owned) else { return Ok(()) };
    keys.ignore(|key| key == KEY);
    pairs(&text).into_iter().try_for_each(|(name, value)| keys.push(format!("{SECTION}{name}"), value))
}

/// Reports a file that is named but not given.
pub(super) fn report(keys: &mut Keys) {
    let is_named = keys.peek(KEY).is_some_and(|text| {
        !is_json(text) && !matches!(text.trim().to_lowercase().as_str(), "" | "none" | "null" | "false" | "true")
    });
    if !is_named {
        keys.ignore(|key| key == KEY);
        return;
    }
    keys.text(&[KEY], "FSDP file");
    if !keys.has_section(SECTION) {
        keys.assume("The FSDP file is not given. Its settings, for example activation_checkpointing, are not read. Add the file.");
    }
}

fn is_json(text: &str) -> bool {
    text.trim_start().starts_with('{')
}

/// Returns the keys and values of a JSON object. A command line may have lost its quotes.
fn pairs(text: &str) -> Vec<(String, String)> {
    let plain: String = text.chars().filter(|letter| !matches!(letter, '"' | '\'' | '\\')).collect();
    // Words of a script may follow the object.
    let object = plain.rsplit_once('}').map_or(plain.as_str(), |(object, _)| object).trim_start();
    let mut depth = 0_u32;
    let parts = object.strip_prefix('{').unwrap_or(object).split(|letter| {
        match letter {
            '[' | '{' => depth += 1,
            ']' | '}' => depth = depth.saturating_sub(1),
            _ => {}
        }
        letter == ',' && depth == 0
    });
    let pair = |part: &str| part.split_once(':').map(|(key, value)| (key.trim().to_owned(), value.trim().to_owned()));
    parts.filter_map(pair).filter(|(_, value)| value != "null").collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn objects_are_read_without_their_quotes() {
        let expected = [("a", "true"), ("b", "[X, Y]"), ("version", "2")];
        let expected = expected.map(|(key, value)| (key.to_owned(), value.to_owned()));
        for text in [
            r#"{"a": true, "b": ["X", "Y"], "version": 2, "c": null}"#,
            "{ a : true, b : [X, Y], version :2} train.py",
            r"{\ a\ : true, \ b\ : [X, Y], version: 2",
        ] {
            assert_eq!(pairs(text), expected, "{text}");
        }
        assert!(pairs("{}").is_empty());
    }

    #[test]
    fn most_keys_of_a_file_are_those_of_fsdp() {
        let of = |names: &[&str]| {
            let mut keys = Keys::default();
            for name in names {
                keys.push((*name).to_owned(), "true".to_owned()).unwrap();
            }
            is_file(&keys)
        };
        assert!(of(&["activation_checkpointing", "activation_checkpointng"]));
        assert!(of(&["fsdp_version", "xla_fsdp_settings.a", "xla_fsdp_settings.b", "min_num_params"]));
        assert!(!of(&["activation_checkpointing", "model", "data"]) && !of(&["version"]) && !of(&[]));
    }
}
