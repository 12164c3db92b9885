//! Files whose numbers may not be lengths, or whose rows may not be samples: the import requests
//! confirmation or returns a warning.

use super::*;

fn unclear_candidates(file: &str) -> Vec<super::super::Candidate> {
    match import(file.as_bytes(), None) {
        Err(ImportError::Unclear { candidates }) => candidates,
        other => panic!("{file:?}: {other:?}"),
    }
}

fn is_warned(report: &super::super::Report, text: &str) -> bool {
    report.warnings.iter().any(|warning| warning.contains(text))
}

#[test]
fn row_numbers_are_not_weights() {
    for file in [
        "n,num_tokens\n1,735\n2,512\n3,4448\n",
        "count,num_tokens\n0,735\n1,512\n2,4448\n",
        r#"{"n": [1, 2, 3], "num_tokens": [735, 512, 4448]}"#,
        r#"{"count": [0, 1, 2], "num_tokens": [735, 512, 4448]}"#,
        "{\"n\": 1, \"num_tokens\": 735}\n{\"n\": 2, \"num_tokens\": 512}\n{\"n\": 3, \"num_tokens\": 4448}\n",
    ] {
        let (lengths, _, report) = rows(file);
        assert_eq!(lengths, [735, 512, 4448], "{file}");
        assert!(
            is_warned(&report, "may hold the number of samples of each row. It is not used"),
            "{:?}",
            report.warnings
        );
    }
    for file in [
        "n,num_tokens\n10,735\n20,512\n30,4448\n",
        "count,num_tokens\n4,735\n2,512\n1,4448\n5,90\n3,77\n",
        "num_samples,num_tokens\n4,3319\n4,2100\n4,4000\n",
    ] {
        assert_eq!(unclear_candidates(file).len(), 2, "{file}");
    }
    let weighted =
        import(b"{\"length\": 512, \"count\": 3}\n{\"length\": 1024, \"count\": 1}\n", None).expect("counts");
    assert!(is_warned(&weighted.report, "2 rows stand for 4 samples"), "{:?}", weighted.report.warnings);
    let result = import(b"{\"length\": 512, \"count\": \"1.204\"}\n{\"length\": 1024, \"count\": \"9.001\"}\n", None);
    assert!(matches!(result, Err(ImportError::TwoReadings { .. })), "{result:?}");
}

/// `value_counts()` sorts by count; the second number may have any name.
#[test]
fn counts_with_any_name_need_confirmation() {
    for file in [
        "num_tokens,files\n1024,100\n512,50\n2048,30\n",
        "num_tokens,#\n512,100\n1024,50\n2048,30\n",
        "num_tokens,conversations\n512,100\n1024,50\n2048,30\n",
        "length,count (thousands)\n512,3\n1024,2\n300,7\n",
        "num_tokens,share_longer\n512,.5\n1024,.25\n2048,.1\n",
        "num_tokens,gpt4_count,llama_count\n512,9,8\n1024,5,7\n2048,1,2\n",
        "seq_len,steps\n4096,10000\n32768,500\n",
    ] {
        assert!(unclear_candidates(file).len() > 1, "{file}");
    }
    for file in [
        "length,count,split\n512,3,train\n1024,5,train\n2048,1,val\n",
        "source,length,count\nweb,512,3\nweb,1024,5\ncode,512,2\ncode,1024,9\n",
    ] {
        assert!(unclear_candidates(file).len() > 1, "{file}");
    }
    let counted = import(b"num_tokens,instances\n512,100\n1024,50\n2048,30\n", None).expect("counts");
    assert_eq!(counted.report.parsed, 180);
}

#[test]
fn group_sums_are_not_samples() {
    for file in [
        "source,lang,tokens\nweb,en,512\nweb,de,300\nweb,,812\ncode,c,90\ncode,r,77\ncode,,167\n,,979\n",
        "split,part,num_tokens\ntrain,a,512\ntrain,b,300\ntrain,total,812\nval,a,90\nval,b,77\nval,total,167\n",
        "sample,num_tokens\na,512\nb,300\nSubtotal,812\nc,90\nd,77\nSubtotal,167\n",
    ] {
        let (lengths, _, report) = import_rows(file, None);
        assert_eq!(lengths, [512, 300, 90, 77], "{file}: {:?}", report.warnings);
        assert!(report.skipped >= 2 && is_warned(&report, "left out"), "{file}: {:?}", report.warnings);
    }
    for (file, skipped) in [
        ("what,num_tokens\na,512\nb,300\nc,90\nd,77\nTotal tokens,979\nNumber of samples,4\n", 2),
        ("source,lang,num_tokens\n,,979\nweb,,812\nweb,en,512\nweb,de,300\ncode,,167\ncode,c,90\ncode,r,77\n", 3),
        ("what,num_tokens\nAll samples,979\na,512\nb,300\nc,90\nd,77\n", 1),
        ("what,num_tokens\na,512\nb,300\nc,90\nd,77\nmean length,245\nmax length,512\nstd dev,180\n", 3),
    ] {
        let (lengths, _, report) = rows(file);
        assert_eq!((lengths, report.skipped), (vec![512, 300, 90, 77], skipped), "{file}: {:?}", report.warnings);
    }
    for (file, text) in [
        (
            "event,num_tokens\nsample,735\nsample,512\nbatch_end,1247\n",
            "All rows are read as samples, whatever their event is: sample, batch_end",
        ),
        ("id,num_tokens\na,735\nb,512\nc,300\n=SUM(B2:B4),1547\n", "The last row is the sum"),
        (
            "{\"num_tokens\": 979, \"dataset\": \"sft\"}\n{\"num_tokens\": 300}\n{\"num_tokens\": 512}\n{\"num_tokens\": 90}\n{\"num_tokens\": 77}\n",
            "The first row is the sum",
        ),
        ("id,num_tokens\nx,979\na,512\nb,300\nc,90\nd,77\n", "The first row is the sum"),
        ("id,num_tokens\na,5\nb,7\nc,9\nx,21\na,1\nb,2\nc,3\ny,6\nd,8\n", "2 rows are each the sum"),
        ("id,num_tokens\na,1\nb,3\nc,4\nd,6\ne,7\nf,9\ng,12\nh,15\ni,19\nj,23\n", "larger than the one before"),
    ] {
        assert!(is_warned(&rows(file).2, text), "{file}: {:?}", rows(file).2.warnings);
    }
    // Rows with empty cells that do not sum to the other rows.
    let gaps = "id,lang,num_tokens\na,en,512\nb,,300\nc,de,90\nd,,77\n";
    assert_eq!(rows(gaps).0, [512, 300, 90, 77]);
}

#[test]
fn comments_describe_plain_numbers() {
    for comment in ["latency_ms", "duration of every clip in seconds", "length in words", "image_width"] {
        let file = format!("# {comment}\n735\n512\n");
        let note = unclear_candidates(&file)[0].note.clone().unwrap_or_default();
        assert!(note.contains(comment), "{note}");
        assert_eq!(import_rows(&file, Some("1")).0, [735, 512]);
    }
    for comment in ["lengths in characters", "num_chars"] {
        let (lengths, _, report) = rows(&format!("# {comment}\n400\n512\n"));
        assert_eq!(lengths, [100, 128], "{comment}");
        assert!(is_warned(&report, "The numbers count characters"), "{:?}", report.warnings);
    }
    let table = "# lengths are in characters\nid,num_tokens\na,735\nb,512\n";
    assert!(is_warned(&rows(table).2, "The comment \"lengths are in characters\" is not read"));
    assert!(rows("# num_tokens,latency_ms\n735,5\n512,7\n").2.warnings.is_empty());
    assert!(is_warned(&rows("# run 17\n735\n512\n").2, "Comments of the file are not read: \"run 17\""));
    assert_eq!(rows("# num_tokens\n735\n512\n").2.warnings.len(), 1);
}

#[test]
fn plain_numbers_may_be_identifiers() {
    let ragged = "101 2023 2003 102\n101 7592 102\n101 2023 102\n";
    assert!(unclear_candidates(ragged)[0].note.as_deref().is_some_and(|note| note.contains("identifiers of tokens")));
    assert_eq!(import_rows(ragged, Some("1")).0.len(), 10);
    for file in ["735 512 300\n90 4448 77\n5\n", "[735, 512]", "735\n512\n"] {
        assert!(is_warned(&rows(file).2, "Plain numbers are read as lengths in tokens"), "{file}");
    }
    let header = "{'descr': '<u2', 'fortran_order': False, 'shape': (4,), }\n";
    let array = |numbers: [u16; 4]| {
        let data: Vec<u8> = numbers.iter().flat_map(|number| number.to_le_bytes()).collect();
        [b"\x93NUMPY\x01\0", &(header.len() as u16).to_le_bytes()[..], header.as_bytes(), &data].concat()
    };
    let ids = import(&array([25_000, 101, 31_000, 60_123]), None);
    assert!(matches!(ids, Err(ImportError::Unclear { .. })), "{ids:?}");
    assert!(import(&array([25_000, 101, 31_000, 60_123]), Some("1")).is_ok());
    assert!(import(&array([735, 512, 300, 9000]), None).is_ok());
}

/// An inch mark, or an unmatched quotation mark.
#[test]
fn stray_quotation_marks_are_text() {
    let file = "id\tnum_tokens\tname\n1\t735\t\"big disk\n2\t512\tb\n3\t300\tc\n4\t90\t\"small\n5\t4448\te\n";
    let (lengths, _, report) = rows(file);
    assert_eq!(lengths, [735, 512, 300, 90, 4448]);
    assert!(is_warned(&report, "Line 2 has a quotation mark"), "{:?}", report.warnings);
    let quoted = "num_tokens,text\n5,\"one\ntwo, three\"\n7,\"b\"\n";
    let (lengths, _, report) = rows(quoted);
    assert_eq!((lengths, is_warned(&report, "quotation")), (vec![5, 7], false));
}

#[test]
fn ambiguous_columns_and_numbers_need_confirmation() {
    let two = "num_tokens,num_tokens\n100,900\n200,800\n";
    assert_eq!(names(&unclear_candidates(two)), ["num_tokens", "num_tokens.2"]);
    assert_eq!(names(&unclear_candidates("num_tokens,Num Tokens\n100,900\n200,800\n")), ["num_tokens", "Num Tokens"]);
    for unit in ["chars", "(ms)", "words"] {
        let file = format!("id,num_tokens\n,{unit}\na,735\nb,512\n");
        assert!(refusal(&file).contains("is the unit of num_tokens"), "{}", refusal(&file));
    }
    assert_eq!(import_rows(two, Some("num_tokens.2")).0, [900, 800]);
    for file in [
        "images,num_tokens\n1,735\n0,512\nnum_tokens,images\n300,2\n",
        "id,num_tokens\na,735\nb,512\nid,num_chars\nc,3000\n",
        "num_tokens,lang\n735,en\n512,de\nnum_images,lang\n3,en\n",
    ] {
        assert!(refusal(file).contains("a second table begins here"), "{file}: {}", refusal(file));
    }
    let (lengths, _, report) = rows("512, 1,024, 2,048, 300\n");
    assert_eq!(lengths, [512, 1024, 2048, 300]);
    assert!(is_warned(&report, "thousands separators"), "{:?}", report.warnings);
    for file in ["512, 1,124, 300\n", "512,1,024,300\n", "num_tokens,images\n1,735\n1,061\n"] {
        assert!(refusal(file).contains("two readings"), "{file}: {}", refusal(file));
    }
    let twice = Options { column: Some("num_tokens"), add: Some("num_tokens"), ..Options::default() };
    let result = super::super::import(b"num_tokens,x\n5,1\n7,2\n", &twice);
    assert!(matches!(result, Err(ImportError::AddedTwice { .. })), "{result:?}");
    let (_, _, report) = import_rows("id,length_k\na,4\nb,5\n", Some("length_k"));
    assert!(is_warned(&report, "Its name states another unit"), "{:?}", report.warnings);
}

#[test]
fn lists_from_other_programs_are_read() {
    for file in [
        "lengths = [512, 1024]\n",
        "512;1024\n",
        "id          num_tokens\n----------  ----------\na           512\nb           1024\n",
        "========  ==========\nid        num_tokens\n========  ==========\na                512\nb               1024\n========  ==========\n",
        "deque([512, 1024])",
        "tensor([ 512, 1024])",
        "[1] 512 1024\n",
        "lens <- c(512L, 1024L)\n",
        "[np.int64(512), np.int64(1024)]",
        r#"{"stats": {"lengths": [512, 1024]}}"#,
        r#"{"train": {"lengths": [512, 1024]}}"#,
        r#"{"lengths": {"train": [512, 1024], "val": [7]}}"#,
        "id|num_tokens\n0|512\n1|1024\n",
        "+----------+\n|num_tokens|\n+----------+\n|       512|\n|      1024|\n+----------+\n",
        " num_tokens \n------------\n        512\n       1024\n(2 rows)\n",
        r#"{"train": {"lengths": [512, 1024]}, "val": {"lengths": [7]}}"#,
        "lengths = [\n  512,\n  1024,\n]\n",
        "nb_tokens,lang\n512,en\n1024,de\n",
        "tok_cnt,lang\n512,en\n1024,de\n",
        "num_subwords,lang\n512,en\n1024,de\n",
    ] {
        assert_eq!(rows(file).0, [512, 1024], "{file}");
    }
    assert!(matches!(import(b"latencies = [512, 1024]", None), Err(ImportError::Unclear { .. })));
    for file in [
        r#"{"latency": {"lengths": [512, 300]}}"#,
        r#"{"lengths": [512, 300], "meta": {"unit": "seconds"}}"#,
        r#"{"data": {"lengths": [512, 300]}, "unit": "seconds"}"#,
    ] {
        assert!(matches!(import(file.as_bytes(), None), Err(ImportError::Histogram { .. })), "{file}");
    }
    for file in [
        "metric,length\nlatency_ms,512\nlatency_ms,300\n",
        "length\n512     3\n1024    9\n256     1\n",
        "length (chars)\n512     3\n1024    2\n256     1\n",
    ] {
        assert!(matches!(import(file.as_bytes(), None), Err(ImportError::Unclear { .. })), "{file}");
    }
    assert_eq!(rows("#,num_tokens\n1,735\n2,512\n").0, [735, 512]);
    for (text, problem) in [("duration_ms", "another quantity"), ("image_width", "another quantity")] {
        let file = format!("{{\"field\": \"{text}\", \"lengths\": [512, 300]}}");
        assert!(refusal(&file).contains(problem), "{file}: {}", refusal(&file));
    }
}
