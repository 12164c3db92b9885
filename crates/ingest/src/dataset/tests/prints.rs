//! Prints of databases, preference files, and files that hold no lengths.

use super::*;

#[test]
fn tables_of_sql_server_and_oracle_are_read() {
    let sqlcmd = "id          num_tokens \n----------- -----------\n          0         512\n          1        1024\n\n(2 rows affected)\n";
    let oracle = "\n\tID NUM_TOKENS\n---------- ----------\n\t 0\t  512\n\t 1\t 1024\n\n2 rows selected.\n";
    for file in [sqlcmd, oracle] {
        let (lengths, _, report) = rows(file);
        assert_eq!(lengths, [512, 1024], "{file}");
        assert_eq!(report.skipped, 0, "{file}");
    }
}

/// OpenAI's preference files: the prompt is inside `input`, and the answer has another name than
/// `chosen`.
#[test]
fn preferred_answers_are_added_to_their_prompt() {
    let answer = |name: &str, text: &str| format!(r#""{name}": [{{"role": "assistant", "content": "{text}"}}]"#);
    let prompt = r#"{"messages": [{"role": "user", "content": "ab cd ef"}], "tools": []}"#;
    let openai = format!(
        "{{\"input\": {prompt}, {}, {}}}\n",
        answer("preferred_output", "gh ij kl mn "),
        answer("non_preferred_output", "no")
    );
    let (lengths, _, report) = rows(&openai.repeat(2));
    assert_eq!(lengths, [5, 5]);
    assert!(report.source.ends_with("input.messages + preferred_output"), "{}", report.source);
    assert!(report.warnings.iter().any(|warning| warning.contains("non_preferred_output")), "{:?}", report.warnings);
    let messages = format!(
        "{{\"messages\": [{{\"role\": \"user\", \"content\": \"ab cd ef\"}}], {}, {}}}\n",
        answer("chosen", "gh ij kl mn "),
        answer("rejected", "no")
    );
    assert_eq!(rows(&messages.repeat(2)).0, [5, 5]);
    let texts = "{\"prompt\": \"ab cd ef\", \"preferred_response\": \"gh ij kl mn \", \"rejected_response\": \"no\"}\n";
    assert_eq!(rows(&texts.repeat(2)).0, [5, 5]);
}

#[test]
fn files_without_lengths_are_named() {
    for (file, expected) in [
        (
            r#"{"_data_files": [{"filename": "data-00000-of-00001.arrow"}], "_fingerprint": "a", "_split": "train"}"#,
            "the state of a Hugging Face dataset",
        ),
        (
            r#"{"citation": "", "features": {"text": {"dtype": "string"}}, "splits": {"train": {"num_examples": 5}}}"#,
            "the description of a Hugging Face dataset",
        ),
        (
            r#"{"chunks": [{"chunk_bytes": 5, "chunk_size": 7, "filename": "chunk-0-0.bin"}], "config": {"chunk_bytes": 5}}"#,
            "an index of chunks",
        ),
        (r#"{"metadata": {"total_size": 5}, "weight_map": {"a": "b"}}"#, "an index of model weights"),
        (r#"{"architectures": ["LlamaForCausalLM"], "hidden_size": 64}"#, "the configuration of a model"),
        (r#"{"global_step": 5, "log_history": [{"loss": 2.5, "step": 5}]}"#, "the log of a training"),
        ("<table border=\"1\">\n<tr><td>512</td></tr>\n</table>", "an HTML table"),
        ("<?xml version=\"1.0\"?>\n<a>512</a>\n", "an XML file"),
        ("[   0    1    2 ... 4997 4998 4999]\n", "shortened with"),
        ("[[sample]]\nnum_tokens = 512\n", "TOML or INI"),
        ("Total samples: 1000\nTotal tokens: 800500\nMean length: 800.5\nMax length: 8192\n", "Add percentiles"),
    ] {
        let message = refusal(file);
        assert!(message.contains(expected) && !message.contains("choose one of"), "{file}: {message}");
    }
}

/// Percentiles under labels of several words.
#[test]
fn labels_of_statistics_have_further_words() {
    let file = "Number of samples: 8\nMean length: 333.3\nMin length: 20\n25th percentile: 100\nMedian length: 300\n75th percentile: 500\nMax length: 900\n";
    match import(file.as_bytes(), None) {
        Ok(Imported { dataset: Dataset::Histogram { edges, counts }, .. }) => {
            assert_eq!((edges, counts), (vec![20.0, 100.0, 300.0, 500.0, 900.0], vec![2.0; 4]));
        }
        other => panic!("{other:?}"),
    }
}
