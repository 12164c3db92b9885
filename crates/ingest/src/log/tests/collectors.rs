//! Tests for documents and tables that log collectors export.

use super::*;

fn megatron(step: u32) -> String {
    format!(
        " [2025-03-01 10:00:0{step}] iteration {step}/ 9 | elapsed time per iteration (ms): 2000.0 | lm loss: 9.{step} |"
    )
}

fn losses(text: &str) -> Vec<(u64, Option<f64>)> {
    read(text).points.iter().map(|point| (point.step, point.loss)).collect()
}

const EXPECTED: [(u64, Option<f64>); 3] = [(1, Some(9.1)), (2, Some(9.2)), (3, Some(9.3))];

/// An array of entries in one line, oldest or newest first.
#[test]
fn an_array_may_be_one_line() {
    for (key, time) in [("log", "time"), ("textPayload", "timestamp"), ("message", "timestamp")] {
        let entry = |step: u32| {
            let line = serde_json::to_string(&(megatron(step) + "\n")).unwrap();
            format!("{{\"{key}\": {line}, \"{time}\": \"2025-03-01T10:00:0{step}Z\", \"labels\": {{\"a\": [1] }} }}")
        };
        for steps in [[1, 2, 3], [3, 2, 1]] {
            let text = format!("[{}]\n", steps.map(entry).join(", "));
            assert_eq!(losses(&text), EXPECTED, "{text}");
        }
    }
    let rows =
        "[{\"step\": 1, \"loss\": 9.1, \"gpus\": [0] }, {\"step\": 2, \"loss\": 9.2}, {\"step\": 3, \"loss\": 9.3}]";
    assert_eq!(losses(rows), EXPECTED);
    // A line that begins with a time in brackets is no document.
    let text = [1, 2, 3].map(|step| megatron(step).trim_start().to_owned() + "\n").concat();
    assert_eq!(losses(&text), EXPECTED);
}

/// Grafana and other consoles export a log line per cell.
#[test]
fn tables_of_log_lines() {
    let quoted = |text: &str| format!("\"{}\"", text.replace('"', "\"\""));
    let torchtitan =
        |step: u32| format!("[titan] step:  {step}  loss:  9.{step}  memory: 47.49GiB(59.97%)  tps: 2,048  mfu: 39.1%");
    let row = |step: u32| format!("{{\"step\": {step}, \"loss\": 9.{step}}}");
    let programs: [&dyn Fn(u32) -> String; 3] = [&megatron, &torchtitan, &row];
    for (header, is_time_first) in
        [("\"Time\",\"Line\"", true), ("@message,@timestamp", false), ("Date,Message,Host", true)]
    {
        for program in programs {
            for steps in [[1, 2, 3], [3, 2, 1]] {
                let rows = steps.map(|step| {
                    let (time, line) = (format!("2025-03-01T10:00:0{step}Z"), quoted(&program(step)));
                    if is_time_first { format!("{time},{line}\n") } else { format!("{line},{time}\n") }
                });
                let text = format!("{header}\n{}", rows.concat());
                assert_eq!(losses(&text), EXPECTED, "{text}");
                assert_eq!(read(&text).report.torn, 0);
            }
        }
    }
    let first = &read("Time,Line\n2025-03-01T10:00:00Z,\"iter 10: loss 2.5000, time 150.00ms\"\n").points[0];
    assert_eq!((first.time_us, first.step_time_s), (Some(1_740_823_200_000_000), Some(0.15)));
}

/// Writes the entry of a line and a step.
type Entry<'a> = &'a dyn Fn(&str, u32) -> String;

/// Entries of JSON collectors hold the line in different keys, some inside an object.
#[test]
fn entries_may_nest_the_line() {
    let seconds = |step: u32| format!("2025-03-01T10:00:0{step}Z");
    let micros = |step: u32| (1_740_823_200 + u64::from(step)) * 1_000_000;
    let shapes: [Entry<'_>; 6] = [
        &|line, step| {
            format!(r#"{{"attributes": {{"message": {line}, "status": "info"}}, "timestamp": "{}"}}"#, seconds(step))
        },
        &|line, step| format!(r#"{{"preview": false, "result": {{"_raw": {line}, "_time": "{}"}}}}"#, seconds(step)),
        &|line, step| format!(r#"{{"jsonPayload": {{"message": {line}}}, "timestamp": "{}"}}"#, seconds(step)),
        &|line, step| format!(r#"{{"_source": {{"@timestamp": "{}", "message": {line}}}}}"#, seconds(step)),
        &|line, step| format!(r#"{{"__REALTIME_TIMESTAMP": "{}", "MESSAGE": {line}, "_PID": "7"}}"#, micros(step)),
        &|line, step| format!(r#"{{"level": "info", "ts": {}, "msg": {line}}}"#, micros(step) / 1_000_000),
    ];
    for (at, entry) in shapes.iter().enumerate() {
        let lines = |steps: [u32; 3]| {
            steps.map(|step| {
                entry(&serde_json::to_string(&format!("iter {step}: loss 9.{step}, time 150.00ms")).unwrap(), step)
            })
        };
        let text = lines([1, 2, 3]).join("\n") + "\n";
        assert_eq!(losses(&text), EXPECTED, "{text}");
        assert_eq!(read(&text).points[0].time_us, Some(1_740_823_201_000_000), "{at}");
        // The newest entry may come first, and the list may be inside an object.
        let document =
            format!(r#"{{"took": 3, "hits": {{"total": {{"value": 3}}, "hits": [{}]}}}}"#, lines([3, 2, 1]).join(","));
        assert_eq!(losses(&document), EXPECTED, "{document}");
    }
}

/// Text that is copied from a web page.
#[test]
fn blanks_of_web_pages_are_blanks() {
    let text = [1, 2, 3].map(|step| megatron(step) + "\n").concat().replace(' ', "\u{a0}");
    assert_eq!(losses(&text), EXPECTED);
    assert_eq!(read(&text).points[0].step_time_s, Some(2.0));
}
