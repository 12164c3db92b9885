//! Places of keys in the text of a configuration file.

mod json;
mod overrides;
mod toml;
mod yaml;

use std::ops::Range;

use super::{ConfigFormat, MAX_KEYS, bridge_python, wrapper};

/// Notation of a file with dotted keys.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Notation {
    /// JSON.
    Json,
    /// YAML.
    Yaml,
    /// TOML.
    Toml,
    /// Words `section.key=value` in a script.
    Overrides,
}

/// A key in the text of a file. Offsets are bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// Dotted path.
    pub key: String,
    /// First byte of the key.
    pub start: usize,
    /// The value. In YAML without its quotes, and empty if the key has no value. `None` for a section, and for values on
    /// several lines.
    pub value: Option<Range<usize>>,
    /// True if the value is null or missing.
    pub is_null: bool,
    /// True inside braces of YAML.
    pub is_flow: bool,
}

/// Keys of a file with their places.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Places {
    /// Notation of the file.
    pub notation: Notation,
    /// Keys in the order of the file. Of duplicate keys, the last one counts.
    pub places: Vec<Place>,
}

/// Returns the places of the keys; `None` for the arguments of a command line, for malformed text and for too many keys.
pub fn places(text: &str, format: ConfigFormat) -> Option<Places> {
    let trimmed = text.trim_start_matches('\u{feff}').trim_start();
    // Comments can precede a document in braces.
    let braces = super::yaml::without_first_comments(trimmed);
    let trimmed = if braces.starts_with('{') { braces } else { trimmed };
    let offset = text.len() - trimmed.len();
    let is_wrapped = wrapper::script(trimmed).is_some();
    let (notation, mut places) = match format {
        ConfigFormat::Megatron | ConfigFormat::Mlperf | ConfigFormat::OpenRlhf => return None,
        // Python code is not edited.
        ConfigFormat::MegatronBridge if bridge_python::is_recipe(text) => return None,
        ConfigFormat::Torchtitan => {
            let places = toml::places(trimmed);
            // A command line has no sections.
            if places.iter().all(|place| place.value.is_some()) && super::document::toml(trimmed).is_err() {
                return None;
            }
            (Notation::Toml, places)
        }
        _ if trimmed.starts_with('{') => match json::places(trimmed) {
            Some(places) => (Notation::Json, places),
            // YAML in braces.
            None => (Notation::Yaml, yaml::places(trimmed)?),
        },
        // Arguments of a command line.
        ConfigFormat::Litgpt | ConfigFormat::Levanter | ConfigFormat::Nanotron
            if is_wrapped || !super::yaml::is_yaml(trimmed) && !trimmed.starts_with('{') =>
        {
            return None;
        }
        _ if is_wrapped && format.is_transformers() => return None,
        _ if super::yaml::is_yaml(trimmed) && !is_wrapped => (Notation::Yaml, yaml::places(trimmed)?),
        // A command line of LLaMA-Factory has overrides or arguments.
        ConfigFormat::LlamaFactory if !has_arguments(trimmed) => (Notation::Overrides, overrides::places(trimmed)),
        format if format.is_transformers() => return None,
        _ => (Notation::Overrides, overrides::places(trimmed)),
    };
    if places.len() > MAX_KEYS {
        return None;
    }
    for place in &mut places {
        place.start += offset;
        place.value = place.value.clone().map(|value| value.start + offset..value.end + offset);
    }
    Some(Places { notation, places })
}

/// True if a script has arguments of LLaMA-Factory.
fn has_arguments(text: &str) -> bool {
    let names =
        ["--model_name_or_path", "--per_device_train_batch_size", "--finetuning_type", "--cutoff_len", "--stage"];
    names.iter().any(|name| text.contains(name))
}

/// Returns the dotted path of a key in a section.
fn path(section: &str, key: &str) -> String {
    if section.is_empty() { key.to_owned() } else { format!("{section}.{key}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns key and value of every place, with `?` for a section.
    fn found(text: &str, format: ConfigFormat) -> Vec<(String, String)> {
        let places = places(text, format).unwrap().places;
        let value = |place: &Place| place.value.clone().map_or_else(|| "?".to_owned(), |value| text[value].to_owned());
        places.iter().map(|place| (place.key.clone(), value(place))).collect()
    }

    fn pairs(expected: &[(&str, &str)]) -> Vec<(String, String)> {
        expected.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
    }

    #[test]
    fn yaml_keys_have_places() {
        let text = "\u{feff}# ä: 1\r\na: 1 # one\r\n'b c': \"two\"\r\nd:\r\n  e: 'ü' # no\r\n  f: [1, 2]\r\n  g:\r\n  h: ~\r\n\
                    i: {j: 3, k: x y}\r\nl: |\r\n  ää: 4\r\nm: 5\r\nn:\r\n- o: 6\r\np: a\r\n  b\r\n";
        let expected = [
            ("a", "1"),
            ("b c", "two"),
            ("d.e", "ü"),
            ("d.f", "?"),
            ("d.g", ""),
            ("d.h", "~"),
            ("d", "?"),
            ("i.j", "3"),
            ("i.k", "x y"),
            ("i", "?"),
            ("l", "?"),
            ("m", "5"),
            ("n", "?"),
            ("p", "?"),
        ];
        assert_eq!(found(text, ConfigFormat::Nanotron), pairs(&expected));
        let places = places(text, ConfigFormat::Nanotron).unwrap().places;
        let nulls: Vec<&str> = places.iter().filter(|place| place.is_null).map(|place| place.key.as_str()).collect();
        assert_eq!(nulls, ["d.g", "d.h"]);
        assert!(places.iter().filter(|place| place.is_flow).all(|place| place.key.starts_with("i.")));
        assert!(places.iter().all(|place| {
            text[place.start..].starts_with(['\'', 'a', 'd', 'e', 'f', 'g', 'h', 'i', 'j', 'k', 'l', 'm', 'n', 'p'])
        }));
    }

    #[test]
    fn json_keys_have_places() {
        let text =
            "\n{\"a\": 1,\t\"b\" : {\"c\\u0064\": \"x\\\"}\", \"e\": [1, {\"f\": 2}]},\n\t\"g\": null, \"h\": -1e3}";
        let expected =
            [("a", "1"), ("b.cd", "\"x\\\"}\""), ("b.e", "[1, {\"f\": 2}]"), ("b", "?"), ("g", "null"), ("h", "-1e3")];
        assert_eq!(found(text, ConfigFormat::Deepspeed), pairs(&expected));
    }

    #[test]
    fn toml_keys_and_overrides_have_places() {
        let text = "[a] # first\nb = \"x\" # y\n# c = 1\n[ d.e ]\r\nf=2\r\n";
        let expected = [("a", "?"), ("a.b", "\"x\""), ("d.e", "?"), ("d.e.f", "2")];
        assert_eq!(found(text, ConfigFormat::Torchtitan), pairs(&expected));
        let text = "# a.b=1\npython3 -m verl.trainer.main_ppo \\\n  a.b=2 +c.d='x' \\\n  \"e.f=3\" --g=4\n";
        let expected = [("a.b", "2"), ("c.d", "x"), ("e.f", "3")];
        assert_eq!(found(text, ConfigFormat::Verl), pairs(&expected));
    }

    #[test]
    fn comments_precede_braces() {
        let text = "# a comment\n\n{\"pipe_parallel_size\": 2, # stages\n \"num_layers\": 4}\n";
        let expected = pairs(&[("pipe_parallel_size", "2"), ("num_layers", "4")]);
        assert_eq!(found(text, ConfigFormat::GptNeox), expected);
    }
}
