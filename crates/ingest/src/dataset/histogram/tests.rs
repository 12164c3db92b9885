//! Formats of other programs, with the exact histograms.

use planner::workload::Dataset;

use super::super::{ImportError, Imported, Options};
use super::{json, table, text};

type Outcome = Option<Result<Imported, ImportError>>;

/// Returns edges, counts and report.
fn read(outcome: Outcome, input: &str) -> (Vec<f64>, Vec<f64>, super::Report) {
    match outcome {
        Some(Ok(Imported { dataset: Dataset::Histogram { edges, counts }, report })) => (edges, counts, report),
        other => panic!("{input:?}: {other:?}"),
    }
}

fn csv(input: &str) -> Outcome {
    table::read(input, b',', &Options::default())
}

fn print(input: &str) -> Outcome {
    text::read(input, &Options::default())
}

fn document(input: &str) -> Outcome {
    json::read(&serde_json::from_str(input).expect("JSON"), &Options::default())
}

fn refusal(outcome: Outcome, input: &str) -> String {
    match outcome {
        Some(Err(error)) => error.to_string(),
        other => panic!("{input:?}: {other:?}"),
    }
}

/// Three samples of 512 tokens, two of 1024, one of 4096.
const POINTS: ([f64; 6], [f64; 5]) = ([512.0, 512.0, 1024.0, 1024.0, 4096.0, 4096.0], [3.0, 0.0, 2.0, 0.0, 1.0]);

#[test]
fn lengths_with_counts() {
    for input in [
        "length,count\n512,3\n1024,2\n4096,1\n",
        "length,count\n4096,1\n512,1\n1024,2\n512,2\n",
        "len,freq\n512,3\n1024,2\n4096,1\n",
        "num_tokens,n\n512,3\n1024,2\n4096,1\n",
        "length,weight\n512,3\n1024,2\n4096,1\n",
        "seq_len,num_samples\n512,3\n1024,2\n4096,1\n",
        "length,count_star()\n512,3\n1024,2\n4096,1\n",
        // value_counts().to_csv() of a series without a name.
        ",count\n512,3\n1024,2\n4096,1\n",
        // With the row index of to_csv().
        ",length,count\n0,512,3\n1,1024,2\n2,4096,1\n",
        // The cumulative count is not read as a count.
        "length,count,cumulative\n512,3,3\n1024,2,5\n4096,1,6\n",
        "cumulative,length,count\n3,512,3\n5,1024,2\n6,4096,1\n",
    ] {
        let (edges, counts, report) = read(csv(input), input);
        assert_eq!((&edges[..], &counts[..]), (&POINTS.0[..], &POINTS.1[..]), "{input:?}");
        assert_eq!((report.parsed, report.format.as_str()), (6, "CSV, lengths with counts"), "{input:?}");
        assert!(report.warnings.iter().any(|warning| warning.contains("rows stand for 6 samples")), "{input:?}");
        let assumptions = 1 + usize::from(input.starts_with(",count"));
        assert_eq!(report.warnings.len(), assumptions, "{input:?}: {:?}", report.warnings);
    }
    for input in [
        r#"{"512": 3, "1024": 2, "4096": 1}"#,
        r#"{"lengths": [512, 1024, 4096], "counts": [3, 2, 1]}"#,
        r#"{"values": [512, 1024, 4096], "counts": [3, 2, 1]}"#,
        r#"[{"length": 512, "count": 3}, {"length": 1024, "count": 2}, {"length": 4096, "count": 1}]"#,
    ] {
        let (edges, counts, report) = read(document(input), input);
        assert_eq!((&edges[..], &counts[..], report.parsed), (&POINTS.0[..], &POINTS.1[..], 6), "{input:?}");
    }
    for input in [
        "      3 512\n      2 1024\n      1 4096\n",
        "Counter({512: 3, 1024: 2, 4096: 1})",
        "{512: 3, 1024: 2, 4096: 1}",
        "defaultdict(<class 'int'>, {512: 3, 1024: 2, 4096: 1})",
        "num_tokens\n512     3\n1024    2\n4096    1\nName: count, dtype: int64\n",
        "num_tokens\n512     3\n1024    2\n4096    1\n",
    ] {
        let (edges, counts, report) = read(print(input), input);
        assert_eq!((&edges[..], &counts[..], report.parsed), (&POINTS.0[..], &POINTS.1[..], 6), "{input:?}");
    }
}

#[test]
fn bins_with_counts() {
    let expected = (vec![0.0, 512.0, 1024.0, 2048.0], vec![3.0, 2.0, 1.0]);
    for input in [
        "left,right,count\n0,512,3\n512,1024,2\n1024,2048,1\n",
        "bin_start,bin_end,n\n1024,2048,1\n0,512,3\n512,1024,2\n",
        "bin,count\n0-512,3\n512-1024,2\n1024-2048,1\n",
        "bucket,count\n\"[0, 512)\",3\n\"[512, 1024)\",2\n\"[1024, 2048)\",1\n",
        "length,count\n\"(0.0, 512.0]\",3\n\"(512.0, 1024.0]\",2\n\"(1024.0, 2048.0]\",1\n",
        // pandas: cut(..).value_counts().to_csv() of a series without a name.
        ",0\n\"(0.0, 512.0]\",3\n\"(512.0, 1024.0]\",2\n\"(1024.0, 2048.0]\",1\n",
    ] {
        let (edges, counts, report) = read(csv(input), input);
        assert_eq!((edges, counts, report.parsed), (expected.0.clone(), expected.1.clone(), 6), "{input:?}");
        assert_eq!(report.format, "CSV, bins");
    }
    for input in [
        "[[3, 2, 1], [0, 512, 1024, 2048]]",
        "[[0.0, 512.0, 1024.0, 2048.0], [3, 2, 1]]",
        r#"{"hist": [3, 2, 1], "bin_edges": [0, 512, 1024, 2048]}"#,
        r#"{"counts": [3, 2, 1], "edges": [0, 512, 1024, 2048]}"#,
        r#"{"_type": "histogram", "values": [3, 2, 1], "bins": [0, 512, 1024, 2048]}"#,
        r#"{"0-512": 3, "512-1024": 2, "1024-2048": 1}"#,
        r#"[{"bin": "0-512", "count": 3}, {"bin": "512-1024", "count": 2}, {"bin": "1024-2048", "count": 1}]"#,
    ] {
        let (edges, counts, report) = read(document(input), input);
        assert_eq!((edges, counts, report.parsed), (expected.0.clone(), expected.1.clone(), 6), "{input:?}");
    }
    let printed = "(array([3, 2, 1]), array([   0.,  512., 1024., 2048.]))";
    let (edges, counts, _) = read(print(printed), printed);
    assert_eq!((edges, counts), expected);
    let packed = r#"{"_type": "histogram", "values": [3, 2], "packedBins": {"min": 0, "size": 512, "count": 2}}"#;
    let (edges, counts, _) = read(document(packed), packed);
    assert_eq!((edges, counts), (vec![0.0, 512.0, 1024.0], vec![3.0, 2.0]));
}

#[test]
fn bins_with_gaps_and_open_ends() {
    let gap = "left,right,count\n1,512,3\n513,1024,2\n";
    let (edges, counts, _) = read(csv(gap), gap);
    assert_eq!((edges, counts), (vec![1.0, 512.0, 513.0, 1024.0], vec![3.0, 0.0, 2.0]));
    let open = "bin,count\n0-512,3\n512+,2\n";
    let (edges, counts, report) = read(csv(open), open);
    assert_eq!((edges, counts), (vec![0.0, 512.0, 1024.0], vec![3.0, 2.0]));
    assert!(report.warnings[0].contains("1024 is assumed"), "{:?}", report.warnings);
    let starts = "bin_start,count\n0,3\n512,2\n";
    let (edges, counts, report) = read(csv(starts), starts);
    assert_eq!((edges, counts), (vec![0.0, 512.0, 1024.0], vec![3.0, 2.0]));
    assert_eq!(report.warnings.len(), 1);
}

#[test]
fn cumulative_counts_are_not_counts() {
    for input in ["length,cumulative\n512,3\n1024,5\n4096,6\n", "length,cdf\n512,3\n1024,5\n4096,6\n"] {
        let (edges, counts, report) = read(csv(input), input);
        assert_eq!((edges, counts), (vec![512.0, 512.0, 1024.0, 4096.0], vec![3.0, 2.0, 1.0]), "{input:?}");
        assert!(report.warnings[0].contains("approximate"), "{:?}", report.warnings);
    }
    for name in ["cumulative_percent", "Cumulative %", "cum_share", "cumulative_fraction", "cumulative_freq"] {
        let input = format!("length,{name}\n512,50\n1024,80\n4096,100\n");
        let (edges, counts, _) = read(csv(&input), &input);
        assert_eq!(edges, [512.0, 512.0, 1024.0, 4096.0], "{input:?}");
        assert_eq!(counts, [50.0, 30.0, 20.0], "{input:?}");
    }
    let falling = "length,cdf\n512,0.5\n1024,0.2\n";
    assert!(refusal(csv(falling), falling).contains("falls from 0.5 to 0.2"));
}

#[test]
fn percentiles_are_approximate() {
    let row = "p50,p90,p99\n512,2048,4096\n";
    let (edges, counts, report) = read(csv(row), row);
    assert_eq!(edges, [1.0, 512.0, 2048.0, 4096.0, 4096.0]);
    assert_eq!(counts.iter().map(|count| count.round()).collect::<Vec<_>>(), [50.0, 40.0, 9.0, 1.0]);
    assert!(
        report.warnings.iter().any(|warning| warning.contains("longest 1 % count as 4096")),
        "{:?}",
        report.warnings
    );
    let described =
        ",num_tokens\ncount,1000.0\nmean,700.0\nstd,300.0\nmin,10.0\n25%,200.0\n50%,512.0\n75%,900.0\nmax,4096.0\n";
    let printed =
        described.trim_start_matches(",num_tokens\n").replace(',', "    ") + "Name: num_tokens, dtype: float64\n";
    let json =
        r#"{"count": 1000, "mean": 700, "std": 300, "min": 10, "25%": 200, "50%": 512, "75%": 900, "max": 4096}"#;
    let rows = "percentile,length\nmin,10\np25,200\np50,512\np75,900\nmax,4096\ncount,1000\n";
    for (outcome, input) in
        [(csv(described), described), (print(&printed), &printed), (document(json), json), (csv(rows), rows)]
    {
        let (edges, counts, report) = read(outcome, input);
        assert_eq!((edges, counts), (vec![10.0, 200.0, 512.0, 900.0, 4096.0], vec![250.0; 4]), "{input:?}");
        assert_eq!((report.parsed, report.warnings.len()), (1000, 1), "{input:?}");
    }
    let two = ",num_tokens,images\ncount,3,3\nmin,1,0\n25%,2,0\n50%,3,0\nmax,9,1\n";
    assert_eq!(read(csv(two), two).0, [1.0, 2.0, 3.0, 9.0], "the column of lengths is taken");
    let unknown = ",a,b\nmin,1,0\n25%,2,0\n50%,3,0\nmax,9,1\n";
    assert!(refusal(csv(unknown), unknown).contains("choose one of: a, b"));
}

#[test]
fn unclear_forms_are_rejected() {
    // pandas before 2.0: lengths in the index, counts under the name of the column. A row index of a filtered table looks the same.
    let old = ",num_tokens\n512,3\n1024,2\n4096,1\n";
    assert!(refusal(csv(old), old).contains("first column has no name"));
    let shortened = "(array([1, 2, ..., 3]), array([1., 2., ..., 9.]))";
    assert!(refusal(print(shortened), shortened).contains("shortened"));
    for (input, problem) in [
        (r#"{"0": 512, "1": 300, "2": 40}"#, "row index"),
        (r#"{"hist": [1, 2], "bin_edges": [0, 5, 3]}"#, "below the edge before"),
    ] {
        assert!(refusal(document(input), input).contains(problem), "{input:?}: {}", refusal(document(input), input));
    }
    for (input, problem) in [
        ("left,right,count\n0,512,3\n500,600,1\n", "overlap"),
        ("length,count\n512,-3\n", "not a count"),
        ("length,count\n512.5,3\n", "not a length"),
        ("length,count\n512,x\n", "not a number"),
        ("length,count\n512,0\n", "every count is zero"),
    ] {
        assert!(refusal(csv(input), input).contains(problem), "{input:?}: {}", refusal(csv(input), input));
    }
}

#[test]
fn other_files_are_no_histograms() {
    for input in [
        "length\n512\n300\n",
        "length,images\n512,3\n",
        "prompt_tokens,completion_tokens\n5,6\n",
        ",num_tokens\n0,512\n1,300\n",
        ",num_tokens\n3,512\n7,300\n9,700\n",
        "from,to,n,num_tokens,x\n1,2,3,4,5\n",
        "pages,num_tokens\n1-5,512\n6-9,300\n",
        "5,6\n7,8\n",
        "id,date\n1,2024-05-01\n",
        "length,count,images\n5,1,0\n",
    ] {
        assert_eq!(csv(input), None, "{input:?}");
    }
    for input in [
        "[[512, 300], [1, 2, 3, 4]]",
        "[[512, 1024], [256]]",
        "[[512, 3], [1024, 2], [4096, 1]]",
        "[1, 2, 3]",
        r#"[{"num_tokens": 3}]"#,
        r#"{"text_tokens": [1], "images": [2]}"#,
        "{}",
        "[]",
        "3",
        r#"{"a": 1}"#,
    ] {
        assert_eq!(document(input), None, "{input:?}");
    }
    for input in [
        "1 512\n2 300\n",
        "512 3\n1024 2\n",
        "  1 512\n  2 300\n",
        "5\n6\n",
        "3 5 7",
        "3 5\n7 8 9\n",
        "length\n0 512\n1 300\n",
        "length images\n512 3\n300 2\n",
        "3, 5\n7, 8\n",
        "hello",
        "{\"a\": 1}",
        "",
    ] {
        assert_eq!(print(input), None, "{input:?}");
    }
    assert_eq!(
        table::read("length,count\n5,1\n", b',', &Options { column: Some("length"), ..Options::default() }),
        None,
        "a chosen column is read as rows"
    );
}

/// If the number of lengths exceeds the number of bins, neighbours share a bin and no sample is
/// lost.
#[test]
fn many_lengths_share_bins() {
    let lengths = 2 * super::bins::MAX_POINTS;
    let input = (1..=lengths).fold("length,count\n".to_owned(), |file, length| file + &format!("{length},1\n"));
    let (edges, counts, report) = read(csv(&input), "many");
    assert_eq!((edges[0], edges[1], edges[2]), (1.0, 2.0, 3.0));
    assert_eq!((counts.iter().sum::<f64>(), report.parsed), (lengths as f64, lengths as u64));
    assert!(report.warnings.iter().any(|warning| warning.contains("2 neighbours share a bin")));
}

mod unclear;
