//! Totals, statistics, shares and other quantities that look like sample lengths.

use super::*;

fn unclear_candidates(file: &str) -> Vec<super::super::Candidate> {
    match import(file.as_bytes(), None) {
        Err(ImportError::Unclear { candidates }) => candidates,
        other => panic!("{file:?}: {other:?}"),
    }
}

fn has_warning(report: &super::super::Report, terms: &[&str]) -> bool {
    report.warnings.iter().any(|warning| terms.iter().all(|word| warning.contains(word)))
}

/// Token totals over the samples of a shard, a batch, a source or a bin.
#[test]
fn multi_sample_totals_need_confirmation() {
    for (file, column) in [
        ("num_samples,num_tokens\n10000,8400123\n10000,8390021\n", "num_tokens"),
        (
            "{\"num_samples\": 10000, \"num_tokens\": 8400123}\n{\"num_samples\": 9000, \"num_tokens\": 7390021}\n",
            "num_tokens",
        ),
        ("num_samples,total_tokens\n10,8400\n20,16500\n5,4100\n", "total_tokens"),
        ("shard,num_docs,num_tokens\n0,1200,540000\n1,1180,530000\n", "num_tokens"),
        ("shard,num_docs,num_tokens\na.parquet,1200,540000\nb.parquet,1180,530000\n", "num_tokens"),
        ("batch_size,num_tokens\n8,8192\n8,8190\n4,4100\n", "num_tokens"),
        ("batch,num_tokens,num_sequences\n0,8192,12\n1,8190,15\n2,8100,9\n", "num_tokens"),
        ("source,tokens\nweb,878M\ncode,59B\nbooks,5M\n", "tokens"),
        ("source,tokens\nweb,878M\ncode,259M\nbooks,5M\n", "tokens"),
        (r#"{"tokens": [8400123, 8390021], "count": [10000, 10000]}"#, "tokens"),
        ("shard,num_tokens\n0,540000\n1,530000\n2,550000\n", "num_tokens"),
        ("left,right,tokens\n0,512,76800\n512,1024,4000\n", "tokens"),
    ] {
        let candidates = unclear_candidates(file);
        let column_candidate = candidates.iter().find(|candidate| candidate.name == column).expect(file);
        assert!(
            column_candidate.note.as_deref().is_some_and(|note| note.contains("totals of several samples")),
            "{file}: {column_candidate:?}"
        );
    }
    assert!(refusal("bin,tokens\n0-512,76800\n512-1024,40960\n").contains("tokens of all samples of each bin"));
    let lines = "{\"bin\": \"0-512\", \"tokens\": 76800}\n{\"bin\": \"512-1024\", \"tokens\": 40960}\n";
    assert_eq!(names(&unclear_candidates(lines)), ["bin", "tokens"]);
    // Lengths with counts, and a bin per sample.
    let counted = import(b"num_tokens,num_samples\n512,3\n1024,2\n4096,1\n", None).expect("lengths with counts");
    assert_eq!(counted.report.parsed, 6);
    assert_eq!(rows("bucket,num_tokens\n0-512,300\n512-1024,700\n").0, [300, 700]);
    // The shard of each sample.
    assert_eq!(rows("shard,num_tokens\n0,540\n0,530\n1,550\n").0, [540, 530, 550]);
    // The user's choice resolves the ambiguity.
    let options = Options { column: Some("num_tokens"), weight: Some(""), ..Options::default() };
    let file = b"shard,num_docs,num_tokens\n0,1200,540000\n1,1180,530000\n";
    let selected = super::super::import(file, &options).expect("rows");
    assert_eq!(selected.dataset, Dataset::Rows { text_tokens: vec![540_000, 530_000], images: vec![], shaped: None });
}

#[test]
fn a_row_with_the_sum_is_no_sample() {
    for (file, label) in [
        ("id,num_tokens\na,512\nb,1200\nc,1000\ntotal,2712\n", "row total"),
        ("id,num_tokens\na,512\nb,1200\nc,1000\nTOTAL,2712\n", "row total"),
        ("id,num_tokens\na,512\nb,1200\nc,1000\nAll,2712\n", "row all"),
        ("id,num_tokens\n1,512\n2,1200\n3,1000\nTotal,2712\n", "row total"),
        ("id,num_tokens\nTotal,2712\na,512\nb,1200\nc,1000\n", "row total"),
        ("id,num_tokens\na,512\nb,1200\nc,1000\n,2712\n", "last row"),
        ("id;num_tokens\na;512\nb;1200\nc;1000\nSumme;2712\n", "row summe"),
        ("| id | num_tokens |\n|---|---|\n| a | 512 |\n| b | 1200 |\n| c | 1000 |\n| Total | 2712 |\n", "row total"),
        (
            "{\"id\": \"a\", \"num_tokens\": 512}\n{\"id\": \"b\", \"num_tokens\": 1200}\n{\"id\": \"c\", \"num_tokens\": 1000}\n{\"id\": \"total\", \"num_tokens\": 2712}\n",
            "row total",
        ),
        (r#"{"id": ["a", "b", "c", "total"], "num_tokens": [512, 1200, 1000, 2712]}"#, "row total"),
        ("id,prompt_tokens,completion_tokens\na,500,12\nb,1000,200\nc,900,100\ntotal,2400,312\n", "row total"),
        ("id,num_tokens\na,512\nb,1200\nc,1000\nmean,904\n", "row mean"),
        ("id,num_tokens\na,512\nb,1200\nc,1000\nmax,1200\n", "row max"),
    ] {
        let (lengths, _, report) = rows(file);
        assert_eq!((lengths, report.parsed, report.skipped), (vec![512, 1200, 1000], 3, 1), "{file}");
        assert!(has_warning(&report, &[label, "is left out"]), "{file}: {:?}", report.warnings);
    }
    let summary = "id,num_tokens\na,512\nb,1200\nc,1000\nmean,904\np50,1000\nmin,512\nmax,1200\ntotal,2712\n";
    let (lengths, _, report) = rows(summary);
    assert_eq!((lengths, report.skipped), (vec![512, 1200, 1000], 5));
    let other = "id,num_tokens\na,512\nb,1200\nc,1000\ntotal,9000\n";
    let (lengths, _, report) = rows(other);
    assert_eq!(lengths, [512, 1200, 1000]);
    assert!(has_warning(&report, &["9000 differs from the sum"]), "{:?}", report.warnings);
    let plain = "5\n7\n9\n4\n6\n31\n";
    assert_eq!(rows(plain).0, [5, 7, 9, 4, 6, 31]);
}

#[test]
fn sample_labels_are_preserved() {
    for (file, expected) in [
        ("name,num_tokens\nMax,5\nAnna,7\nEve,9\n", vec![7, 9, 5]),
        ("split,num_tokens\nall,5\nall,7\nall,9\n", vec![5, 7, 9]),
        ("id,num_tokens\np1,512\np2,300\np3,733\n", vec![300, 733, 512]),
        ("id,num_tokens\na,512\nb,300\n,733\n", vec![512, 300, 733]),
        ("id,num_tokens\na,512\n,812\nb,300\n", vec![512, 812, 300]),
        ("num_tokens,images\n5,1\n7,\n", vec![5, 7]),
    ] {
        let (lengths, _, report) = rows(file);
        assert_eq!((lengths, report.skipped), (expected, 0), "{file}");
    }
}

#[test]
fn statistics_are_no_samples() {
    let csv = "stat,num_tokens\nmin,12\nmean,733.5\np50,512\nmax,8192\n";
    assert!(refusal(csv).contains("too little for a histogram"), "{}", refusal(csv));
    for file in [
        "what,num_tokens\nmin,12\nmean,733\np50,512\nmax,8192\n",
        "{\"stat\": \"min\", \"num_tokens\": 12}\n{\"stat\": \"mean\", \"num_tokens\": 733}\n{\"stat\": \"p50\", \"num_tokens\": 512}\n{\"stat\": \"max\", \"num_tokens\": 8192}\n",
    ] {
        assert!(refusal(file).contains("statistics of lengths (min, mean, p50, max)"), "{}", refusal(file));
    }
    let full = "stat,num_tokens\nmin,10\np25,200\np50,512\np75,900\nmax,4096\n";
    let imported = import(full.as_bytes(), None).expect("percentiles");
    assert_eq!(imported.report.format, "CSV, percentiles");
}

/// A row of prompt and completion represents several samples.
#[test]
fn prompt_and_completion_counts_are_used() {
    let expected = Dataset::Histogram { edges: vec![120.0, 120.0, 550.0, 550.0], counts: vec![30.0, 0.0, 7.0] };
    for file in [
        "prompt_tokens,completion_tokens,count\n100,20,30\n500,50,7\n",
        "{\"prompt_tokens\": 100, \"completion_tokens\": 20, \"count\": 30}\n{\"prompt_tokens\": 500, \"completion_tokens\": 50, \"count\": 7}\n",
    ] {
        let imported = import(file.as_bytes(), None).expect(file);
        assert_eq!(imported.dataset, expected, "{file}");
        assert!(imported.report.source.contains("samples per row in"), "{}", imported.report.source);
    }
    // Two combinations with equal sum.
    let same = import(b"prompt_tokens,completion_tokens,n\n100,20,30\n80,40,7\n", None).expect("counts");
    assert_eq!(same.dataset, Dataset::Histogram { edges: vec![120.0, 120.0], counts: vec![37.0] });
    let with_model = "prompt_tokens,completion_tokens,count,model\n100,20,30,a\n500,50,7,b\n";
    let (lengths, _, report) = rows(with_model);
    assert_eq!(lengths, [120, 550]);
    assert!(has_warning(&report, &["count may hold the number of samples"]), "{:?}", report.warnings);
}

#[test]
fn media_tokens_are_added() {
    for (file, source) in [
        ("text_tokens,image_tokens\n100,576\n50,0\n", "columns text_tokens + image_tokens"),
        ("text_tokens,num_image_tokens\n100,576\n50,0\n", "columns text_tokens + num_image_tokens"),
        (
            "text_tokens,audio_tokens,vision_tokens\n100,76,500\n50,0,0\n",
            "columns text_tokens + audio_tokens + vision_tokens",
        ),
        ("text_tokens,image_tokens,total\n100,576,676\n50,0,50\n", "columns text_tokens + image_tokens"),
        ("text_tokens,image_tokens,total_tokens\n100,576,676\n50,0,50\n", "column total_tokens"),
        (
            "{\"usage\": {\"total_tokens\": 676, \"details\": {\"text_tokens\": 100, \"image_tokens\": 576}}}\n{\"usage\": {\"total_tokens\": 50, \"details\": {\"text_tokens\": 50, \"image_tokens\": 0}}}\n",
            "key usage.total_tokens",
        ),
    ] {
        let (lengths, _, report) = rows(file);
        assert_eq!((lengths, report.source.as_str()), (vec![676, 50], source), "{file}");
        assert_eq!(has_warning(&report, &["of media are added"]), source.contains('+'), "{:?}", report.warnings);
    }
    for file in ["num_tokens,image_tokens\n676,576\n50,0\n", "text_tokens,images,image_tokens\n676,1,576\n50,0,0\n"] {
        let (lengths, _, report) = rows(file);
        assert_eq!(lengths, [676, 50], "{file}");
        assert!(has_warning(&report, &["Not added: image_tokens"]), "{:?}", report.warnings);
    }
}

/// Anthropic's `input_tokens` does not include cached tokens.
#[test]
fn cache_tokens_belong_to_the_prompt() {
    let file = "{\"usage\": {\"input_tokens\": 3, \"cache_creation_input_tokens\": 100, \"cache_read_input_tokens\": 2000, \"output_tokens\": 50}}\n{\"usage\": {\"input_tokens\": 40, \"cache_creation_input_tokens\": 0, \"cache_read_input_tokens\": 0, \"output_tokens\": 60}}\n";
    let (lengths, _, report) = rows(file);
    assert_eq!(lengths, [2153, 100]);
    assert!(report.source.contains("usage.cache_read_input_tokens"), "{}", report.source);
    assert!(has_warning(&report, &["without the cache"]), "{:?}", report.warnings);
    let flat = "input_tokens,cache_read_input_tokens,output_tokens\n3,2000,50\n40,0,60\n";
    assert_eq!(rows(flat).0, [2053, 100]);
    // OpenAI's prompt count includes cached tokens.
    let openai = "prompt_tokens,cache_read_input_tokens,completion_tokens\n2003,2000,50\n40,0,60\n";
    assert_eq!(rows(openai).0, [2053, 100]);
}

#[test]
fn densities_are_multiplied_by_widths() {
    // Widths 100 and 400: 0.004 * 100 = 0.4 and 0.0015 * 400 = 0.6.
    for file in [
        r#"{"hist": [0.004, 0.0015], "bin_edges": [0, 100, 500], "density": true}"#,
        r#"{"hist": [0.004, 0.0015], "bin_edges": [0, 100, 500]}"#,
        r#"{"density": [0.004, 0.0015], "bin_edges": [0, 100, 500]}"#,
        "[[0.004, 0.0015], [0, 100, 500]]",
    ] {
        let imported = import(file.as_bytes(), None).expect(file);
        let Dataset::Histogram { edges, counts } = imported.dataset else { panic!("{file}") };
        assert_eq!(edges, [0.0, 100.0, 500.0], "{file}");
        assert_eq!(counts.iter().map(|count| (count * 1e6).round()).collect::<Vec<_>>(), [4e5, 6e5], "{file}");
        assert!(imported.report.warnings.iter().any(|warning| warning.contains("densities")), "{file}");
    }
    let counts = r#"{"hist": [40, 60], "bin_edges": [0, 100, 500], "density": true}"#;
    assert!(refusal(counts).contains("their integral is 28000"), "{}", refusal(counts));
    let shares = import(br#"{"hist": [0.4, 0.6], "bin_edges": [0, 100, 500]}"#, None).expect("shares");
    assert_eq!(shares.dataset, Dataset::Histogram { edges: vec![0.0, 100.0, 500.0], counts: vec![0.4, 0.6] });
}

#[test]
fn token_shares_and_sums_need_confirmation() {
    for file in [
        "length,token_share\n512,0.25\n1024,0.75\n",
        "length,cum_tokens\n512,1536\n1024,3584\n",
        "length,token_share\n1024,0.3\n512,0.2\n2048,0.5\n",
        "{\"length\": 512, \"cum_tokens\": 1536}\n{\"length\": 1024, \"cum_tokens\": 3584}\n",
    ] {
        assert_eq!(unclear_candidates(file)[0].name, "length", "{file}");
    }
    let counted = import(b"length,count,token_share\n512,3,0.6\n1024,1,0.4\n", None).expect("counts");
    let expected = Dataset::Histogram { edges: vec![512.0, 512.0, 1024.0, 1024.0], counts: vec![3.0, 0.0, 1.0] };
    assert_eq!(counted.dataset, expected);
}

#[test]
fn other_units_and_quantities_are_no_lengths() {
    for file in [
        "length,unit\n512,seconds\n300,seconds\n",
        "{\"length\": 512, \"unit\": \"words\"}\n{\"length\": 300, \"unit\": \"words\"}\n",
    ] {
        let candidates = unclear_candidates(file);
        assert!(
            candidates[0].note.as_deref().is_some_and(|note| note.contains("by the column of units")),
            "{candidates:?}"
        );
    }
    assert_eq!(rows("length,unit\n512,tokens\n300,tokens\n").0, [512, 300]);
    for (file, problem) in [
        ("left,right,count,unit\n0,512,3,bytes\n512,1024,2,bytes\n", "not \"bytes\""),
        (r#"{"lengths": [512, 300], "unit": "seconds"}"#, "not \"seconds\""),
        (
            r#"{"name": "reward", "hist": [3, 2], "bin_edges": [0, 100, 500]}"#,
            "name is \"reward\", which is another quantity",
        ),
        (
            r#"{"name": "train/reward", "hist": [3, 2], "bin_edges": [0, 100, 500]}"#,
            "name is \"train/reward\", which is another quantity",
        ),
        (r#"{"hist": [3, 2], "bin_edges": [1, 2.5, 7.5]}"#, "fractions below 20"),
        ("left,right,count\n0,1.5,3\n1.5,12.5,2\n", "fractions below 20"),
    ] {
        assert!(refusal(file).contains(problem), "{file}: {}", refusal(file));
    }
    let stated = br#"{"schema": "hist/1", "unit": "tokens", "edges": [0, 2.5, 8], "counts": [3, 2]}"#;
    assert!(import(stated, None).is_ok());
    let named = import(br#"{"name": "web pages", "hist": [3, 2], "bin_edges": [0, 100, 500]}"#, None).expect("bins");
    assert!(
        has_warning(&named.report, &["read as lengths in tokens", "name \"web pages\""]),
        "{:?}",
        named.report.warnings
    );
}

/// Sample positions in a stream look like bins.
#[test]
fn sample_positions_are_not_bins() {
    for file in [
        "start,end,count\n0,512,1\n512,733,1\n733,1801,1\n",
        "{\"start\": 0, \"end\": 512, \"count\": 1}\n{\"start\": 512, \"end\": 733, \"count\": 1}\n",
    ] {
        assert!(refusal(file).contains("places of samples in a stream"), "{}", refusal(file));
    }
    assert!(import(b"start,end,count\n0,512,1\n512,1024,2\n", None).is_ok());
}

#[test]
fn packed_rows_are_split() {
    let ids = |count: u32| (100..100 + count).map(|id| id.to_string()).collect::<Vec<_>>().join(", ");
    let row = |name: &str, values: &[u32], count: u32| {
        format!("{{\"input_ids\": [{}], \"{name}\": {values:?}}}\n", ids(count))
    };
    let by_lengths = row("seq_lens", &[20, 10], 30) + &row("seq_lens", &[7], 8);
    let places: Vec<u32> = (0..20).chain(0..10).collect();
    let by_places = row("position_ids", &places, 30) + &row("position_ids", &[0, 1, 2, 3, 4, 5, 6], 7);
    for (file, name) in [(by_lengths, "seq_lens"), (by_places, "position_ids")] {
        let (lengths, _, report) = rows(&file);
        assert_eq!(lengths, [20, 10, 7], "{file}");
        assert!(report.source.contains(name), "{}", report.source);
        assert!(has_warning(&report, &["several samples", name]), "{:?}", report.warnings);
    }
    let keyed = r#"{"input_ids": [[7, 8, 9], [7, 8]], "seq_lens": [[2, 1], [2]]}"#;
    assert_eq!(rows(keyed).0, [2, 1, 2]);
    // Each row is one sample.
    assert_eq!(rows(&(row("position_ids", &[0, 1, 2], 3) + &row("position_ids", &[0, 1], 2))).0, [3, 2]);
    // Lengths of another quantity.
    assert_eq!(rows(&row("seq_lens", &[900, 800], 3).repeat(2)).0, [3, 3]);
}

#[test]
fn padded_lists_are_reported() {
    let padded = "{\"input_ids\": [5, 6, 2, 2]}\n{\"input_ids\": [5, 2, 2, 2]}\n";
    let (lengths, _, report) = rows(padded);
    assert_eq!(lengths, [4, 4]);
    assert!(has_warning(&report, &["has 4 elements", "padded"]), "{:?}", report.warnings);
    let many = format!("{{\"input_ids\": {:?}}}\n", (0..64).collect::<Vec<u32>>()).repeat(12);
    assert!(has_warning(&rows(&many).2, &["has 64 elements", "packed"]));
    let plain = "{\"input_ids\": [5, 6, 2]}\n{\"input_ids\": [5, 2, 7]}\n";
    assert!(!has_warning(&rows(plain).2, &["padded"]));
}

/// A response of `/rows` from the dataset viewer.
#[test]
fn viewer_pages_are_reported() {
    let row = |tokens: u32, cut: &str| {
        format!(r#"{{"row_idx": 0, "row": {{"num_tokens": {tokens}}}, "truncated_cells": [{cut}]}}"#)
    };
    let page = |first: String, total: u32| {
        format!(
            r#"{{"features": [], "rows": [{first}, {}], "num_rows_total": {total}, "num_rows_per_page": 100, "partial": false}}"#,
            row(7, "")
        )
    };
    let (lengths, _, report) = rows(&page(row(5, "\"text\""), 8551));
    assert_eq!(lengths, [5, 7]);
    assert!(
        has_warning(&report, &["2 of 8551 rows"]) && has_warning(&report, &["1 rows", "truncated_cells"]),
        "{:?}",
        report.warnings
    );
    let (_, _, full_report) = rows(&page(row(5, ""), 2));
    assert!(full_report.warnings.is_empty(), "{:?}", full_report.warnings);
}
