//! Tests for lines behind the prefixes of launchers, log collectors and loggers.

use super::*;

const PREFIXES: [&str; 15] = [
    "2025-03-01T10:00:00.123456789Z ",
    "2025-03-01T10:00:00.123456789Z stdout F ",
    "2025-03-01 10:00:01.123 | INFO     | trainer:run:88 - ",
    "2025-03-01 10:00:01,123 - root - INFO - ",
    "Mar 01 10:00:01 gpu-01 train[123]: ",
    "<14>1 2025-03-01T10:00:00Z host app 12 - - ",
    "(TrainWorker pid=12, ip=10.0.0.1) ",
    "trainer-0  | ",
    "job-0 trainer ",
    "[2025-03-01 10:00:00,123][INFO][train] ",
    "[pod/job-0/trainer] 2025-03-01T10:00:00.123456789Z ",
    "2025-03-01T10:00:00.1234567Z \u{1b}[36;1m",
    "2025-03-01T10:00:00.1Z [rank0]: ",
    "2025-03-01 10:00:00,123 INFO    MainThread:123 [x.py:1] ",
    "0: ",
];

/// Blocks of trainers: each has lines that are recognised by their start.
const BLOCKS: [&str; 12] = [
    " iteration 1/ 9 | elapsed time per iteration (ms): 2000.0 | lm loss: 3.0E+00 |\ntime (ms) | forward-compute: 250.0 | optimizer: 50.5\n iteration 2/ 9 | elapsed time per iteration (ms): 2000.0 | lm loss: 2.5E+00 |\ntime (ms) | forward-compute: 251.0 | optimizer: 51.5\n",
    " iteration 1/ 9 | elapsed time per iteration (ms): 2000.0 | lm loss: 3.0E+00 |\n(min, max) time across ranks (ms):\n    forward-backward ...............................: (1801.25, 1805.50)\n    optimizer ......................................: (101.25, 102.50)\n",
    " iteration 1/ 9 | elapsed time per iteration (ms): 2000.0 | lm loss: 3.0E+00 |\nmax time across ranks (ms):\n    forward-backward ...............................: 1801.25\ntimes across ranks (ms):\n  forward-compute:\n     rank  0: 25.50\n     rank  1: 26.50\n",
    " iteration 1/ 9 | elapsed time per iteration (ms): 2000.0 | lm loss: 3.0E+00 |\n[Rank 3] (after 1 iterations) memory (MB) | allocated: 1024.0 | max allocated: 2048.0 | reserved: 3072.0 | max reserved: 4096.0\n",
    "[batch=1/9]:\n\t Train time/batch: 0\n\t Train loss/train/total: 9.5\n\t Train memory/peak_reserved_mem: 2.0\n\t Train throughput/tokens_per_sec: 4096.0\n[batch=2/9]:\n\t Train loss/train/total: 9.25\n",
    "[step=1/9,epoch=1,eta=1 day, 2:03:04]\n    optim/total grad norm=1.25\n    train/CE loss=5.5\n    throughput/device/BPS=0.5\n    throughput/device/TPS=8,192\n",
    "iter 10: loss 2.5000, time 150.00ms, mfu 25.00%\niter 20: loss 2.2500, time 151.00ms, mfu 25.50%\n",
    "Step 1 | loss:2.5 lr:0.5 tokens_per_second_per_gpu:2048 peak_memory_alloc:10.5\nStep 2 | loss:2.25 lr:0.5 tokens_per_second_per_gpu:2048 peak_memory_alloc:10.5\n",
    "step    1/9 | train loss 9.500000 | norm 1.5000 | lr 5.00e-01 | 500.00 ms | 50.5% A100 MFU | 4096 tok/s\nstep 00002/00009 (10.00%) | loss: 9.25 | lrm: 1.00 | dt: 500.00ms | tok/sec: 4,096 | mfu: 50.00\n",
    "train                           0%|     | 1/5000 [00:02<2:15:12,  2.50s/ba, loss/train/total=9.5000]\n",
    "  1%|1    | 10/873 [00:48<1:08:54,  4.75s/it]\n{'loss': 2.5, 'epoch': 0.01}\n  2%|2    | 20/873 [01:36<1:08:54,  4.75s/it]{'loss': 2.25, 'epoch': 0.02}\n",
    "step: 100\nloss: 3.5\ntokens seen: 4096\ngradient norm: 0.5\nreserved memory: 1073741824\ncurrent step time: 2.5\ncurrent token per gpu per sec: 2048\n",
];

/// Returns the points without positions and clocks, which depend on the prefix.
fn figures(text: &str) -> Vec<Point> {
    let mut points = read(text).points;
    for point in &mut points {
        (point.line, point.offset, point.time_us) = (0, 0, None);
        if point.step_time_origin == Some(StepTimeOrigin::Clock) {
            (point.step_time_s, point.step_time_origin) = (None, None);
        }
    }
    points
}

#[test]
fn a_prefix_before_each_line_changes_no_figure() {
    for block in BLOCKS {
        let expected = figures(block);
        let has_more = |point: &Point| point.loss.is_some() || !point.timers.is_empty() || !point.memory.is_empty();
        assert!(expected.iter().all(has_more), "{block}");
        for prefix in PREFIXES {
            let lines: Vec<String> = block.lines().map(|line| format!("{prefix}{line}\n")).collect();
            let text = lines.concat();
            assert_eq!(figures(&text), expected, "{text}");
            let report = read(&text).report;
            let bars = u64::from(block.contains("873"));
            assert_eq!((report.torn, report.ignored, report.skipped), (0, bars, 0), "{text}: {report:?}");
        }
    }
}

/// The time before a line is its clock unless the line has its own.
#[test]
fn times_in_prefixes_are_clocks() {
    let start = 1_740_823_200_000_000;
    let own = single_point(
        "2025-03-01T10:00:07.5Z  [2025-03-01 10:00:00] iteration 1/ 9 | elapsed time per iteration (ms): 2000.0 |\n",
    );
    assert_eq!(own.time_us, Some(start));
    let collector = single_point("2025-03-01T10:00:00Z stdout F iter 10: loss 2.5000, time 150.00ms\n");
    assert_eq!((collector.time_us, collector.step_time_s), (Some(start), Some(0.15)));
    let row = single_point("2025-03-01 10:00:00 INFO {\"step\": 1, \"loss\": 2.5}\n");
    assert_eq!((row.time_us, row.loss), (Some(start), Some(2.5)));
    let primus = single_point(
        "[20250301 10:00:00][rank-7/8][INFO ] [---trainer.py:12] :  iteration 1/ 9 | elapsed time per iteration (ms): 2000.0 |\n",
    );
    assert_eq!(primus.time_us, Some(start));
}

/// An empty line behind a prefix does not end a block.
#[test]
fn empty_lines_behind_prefixes_are_left_out() {
    let text = "2025-03-01T10:00:00Z step: 100\n2025-03-01T10:00:00Z \n2025-03-01T10:00:00Z loss: 3.5\n";
    let Log { points, report, .. } = read(text);
    assert_eq!((points[0].loss, report.ignored), (Some(3.5), 1));
}

/// SkyPilot and Ray print the rank, so that blocks of ranks repeat the same steps.
#[test]
fn ranks_in_prefixes_repeat_steps() {
    let lines = |rank: u32| {
        (1..4).map(move |step| {
            let clock = format!("2025-03-01 10:00:{:02},{rank}00", step * 4);
            format!("(worker{rank}, rank={rank}, pid=9) [titan] {clock} - root - INFO - step: {step}  loss:  9.0  tps: 2,048  mfu: 39.35%\n")
        })
    };
    let text: String = lines(0).chain(lines(1)).collect();
    let Log { points, report, .. } = read(&text);
    assert_eq!(points.iter().map(|point| (point.segment, point.step)).collect::<Vec<_>>(), [(0, 1), (0, 2), (0, 3)]);
    assert_eq!((report.restarts, report.repeated), (0, 3));
}

/// A user's pattern can contain the prefix, or be anchored behind it.
#[test]
fn patterns_of_users_match_with_and_without_prefix() {
    let line = "2025-03-01 10:00:00,000 - root - INFO - STEP 7 took 250\n";
    for pattern in ["^STEP (?P<step>[0-9]+) took (?P<dt>[0-9]+)", "INFO - STEP (?P<step>[0-9]+) took (?P<dt>[0-9]+)"] {
        let table = LogTable::parse(&format!(
            "schema = \"log-table/1\"\n[[line]]\nname = \"own\"\npattern = '{pattern}'\nfields = {{ dt = \"step_time ms\" }}\n"
        ))
        .expect("a table");
        let log = import_with(line.as_bytes(), &Limits::default(), Some(&table)).expect("a step");
        let point = &log.points[0];
        assert_eq!((point.step, point.step_time_s, point.time_us), (7, Some(0.25), Some(1_740_823_200_000_000)));
    }
}
