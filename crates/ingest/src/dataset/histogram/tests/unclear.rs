//! Files that look like length histograms but contain another quantity, or contain lengths in
//! another format.

use super::super::shares;
use super::*;

fn warned(report: &super::super::Report, text: &str) {
    assert!(report.warnings.iter().any(|warning| warning.contains(text)), "{text}: {:?}", report.warnings);
}

#[test]
fn number_keys_are_checked() {
    let percentiles = r#"{"50": 512, "90": 2048, "99": 8192}"#;
    let python = "{50: 512, 90: 2048, 99: 8192}";
    for (outcome, input) in [(document(percentiles), percentiles), (print(python), python)] {
        let (edges, _, report) = read(outcome, input);
        assert_eq!(edges, [1.0, 512.0, 2048.0, 8192.0, 8192.0], "{input}");
        warned(&report, "the keys 50, 90, 99 are read as percentiles");
    }
    let identifiers = r#"{"101": 512, "102": 733, "103": 1024}"#;
    let printed = "{101: 512, 102: 733, 103: 1024}";
    for (outcome, input) in [(document(identifiers), identifiers), (print(printed), printed)] {
        assert!(refusal(outcome, input).contains("look like identifiers"), "{input}");
    }
    let bins = r#"{"0-10": 3, "10-20": 2}"#;
    warned(&read(document(bins), bins).2, "bins of lengths in tokens");
    // A Counter counts its keys.
    let counter = "Counter({101: 512, 102: 733})";
    assert_eq!(read(print(counter), counter).1, [512.0, 0.0, 733.0]);
    let map = "{512=3, 1024=5}";
    let (edges, counts, report) = read(print(map), map);
    assert_eq!((edges, counts), (vec![512.0, 512.0, 1024.0, 1024.0], vec![3.0, 0.0, 5.0]));
    assert_eq!(report.format, "printed map, lengths with counts");
}

#[test]
fn summaries_need_percentiles_and_a_length_name() {
    let spark = "summary,length\ncount,1000\nmean,700.5\nstddev,300.1\nmin,10\nmax,4096\n";
    assert!(refusal(csv(spark), spark).contains("too little for a histogram"));
    let full = "summary,length\ncount,1000\nmean,700.5\nstddev,300.1\nmin,10\n25%,200\n50%,512\n75%,900\nmax,4096\n";
    assert_eq!(read(csv(full), full).0, [10.0, 200.0, 512.0, 900.0, 4096.0]);
    let price = ",price\ncount,1000\nmean,700\nstd,300\nmin,10\n25%,200\n50%,512\n75%,900\nmax,4096\n";
    assert!(refusal(csv(price), price).contains("choose one of: price"));
    let body = "count    1000.0\nmean      700.0\nstd       300.0\nmin        10.0\n25%       200.0\n50%       512.0\n75%       900.0\nmax      4096.0\n";
    let series = format!("{body}Name: price, dtype: float64\n");
    assert!(refusal(print(&series), &series).contains("choose one of: price"));
    let table = format!("         price\n{body}");
    assert!(refusal(print(&table), &table).contains("choose one of: price"));
    let table = format!("       num_tokens\n{body}");
    assert_eq!(read(print(&table), &table).0, [10.0, 200.0, 512.0, 900.0, 4096.0]);
    let two = "       images  num_tokens\nmin    0.0     10.0\n25%    1.0     200.0\n50%    1.0     512.0\nmax    9.0     4096.0\n";
    assert_eq!(read(print(two), two).0, [10.0, 200.0, 512.0, 4096.0]);
}

#[test]
fn printed_counts_need_a_length_name() {
    for input in
        ["age\n35    12\n22     8\n41     3\nName: count, dtype: int64\n", "age\n(0, 20]     12\n(20, 40]     8\n"]
    {
        assert!(refusal(print(input), input).contains("\"age\" is not a known name of lengths"), "{input}");
    }
    // Without the last line, this may be a table with row numbers: it is read as rows, and the user
    // chooses.
    let rows = "age\n35    12\n22     8\n41     3\n";
    assert_eq!(print(rows), None);
    for input in [
        "num_tokens\n(0, 512]       123\n(512, 1024]     45\nName: count, dtype: int64\n",
        "(0, 512]       123\n(512, 1024]     45\nName: num_tokens, dtype: int64\n",
        "length\n(0, 512]       123\n(512, 1024]     45\n",
    ] {
        let (edges, counts, _) = read(print(input), input);
        assert_eq!((edges, counts), (vec![0.0, 512.0, 1024.0], vec![123.0, 45.0]), "{input}");
    }
    let unnamed = "512     3\n1024    2\nName: count, dtype: int64\n";
    warned(&read(print(unnamed), unnamed).2, "has no name");
}

#[test]
fn number_pairs_are_not_uniq_output() {
    for input in [
        "  100 512\n  200 300\n",
        "      3 512\n      2 1024\n      1 512\n",
        "      3  512\n      2 1024\n",
        "      3 512\n     2 1024\n",
        "      3\t512\n      2\t1024\n",
        "   3 512\n  2 1024\n",
    ] {
        assert_eq!(print(input), None, "{input:?}");
    }
    let gnu = "      3 512\n  12345 1024\n12345678 77\n";
    let bsd = "   3 512\n  12 1024\n12345 77\n";
    for (input, counts) in [(gnu, [12_345_678.0, 0.0, 3.0, 0.0, 12_345.0]), (bsd, [12_345.0, 0.0, 3.0, 0.0, 12.0])] {
        let (edges, found, _) = read(print(input), input);
        assert_eq!((edges, found), (vec![77.0, 77.0, 512.0, 512.0, 1024.0, 1024.0], counts.to_vec()), "{input:?}");
    }
}

#[test]
fn bins_need_a_length_or_bin_name() {
    for name in ["age_group", "score_range", "price"] {
        let input = format!("{name},count\n0-10,3\n10-20,2\n");
        assert!(refusal(csv(&input), &input).contains("is not a known name of lengths"), "{name}");
    }
    for name in ["bin", "range", "interval", "bucket", "length", "length_range"] {
        let input = format!("{name},count\n0-10,3\n10-20,2\n");
        assert_eq!(read(csv(&input), &input).0, [0.0, 10.0, 20.0], "{name}");
    }
    // The range is a property of each sample.
    assert_eq!(csv("age_group,count,num_tokens\n0-10,3,512\n10-20,2,300\n"), None);
    for input in ["bin,count\n0,512\n1,300\n2,40\n", "bin,count\n1,512\n2,300\n", "value,count\n1,9\n2,4\n3,8\n"] {
        assert!(refusal(csv(input), input).contains("counts up by 1"), "{input}");
    }
    let values = "value,count\n512,3\n1024,2\n";
    warned(&read(csv(values), values).2, "value is read as the length");
}

#[test]
fn open_bin_labels() {
    for (first, last) in [("<=512", ">1024"), ("≤512", "≥1024"), ("up to 512", "1024+"), ("0-512", "over 1024")] {
        let input = format!("bin,count\n{first},3\n513-1024,2\n{last},1\n");
        let (edges, counts, report) = read(csv(&input), &input);
        assert_eq!((edges, counts), (vec![0.0, 512.0, 513.0, 1024.0, 2048.0], vec![3.0, 0.0, 2.0, 1.0]), "{input}");
        warned(&report, "2048 is assumed");
    }
}

#[test]
fn shares_sum_to_unity() {
    for input in [
        "length,percentage\n512,50\n1024,30\n4096,20\n",
        "length,count\n512,50%\n1024,30%\n4096,20%\n",
        "length,share\n512,50.0 %\n1024,30.0 %\n4096,20.0 %\n",
    ] {
        let (_, counts, report) = read(csv(input), input);
        assert_eq!(counts, [50.0, 0.0, 30.0, 0.0, 20.0], "{input}");
        assert_eq!(report.warnings, [shares::UNKNOWN], "{input}");
    }
    let bins = "bin,count\n0-512,62.5%\n512-1024,37.5%\n";
    assert_eq!(read(csv(bins), bins).1, [62.5, 37.5]);
    let mixed = "length,count\n512,50%\n1024,30\n";
    assert!(refusal(csv(mixed), mixed).contains("with and without a percent sign"));
    let rising = "length,percentage\n512,50\n1024,90\n4096,100\n";
    assert!(refusal(csv(rising), rising).contains("as a cumulative share does"));
    let short = "length,share\n512,0.5\n1024,0.3\n";
    warned(&read(csv(short), short).2, "share sums to 0.8");
}

#[test]
fn cumulative_shares_end_at_unity() {
    for (input, missing) in [
        ("length,cdf\n512,0.5\n1024,0.9\n", "longest 10 %"),
        ("length,cum_pct\n512,50\n1024,95\n", "longest 5 %"),
        ("percentile,length\n50,512\n99,1024\n", "longest 1 %"),
    ] {
        warned(&read(csv(input), input).2, missing);
    }
    let json = r#"{"lengths": [512, 1024], "cdf": [0.5, 0.9]}"#;
    warned(&read(document(json), json).2, "longest 10 %");
    let complete = "length,cdf\n512,0.5\n1024,1.0\n";
    let warnings = read(csv(complete), complete).2.warnings;
    assert!(warnings.len() == 2 && warnings[1] == shares::UNKNOWN, "{warnings:?}");
    let complement = "length,ccdf\n512,0.5\n1024,0.1\n4096,0\n";
    assert!(refusal(csv(complement), complement).contains("share of longer samples"));
}

#[test]
fn the_row_with_the_sum_is_left_out() {
    for label in ["Total", "sum", "all", "Gesamt", "Total:"] {
        let input = format!("length,count\n512,3\n1024,2\n4096,1\n{label},6\n");
        let (edges, counts, report) = read(csv(&input), &input);
        assert_eq!((&edges[..], &counts[..]), (&POINTS.0[..], &POINTS.1[..]), "{label}");
        assert_eq!((report.parsed, report.skipped), (6, 1), "{label}");
        warned(&report, "is left out: it is the sum of the rows");
        let input = format!("bin,count\n0-512,3\n512-1024,2\n{label},5\n");
        assert_eq!(read(csv(&input), &input).1, [3.0, 2.0], "{label}");
    }
    let indexed = ",length,count\n0,512,3\n1,1024,2\n2,Total,5\n";
    assert_eq!(read(csv(indexed), indexed).2.parsed, 5);
    let edges = "left,right,count\n0,512,3\n512,1024,2\nTotal,,9\n";
    warned(&read(csv(edges), edges).2, "number 9 differs from the sum of the rows, 5");
}

#[test]
fn sample_rows_are_not_counts() {
    for input in [
        "length,weight\n512,0.5\n300,1.5\n512,1.0\n",
        "length,weight\n512,0.5\n300,1.5\n",
        "length,n\n512,3\n300,1\n512,2\n",
        "length,count\n512,3\n512,1\n512,2\n300,1\n300,2\n",
    ] {
        assert_eq!(csv(input), None, "{input}");
    }
}

#[test]
fn tables_between_semicolons() {
    let read = |input: &str| table::read(input, b';', &Options::default());
    let (edges, counts, _) = super::read(read("length;share\n1261,0;0,25\n754,0;0,75\n"), "decimals");
    assert_eq!((edges, counts), (vec![754.0, 754.0, 1261.0, 1261.0], vec![0.75, 0.0, 0.25]));
    let unclear = "length;count\n754,000;3\n512,000;4\n";
    assert!(
        refusal(read(unclear), unclear)
            .contains("754,000 is 754000 with thousands separators or 754.000 with decimals")
    );
}

/// Edges that are valid only as a pair, and centers: 384 is halfway between 256 and 512.
#[test]
fn further_edge_names() {
    for (left, right) in [("min", "max"), ("ge", "lt"), ("min_len", "max_len"), ("begin", "end"), ("start", "stop")] {
        let input = format!("{left},{right},count\n0,512,3\n512,1024,2\n");
        assert_eq!(read(csv(&input), &input).0, [0.0, 512.0, 1024.0], "{input}");
        // One row of statistics per source.
        let input = format!("source,{left},{right},count\na,0,512,3\nb,512,1024,2\n");
        assert!(!matches!(csv(&input), Some(Ok(_))), "{input}");
    }
    let single = "min,max,count\n10,4096,1000\n";
    assert_eq!(csv(single), None);
    let centers = "bin_center,count\n256,3\n512,2\n1024,1\n";
    let (edges, counts, report) = read(csv(centers), centers);
    assert_eq!((edges, counts), (vec![128.0, 384.0, 768.0, 1280.0], vec![3.0, 2.0, 1.0]));
    warned(&report, "halfway between");
    let polars = "breakpoint,category,count\n512,\"(0.0, 512.0]\",3\n1024,\"(512.0, 1024.0]\",2\n";
    assert_eq!(read(csv(polars), polars).0, [0.0, 512.0, 1024.0]);
    let numbered = "bucket,# samples\n0\u{2013}512,3\n512\u{2013}1024,2\n";
    assert_eq!(read(csv(numbered), numbered).0, [0.0, 512.0, 1024.0]);
}

#[test]
fn equal_width_bins_and_nested_histograms() {
    for input in [
        r#"{"counts": [3, 2], "min": 0, "max": 1024, "num_bins": 2}"#,
        r#"{"length_histogram": {"bin_edges": [0, 512, 1024], "counts": [3, 2]}}"#,
        r#"{"n_docs": 5, "stats": {"hist": [3, 2], "bin_edges": [0, 512, 1024]}}"#,
        r#"{"length_histogram": {"buckets": [{"range": "0-512", "count": 3}, {"range": "512-1024", "count": 2}]}}"#,
        r#"{"n": [3, 2], "bins": [0, 512, 1024]}"#,
    ] {
        let (edges, counts, _) = read(document(input), input);
        assert_eq!((edges, counts), (vec![0.0, 512.0, 1024.0], vec![3.0, 2.0]), "{input}");
    }
    let keyed = r#"{"num_tokens": {"512": 3, "1024": 2}}"#;
    assert_eq!(read(document(keyed), keyed).2.parsed, 5);
    let named = r#"{"web": {"hist": [3, 2], "bin_edges": [0, 512, 1024]}}"#;
    warned(&read(document(named), named).2, "under \"web\" is read as one of lengths");
    for input in [r#"{"ages": {"35": 12, "22": 8}}"#, r#"{"num_tokens": {"0": 5, "1": 7}}"#] {
        assert_eq!(document(input), None, "{input}");
    }
    let other = r#"{"latency_ms": {"hist": [3, 2], "bin_edges": [0, 512, 1024]}}"#;
    assert_eq!(document(other), None);
}

/// A text with another quantity or unit rejects the histogram; a text that is not understood
/// appears in a warning.
#[test]
fn histogram_texts_are_checked() {
    let arrays = r#""hist": [5, 9, 2], "bin_edges": [256, 512, 1024, 2048]"#;
    for text in [
        r#""feature": "image_width""#,
        r#""column": "latency_ms""#,
        r#""x_label": "duration (s)""#,
        r#""edge_units": "bytes""#,
        r#""bin_unit": "px""#,
        r#""meta": {"column": "num_images", "unit": "tokens"}"#,
        r#""name": "train/reward""#,
    ] {
        let input = format!("{{{text}, {arrays}}}");
        assert!(matches!(document(&input), Some(Err(_))), "{input}");
    }
    let table = "metric,bin_start,bin_end,count\nlatency_ms,0,512,3\nlatency_ms,512,1024,2\n";
    assert!(refusal(csv(table), table).contains("metric is \"latency_ms\""));
    let table = table.replace("latency_ms", "web");
    warned(&read(csv(&table), &table).2, "metric \"web\"");
    let input = format!("{{\"feature\": \"web pages\", {arrays}}}");
    warned(&read(document(&input), &input).2, "feature \"web pages\"");
    for text in [r#""column": "num_tokens""#, r#""unit": "tokens""#, r#""_type": "histogram""#] {
        let input = format!("{{{text}, {arrays}}}");
        assert_eq!(read(document(&input), &input).2.warnings, Vec::<String>::new(), "{input}");
    }
}

/// Row numbers under a count name.
#[test]
fn row_numbers_in_a_table_are_not_counts() {
    for input in [
        "n,num_tokens\n1,735\n2,512\n3,4448\n",
        "count,num_tokens\n0,735\n1,512\n2,4448\n",
        "num_tokens,count\n735,10\n512,20\n4448,30\n",
    ] {
        assert_eq!(csv(input), None, "{input}");
    }
    let german = "length;count\n128;1.204\n256;9.001\n";
    assert!(refusal(table::read(german, b';', &Options::default()), german).contains("1204 with thousands separators"));
}

#[test]
fn old_value_counts_output_is_read() {
    let printed = "512     30\n1024    12\n256      3\nName: num_tokens, dtype: int64\n";
    let (_, counts, report) = read(print(printed), printed);
    assert_eq!((counts.iter().sum::<f64>(), report.parsed), (45.0, 45));
    warned(&report, "as value_counts() prints num_tokens");
    for input in [
        "0     512\n1    1024\n2     256\nName: length, dtype: int64\n",
        "0     512\n1     300\n2     256\nName: length, dtype: int64\n",
        "512     30\n1024    12\n256      3\nName: age, dtype: int64\n",
    ] {
        assert_eq!(print(input), None, "{input}");
    }
}
