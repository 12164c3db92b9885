//! Files that look like lengths but are not, or that contain lengths in another layout.

use super::*;

fn unclear(file: &str) -> Vec<super::super::Candidate> {
    match import(file.as_bytes(), None) {
        Err(ImportError::Unclear { candidates }) => candidates,
        other => panic!("{file:?}: {other:?}"),
    }
}

/// Reads with one character per token.
fn texts(file: &str) -> (Vec<u32>, super::super::Report) {
    let options = Options { characters_per_token: 1.0, ..Options::default() };
    match super::super::import(file.as_bytes(), &options) {
        Ok(Imported { dataset: Dataset::Rows { text_tokens, .. }, report }) => (text_tokens, report),
        other => panic!("{file}: {other:?}"),
    }
}

fn has_warning(report: &super::super::Report, terms: &[&str]) -> bool {
    report.warnings.iter().any(|warning| terms.iter().all(|word| warning.contains(word)))
}

/// Packed samples: the list values are lengths. The element count is not a length.
#[test]
fn length_lists_are_not_counted() {
    for name in ["num_tokens", "text_tokens", "prompt_tokens"] {
        let file = format!("{{\"{name}\": [512, 733]}}\n{{\"{name}\": [1024]}}\n");
        let candidates = unclear(&file);
        assert_eq!(candidates[0].name, name, "{file}");
        assert!(candidates[0].note.as_deref().is_some_and(|note| note.contains("elements of each list")), "{file}");
        let (lengths, _, report) = import_rows(&file, Some(name));
        // `prompt_tokens` may contain token IDs.
        let expected = if name == "num_tokens" { vec![512, 733, 1024] } else { vec![2, 1] };
        assert_eq!(lengths, expected, "{file}");
        assert!(has_warning(&report, &["list", name]), "{:?}", report.warnings);
    }
    for name in ["seqlens", "seq_lens", "lengths"] {
        let (lengths, _, report) = rows(&format!("{{\"{name}\": [512, 733]}}\n{{\"{name}\": [1024]}}\n"));
        assert_eq!(lengths, [512, 733, 1024], "{name}");
        assert!(has_warning(&report, &["Each number", name]), "{:?}", report.warnings);
    }
    for name in ["input_ids", "tokens", "token_ids"] {
        assert_eq!(rows(&format!("{{\"{name}\": [101, 7, 102]}}\n{{\"{name}\": [101]}}\n")).0, [3, 1], "{name}");
    }
    // Token IDs, and the lengths of the packed samples.
    let packed = "{\"seqlens\": [2, 1], \"input_ids\": [7, 8, 9]}\n{\"seqlens\": [2], \"input_ids\": [7, 8]}\n";
    assert_eq!(rows(packed).0, [2, 1, 2]);
    // If a number column contains a list in a later row, the list is not counted.
    let later = "{\"num_tokens\": 5}\n".repeat(20) + "{\"num_tokens\": [5, 7]}\n";
    let (lengths, _, report) = rows(&later);
    assert_eq!((lengths, report.skipped), (vec![5; 20], 1));
}

#[test]
fn single_token_identifiers_are_not_lengths() {
    assert_eq!(unclear("input_ids\n101\n2009\n102\n")[0].name, "input_ids");
    assert_eq!(rows("tokens\n101\n2009\n").0, [101, 2009]);
    let (lengths, _, report) = rows(r#"{"tokens": [101, 2009]}"#);
    assert_eq!(lengths, [101, 2009]);
    assert!(has_warning(&report, &["read as lengths", "input_ids"]), "{:?}", report.warnings);
    assert_eq!(rows(r#"{"token_ids": [101, 2009, 102]}"#).0, [3], "one sample");
    let both =
        "{\"prompt_token_ids\": [1, 2, 3], \"token_ids\": [4, 5]}\n{\"prompt_token_ids\": [1], \"token_ids\": [4]}\n";
    let (lengths, _, report) = rows(both);
    assert_eq!(
        (lengths, report.source.as_str()),
        (vec![5, 2], "lengths of the lists of keys prompt_token_ids + token_ids")
    );
    assert!(has_warning(&report, &["are added"]), "{:?}", report.warnings);
}

#[test]
fn pandas_tables_are_rows() {
    for file in [
        r#"{"0": {"num_tokens": 5, "lang": "en"}, "1": {"num_tokens": 7, "lang": "de"}}"#,
        r#"{"a.txt": {"num_tokens": 5}, "b.txt": {"num_tokens": 7}}"#,
        r#"{"num_tokens": {"0": 5, "1": 7}}"#,
        r#"{"lang": {"0": "en", "1": "en"}, "num_tokens": {"0": 5, "1": 7}}"#,
        r#"{"columns": ["lang", "num_tokens"], "index": [0, 1], "data": [["en", 5], ["en", 7]]}"#,
        r#"{"columns": ["num_tokens"], "data": [[5], [7]]}"#,
        r#"{"schema": {"fields": []}, "data": [{"index": 0, "num_tokens": 5}, {"index": 1, "num_tokens": 7}]}"#,
    ] {
        assert_eq!(rows(file).0, [5, 7], "{file}");
    }
    // More rows than the maximum key count of other objects.
    let row = |row: u32| format!("\"{row}\": {{\"num_tokens\": {}}}", row + 1);
    let many = format!("{{{}}}", (0..3000).map(row).collect::<Vec<_>>().join(", "));
    assert_eq!(rows(&many).0.len(), 3000);
    let cell = |row: u32| format!("\"{row}\": {}", row + 1);
    let many = format!("{{\"num_tokens\": {{{}}}}}", (0..3000).map(cell).collect::<Vec<_>>().join(", "));
    assert_eq!(rows(&many).0.len(), 3000);
    for file in [
        r#"{"num_tokens": {"512": 30, "1024": 4}, "x": {"512": 3, "1024": 1}}"#,
        r#"{"train": {"num_tokens": 500}, "test": {"num_tokens": 70}}"#,
        r#"{"0": {"0": 5, "1": 7}}"#,
    ] {
        assert!(refusal(file).contains("orient=\"records\""), "{file}: {}", refusal(file));
    }
}

#[test]
fn splits_that_are_not_read_are_named() {
    let file = r#"{"train": [{"num_tokens": 5}, {"num_tokens": 7}], "validation": [{"num_tokens": 9}], "features": [{"name": "x"}]}"#;
    let (lengths, _, report) = rows(file);
    assert_eq!(lengths, [5, 7]);
    assert!(has_warning(&report, &["rows of train are read", "validation"]), "{:?}", report.warnings);
    assert!(!has_warning(&report, &["features"]), "{:?}", report.warnings);
}

#[test]
fn file_total_is_not_the_length() {
    for file in [
        "total_tokens,num_tokens\n21,5\n21,7\n21,9\n",
        "total_tokens,prompt_tokens,completion_tokens\n21,4,1\n21,5,2\n21,8,1\n",
    ] {
        let (lengths, _, report) = rows(file);
        assert_eq!(lengths, [5, 7, 9], "{file}");
        assert!(has_warning(&report, &["total_tokens is the same in every row"]), "{:?}", report.warnings);
    }
    assert_eq!(rows("total_tokens,lang\n21,en\n21,de\n").0, [21, 21], "nothing else is a length");
    assert_eq!(rows("total_tokens,prompt_tokens,completion_tokens\n5,4,1\n7,5,2\n").0, [5, 7]);
}

/// Episodes in frames, films in minutes, clips in seconds.
#[test]
fn length_next_to_media_needs_confirmation() {
    for file in [
        "episode_index,length,fps\n0,120,30\n1,95,30\n",
        "title,length,duration\na,120,5400\nb,95,4800\n",
        "{\"video\": \"a.mp4\", \"caption\": \"a long caption of a film\", \"length\": 375}\n{\"video\": \"b.mp4\", \"caption\": \"b\", \"length\": 12}\n",
        "length,num_frames\n120,16\n95,16\n",
    ] {
        assert!(names(&unclear(file)).contains(&"length"), "{file}");
    }
    assert_eq!(rows("num_tokens,fps\n120,30\n95,30\n").0, [120, 95]);
    let (lengths, _, report) = rows("length,lang\n120,en\n95,de\n");
    assert_eq!(lengths, [120, 95]);
    assert!(has_warning(&report, &["length is read as a number of tokens"]), "{:?}", report.warnings);
}

#[test]
fn length_next_to_media_is_not_dropped_by_a_rule() {
    let file = b"length,image_width,image_height\n120,448,448\n95,448,448\n";
    let read = import_by(file, None, Preprocessing::InternVl);
    assert!(matches!(read, Err(ImportError::Unclear { .. })), "{read:?}");
}

#[test]
fn decimal_numbers_need_confirmation() {
    for file in ["0.53\n12.25\n7.5\n", "[0.53, 12.25, 7.5]", "0.53 12.25 7.5 8"] {
        let candidates = unclear(file);
        assert_eq!(candidates[0].name, "1", "{file}");
        assert!(candidates[0].note.as_deref().is_some_and(|note| note.contains("decimals")), "{file}");
        assert_eq!(import_rows(file, Some("1")).0[..3], [1, 12, 8], "{file}");
    }
    assert_eq!(rows("5.0\n3.0\n7.5\n").0, [5, 3, 8], "most are whole");
}

/// 12,000 rows exceed the stored first rows, which determine the unit.
#[test]
fn later_values_with_another_unit_are_omitted() {
    let head = |value: &str| format!("num_tokens,x\n{}", format!("{value},1\n").repeat(12_000));
    for (first, later, why) in [
        ("512", "12 KB", "has a unit"),
        ("512", "3.2 s", "has a unit"),
        ("512", "97%", "has a unit"),
        ("512", "1.261", "has decimals"),
    ] {
        let (lengths, _, report) = rows(&format!("{}{later},1\n", head(first)));
        assert_eq!((lengths.len(), report.skipped), (12_000, 1), "{later}");
        let problem = report.first_problem.unwrap_or_default();
        assert!(problem.starts_with("line 12002: ") && problem.contains(why), "{problem}");
    }
    for later in ["512", "3 s"] {
        let file = format!("{}{later},1\n", head("12 KB"));
        let (lengths, _, report) = import_rows(&file, Some("num_tokens"));
        assert_eq!((lengths.len(), lengths[0], report.skipped), (12_000, 3000, 1), "{later}");
    }
}

/// TRL preference data with a separate prompt column, and datasets with two completions.
#[test]
fn every_sample_part_is_read() {
    for (file, expected, source) in [
        (
            r#"[{"prompt": [{"role": "user", "content": "abcd"}], "chosen": [{"role": "assistant", "content": "ef"}], "rejected": [{"role": "assistant", "content": "x"}]},
                {"prompt": [{"role": "user", "content": "a"}], "chosen": [{"role": "assistant", "content": "b"}], "rejected": [{"role": "assistant", "content": "x"}]}]"#,
            [6, 2],
            "prompt + chosen",
        ),
        (
            r#"[{"prompt": "abcd", "chosen": "ef", "rejected": "x"}, {"prompt": "a", "chosen": "b", "rejected": "x"}]"#,
            [6, 2],
            "prompt + chosen",
        ),
        (
            r#"[{"problem": "ab", "solution": "cdefg", "answer": "g7x"}, {"problem": "a", "solution": "bc", "answer": "x"}]"#,
            [7, 3],
            "problem + solution",
        ),
        (
            r#"[{"context": "abc", "question": "de", "answers": {"text": ["f", "f"], "answer_start": [1, 1]}}, {"context": "a", "question": "b", "answers": {"text": ["cd"], "answer_start": [1]}}]"#,
            [6, 4],
            "context + question + answers",
        ),
        (
            r#"[{"question": "ab", "answers": ["cd", "ce", "cf"]}, {"question": "a", "answers": ["b"]}]"#,
            [4, 2],
            "question + answers",
        ),
        (
            r#"[{"tools": [{"name": "get", "parameters": {"city": "s"}}], "messages": [{"role": "user", "content": "ab"}]}, {"tools": [], "messages": [{"role": "user", "content": "ab"}]}]"#,
            [4 + 3 + 10 + 4 + 1 + 2, 2],
            "tools + messages",
        ),
        (
            r#"[{"system_message": "abc", "messages": [{"role": "user", "content": "d"}]}, {"system_message": "", "messages": [{"role": "user", "content": "d"}]}]"#,
            [4, 1],
            "system_message + messages",
        ),
        (
            r#"[{"messages": "[{\"role\": \"user\", \"content\": \"abc\"}]"}, {"messages": "[{\"role\": \"user\", \"content\": \"d\"}]"}]"#,
            [3, 1],
            "messages",
        ),
        (
            "{\"custom_id\": \"a\", \"body\": {\"model\": \"m\", \"messages\": [{\"role\": \"user\", \"content\": \"abc\"}]}}\n{\"custom_id\": \"b\", \"body\": {\"model\": \"m\", \"messages\": [{\"role\": \"user\", \"content\": \"d\"}]}}\n",
            [3, 1],
            "body.messages",
        ),
    ] {
        let (lengths, report) = texts(file);
        assert_eq!(lengths, expected, "{file}");
        assert!(report.source.ends_with(source), "{file}: {}", report.source);
    }
}

#[test]
fn text_that_is_not_counted_is_named() {
    let (_, report) = texts(r#"[{"prompt": "abcd", "chosen": "ef", "rejected": "x", "id": "q"}]"#);
    assert!(has_warning(&report, &["Other text is not counted: rejected."]), "{:?}", report.warnings);
    let long = "a summary of more than forty characters in all";
    let (_, report) = texts(&format!(r#"[{{"text": "abc", "abstract": "{long}", "title": "t"}}]"#));
    assert!(has_warning(&report, &["Other text is not counted: abstract."]), "{:?}", report.warnings);
}

/// Columns that count the words or characters of texts.
#[test]
fn word_lengths_are_not_tokens() {
    let file = "{\"text\": \"one two three four\", \"length\": 4}\n{\"text\": \"one two\", \"length\": 2}\n";
    assert_eq!(texts(file).0, [18, 7]);
    let file = "{\"prompt\": \"abcdef\", \"response\": \"gh\", \"prompt_length\": 6, \"response_length\": 2}\n{\"prompt\": \"abc\", \"response\": \"d\", \"prompt_length\": 3, \"response_length\": 1}\n";
    let (lengths, report) = texts(file);
    assert_eq!((lengths, report.source.as_str()), (vec![8, 4], "characters of the text of keys prompt + response"));
    assert_eq!(rows("input_len,gen_len\n5,2\n7,1\n").0, [7, 8]);
}

#[test]
fn python_json_is_read() {
    let lines = "{\"loss\": NaN, \"num_tokens\": 5}\n{\"loss\": -Infinity, \"num_tokens\": 7}\n";
    let (lengths, _, report) = rows(lines);
    assert_eq!((lengths, report.format.as_str(), report.skipped), (vec![5, 7], "JSONL", 0));
    assert_eq!(rows(r#"[{"loss": NaN, "num_tokens": 5}, {"loss": 0.5, "num_tokens": 7}]"#).0, [5, 7]);
    let good = "{\"num_tokens\": 5}\n".repeat(20);
    let (lengths, _, report) = rows(&format!("{good}{{\"num_tokens\": NaN}}\n"));
    assert_eq!((lengths.len(), report.skipped), (20, 1));
    assert_eq!(report.first_problem.as_deref(), Some("line 21: there is no value"));
    let printed = "{\n  \"num_tokens\": 5,\n  \"text\": \"a\"\n}\n{\n  \"num_tokens\": 7,\n  \"text\": \"b\"\n}\n";
    let (lengths, _, report) = rows(printed);
    assert_eq!((lengths, report.format.as_str()), (vec![5, 7], "JSON documents"));
    assert!(refusal("{\n  \"num_tokens\": 5\n}\n{\n  \"num_tokens\": \n").contains("not JSON"));
}

#[test]
fn other_encodings_are_named() {
    let text: Vec<u8> = "\u{feff}5\n7\n".chars().flat_map(|c| u32::from(c).to_le_bytes()).collect();
    let error = import(&text, None).expect_err("UTF-32").to_string();
    assert!(error.contains("UTF-32") && error.contains("UTF-8"), "{error}");
}

/// Samples packed into one row, for each supported boundary column.
#[test]
fn packed_rows_are_split_by_every_form() {
    for column in [
        r#""seq_lens": [2, 4]"#,
        r#""position_ids": [0, 1, 0, 1, 2, 3]"#,
        r#""cu_seqlens": [0, 2, 6]"#,
        r#""seq_start_id": [0, 2]"#,
        r#""segment_ids": [1, 1, 2, 2, 2, 2]"#,
        r#""doc_ids": [7, 7, 9, 9, 9, 9]"#,
    ] {
        let row = format!("{{\"input_ids\": [5, 6, 7, 8, 9, 4], {column}}}\n");
        let imported = import(row.repeat(2).as_bytes(), None).unwrap_or_else(|error| panic!("{column}: {error}"));
        let expected = Dataset::Rows { text_tokens: vec![2, 4, 2, 4], images: vec![], shaped: None };
        assert_eq!(imported.dataset, expected, "{column}");
    }
}

/// Three sorted lengths with a second number may be a distribution table.
#[test]
fn sorted_lengths_next_to_a_number_need_confirmation() {
    for name in ["files", "hits", "tally", "support", "num"] {
        let file = format!("num_tokens,{name}\n512,100\n1024,50\n2048,30\n");
        assert!(matches!(import(file.as_bytes(), None), Err(ImportError::Unclear { .. })), "{name}");
    }
}

/// Possible sums and skipped sample parts cause a warning.
#[test]
fn sums_and_further_parts_are_warned_about() {
    for (file, text) in [
        ("100\n200\n300\n600\n", "the sum of the others"),
        ("100\n300\n600\n1000\n1500\n2100\n", "running sums"),
        ("system_tokens,prompt_tokens,completion_tokens\n20,50,30\n20,70,10\n", "Not added: system_tokens"),
    ] {
        let warnings = import(file.as_bytes(), None).unwrap_or_else(|error| panic!("{file}: {error}")).report.warnings;
        assert!(warnings.iter().any(|warning| warning.contains(text)), "{file}: {warnings:?}");
    }
    let plain = import(b"100\n300\n200\n1000\n50\n", None).expect("lengths");
    assert_eq!(plain.report.warnings, ["Plain numbers are read as lengths in tokens."]);
}

/// Readers of JSON disagree about the value of such a key.
#[test]
fn keys_that_occur_twice_are_refused() {
    let row = "{\"num_tokens\": 5, \"num_tokens\": 7}";
    for file in [
        format!("[{row}, {row}]"),
        format!("{row}\n{row}\n"),
        format!("{{\"data\": [{row}]}}"),
        "{\"num_tokens\": [5, 6], \"num_tokens\": [7, 8]}".to_owned(),
        "{\"512\": 3, \"1024\": 5, \"512\": 6}".to_owned(),
        "{\"usage\": {\"total_tokens\": 5, \"total_tokens\": 7}}\n".repeat(2),
    ] {
        assert!(refusal(&file).contains("occurs twice in one object"), "{file}: {}", refusal(&file));
    }
    // One such line among many is left out.
    let (lengths, _, report) = rows(&("{\"num_tokens\": 5}\n".repeat(20) + row + "\n"));
    assert_eq!((lengths.len(), report.skipped), (20, 1));
    assert!(report.first_problem.is_some_and(|problem| problem.contains("occurs twice")));
    // The same key in several objects.
    assert_eq!(rows("[{\"num_tokens\": 5, \"meta\": {\"num_tokens\": 1}}, {\"num_tokens\": 7}]").0, [5, 7]);
}

/// JSON text sequences, and lists without brackets.
#[test]
fn json_lines_may_have_separators() {
    for (before, behind) in [("\u{1e}", ""), ("", ","), ("\u{1e}", " "), ("", " ,")] {
        let file: String = [5, 7, 9].map(|length| format!("{before}{{\"num_tokens\": {length}}}{behind}\n")).concat();
        if behind == " ," {
            assert!(super::super::import(file.as_bytes(), &Options::default()).is_err(), "{file}");
        } else {
            assert_eq!(rows(&file).0, [5, 7, 9], "{file}");
        }
    }
}

/// The first row of a table without a header has a name and a length, as the rows below it.
#[test]
fn a_first_row_of_text_and_number_is_a_sample() {
    let file = "doc0.txt,1200\ndoc1.txt,4762\ndoc2.txt,7042\n";
    assert!(refusal(file).ends_with("choose one of: 1, 2"), "{}", refusal(file));
    assert_eq!(import_rows(file, Some("2")).0, [1200, 4762, 7042]);
    // More numbers are the bins of a histogram, and 0 is a name of pandas.
    assert!(refusal("name,512,1024,2048\na,3,4,5\n").contains("name"));
    assert_eq!(import_rows("doc,0\na,1200\n", Some("0")).0, [1200]);
    assert_eq!(rows("doc,num_tokens\na,1200\n").0, [1200]);
}

/// A table with one column per sample is refused at once. Many columns are read in linear time.
#[test]
fn tables_have_a_maximum_width() {
    let wide = |columns: u32| {
        let line = |cell: &dyn Fn(u32) -> String| (0..columns).map(cell).collect::<Vec<_>>().join(",") + "\n";
        line(&|column| format!("c{column}")) + &line(&|_| "1".to_owned())
    };
    assert!(refusal(&wide(20_001)).contains("it has 20001 columns, at most 20000 are read"));
    assert!(refusal(&wide(3_000)).contains("choose one of"), "{}", refusal(&wide(3_000)).len());
}

/// A column of counts without a known edge is perhaps a histogram. The refusal says which names it needs.
#[test]
fn the_names_of_a_histogram_are_stated() {
    let message = refusal("le,count\n512,10\n1024,30\n2048,35\n");
    assert!(message.contains("left, right and count, or length and cumulative"), "{message}");
    assert!(!refusal("first,second\n512,10\n1024,30\n2048,35\n").contains("histogram"));
}
