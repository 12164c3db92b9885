//! Conversion of log points to API points.
//!
//! A log contains more data than a web page needs, with names specific to the training framework.
//! The conversion is:
//!
//! | field of [`RunPoint`] | value |
//! |---|---|
//! | `tokens_per_s` | the job rate in the log; otherwise (consumed tokens - consumed tokens of the previous point) / (number of steps x `step_s`), if the log counts tokens; for rounded counters since the first point of the segment |
//! | `tokens_per_s_per_device` | the rate per device in the log |
//! | `samples_per_s` | the rate in the log; otherwise from consumed samples in the same way; otherwise `global_batch` / `step_s` |
//! | `memory_gib` | maximum allocated memory over all ranks; currently allocated memory if the log contains no maximum |
//! | `reserved_gib` | maximum memory over all ranks that the allocator reserved |
//! | `phases` | time per timer name: maximum and minimum over all ranks, otherwise the time on the printing rank |
//!
//! No value is derived across a restart, or from counters that do not increase.

use api::run::{LogReport, PhaseTime, RunPoint, StepTimeOrigin};
use ingest::log::{Memory, Point, RankTime, Report, Source, Timer};
use planner::run_comparison::median;

/// State from the previous point.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct PointConverter {
    last: Option<Last>,
    /// First count of tokens in the segment.
    first: Option<TokenCount>,
}

/// Tokens since the start of the training at a step.
#[derive(Debug, Clone, Copy)]
struct TokenCount {
    segment: u32,
    step: u64,
    tokens: u64,
}

/// Smallest growth of a rounded counter of tokens, in units of the rounding: an error of 2 %.
const MIN_ROUNDINGS: u64 = 50;

#[derive(Debug, Clone, Copy)]
struct Last {
    segment: u32,
    step: u64,
    time_us: Option<i64>,
    tokens: Option<u64>,
    samples: Option<u64>,
}

impl PointConverter {
    /// Converts a log point to an API point.
    pub(super) fn point(&self, row: u64, point: &Point) -> RunPoint {
        let per_s = |now: Option<u64>, before: fn(&Last) -> Option<u64>| {
            let (last, steps) = self.steps_before(point)?;
            let grown = now?.checked_sub(before(last)?).filter(|&grown| grown > 0)?;
            let seconds = point.step_time_s.filter(|&step| step > 0.0)? * steps as f64;
            Some(grown as f64 / seconds)
        };
        let by_batch = || Some(point.global_batch? as f64 / point.step_time_s.filter(|&step| step > 0.0)?);
        RunPoint {
            row,
            segment: point.segment,
            step: point.step,
            time_ms: point.time_us.map(|time| time.div_euclid(1000)),
            step_s: point.step_time_s,
            step_s_origin: point.step_time_origin.and_then(origin),
            tokens_per_s: point.tokens_per_s.or_else(|| {
                if point.token_rounding.is_some() {
                    self.rounded_rate(point)
                } else {
                    per_s(point.consumed_tokens, |last| last.tokens)
                }
            }),
            tokens_per_s_per_device: point.tokens_per_s_per_device,
            samples_per_s: point
                .samples_per_s
                .or_else(|| per_s(point.consumed_samples, |last| last.samples))
                .or_else(by_batch),
            tflops_per_device: point.tflops_per_device,
            mfu: point.mfu,
            loss: point.loss,
            grad_norm: point.grad_norm,
            learning_rate: point.learning_rate,
            global_batch: point.global_batch,
            total_steps: point.total_steps,
            memory_gib: max_memory(&point.memory, |memory| memory.max_allocated_gib)
                .or_else(|| max_memory(&point.memory, |memory| memory.allocated_gib)),
            reserved_gib: max_memory(&point.memory, |memory| memory.max_reserved_gib)
                .or_else(|| max_memory(&point.memory, |memory| memory.reserved_gib)),
            phases: phases(&point.timers),
            not_finite: point.not_finite.clone(),
            open: false,
        }
    }

    /// Returns tokens per second from a rounded counter (`1.258B`): its growth since the first point of the segment, if that is much
    /// more than the rounding.
    fn rounded_rate(&self, point: &Point) -> Option<f64> {
        let first = self.first.filter(|first| first.segment == point.segment)?;
        let steps = point.step.checked_sub(first.step).filter(|&steps| steps > 0)?;
        let least = point.token_rounding?.saturating_mul(MIN_ROUNDINGS);
        let grown = point.consumed_tokens?.checked_sub(first.tokens).filter(|&grown| grown >= least)?;
        let step_s = point.step_time_s.filter(|&step_s| step_s > 0.0)?;
        Some(grown as f64 / steps as f64 / step_s)
    }

    /// Returns the seconds since the previous point: number of steps times step time if the log
    /// contains it, otherwise the difference of the timestamps.
    pub(super) fn interval_s(&self, point: &Point) -> Option<f64> {
        let (last, steps) = self.steps_before(point)?;
        let by_clock = || Some((point.time_us?.checked_sub(last.time_us?)?) as f64 / 1e6);
        point.step_time_s.map(|step| step * steps as f64).or_else(by_clock).filter(|&interval| interval > 0.0)
    }

    /// Makes `point` the previous point.
    pub(super) fn advance(&mut self, point: &Point) {
        if let Some(tokens) = point.consumed_tokens
            && self.first.is_none_or(|first| first.segment != point.segment)
        {
            self.first = Some(TokenCount { segment: point.segment, step: point.step, tokens });
        }
        self.last = Some(Last {
            segment: point.segment,
            step: point.step,
            time_us: point.time_us,
            tokens: point.consumed_tokens,
            samples: point.consumed_samples,
        });
    }

    /// Returns the previous point in the same segment, and the number of steps since then.
    fn steps_before(&self, point: &Point) -> Option<(&Last, u64)> {
        let last = self.last.as_ref().filter(|last| last.segment == point.segment)?;
        let steps = point.step.checked_sub(last.step).filter(|&steps| steps > 0)?;
        Some((last, steps))
    }
}

/// Converts the origin of a step time. `None` if the log prints the step time itself.
fn origin(origin: ingest::log::StepTimeOrigin) -> Option<StepTimeOrigin> {
    use ingest::log::StepTimeOrigin as Of;
    Some(match origin {
        Of::Log => return None,
        Of::TokenRate => StepTimeOrigin::TokenRate,
        Of::Clock => StepTimeOrigin::Clock,
        Of::Elapsed => StepTimeOrigin::Elapsed,
        Of::ProgressBar => StepTimeOrigin::ProgressBar,
        Of::RunAverage => StepTimeOrigin::RunAverage,
        Of::Timers => StepTimeOrigin::Timers,
    })
}

fn max_memory(memory: &[Memory], metric: fn(&Memory) -> Option<f64>) -> Option<f64> {
    memory.iter().filter_map(metric).max_by(f64::total_cmp)
}

fn phases(timers: &[Timer]) -> Vec<PhaseTime> {
    let mut phases: Vec<PhaseTime> = Vec::new();
    for timer in timers {
        let ranks = timer.ranks.iter().map(|rank| rank.time_s).max_by(f64::total_cmp);
        let rank_time_s = timer.max_s.or(ranks);
        let Some(time_s) = rank_time_s.or(timer.time_s) else { continue };
        let is_single_rank = rank_time_s.is_none();
        let fastest = timer.ranks.iter().map(|rank| rank.time_s).min_by(f64::total_cmp);
        let min_s = timer.min_s.or(fastest.filter(|_| timer.ranks.len() > 1));
        // A log has at most a few dozen timers, so a linear search is fast enough.
        match phases.iter_mut().find(|phase| phase.name == timer.name) {
            Some(phase) => {
                phase.time_s = phase.time_s.max(time_s);
                phase.min_s = phase.min_s.into_iter().chain(min_s).min_by(f64::total_cmp);
                phase.one_rank &= is_single_rank;
            }
            None => phases.push(PhaseTime {
                name: timer.name.clone(),
                time_s,
                min_s,
                one_rank: is_single_rank,
                slow_rank: slow_rank(&timer.ranks),
                slow_ranks: slow_ranks(&timer.ranks),
            }),
        }
    }
    phases
}

/// Time of a slow rank, relative to the median of the ranks.
const SLOW: f64 = 1.1;

/// Returns the slowest of at least three ranks, if it is much slower than their median.
fn slow_rank(ranks: &[RankTime]) -> Option<u32> {
    let times: Vec<f64> = ranks.iter().map(|rank| rank.time_s).collect();
    let slowest = ranks.iter().max_by(|a, b| a.time_s.total_cmp(&b.time_s)).filter(|_| ranks.len() > 2)?;
    (slowest.time_s > SLOW * median(&times)?).then_some(slowest.rank)
}

/// Most slow ranks of a timer.
const MAX_SLOW_RANKS: usize = 256;

/// Returns the ranks of at least three that are much slower than their median, in order.
fn slow_ranks(ranks: &[RankTime]) -> Vec<u32> {
    let times: Vec<f64> = ranks.iter().map(|rank| rank.time_s).collect();
    let Some(median_s) = median(&times).filter(|_| ranks.len() > 2) else { return Vec::new() };
    let mut slow: Vec<u32> = ranks.iter().filter(|rank| rank.time_s > SLOW * median_s).map(|rank| rank.rank).collect();
    slow.sort_unstable();
    slow.dedup();
    slow.truncate(MAX_SLOW_RANKS);
    slow
}

/// Converts the parser report to the API type.
pub(super) fn report(report: &Report) -> LogReport {
    let mut formats: Vec<String> = Vec::new();
    for source in &report.sources {
        // Entries from tables have individual names.
        if source.source == Source::Table {
            formats.extend(report.tables.iter().cloned());
            continue;
        }
        let name = source.source.name();
        if !formats.iter().any(|known| known == name) {
            formats.push(name.to_owned());
        }
    }
    let first = report.problems.iter().min_by_key(|problem| (problem.line, problem.offset));
    LogReport {
        lines: report.lines,
        parsed: report.steps + report.companions,
        repaired: report.repaired,
        passed_over: report.ignored,
        skipped: report.skipped + report.torn,
        formats,
        assumptions: report.assumptions.clone(),
        flop_formula: report.flop_formula.clone(),
        first_problem: first.map(|first| format!("line {}, byte {}: {}", first.line, first.offset, first.reason)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 4096 samples and 2^23 tokens in two steps of 2 s: 1024 samples/s and 2^21 tokens/s.
    #[test]
    fn rates_use_consumed_counters() {
        let mut converter = PointConverter::default();
        let first = Point {
            step: 10,
            consumed_samples: Some(1000),
            consumed_tokens: Some(1 << 20),
            step_time_s: Some(2.0),
            global_batch: Some(100),
            ..Point::default()
        };
        // Only the batch size is available at the first point: 100 / 2 s.
        let run_point = converter.point(1, &first);
        assert_eq!((run_point.tokens_per_s, run_point.samples_per_s), (None, Some(50.0)));
        converter.advance(&first);
        let second = Point {
            step: 12,
            consumed_samples: Some(1000 + 4096),
            consumed_tokens: Some((1 << 20) + (1 << 23)),
            ..first.clone()
        };
        let run_point = converter.point(2, &second);
        assert_eq!((run_point.tokens_per_s, run_point.samples_per_s), (Some(2_097_152.0), Some(1024.0)));
        assert_eq!(converter.interval_s(&second), Some(4.0));
        // Values in the log have priority. No value is derived across a restart.
        assert_eq!(converter.point(2, &Point { tokens_per_s: Some(7.0), ..second.clone() }).tokens_per_s, Some(7.0));
        assert_eq!(converter.point(2, &Point { segment: 1, ..second.clone() }).tokens_per_s, None);
        assert_eq!(converter.interval_s(&Point { segment: 1, ..second }), None);
    }

    /// 524,288 tokens per step, printed with three decimals of a billion. One step is less than the rounding; 100 steps are 52 roundings.
    #[test]
    fn rounded_counters_need_many_steps() {
        let mut converter = PointConverter::default();
        let at = |step: u64| Point {
            step,
            consumed_tokens: Some((step * 524_288 + 500_000) / 1_000_000 * 1_000_000),
            token_rounding: Some(1_000_000),
            step_time_s: Some(2.0),
            ..Point::default()
        };
        converter.advance(&at(1));
        assert_eq!(converter.point(2, &at(2)).tokens_per_s, None);
        converter.advance(&at(2));
        let rate = converter.point(3, &at(101)).tokens_per_s.unwrap();
        assert!((rate / 262_144.0 - 1.0).abs() < 0.02, "{rate}");
    }

    #[test]
    fn memory_and_timers_use_the_worst_rank() {
        let memory = |rank, max_gib| Memory { rank: Some(rank), max_allocated_gib: Some(max_gib), ..Memory::default() };
        let timer = |name: &str| Timer { name: name.to_owned(), ..Timer::default() };
        let rank = |rank, time_s| RankTime { rank, time_s };
        let point = Point {
            memory: vec![memory(0, 40.0), memory(3, 61.5), memory(1, 2.0)],
            timers: vec![
                Timer { min_s: Some(1.0), max_s: Some(2.0), ..timer("forward") },
                Timer { time_s: Some(3.0), ..timer("forward") },
                Timer { ranks: vec![rank(0, 0.5), rank(1, 0.75)], ..timer("optimizer") },
                Timer { ranks: vec![rank(0, 0.5), rank(5, 0.75), rank(6, 0.5)], ..timer("backward") },
                timer("empty"),
            ],
            ..Point::default()
        };
        let run_point = PointConverter::default().point(1, &point);
        assert_eq!(run_point.memory_gib, Some(61.5));
        let phases: Vec<(&str, f64)> =
            run_point.phases.iter().map(|phase| (phase.name.as_str(), phase.time_s)).collect();
        assert_eq!(phases, [("forward", 3.0), ("optimizer", 0.75), ("backward", 0.75)]);
        let fastest: Vec<Option<f64>> = run_point.phases.iter().map(|phase| phase.min_s).collect();
        assert_eq!(fastest, [Some(1.0), Some(0.5), Some(0.5)]);
        let slow: Vec<Option<u32>> = run_point.phases.iter().map(|phase| phase.slow_rank).collect();
        assert_eq!(slow, [None, None, Some(5)]);
        assert_eq!(run_point.phases[2].slow_ranks, [5]);
        let half: Vec<RankTime> = (0..4).rev().map(|it| rank(it, if it < 2 { 1.0 } else { 1.5 })).collect();
        assert_eq!(slow_ranks(&half), [2, 3]);
        assert!(slow_ranks(&half[..2]).is_empty());
    }
}
