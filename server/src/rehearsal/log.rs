//! Lines as Megatron-LM logs them.

use std::fmt::Write;

use jiff::Timestamp;

use super::agreement::{Iteration, TIMERS};

/// What stands above the first step.
pub(super) fn head(ranks: usize, iterations: usize, speed: f64) -> String {
    format!(
        "planscope rehearsal: {ranks} ranks, {iterations} iterations at speed {speed:.6}; times below are rehearsed times \
         multiplied by the speed\n"
    )
}

/// What is told beside the steps: a warning, or why there are no more of them.
pub fn remark(words: &str) -> String {
    // It is a line, whatever a rank was told.
    let words = words.split_whitespace().collect::<Vec<_>>().join(" ");
    format!("planscope rehearsal: {words}\n")
}

/// The lines of a step: itself, and its timers over all ranks.
pub(super) fn step(
    number: usize,
    total: usize,
    samples: Option<(u64, u64)>,
    iteration: &Iteration<'_>,
    now: Timestamp,
) -> String {
    let time = now.strftime("%Y-%m-%d %H:%M:%S%.6f");
    let (_, ended_ns) = iteration.makespans();
    let mut text = format!(" [{time}] iteration {number:8}/{total:8} |");
    let put = |text: &mut String, part: std::fmt::Arguments<'_>| text.write_fmt(part).expect("text grows");
    if let Some((consumed, _)) = samples {
        put(&mut text, format_args!(" consumed samples: {consumed:12} |"));
    }
    put(&mut text, format_args!(" elapsed time per iteration (ms): {:.3} |", ended_ns / 1e6));
    if let Some((_, batch)) = samples {
        put(&mut text, format_args!(" global batch size: {batch:5} |"));
    }
    put(&mut text, format_args!(" number of skipped iterations:   0 | number of nan iterations:   0 |\n"));
    put(&mut text, format_args!("(min, max) time across ranks (ms):\n"));
    for (timer, name) in TIMERS.iter().enumerate() {
        let times = || iteration.ranks.iter().map(|tally| tally.timers[timer] / 1e6);
        let (least, most) = (times().fold(f64::INFINITY, f64::min), times().fold(0.0, f64::max));
        if most > 0.0 {
            let name = format!("{name} ");
            put(&mut text, format_args!("    {name:.<48}: ({least:.2}, {most:.2})\n"));
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rehearsal::control::Record;
    use crate::rehearsal::score::Score;

    #[test]
    fn lines_are_read_back() {
        let text = r#"{"buffers": {"receive": 2, "send": 2}, "planned_ns": 10, "ranks": [
            [{"start_ns": 0, "duration_ns": 10, "action": "forward_stage", "stage": 0, "microbatch": 0}]]}"#;
        let score = Score::read(text).unwrap();
        let mut iteration = Iteration::new(&score.movements()[0].plan, 0, 2.0);
        iteration.take(0, &Record { index: 0, begin_ns: 1_000_000, end_ns: 6_000_000 });
        let now = "2026-01-02T03:04:05.678901Z".parse().unwrap();
        let lines = head(1, 9, 2.0) + &step(3, 9, Some((96, 32)), &iteration, now);
        assert!(lines.contains(" [2026-01-02 03:04:05.678901] iteration        3/       9 |"), "{lines}");
        let log = ingest::log::import(lines.as_bytes(), &ingest::log::Limits::default()).unwrap();
        let point = &log.points[0];
        assert_eq!((point.step, point.total_steps, point.consumed_samples), (3, Some(9), Some(96)));
        assert_eq!((point.global_batch, point.step_time_s), (Some(32), Some(0.012)));
        let timers: Vec<(&str, Option<f64>)> =
            point.timers.iter().map(|timer| (timer.name.as_str(), timer.max_s)).collect();
        assert_eq!(timers, [("forward-backward", Some(0.012)), ("forward-compute", Some(0.01))]);
        assert_eq!(log.report.skipped, 0);
        let ended = lines.clone() + &remark("failed in iteration 4: rank 2,\n action 3");
        assert!(ended.ends_with("\nplanscope rehearsal: failed in iteration 4: rank 2, action 3\n"));
        let log = ingest::log::import(ended.as_bytes(), &ingest::log::Limits::default()).unwrap();
        assert_eq!((log.points.len(), log.report.skipped), (1, 0));
    }
}
