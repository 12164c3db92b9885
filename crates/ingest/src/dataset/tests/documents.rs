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

/// Documents of plain texts are measured as texts of rows are.
#[test]
fn plain_texts_are_split_at_their_separator() {
    // 20, 8 and 12 characters.
    let documents = ["ab cd, ef gh; ij kl.", "ab cd ef", "ab cd ef gh."];
    for (separator, text) in [
        ("<|endoftext|>", documents.map(|text| format!("{text}<|endoftext|>")).concat()),
        ("<|endoftext|>", documents.join("\n<|endoftext|>\n")),
        ("<|end_of_text|>", documents.join("<|end_of_text|>")),
        ("</s>", documents.map(|text| format!("<s>{text}</s>\n")).concat()),
        ("<|eot_id|>", documents.map(|text| format!("{text}<|eot_id|>\n\n")).concat()),
        ("<|begin_of_text|>", documents.map(|text| format!("<|begin_of_text|>{text}\n")).concat()),
    ] {
        let (lengths, images, report) = rows(&text);
        assert_eq!((lengths, images), (vec![5, 2, 3], vec![]), "{text}");
        assert_eq!((report.format.as_str(), report.parsed), ("plain text", 3), "{text}");
        let sentence = format!("The text is split at {separator}: each document is one sample.");
        assert_eq!(report.warnings.first(), Some(&sentence), "{text}");
        assert!(report.warnings.iter().any(|warning| warning.contains("4 characters per token")), "{text}");
    }
    // A column of texts is read as before.
    let (lengths, _, report) = rows("text\nab cd ef<|endoftext|>ab cd ef gh.\n");
    assert_eq!((lengths, report.format.as_str()), (vec![2, 3], "CSV with header"));
}

#[test]
fn plain_texts_without_separator_are_refused_with_a_remedy() {
    for text in [
        "Once there was a fox.\nIt lived in a wood, near a river.\nIts den was warm.\n",
        "Once there was a fox.\n\nIt lived in a wood, near a river.\n\nIts den was warm.\n",
        "First speaker:\nBefore we go on, hear me.\n\nAll:\nSpeak, speak to us now.\n\n",
        "<|im_start|>user\nhow are you today?<|im_end|>\n<|im_start|>assistant\nI am well, thanks.<|im_end|>\n",
        " = A title = \n \n The wood was old, and its trees were high. \n It had a river. \n",
    ] {
        let message = refusal(text);
        assert!(message.contains("plain text without numbers and without a separator"), "{text}: {message}");
        assert!(message.contains("one JSON line per document") && message.contains("<|endoftext|>"), "{message}");
        assert!(!message.contains("choose one of"), "{message}");
    }
}
