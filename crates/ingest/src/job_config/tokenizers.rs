//! Vocabularies of tokenizers on the Hugging Face hub, by a part of their names.

/// Part of the name in lower case, with the tokens of the vocabulary. A longer name precedes the names that it contains.
const VOCABULARIES: [(&str, u32); 17] = [
    ("gpt-neox-20b", 50_277),
    ("gpt2", 50_257),
    ("llama-2", 32_000),
    ("llama2", 32_000),
    ("llama-3", 128_256),
    ("llama3", 128_256),
    ("mistral-7b", 32_000),
    ("mixtral-8x7b", 32_000),
    ("mixtral-8x22b", 32_768),
    ("olmo-1b", 50_280),
    ("qwen2", 151_936),
    ("qwen3", 151_936),
    ("deepseek-v2", 102_400),
    ("deepseek-v3", 129_280),
    ("deepseek-r1", 129_280),
    ("gemma-2", 256_000),
    ("gpt-oss", 201_088),
];

/// Returns the known part of a name with the size of the vocabulary.
pub(super) fn find(name: &str) -> Option<(&'static str, u32)> {
    let name = name.to_lowercase();
    VOCABULARIES.into_iter().find(|(known, _)| name.contains(known))
}

/// Returns the size of the vocabulary of a tokenizer.
pub(super) fn vocabulary(name: &str) -> Option<u32> {
    find(name).map(|(_, size)| size)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_state_vocabularies() {
        for (name, size) in [
            ("meta-llama/Meta-Llama-3-8B", Some(128_256)),
            ("meta-llama/Llama-3.1-8B", Some(128_256)),
            ("meta-llama/Llama-2-7b-hf", Some(32_000)),
            ("Qwen/Qwen2.5-7B", Some(151_936)),
            ("/data/tok.model", None),
        ] {
            assert_eq!(vocabulary(name), size, "{name}");
        }
    }
}
