//! Statistics that other tools write, and tables that are no lists of samples.

use planner::workload::Dataset;

use super::*;

fn histogram(file: &str) -> (Vec<f64>, Vec<f64>, super::super::Report) {
    match import(file.as_bytes(), None) {
        Ok(Imported { dataset: Dataset::Histogram { edges, counts }, report }) => (edges, counts, report),
        other => panic!("{file}: {other:?}"),
    }
}

fn note(file: &str) -> String {
    match import(file.as_bytes(), None) {
        Err(ImportError::Unclear { candidates }) => {
            candidates.into_iter().filter_map(|candidate| candidate.note).collect::<Vec<_>>().join(" ")
        }
        other => panic!("{file}: {other:?}"),
    }
}

#[test]
fn statistics_of_tensorflow_data_validation() {
    let file = r#"{"datasets":[{"name":"train","numExamples":"1000","features":[
        {"name":"label","type":"INT","numStats":{"commonStats":{"maxNumValues":"1"},"mean":0.5,"max":1.0,"histograms":[{"buckets":[{"highValue":1,"sampleCount":1000}]}]}},
        {"path":{"step":["num_tokens"]},"numStats":{"commonStats":{"maxNumValues":"1"},"mean":512.5,"min":12.0,"max":2048.0,"histograms":[
            {"buckets":[{"lowValue":12,"highValue":512,"sampleCount":400},{"lowValue":512,"highValue":2048,"sampleCount":600}]},
            {"buckets":[{"lowValue":12,"highValue":100,"sampleCount":500},{"lowValue":100,"highValue":2048,"sampleCount":500}],"type":"QUANTILES"}]}}]},
        {"name":"test","features":[]}]}"#;
    let (edges, counts, report) = histogram(file);
    assert_eq!((edges, counts), (vec![12.0, 512.0, 2048.0], vec![400.0, 600.0]));
    assert_eq!((report.format.as_str(), report.source.as_str()), ("TFDV statistics", "column num_tokens"));
    assert!(report.warnings.iter().any(|warning| warning.contains("not test")), "{:?}", report.warnings);
    // A list of token IDs has a histogram of its numbers of values.
    let list = r#"{"datasets":[{"num_examples":10,"features":[{"name":"input_ids","num_stats":{"common_stats":{"max_num_values":2048,"avg_num_values":700.0,
        "num_values_histogram":{"buckets":[{"low_value":3,"high_value":512,"sample_count":5},{"low_value":512,"high_value":2048,"sample_count":5}],"type":"QUANTILES"}},
        "mean":9000.0,"max":50000.0,"histograms":[{"buckets":[{"high_value":50000,"sample_count":7000}]}]}}]}]}"#;
    let (edges, counts, report) = histogram(list);
    assert_eq!((edges, counts), (vec![3.0, 512.0, 2048.0], vec![5.0, 5.0]));
    assert_eq!(report.source, "lengths of the lists of column input_ids");
    assert!(matches!(import(file.replace("num_tokens", "score").as_bytes(), None), Err(ImportError::Unclear { .. })));
}

#[test]
fn histograms_below_several_objects() {
    let file = r#"{"dataset":"x","splits":{"train":{"num_examples":1000,"length":{"mean":512,"min":5,"max":4096,"p50":400,"p90":900}}}}"#;
    let (edges, _, report) = histogram(file);
    assert_eq!(edges, [5.0, 400.0, 900.0, 4096.0]);
    assert!(report.warnings.iter().any(|warning| warning.contains("\"train\"")), "{:?}", report.warnings);
    let file = r#"{"stats":{"train":{"tokens":{"histogram":{"bins":[0,128,256,512],"counts":[10,20,30]}}}}}"#;
    assert_eq!(histogram(file).1, [10.0, 20.0, 30.0]);
    // Another quantity on the way, and several parts.
    for file in [
        r#"{"stats":{"latency_ms":{"train":{"histogram":{"bins":[0,128,256],"counts":[10,20]}}}}}"#,
        r#"{"stats":{"train":{"a":{"histogram":{"bins":[0,1,2],"counts":[1,2]}}},"test":{"a":{"histogram":{"bins":[0,1,2],"counts":[1,2]}}}}}"#,
    ] {
        assert!(import(file.as_bytes(), None).is_err(), "{file}");
    }
}

/// Token counts of training steps are sums over a batch, or over all steps so far.
#[test]
fn logs_of_training_steps_are_no_samples() {
    for file in [
        "step,num_tokens\n10,20000\n20,41000\n30,61500\n40,82000\n",
        "global_step,num_tokens,loss\n10,20480,2.5\n20,20480,2.25\n30,20400,2.25\n40,20480,2.125\n",
        "{\"step\": 1, \"num_tokens\": 2000, \"lr\": 0.1}\n{\"step\": 2, \"num_tokens\": 1900, \"lr\": 0.1}\n{\"step\": 3, \"num_tokens\": 2100, \"lr\": 0.1}\n",
    ] {
        assert!(note(file).contains("log of training steps"), "{file}: {}", note(file));
    }
    // A number of steps of a sample is no training step.
    let samples = import(b"step,num_tokens\n1,512\n1,2048\n2,77\n3,900\n", None).expect("lengths");
    assert_eq!(samples.report.parsed, 4);
}

#[test]
fn totals_with_a_number_of_examples_are_no_sample() {
    let file = r#"{"examples":1000,"inputs_tokens":250000,"inputs_max_tokens":512,"targets_tokens":50000,"targets_max_tokens":128}"#;
    assert!(note(file).contains("totals"), "{}", note(file));
    // A histogram of one length.
    let (edges, counts, _) = histogram(r#"[{"length": 512, "count": 8}]"#);
    assert_eq!((edges, counts), (vec![512.0, 512.0], vec![8.0]));
}
