//! Lengths that contradict the content of their rows, and texts that are cut.

use super::*;

fn notes(file: &str) -> String {
    match import(file.as_bytes(), None) {
        Err(ImportError::Unclear { candidates }) => {
            candidates.into_iter().filter_map(|candidate| candidate.note).collect::<Vec<_>>().join("; ")
        }
        other => panic!("{file:?}: {other:?}"),
    }
}

fn warns(file: &str, words: &[&str]) -> bool {
    let (_, _, report) = rows(file);
    report.warnings.iter().any(|warning| words.iter().all(|word| warning.contains(word)))
}

#[test]
fn numbers_of_characters_and_words_are_no_tokens() {
    let row = |text: &str, tokens: usize| format!("{{\"text\": \"{text}\", \"num_tokens\": {tokens}}}\n");
    let characters = row("abc de", 6) + &row("fgh", 3);
    assert!(notes(&characters).contains("numbers of characters of text"), "{}", notes(&characters));
    let bytes = row("äbc de", 7) + &row("fgh", 3);
    assert!(notes(&bytes).contains("numbers of characters of text"), "{}", notes(&bytes));
    assert_eq!(import_rows(&characters, Some("num_tokens")).0, [6, 3]);
    let words = row("abc de", 2) + &row("fgh", 1);
    assert!(warns(&words, &["num_tokens equals the number of words"]));
    let tokens = row("abc de", 3) + &row("fgh", 2);
    assert!(!warns(&tokens, &["equals"]));
}

#[test]
fn lengths_beside_features_are_asked_for() {
    for file in [
        "{\"input_features\": [[0.1, 0.2]], \"input_length\": 900, \"labels\": [4, 5]}\n",
        "{\"input_values\": [0.1, 0.2, 0.3], \"input_length\": 900}\n",
        "{\"audio\": \"a.wav\", \"input_length\": 900}\n",
    ] {
        assert!(notes(&file.repeat(2)).contains("not tokens"), "{file}: {}", notes(&file.repeat(2)));
    }
    assert_eq!(rows("input_length,id\n900,a\n800,b\n").0, [900, 800]);
}

#[test]
fn cut_lists_and_texts_warn() {
    let ids = "{\"input_ids\": [4, 5, 6], \"num_tokens\": 9}\n{\"input_ids\": [7, 5], \"num_tokens\": 2}\n";
    assert!(warns(ids, &["num_tokens is larger", "input_ids"]));
    let equal = "{\"input_ids\": [4, 5, 6], \"num_tokens\": 3}\n{\"input_ids\": [7, 5], \"num_tokens\": 2}\n";
    assert!(!warns(equal, &["larger"]));
    let row = |text: &str| format!("{{\"text\": \"{text}\"}}\n");
    let texts = |count: usize, ending: &str| -> String {
        (0..6).map(|first| row(&format!("{first}{}{ending}", "ab ".repeat(count + first)))).collect()
    };
    let limited: String = (0..6).map(|first| row(&format!("{first} {}", "ab ".repeat(100)))).collect();
    assert!(warns(&limited, &["6 of the first 6 texts of text have exactly 302 characters"]));
    assert!(warns(&texts(9, "..."), &["end with dots"]));
    assert!(warns(&texts(9, "\u{2026}"), &["end with dots"]));
    assert!(!warns(&texts(60, "."), &["cut"]));
    // Equal texts and short texts.
    assert!(!warns(&row(&"ab ".repeat(100)).repeat(6), &["cut"]));
    assert!(!warns(&row("abc").repeat(6), &["cut"]));
}

#[test]
fn more_tokens_than_bytes_are_named() {
    let rows = |factor: usize| {
        let row =
            |words: usize| format!("{{\"text\": \"{}\", \"num_tokens\": {}}}\n", "word ".repeat(words), words * factor);
        let file: String = (3..9).map(row).collect();
        super::super::import(file.as_bytes(), &Options::default()).expect(&file).report.warnings.concat()
    };
    assert!(rows(12).contains("num_tokens is larger than the number of bytes of the texts"), "{}", rows(12));
    assert!(!rows(2).contains("number of bytes of the texts"), "{}", rows(2));
}
