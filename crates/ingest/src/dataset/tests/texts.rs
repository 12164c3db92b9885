//! Texts and conversations in the layouts of popular datasets, measured with one character per
//! token.

use super::super::Tokenizer;
use super::*;

/// Reads with one character per token.
fn characters(file: &str, column: Option<&str>) -> Imported {
    let options = Options { column, characters_per_token: 1.0, ..Options::default() };
    super::super::import(file.as_bytes(), &options).expect(file)
}

fn lengths(file: &str) -> (Vec<u32>, Vec<u32>, String) {
    match characters(file, None) {
        Imported { dataset: Dataset::Rows { text_tokens, images, .. }, report } => (text_tokens, images, report.source),
        other => panic!("{file}: {other:?}"),
    }
}

#[test]
fn conversations_are_measured_by_their_text() {
    for (file, tokens, images) in [
        // OpenAI, ultrachat, tulu.
        (
            "{\"messages\": [{\"role\": \"user\", \"content\": \"abc\"}, {\"role\": \"assistant\", \"content\": \"de\"}]}\n{\"messages\": [{\"role\": \"user\", \"content\": \"f\"}]}\n",
            [5, 1],
            vec![],
        ),
        // ShareGPT, with the numeric identifiers of LLaVA.
        (
            r#"[{"id": "0001", "conversations": [{"from": "human", "value": "abc"}, {"from": "gpt", "value": "de"}]}, {"id": "0002", "conversations": [{"from": "human", "value": "fg"}]}]"#,
            [5, 2],
            vec![],
        ),
        // LLaVA: one image in each row that names an image.
        (
            r#"[{"id": "1", "image": "a.jpg", "conversations": [{"from": "human", "value": "<image>\nabc"}]}, {"id": "2", "conversations": [{"from": "human", "value": "de"}]}]"#,
            [4, 2],
            vec![1, 0],
        ),
        // LLaMA-Factory.
        (
            r#"[{"messages": [{"role": "user", "content": "<image><image>abc"}], "images": ["a.jpg", "b.jpg"]}, {"messages": [{"role": "user", "content": "de"}], "images": []}]"#,
            [3, 2],
            vec![2, 0],
        ),
        // Message parts of OpenAI and Qwen-VL; the first row has no image.
        (
            "{\"messages\": [{\"role\": \"user\", \"content\": [{\"type\": \"text\", \"text\": \"abcd\"}]}]}\n{\"messages\": [{\"role\": \"user\", \"content\": [{\"type\": \"image\", \"image\": \"a.png\"}, {\"type\": \"text\", \"text\": \"abc\"}]}]}\n",
            [4, 3],
            vec![0, 1],
        ),
        // The Cauldron.
        (
            r#"[{"images": ["a"], "texts": [{"user": "abc", "assistant": "de", "source": "x"}]}, {"images": ["a", "b"], "texts": [{"user": "f", "assistant": "g"}]}]"#,
            [5, 2],
            vec![1, 2],
        ),
        // A system prompt and tools precede the conversation.
        (
            r#"[{"system": "ab", "tools": "[]", "conversations": [{"from": "human", "value": "abc"}]}, {"system": "", "tools": "", "conversations": [{"from": "gpt", "value": "d"}]}]"#,
            [7, 1],
            vec![],
        ),
        // Preferred conversations.
        (
            r#"[{"prompt": "x", "chosen": [{"role": "user", "content": "x"}, {"role": "assistant", "content": "abc"}], "rejected": [{"role": "user", "content": "x"}]}, {"prompt": "y", "chosen": [{"role": "user", "content": "y"}], "rejected": []}]"#,
            [4, 1],
            vec![],
        ),
        // LLaMA-Factory: a conversation and a preferred completion with one message.
        (
            r#"[{"conversations": [{"from": "human", "value": "ab"}], "chosen": {"from": "gpt", "value": "cde"}, "rejected": {"from": "gpt", "value": "x"}}, {"conversations": [{"from": "human", "value": "a"}], "chosen": {"from": "gpt", "value": "c"}, "rejected": {"from": "gpt", "value": "x"}}]"#,
            [5, 2],
            vec![],
        ),
        // A single row.
        (r#"{"messages": [{"role": "user", "content": "abcde"}]}"#, [5, 0], vec![]),
    ] {
        let (found, found_images, _) = lengths(file);
        let expected: Vec<u32> = tokens.into_iter().filter(|&tokens| tokens > 0).collect();
        assert_eq!((found, found_images), (expected, images), "{file}");
    }
}

/// The text is measured, not the number in another column.
#[test]
fn texts_are_measured_by_their_characters() {
    for (file, tokens, source) in [
        (
            "{\"id\": \"12\", \"url\": \"u\", \"title\": \"t\", \"text\": \"abcde\"}\n{\"id\": \"13\", \"url\": \"u\", \"title\": \"t\", \"text\": \"abc\"}\n",
            [5, 3],
            "text",
        ),
        ("{\"year\": 1999, \"text\": \"abcde\"}\n{\"year\": 2001, \"text\": \"abc\"}\n", [5, 3], "text"),
        ("{\"stars\": 5, \"text\": \"abcde\"}\n{\"stars\": 1, \"text\": \"abc\"}\n", [5, 3], "text"),
        (
            "{\"text\": \"abcde\", \"timestamp\": \"2019-04-25T12:57:54Z\", \"url\": \"u\"}\n{\"text\": \"abc\", \"timestamp\": \"2019-04-25T12:57:54Z\", \"url\": \"u\"}\n",
            [5, 3],
            "text",
        ),
        (
            "{\"text\": \"abcde\", \"meta\": {\"pile_set_name\": \"x\"}}\n{\"text\": \"abc\", \"meta\": {\"pile_set_name\": \"x\"}}\n",
            [5, 3],
            "text",
        ),
        // MT-Bench.
        (
            "{\"question_id\": 81, \"question\": \"ab\", \"answer\": \"cde\"}\n{\"question_id\": 82, \"question\": \"a\", \"answer\": \"bc\"}\n",
            [5, 3],
            "question + answer",
        ),
        // Alpaca.
        (
            r#"[{"instruction": "ab", "input": "c", "output": "de"}, {"instruction": "a", "input": "", "output": "bc"}]"#,
            [5, 3],
            "instruction + input + output",
        ),
        ("prompt,response\nab,cde\na,bc\n", [5, 3], "prompt + response"),
        // Anthropic's HH-RLHF.
        (r#"[{"chosen": "abcde", "rejected": "xyz12345"}, {"chosen": "abc", "rejected": "z"}]"#, [5, 3], "chosen"),
        ("label,text\n1,\"ab\nde\"\n0,#bc\n", [5, 3], "text"),
        // A token count is preferred to the text.
        (
            "{\"text\": \"abcdefghijkl\", \"token_count\": 5}\n{\"text\": \"abcdefghi\", \"token_count\": 3}\n",
            [5, 3],
            "token_count",
        ),
        // Turns are not tokens.
        (
            "{\"text\": \"abcdeabcdeabcdeabcdeabcdeabcdeabcde\", \"length\": 2}\n{\"text\": \"abcdeabcdeabcdeabcdeabcdeabcdeabcdex\", \"length\": 2}\n",
            [35, 36],
            "text",
        ),
        // A length that counts characters gives the same result as the text.
        ("{\"text\": \"漢字漢字漢\", \"length\": 15}\n{\"text\": \"漢字漢\", \"length\": 9}\n", [5, 3], "text"),
        ("{\"text\": \"abcde\", \"length\": 5}\n{\"text\": \"abc\", \"length\": 3}\n", [5, 3], "text"),
    ] {
        let (found, images, found_source) = lengths(file);
        assert_eq!((found.as_slice(), images.len()), (&tokens[..], 0), "{file}");
        assert!(found_source.ends_with(&format!(" {source}")), "{file}: {found_source}");
    }
}

#[test]
fn characters_per_token_can_be_changed() {
    let file = "{\"text\": \"abcdefgh\"}\n{\"text\": \"abcdefghi\"}\n";
    for (per_token, expected) in [(4.0, [2, 3]), (2.0, [4, 5])] {
        let options = Options { characters_per_token: per_token, ..Options::default() };
        let imported = super::super::import(file.as_bytes(), &options).expect("texts");
        assert_eq!(imported.dataset, Dataset::Rows { text_tokens: expected.to_vec(), images: vec![], shaped: None });
        let expected = format!("divided by {per_token} characters per token");
        assert!(imported.report.warnings[0].contains(&expected), "{:?}", imported.report.warnings);
    }
}

#[test]
fn characters_per_token_are_checked() {
    for characters_per_token in [0.0, -4.0, 0.09, 101.0, f64::NAN, f64::INFINITY] {
        let options = Options { characters_per_token, ..Options::default() };
        let error = super::super::import(b"5\n7\n", &options);
        assert!(matches!(error, Err(ImportError::CharactersPerToken { .. })), "{characters_per_token}");
    }
}

/// A tokenizer that splits at white space.
const WORD_TOKENIZER: &str = r#"{"version": "1.0", "truncation": {"direction": "Right", "max_length": 2, "strategy": "LongestFirst", "stride": 0},
    "padding": null, "added_tokens": [], "normalizer": null, "pre_tokenizer": {"type": "Whitespace"}, "post_processor": null,
    "decoder": null, "model": {"type": "WordLevel", "vocab": {"[UNK]": 0, "a": 1}, "unk_token": "[UNK]"}}"#;

#[test]
fn a_tokenizer_counts_exactly() {
    let tokenizer = Tokenizer::read(WORD_TOKENIZER.as_bytes()).expect("a tokenizer");
    let options = Options { tokenizer: Some(&tokenizer), ..Options::default() };
    let file = "{\"messages\": [{\"role\": \"user\", \"content\": \"a b c\"}, {\"role\": \"assistant\", \"content\": \"d e\"}]}\n{\"messages\": [{\"role\": \"user\", \"content\": \"a\"}]}\n";
    let imported = super::super::import(file.as_bytes(), &options).expect("texts");
    assert_eq!(imported.dataset, Dataset::Rows { text_tokens: vec![5, 1], images: vec![], shaped: None });
    assert_eq!(imported.report.source, "tokens of the text of key messages");
    assert!(imported.report.warnings.iter().all(|warning| !warning.contains("divided")));
    for broken in ["", "{}", "[1, 2]", "{\"model\": {\"type\": \"BPE\"}}"] {
        assert!(matches!(Tokenizer::read(broken.as_bytes()), Err(ImportError::Tokenizer { .. })), "{broken}");
    }
    for (file, reason) in [
        ("\u{a}\u{e}<unk>", "no JSON"),
        ("{\"text\": \"a\"}\n{\"text\": \"b\"}\n", "other JSON"),
        ("{\"hello\": 5, \"world\": 7}", "tokenizer_config.json are other files"),
        ("{\"version\": \"1.0\", \"model\": {\"type\": \"Tokens\"}}", "model \"Tokens\" is none of BPE"),
    ] {
        let error = Tokenizer::read(file.as_bytes()).expect_err(reason).to_string();
        assert!(error.contains(reason), "{file}: {error}");
    }
    // Regression test: the crate panicked if the file ends or is invalid inside the decoder.
    for decoder in [r#"{"type" "#, r#"{"type": "ByteLevel"#, "nul"] {
        let broken = WORD_TOKENIZER.replace(r#""decoder": null"#, &format!(r#""decoder": {decoder}"#));
        assert!(matches!(Tokenizer::read(broken.as_bytes()), Err(ImportError::Tokenizer { .. })), "{broken}");
    }
}

/// Text columns are also measured in tables, and rows without text are skipped.
#[test]
fn rows_without_text_are_left_out() {
    let good = "{\"text\": \"abc\"}\n".repeat(20);
    let imported = characters(&format!("{good}{{\"text\": \"\"}}\n{{\"text\": null}}\n"), None);
    assert_eq!((imported.report.parsed, imported.report.skipped), (20, 2));
    assert_eq!(imported.report.first_problem.as_deref(), Some("line 21: there is no text"));
}

/// The tokens of a chat template depend on the number of messages.
#[test]
fn the_chat_template_is_named_with_its_size() {
    let turn = r#"{"role":"user","content":"hello hello"},{"role":"assistant","content":"hello hello"}"#;
    let file = format!("{{\"messages\":[{turn}]}}\n{{\"messages\":[{turn},{turn}]}}\n");
    let report = import(file.as_bytes(), None).expect("lengths").report;
    let found = |text: &str| report.warnings.iter().any(|warning| warning.contains(text));
    assert!(found("3.0 messages on average, so about 15 tokens per sample"), "{:?}", report.warnings);
}

/// Four characters per token hold for languages with blanks only.
#[test]
fn texts_without_words_are_named() {
    let warnings = |text: &str, options: &Options<'_>| {
        let file = format!("{{\"messages\": [{{\"role\": \"user\", \"content\": \"{text}\"}}]}}\n").repeat(2);
        super::super::import(file.as_bytes(), options).expect(&file).report.warnings.concat()
    };
    let base64 = "QmFzZTY0IGhhcyBubyBibGFua3M".repeat(4);
    for (text, expected) in [
        ("\u{4f60}\u{597d}\u{4e16}\u{754c}", "100 % of the characters of messages"),
        ("\u{30c6}\u{30ad}\u{30b9}\u{30c8} ab", "57 % of the characters"),
        (base64.as_str(), "Most texts of messages have no blanks"),
    ] {
        assert!(
            warnings(text, &Options::default()).contains(expected),
            "{text}: {}",
            warnings(text, &Options::default())
        );
    }
    for text in ["ab cd efgh ij ".repeat(9).as_str(), "word", "caf\u{e9} \u{fc}ber"] {
        let found = warnings(text, &Options::default());
        assert!(!found.contains("no blanks") && !found.contains("scripts"), "{text}: {found}");
    }
}
