//! Texts with several documents in a row.

use super::*;

/// Reads with one character per token.
fn texts(file: &str, column: Option<&str>) -> (Vec<u32>, Vec<String>) {
    let options = Options { column, characters_per_token: 1.0, ..Options::default() };
    match super::super::import(file.as_bytes(), &options) {
        Ok(Imported { dataset: Dataset::Rows { text_tokens, .. }, report }) => (text_tokens, report.warnings),
        other => panic!("{file}: {other:?}"),
    }
}

/// Rows with the given text.
fn column(text: &str) -> String {
    format!("{{\"text\": {text:?}}}\n").repeat(3)
}

fn has(warnings: &[String], words: &str) -> bool {
    warnings.iter().any(|warning| warning.contains(words))
}

#[test]
fn documents_between_end_tokens_are_samples() {
    for text in [
        "abc de<|endoftext|>f g",
        "abc de<|endoftext|>f g<|endoftext|>",
        "<|begin_of_text|>abc de<|end_of_text|><|begin_of_text|>f g<|end_of_text|>",
        "<s>abc de</s><s> f g</s>",
        "abc de</s>f g",
        "abc de<eos>f g<eos>",
    ] {
        let file = column(text);
        let (lengths, warnings) = texts(&file, None);
        let second = if text.contains("<s> f") { 4 } else { 3 };
        assert_eq!(lengths, [6, second, 6, second, 6, second], "{text}");
        assert!(has(&warnings, "Each document is one sample"), "{text}: {warnings:?}");
        let (lengths, warnings) = texts(&file, Some("text"));
        assert_eq!(lengths.len(), 3, "{text}");
        assert!(has(&warnings, "Each row is counted as one sample"), "{text}: {warnings:?}");
    }
    let list = r#"["abc de<|endoftext|>f g", "abc"]"#;
    assert_eq!(texts(list, None).0, [6, 3, 3]);
}

#[test]
fn rare_documents_warn() {
    let file = column("abc de") + &column("abc") + &format!("{{\"text\": {:?}}}\n", "abc<|endoftext|>de");
    let (lengths, warnings) = texts(&file, None);
    assert_eq!(lengths.len(), 7);
    assert!(has(&warnings, "<|endoftext|> occurs inside 1 of the first 7 texts"), "{warnings:?}");
}

/// An end token at the end of a row, markup, and turns of a conversation.
#[test]
fn other_texts_are_one_sample_each() {
    for text in [
        "abc de<|endoftext|>",
        "abc de</s>",
        "<p>abc <s>de</s> fg</p>",
        "<s>[INST] ab [/INST] cd </s><s>[INST] ef [/INST] gh </s>",
        "<|user|>ab</s><|assistant|>cd</s>",
        "abc de",
    ] {
        let (lengths, warnings) = texts(&column(text), None);
        assert_eq!(lengths.len(), 3, "{text}");
        assert!(!has(&warnings, "sample"), "{text}: {warnings:?}");
    }
}
