//! Sample parts in several columns: added parts, repeated parts, and skipped parts that a warning
//! names. The tests use one character per token.

use super::super::Tokenizer;
use super::*;

fn read(file: &str, options: &Options<'_>) -> (Vec<u32>, Vec<String>) {
    match super::super::import(file.as_bytes(), options) {
        Ok(Imported { dataset: Dataset::Rows { text_tokens, .. }, report }) => (text_tokens, report.warnings),
        other => panic!("{file}: {other:?}"),
    }
}

fn texts(file: &str) -> (Vec<u32>, Vec<String>) {
    read(file, &Options { characters_per_token: 1.0, ..Options::default() })
}

fn warns(warnings: &[String], terms: &[&str]) -> bool {
    warnings.iter().any(|warning| terms.iter().all(|word| warning.contains(word)))
}

/// A text with 50 characters.
const LONG: &str = "A long paragraph of evidence, of fifty characters.";

#[test]
fn every_numbered_part_is_added_or_named() {
    for (file, expected, text) in [
        ("system_tokens,user_tokens,assistant_tokens\n20,300,100\n", 420, "user_tokens"),
        ("context_tokens,question_tokens,answer_tokens\n1000,50,20\n", 1070, "question_tokens"),
        ("system_tokens,prompt_tokens,completion_tokens\n200,50,30\n", 280, "system_tokens"),
        ("sys_len,input_len,output_len\n200,50,30\n", 280, "sys_len"),
        ("prompt_tokens,tool_tokens,completion_tokens\n50,10,30\n", 80, "Not added: tool_tokens"),
        ("prompt_tokens,completion_tokens,reasoning_tokens\n300,100,2000\n", 2400, "reasoning_tokens"),
        ("prompt_tokens,thinking_tokens,completion_tokens\n300,60,100\n", 400, "Not added: thinking_tokens"),
        ("prompt_tokens,completion_tokens\n300,100\n", 400, "Prompt and completion are added"),
    ] {
        let (lengths, warnings) = texts(file);
        assert_eq!(lengths, [expected], "{file}");
        assert!(warns(&warnings, &[text]), "{file}: {warnings:?}");
    }
}

#[test]
fn texts_inside_objects_are_counted_or_named() {
    for (file, expected, message) in [
        // HotpotQA: 1 + 50 characters of the context.
        (
            format!(r#"[{{"question": "Who?", "answer": "yes", "context": {{"title": ["t"], "sentences": [["{LONG}"]]}}}}]"#),
            4 + 3 + 51,
            "inside context are counted",
        ),
        (
            format!(r#"[{{"question": "Who?", "answer": "yes", "passage": {{"title": "t", "text": "{LONG}"}}}}]"#),
            7,
            "not counted: passage",
        ),
        (
            format!(r#"[{{"question": "Who?", "answer": "yes", "documents": ["{LONG}", "{LONG}"]}}]"#),
            7,
            "not counted: documents",
        ),
        (
            format!(r#"[{{"instruction": "Add", "examples": [{{"input": "{LONG}", "output": "x"}}], "output": "yes"}}]"#),
            6,
            "not counted: examples",
        ),
        // OpenAssistant.
        (
            r#"[{"prompt": {"text": "abcd", "role": "prompter", "replies": [{"text": "efg", "role": "assistant", "replies": []}, {"text": "x", "role": "assistant"}]}}]"#.to_owned(),
            7,
            "only the first is counted",
        ),
        (format!(r#"[{{"translation": {{"en": "{LONG}", "de": "abc"}}}}]"#), 53, "inside translation"),
        (format!(r#"[{{"doc": {{"text": "{LONG}"}}, "n": 1}}]"#), 50, "inside doc"),
        (format!(r#"[{{"prompt": "ab", "completion": {{"text": "{LONG}"}}}}]"#), 52, "inside completion"),
    ] {
        let (lengths, warnings) = texts(&file);
        assert_eq!(lengths, [expected], "{file}");
        assert!(warns(&warnings, &[message]), "{file}: {warnings:?}");
    }
    let inside = format!(r#"[{{"messages": [{{"role": "user", "content": "ab", "evidence": "{LONG}"}}]}}]"#);
    let (lengths, warnings) = texts(&inside);
    assert_eq!(lengths, [2]);
    assert!(warns(&warnings, &["Other text in the messages", "evidence"]), "{warnings:?}");
    // Counts are not messages.
    let counts = r#"[{"tokens_used": {"input": 9, "output": 12}}, {"tokens_used": {"input": 5, "output": 2}}]"#;
    assert!(import(counts.as_bytes(), None).is_err());
}

#[test]
fn repeated_texts_are_counted_once() {
    for (file, expected, name) in [
        (r#"[{"prompt": "abcdefghij", "chosen": "Human: abcdefghij Assistant: k", "rejected": "x"}]"#, 30, "prompt"),
        (r#"[{"prompt": "abcdefghij", "response": "abcdefghijkl"}]"#, 12, "prompt"),
        (
            r#"[{"system": "be kind to all", "conversations": [{"from": "system", "value": "be kind to all"}, {"from": "human", "value": "hi"}]}]"#,
            16,
            "system",
        ),
        (
            r#"[{"instruction": "Translate: the river is long", "input": "the river is long", "output": "x"}]"#,
            29,
            "input",
        ),
    ] {
        let (lengths, warnings) = texts(file);
        assert_eq!(lengths, [expected], "{file}");
        assert!(warns(&warnings, &["is not added", "repeats it", name]), "{file}: {warnings:?}");
        assert!(!warns(&warnings, &["Other text is not counted", name]), "{file}: {warnings:?}");
    }
    // Texts with a common pattern, and an earlier turn.
    let pattern = r#"[{"prompt": "abcdabcdabcd", "response": "abcdabcdabcdabcdabcd"}]"#;
    assert_eq!(texts(pattern).0, [32]);
    let turns = r#"[{"history": [["hello there, you", "yes"]], "prompt": "hello there, you", "response": "no"}]"#;
    assert_eq!(texts(turns).0, [16 + 3 + 16 + 2]);
    // The completion is a part of the context, and is also trained on.
    let squad = r#"[{"context": "the river Rhine is long", "question": "which river?", "answer": "river Rhine"}]"#;
    assert_eq!(texts(squad).0, [23 + 12 + 11]);
}

#[test]
fn completions_next_to_conversations_and_reasoning_are_added() {
    for (file, expected) in [
        (r#"[{"messages": [{"role": "user", "content": "abc"}], "response": "de"}]"#, 5),
        (
            r#"[{"messages": [{"role": "user", "content": "abc"}, {"role": "assistant", "content": "f"}], "response": "de"}]"#,
            4,
        ),
        (r#"[{"prompt": "abc", "reasoning": "defg", "response": "de"}]"#, 9),
        (r#"[{"inputs": "abc", "targets": "de"}]"#, 5),
        // verl prompts.
        (r#"[{"prompt": [{"role": "user", "content": "abc"}], "extra_info": {"question": "abc", "answer": "5"}}]"#, 3),
        (
            r#"[{"systemInstruction": {"role": "system", "parts": [{"text": "ab"}]}, "contents": [{"role": "user", "parts": [{"text": "c"}]}]}]"#,
            3,
        ),
        (r#"[{"conversation": [{"system": "", "input": "abc", "output": "de"}]}]"#, 5),
        (r#"[{"text_list": ["abc", "de"], "url": "u"}]"#, 5),
    ] {
        assert_eq!(texts(file).0, [expected], "{file}");
    }
}

#[test]
fn first_completion_is_counted() {
    for file in [r#"[{"prompt": "ab", "output": ["cd", "efg"]}]"#, r#"[{"question": "ab", "answer": ["cd", "efg"]}]"#] {
        let (lengths, warnings) = texts(file);
        assert_eq!(lengths, [4], "{file}");
        assert!(warns(&warnings, &["Only the first text", "upload a row per answer"]), "{warnings:?}");
    }
}

#[test]
fn rows_without_a_part_have_a_warning() {
    let half = "{\"instruction\": \"ab\", \"output\": \"c\"}\n{\"instruction\": \"ab\"}\n".repeat(5);
    let (lengths, warnings) = texts(&half);
    assert_eq!(lengths.len(), 10);
    assert!(warns(&warnings, &["output has no value in 5 of the first 10 rows"]), "{warnings:?}");
    // Every fifth text is empty.
    let empty =
        "{\"text\": \"\"}\n{\"text\": \"ab\"}\n{\"text\": \"ab\"}\n{\"text\": \"ab\"}\n{\"text\": \"ab\"}\n".repeat(4);
    let (lengths, warnings) = texts(&empty);
    assert_eq!(lengths, [2; 16]);
    assert!(warns(&warnings, &["4 of 20 rows have no text"]), "{warnings:?}");
}

#[test]
fn constant_number_next_to_texts_is_not_used() {
    let row = |text: &str| format!("{{\"text\": \"{text}\", \"num_tokens\": 512}}\n");
    let (lengths, warnings) = texts(&(row("ab") + &row("abcdef") + &row("abcdefghijkl")));
    assert_eq!(lengths, [2, 6, 12]);
    assert!(warns(&warnings, &["num_tokens is the same in every row"]), "{warnings:?}");
    assert_eq!(texts(&(row("abc") + &row("abd") + &row("abe"))).0, [512; 3], "texts of one length");
}

#[test]
fn choices_that_change_nothing_have_a_warning() {
    let definition = r#"{"version": "1.0", "truncation": null, "padding": null, "added_tokens": [], "normalizer": null, "pre_tokenizer": {"type": "Whitespace"}, "post_processor": null, "decoder": null, "model": {"type": "WordLevel", "vocab": {"[UNK]": 0}, "unk_token": "[UNK]"}}"#;
    let tokenizer = Tokenizer::read(definition.as_bytes()).expect("a tokenizer");
    let file = "{\"text\": \"a b c\", \"num_tokens\": 7}\n{\"text\": \"a b\", \"num_tokens\": 5}\n";
    let (lengths, warnings) = read(file, &Options { tokenizer: Some(&tokenizer), ..Options::default() });
    assert_eq!(lengths, [7, 5]);
    assert!(warns(&warnings, &["tokenizer is not used", "num_tokens"]), "{warnings:?}");
    let options = Options { unit: Some(super::super::Unit::Bytes), ..Options::default() };
    let (_, warnings) = read("{\"text\": \"a b c\"}\n{\"text\": \"a b\"}\n", &options);
    assert!(warns(&warnings, &["unit bytes is not used"]), "{warnings:?}");
}

#[test]
fn rows_with_two_kinds_have_a_warning() {
    let sample = "{\"event\": \"sample\", \"id\": 1, \"num_tokens\": 5}\n";
    let batch = "{\"event\": \"batch_end\", \"num_tokens\": 10}\n";
    let (lengths, warnings) = texts(&format!("{sample}{sample}{batch}"));
    assert_eq!(lengths, [5, 5, 10]);
    assert!(warns(&warnings, &["several kinds by event", "2 sample, 1 batch_end"]), "{warnings:?}");
    let input = "{\"type\": \"a\", \"num_tokens\": 5}\n{\"type\": \"b\", \"num_tokens\": 7}\n";
    assert!(texts(input).1.is_empty(), "{:?}", texts(input).1);
}

#[test]
fn messages_that_python_prints_are_read() {
    let csv = "messages\n\"[{'role': 'user', 'content': \"\"it's\"\"}\n {'role': 'assistant', 'content': 'ok'}]\"\n";
    assert_eq!(texts(csv).0, [6]);
}

#[test]
fn other_layouts_are_read() {
    for (file, expected) in [
        ("{\"num_tokens\": {\"$numberInt\": \"512\"}}\n{\"num_tokens\": {\"$numberLong\": \"300\"}}\n".to_owned(), vec![512, 300]),
        (format!("\"{LONG}\"\n\"{LONG} x\"\n"), vec![50, 52]),
        (
            r#"{"version": "1.1", "data": [{"title": "T", "paragraphs": [{"context": "abc", "qas": [{"question": "de", "answers": [{"text": "f", "answer_start": 0}]}]}]}]}"#.to_owned(),
            vec![6],
        ),
    ] {
        assert_eq!(texts(&file).0, expected, "{file}");
    }
    match import(br#"{"doc1": 735, "doc2": 512, "doc3": 90, "doc4": 12}"#, None) {
        Err(ImportError::Unclear { candidates }) => assert_eq!(names(&candidates), ["key", "value"]),
        other => panic!("{other:?}"),
    }
    let selected = import_rows(r#"{"doc1": 735, "doc2": 512, "doc3": 90, "doc4": 12}"#, Some("value")).0;
    assert_eq!(selected, [735, 512, 90, 12]);
}

#[test]
fn text_images_are_counted() {
    let file = "num_tokens,images\n5,\"['a.jpg', 'b.jpg', 'c.jpg']\"\n7,\"[\"\"a.jpg\"\", \"\"b.jpg\"\"]\"\n9,a.jpg;b.jpg\n3,[]\n4,N/A\n";
    let (lengths, images, _) = rows(file);
    assert_eq!((lengths, images), (vec![5, 7, 9, 3, 4], vec![3, 2, 2, 0, 0]));
}

/// Token counts of sections of a sample.
#[test]
fn sections_are_added() {
    for (file, source) in [
        ("title_tokens,abstract_tokens,body_tokens\n5,100,3000\n7,120,2500\n", vec![3105, 2627]),
        ("text_tokens,speech_tokens\n5,100\n7,120\n", vec![105, 127]),
        ("text_tokens,tool_tokens\n5,100\n7,120\n", vec![105, 127]),
        ("article_tokens,summary_tokens\n500,10\n700,12\n", vec![510, 712]),
        ("code_tokens,doc_tokens\n500,10\n700,12\n", vec![510, 712]),
        // A total, counts of a subset, and prompts.
        ("num_tokens,title_tokens\n500,10\n700,12\n", vec![500, 700]),
        ("text_tokens,padding_tokens\n500,10\n700,12\n", vec![500, 700]),
    ] {
        assert_eq!(rows(file).0, source, "{file}");
    }
    let (_, _, report) = rows("article_tokens,summary_tokens\n500,10\n700,12\n");
    assert!(report.warnings.iter().any(|warning| warning.contains("are added")), "{:?}", report.warnings);
    let text = "{\"abstract\": \"a text that is longer than forty characters\", \"body_tokens\": 700}\n".repeat(2);
    let (_, _, report) = rows(&text);
    assert!(report.warnings.iter().any(|warning| warning.contains("not counted: abstract")), "{:?}", report.warnings);
    // A pivot by source.
    assert!(refusal("month,web_tokens,code_tokens,book_tokens\n1,5000,700,10\n2,6000,800,12\n").contains("not clear"));
}

/// Texts of sections of a sample.
#[test]
fn texts_of_one_sample_are_added() {
    for (first, second) in [
        ("article", "summary"),
        ("article", "highlights"),
        ("document", "abstract"),
        ("code", "docstring"),
        ("code", "doc"),
        ("text", "tool_calls"),
    ] {
        let file = format!("{{\"{first}\": \"abcdefgh\", \"{second}\": \"ijkl\"}}\n").repeat(2);
        assert_eq!(rows(&file).0, [3, 3], "{file}");
    }
    let title = "{\"title\": \"abcd\", \"abstract\": \"abcd\", \"body\": \"abcdefgh\"}\n".repeat(2);
    assert_eq!(rows(&title).0, [4, 4]);
    let page = "{\"title\": \"abcd\", \"text\": \"abcdefgh\"}\n".repeat(2);
    assert_eq!(rows(&page).0, [2, 2]);
    // Two forms of one page.
    let forms = "{\"html\": \"<p>a text</p>\", \"markdown\": \"a text\"}\n".repeat(2);
    assert!(refusal(&forms).contains("html"), "{}", refusal(&forms));
    assert_eq!(import_rows(&forms, Some("markdown")).0, [2, 2]);
    let chosen = "{\"html\": \"<p>a text</p>\", \"text\": \"a text\"}\n".repeat(2);
    let (lengths, _, report) = rows(&chosen);
    assert_eq!(lengths, [2, 2]);
    assert!(report.warnings.iter().any(|warning| warning.contains("not counted: html")), "{:?}", report.warnings);
}

#[test]
fn lists_of_completions_are_named() {
    for (name, value) in
        [("response_lengths", "[5, 7]"), ("completion_lens", "[5, 7]"), ("response_tokens", "[[1, 2], [3]]")]
    {
        let (lengths, _, report) = rows(&format!("{{\"prompt_length\": 9, \"{name}\": {value}}}\n").repeat(2));
        assert_eq!(lengths, [9, 9]);
        let expected = format!("{name} holds lists, such as several completions");
        assert!(report.warnings.iter().any(|warning| warning.contains(&expected)), "{name}: {:?}", report.warnings);
    }
}
