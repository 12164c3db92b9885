//! Property tests: logs split at arbitrary positions, and text that resembles logs.

use proptest::prelude::*;

use super::super::*;
use super::{BLOOM, HEAD, V2};

/// Generates text that resembles log lines, with all line terminators.
fn texts() -> impl Strategy<Value = String> {
    let piece = prop::sample::select(vec![
        V2,
        HEAD,
        BLOOM,
        "\r",
        "\n",
        "\r\n",
        " iteration ",
        "12/ 99 |",
        " lm loss: 1.5 |",
        "[Rank 3] (after 1 iterations) memory (MB) | allocated: 1.0 |",
        "\u{1b}[31m",
        "time (ms) | a: 1.0",
        "(min, max) time across ranks (ms):\n",
        "    a ...: (1.0, 2.0)\n",
        "step: 3  loss: 1.0  tps: 1,000\n",
        "steps: 4 loss: 1.0 iter time (s): 1.0 samples/sec: 3\n",
        "{'loss': 1.0, 'epoch': 0.5}\n",
        "{'",
        "Epoch 0: 1%| | 7/9 [1:0, 2.0s/it, loss=1.0]\r",
        ":::MLLOG {\"key\": \"train_loss\", \"value\": 1, \"metadata\": {\"step\": 9}}\n",
        "{\"_step\": 4, \"loss\": NaN}\n",
        "{\"_step\": 5, \"iter\": 40, \"_timestamp\": 17, \"step_time\": 2.0, \"throughput\": 3}\n",
        "  1%|1 | 10/99 [00:30<16:30,  1.50s/it]\r",
        "  2%|2 | 20/99 [01:30<16:30,  1.50s/it]{'loss': 2.0, 'epoch': 0.75}\n",
        "[rank3]: {'loss': 2.0, 'epoch': 0.6}\n",
        "{'train_runtime': 9.0, 'train_steps_per_second': 0.5}\n",
        "  Num Epochs = 3\n  Total optimization steps = 99\n",
        ":::MLLOG {\"key\": \"global_batch_size\", \"value\": 3}\n",
        ":::MLLOG {\"key\": \"tracked_stats\", \"value\": {\"throughput\": 9}, \"time_ms\": 5000, \"metadata\": {\"samples_count\": 12}}\n",
        "x INFO [step=10/99,epoch=0]\n",
        "    train/loss=2.5\n",
        "completed step: 5, seconds: 2.0, loss: 1.0\n",
        "{\"log\":\"step: 6  loss: 1.0\\n\",\"time\":\"2024-05-01T10:20:30.5Z\"}\n",
        "[Rank 0] time (ms) | fwd: 1.0 | bwd: 2.0 | step: 1.0\n",
        " samples/sec: 2.5 | iteration 9/ 99 | lm_loss: 2.0 | approx flops per GPU: 45.3TFLOPS |\n",
        "ü\u{0}",
    ]);
    prop::collection::vec(piece, 0..30).prop_map(|pieces| pieces.concat())
}

fn in_pieces(bytes: &[u8], cuts: &[usize]) -> (Vec<Point>, Report) {
    let mut parser = LogParser::with_limits(Limits { line_bytes: 600, ..Limits::default() });
    let mut points = Vec::new();
    let mut from = 0;
    for &cut in cuts {
        let to = from + cut % (bytes.len() - from + 1);
        points.extend(parser.push(&bytes[from..to]));
        from = to;
    }
    points.extend(parser.push(&bytes[from..]));
    let (last, report) = parser.finish();
    points.extend(last);
    (points, report)
}

proptest! {
    #[test]
    fn bytes_may_be_cut_anywhere(text in texts(), cuts in prop::collection::vec(0_usize..400, 0..12)) {
        let expected = in_pieces(text.as_bytes(), &[]);
        prop_assert_eq!(&in_pieces(text.as_bytes(), &cuts), &expected);
        let every: Vec<usize> = vec![1; text.len()];
        prop_assert_eq!(&in_pieces(text.as_bytes(), &every), &expected);
    }

    #[test]
    fn every_line_is_counted_once(text in texts()) {
        let (points, report) = in_pieces(text.as_bytes(), &[]);
        prop_assert_eq!(report.lines, report.steps + report.companions + report.ignored + report.skipped + report.torn);
        prop_assert_eq!(report.points, points.len() as u64);
        let steps: Vec<(u32, u64)> = points.iter().map(|point| (point.segment, point.step)).collect();
        prop_assert!(steps.is_sorted(), "{:?}", steps);
    }

    #[test]
    fn any_bytes_are_read_or_rejected(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
        let _ = import(&bytes, &Limits::default());
        in_pieces(&bytes, &[7, 3]);
    }

    #[test]
    fn any_rows_are_read_or_rejected(rest in "[-0-9a-z_.,{}\\[\\]\":NI \n]{0,120}") {
        for start in ["{\"log_history\":[{\"step\":1,\"loss\":2},", "\"Step\",\"a - loss\",\"b - lr\"\n1,2,3\n", "Wall time,Step,Value\n",
            "{\"_step\":1,\"a\":2}\n", "{\"lm loss\":{\"step_interval\":1,\"values\":{"] {
            let _ = import(format!("{start}{rest}").as_bytes(), &Limits::default());
            let _ = import(format!("{start}{rest}]}}}}}}").as_bytes(), &Limits::default());
        }
    }

    #[test]
    fn points_travel_as_json(text in texts()) {
        let (points, _) = in_pieces(text.as_bytes(), &[]);
        let json = serde_json::to_string(&points).expect("points are plain values");
        prop_assert_eq!(serde_json::from_str::<Vec<Point>>(&json).expect("what was written"), points);
    }
}
