//! Tables and numbers in the layouts of other programs; see docs/formats.md.

use super::*;

fn unclear(file: &str) -> Vec<super::super::Candidate> {
    match import(file.as_bytes(), None) {
        Err(ImportError::Unclear { candidates }) => candidates,
        other => panic!("{file:?}: {other:?}"),
    }
}

fn lengths(file: &str) -> Vec<u32> {
    rows(file).0
}

/// Identifiers, years, ratings, labels and times are never read as lengths, in any format.
#[test]
fn number_with_unknown_meaning_is_offered_and_not_selected() {
    for (name, values) in [
        ("id", [12, 39, 290]),
        ("pageId", [12, 39, 290]),
        ("question_id", [81, 82, 83]),
        ("year", [1999, 2004, 2011]),
        ("stars", [5, 4, 1]),
        ("label", [0, 1, 2]),
        ("size_bytes", [1000, 2000, 3000]),
        ("duration", [4, 12, 15]),
        ("width", [640, 1024, 800]),
        ("whatever", [640, 1024, 800]),
        ("count", [640, 1024, 800]),
    ] {
        let [a, b, c] = values;
        for file in [
            format!("{name}\n{a}\n{b}\n{c}\n"),
            format!("{name},url\n{a},x\n{b},y\n{c},z\n"),
            format!(r#"[{{"{name}": {a}}}, {{"{name}": {b}}}, {{"{name}": {c}}}]"#),
            format!(
                "{{\"{name}\": {a}, \"url\": \"x\"}}\n{{\"{name}\": {b}, \"url\": \"y\"}}\n{{\"{name}\": {c}, \"url\": \"z\"}}\n"
            ),
            format!(r#"{{"{name}": [{a}, {b}, {c}]}}"#),
        ] {
            let candidates = unclear(&file);
            assert_eq!(candidates[0].name, name, "{file}");
            assert_eq!(candidates[0].samples, [a.to_string(), b.to_string(), c.to_string()], "{file}");
            assert_eq!(
                candidates[0].preview.as_ref().map(|preview| preview.counts.iter().sum::<u64>()),
                Some(3 - u64::from(a == 0))
            );
            // The user may choose the column.
            if name != "label" {
                let selected = import(file.as_bytes(), Some(name)).expect(&file);
                assert_eq!(selected.report.parsed + selected.report.repaired, 3, "{file}");
            }
        }
    }
    let notes: Vec<_> = [
        unclear("x\n1\n2\n3\n4\n"),
        unclear("x\n1999\n2010\n2004\n"),
        unclear("x\n1700000000\n1700000060\n1700000900\n"),
        unclear("x\n0.5\n2.25\n1.75\n"),
    ]
    .iter()
    .map(|candidates| candidates[0].note.clone().unwrap_or_default())
    .collect();
    assert!(notes[0].contains("row numbers") && notes[1].contains("years"), "{notes:?}");
    assert!(notes[2].contains("since 1970") && notes[3].contains("decimals"), "{notes:?}");
}

#[test]
fn prompt_and_completion_are_added() {
    for (file, expected, source) in [
        // Azure LLM inference traces.
        (
            "TIMESTAMP,ContextTokens,GeneratedTokens\n2023-11-16 18:01:51.1,374,44\n2023-11-16 18:01:52.4,396,109\n",
            [418, 505],
            "columns ContextTokens + GeneratedTokens",
        ),
        // Vidur's copy of Splitwise.
        (
            "arrived_at,num_prefill_tokens,num_decode_tokens\n0.0,4808,10\n0.052,3180,8\n",
            [4818, 3188],
            "columns num_prefill_tokens + num_decode_tokens",
        ),
        // Mooncake.
        (
            "{\"timestamp\": 27482, \"input_length\": 6955, \"output_length\": 52, \"hash_ids\": [46, 47]}\n{\"timestamp\": 30535, \"input_length\": 6472, \"output_length\": 26, \"hash_ids\": [46]}\n",
            [7007, 6498],
            "keys input_length + output_length",
        ),
        // OpenAI's usage object inside a response, without the total.
        (
            "{\"id\": \"a\", \"usage\": {\"prompt_tokens\": 9, \"completion_tokens\": 12}}\n{\"id\": \"b\", \"usage\": {\"prompt_tokens\": 5, \"completion_tokens\": 0}}\n",
            [21, 5],
            "keys usage.prompt_tokens + usage.completion_tokens",
        ),
        ("prompt_tokens,completion_tokens\n100,20\n50,5\n", [120, 55], "columns prompt_tokens + completion_tokens"),
        // The total is preferred to its parts: BurstGPT.
        (
            "Timestamp,Model,Request tokens,Response tokens,Total tokens,Log Type\n5,ChatGPT,472,18,490,Conversation log\n45,ChatGPT,1087,230,1317,Conversation log\n",
            [490, 1317],
            "column Total tokens",
        ),
        // OpenAI's batch output.
        (
            "{\"response\": {\"body\": {\"usage\": {\"prompt_tokens\": 9, \"completion_tokens\": 12, \"total_tokens\": 21}}}}\n{\"response\": {\"body\": {\"usage\": {\"prompt_tokens\": 1, \"completion_tokens\": 2, \"total_tokens\": 3}}}}\n",
            [21, 3],
            "key response.body.usage.total_tokens",
        ),
    ] {
        let (lengths, _, report) = rows(file);
        assert_eq!((lengths.as_slice(), report.source.as_str()), (&expected[..], source), "{file}");
        assert_eq!(report.warnings.iter().any(|warning| warning.contains("are added")), source.contains('+'), "{file}");
    }
    let azure = "ContextTokens,GeneratedTokens\n374,44\n396,109\n";
    assert_eq!(import_rows(azure, Some("ContextTokens")).0, [374, 396]);
    let options = Options { column: Some("ContextTokens"), add: Some("GeneratedTokens"), ..Options::default() };
    let sum = super::super::import(azure.as_bytes(), &options).expect("two columns");
    assert_eq!(sum.dataset, Dataset::Rows { text_tokens: vec![418, 505], images: vec![], shaped: None });
    let (_, _, prompt_report) = rows("input_length\n5\n7\n");
    assert!(
        prompt_report.warnings[0].contains("no column holds those of the completion"),
        "{:?}",
        prompt_report.warnings
    );
}

/// Each row of a length table represents several samples.
#[test]
fn lengths_with_counts_are_weighted() {
    let expected = Dataset::Histogram { edges: vec![512.0, 512.0, 1024.0, 1024.0], counts: vec![3.0, 0.0, 1.0] };
    for file in [
        "length,count\n512,3\n1024,1\n",
        "count,length\n1,1024\n3,512\n",
        "len;freq\n512;3\n1024;1\n",
        "num_tokens,weight\n512,3.0\n1024,1.0\n",
        "seq_len,count\n512,2\n1024,1\n512,1\n",
        "[{\"length\": 512, \"num_samples\": 3}, {\"length\": 1024, \"num_samples\": 1}]",
        "{\"length\": 512, \"count\": 3}\n{\"length\": 1024, \"count\": 1}\n",
        "{\"length\": [512, 1024], \"count\": [3, 1]}",
        ",length,count\n0,512,3\n1,1024,1\n",
    ] {
        let imported = import(file.as_bytes(), None).expect(file);
        assert_eq!(imported.dataset, expected, "{file}");
    }
    let options = Options { column: Some("length"), weight: Some("m"), ..Options::default() };
    let selected = super::super::import(b"length,m\n512,3\n1024,1\n", &options).expect("a weight");
    assert_eq!(selected.dataset, expected);
    let options = Options { weight: Some(""), ..Options::default() };
    let unweighted = super::super::import(b"length,count\n512,3\n1024,1\n", &options).expect("no weight");
    assert_eq!(unweighted.dataset, Dataset::Rows { text_tokens: vec![512, 1024], images: vec![], shaped: None });
    // If the file has other columns, the meaning of a count is unknown.
    let (lengths, _, report) = rows("num_tokens,count,lang\n512,3,en\n1024,1,de\n");
    assert_eq!(lengths, [512, 1024]);
    assert!(report.warnings[0].contains("choose it as the weight"), "{:?}", report.warnings);
    // A distribution table without a known weight column.
    assert_eq!(unclear("length,y\n128,5\n256,9\n512,7\n1024,3\n2048,1\n").len(), 2);
    // pandas before 2.0: the index contains the lengths, and `length` contains the counts. The
    // histogram reader handles this layout.
    let old = import(b",length\n512,30\n1024,12\n2048,12\n", None);
    assert!(!matches!(old, Ok(Imported { dataset: Dataset::Rows { .. }, .. })), "{old:?}");
    let shares = import(b"percentile,length\n1,10\n50,100\n99,1000\n", None);
    assert!(!matches!(shares, Ok(Imported { dataset: Dataset::Rows { .. }, .. })), "{shares:?}");
    assert!(matches!(import(b"length,count\n512,-3\n", None), Err(ImportError::Histogram { .. })));
}

#[test]
fn numbers_with_two_meanings_are_not_mixed() {
    for file in ["1000 512\n300 1024\n20 2048\n", "1 512\n2 1024\n3 2048\n", "1 2 3\n4 5 6\n"] {
        assert!(
            matches!(import(file.as_bytes(), None), Err(_) | Ok(Imported { dataset: Dataset::Histogram { .. }, .. })),
            "{file}"
        );
    }
    assert_eq!(import_rows("1 512\n2 1024\n3 2048\n", Some("2")).0, [512, 1024, 2048]);
    assert_eq!(unclear("0     512\n1    1024\n2     256\nName: length, dtype: int64\n").len(), 2, "a printed series");
    assert_eq!(lengths("512 1024 256\n128 2048 64\n7\n").len(), 7, "a wrapped list");
    assert_eq!(unclear("[[512, 1024], [256]]").len(), 1);
    assert_eq!(unclear("[512, 1024]\n[256]\n").len(), 1);
    assert_eq!(import_rows("[101, 7, 102]\n[101]\n", Some("1")).0, [3, 1]);
}

#[test]
fn european_numbers_by_column() {
    for file in [
        "length\n754,0\n1261,0\n512,0\n",
        "length;x\n754,0;1\n1261,0;1\n512,0;1\n",
        "length\n754\n1'261\n512\n",
        "length\n754\n1\u{202f}261\n512\n",
        "length\n754\n1.261\n512\n",
        "length,x\n\"754\",1\n\"1,261\",1\n\"512\",1\n",
        "754\n1.261\n512\n",
        "length\n754\n1_261\n512\n",
    ] {
        assert_eq!(lengths(file), [754, 1261, 512], "{file}");
    }
    for file in ["length\n1.261\n2.754\n", "1.261\n2.754\n"] {
        let error = refusal(file);
        assert!(error.contains("1261 with thousands separators or 1.261 with decimals"), "{error}");
    }
    assert_eq!(lengths("num_tokens\n1.5k\n2k\n512\n"), [1500, 2000, 512]);
    assert_eq!(unclear("length\n0.53\n12.25\n7.5\n").len(), 1, "seconds are not tokens");
}

#[test]
fn number_units() {
    let characters = rows("num_chars\n400\n401\n");
    assert_eq!(characters.0, [100, 101]);
    assert!(characters.2.warnings[0].contains("num_chars counts characters"), "{:?}", characters.2.warnings);
    let options = Options { column: Some("size"), characters_per_token: 5.0, ..Options::default() };
    let bytes = super::super::import(b"size,x\n400,a\n401,b\n", &options).expect("bytes");
    assert_eq!(bytes.dataset, Dataset::Rows { text_tokens: vec![80, 81], images: vec![], shaped: None });
    let options = Options { column: Some("size"), unit: Some(super::super::Unit::Tokens), ..Options::default() };
    let tokens = super::super::import(b"size,x\n400,a\n401,b\n", &options).expect("tokens");
    assert_eq!(tokens.dataset, Dataset::Rows { text_tokens: vec![400, 401], images: vec![], shaped: None });
    assert_eq!(unclear("length,path\n12 KB,a\n3.4 MB,b\n")[0].meaning.title(), "size in bytes");
}

#[test]
fn tables_in_every_layout() {
    for file in [
        "| num_tokens | images |\n|---|---|\n| 5 | 1 |\n| 7 | 0 |\n",
        "num_tokens  images\n    5       1\n    7       0\n",
        "   num_tokens  images\n0           5       1\n1           7       0\n",
        ",num_tokens,images\n0,5,1\n1,7,0\n",
        "# num_tokens,images\n5,1\n7,0\n",
    ] {
        let (lengths, images, _) = rows(file);
        assert_eq!((lengths, images), (vec![5, 7], vec![1, 0]), "{file}");
    }
    for file in ["- 5\n- 7\n", "[5 7]", "[ 5  7\n  9 ]"] {
        assert_eq!(lengths(file)[..2], [5, 7], "{file}");
    }
    assert!(refusal("[ 5 7 ... 9 11]").contains("shortened with"));
}

#[test]
fn utf_16_is_decoded() {
    let text = "num_tokens,text\n5,\u{e4}\n7,b\n";
    for (mark, bytes) in [
        (vec![0xff, 0xfe], text.encode_utf16().flat_map(u16::to_le_bytes).collect::<Vec<u8>>()),
        (vec![0xfe, 0xff], text.encode_utf16().flat_map(u16::to_be_bytes).collect()),
        (vec![], "num_tokens\n5\n7\n".encode_utf16().flat_map(u16::to_le_bytes).collect()),
    ] {
        let file = [mark, bytes].concat();
        let imported = import(&file, None).expect("UTF-16");
        assert_eq!(imported.dataset, Dataset::Rows { text_tokens: vec![5, 7], images: vec![], shaped: None });
    }
}

#[test]
fn shard_indices_are_named() {
    for file in [r#"{"00000.tar": 10240000}"#, r#"{"00000.tar": 10240000, "00001.tar": 9240000}"#] {
        assert!(refusal(file).contains("sizes of shards"), "{file}");
    }
    let mds = r#"{"version": 2, "shards": [{"column_names": ["tokens"], "samples": 100, "raw_data": {"bytes": 5}}]}"#;
    assert!(refusal(mds).contains("index of shards"));
}
