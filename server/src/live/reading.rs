//! Parser state at the end of a stored log.

use api::run::{LogReport, RunOrigin, RunPoint};
use ingest::log::{Limits, LogParser, Point};

use super::LiveLimits;
use super::observed::{self, PointConverter};
use super::recent::Recent;
use crate::store::LogState;

/// Minimum timeout. Prevents a stall between two uploads if steps are faster than the upload
/// interval.
const MIN_PATIENCE_S: f64 = 30.0;
/// Timeout before the second point, while the step interval is unknown.
const FIRST_PATIENCE_S: f64 = 300.0;
/// Maximum timeout: 30 days.
const MAX_PATIENCE_S: f64 = 2_592_000.0;
/// A run is stalled when no step arrives for this number of median intervals.
const MISSED: f64 = 5.0;

/// Parser state at the end of a stored log.
#[derive(Debug, Clone)]
pub(super) struct Reading {
    /// Bytes per file.
    pub(super) files: Vec<u64>,
    /// Row number of the latest point that later bytes cannot change.
    pub(super) points: u64,
    /// End of the run, in ms since 1970.
    pub(super) ended_at_ms: Option<i64>,
    parser: LogParser,
    observed: PointConverter,
    steps_s: Recent,
    intervals_s: Recent,
    last: Option<Last>,
    total_steps: Option<u64>,
    whole: bool,
    most_points: u64,
}

/// Result of parsing new bytes.
#[derive(Debug)]
pub(super) struct News {
    /// Newly completed points with row numbers.
    pub(super) points: Vec<RunPoint>,
    /// Number of points that exist only because the run ended.
    pub(super) early_points: u64,
    /// Incomplete point, which later lines may extend.
    pub(super) open: Option<RunPoint>,
    /// Report on parsed and skipped lines.
    pub(super) report: LogReport,
    /// Median of recent step times, in s.
    pub(super) median_step_s: Option<f64>,
    pub(super) last_step: Option<u64>,
}

/// Segment and step.
type Last = (u32, u64);

impl Reading {
    /// Creates the initial state, with no bytes parsed.
    pub(super) fn new(state: &LogState, limits: &LiveLimits) -> Self {
        let is_imported = state.origin == RunOrigin::Imported;
        Self {
            files: if is_imported { state.files.clone() } else { Vec::new() },
            points: 0,
            ended_at_ms: state.ended_at_ms,
            parser: LogParser::with_table(
                Limits { line_bytes: limits.line_bytes, ..Limits::default() },
                state.table.clone(),
            ),
            observed: PointConverter::default(),
            steps_s: Recent::default(),
            intervals_s: Recent::default(),
            last: None,
            total_steps: None,
            whole: is_imported,
            most_points: limits.points,
        }
    }

    /// Returns true if the log was imported from a complete file and is not parsed here.
    pub(super) fn is_imported(&self) -> bool {
        self.whole
    }

    /// Parses bytes that continue a file or start a new file. Also returns true if a new step was
    /// found.
    pub(super) fn read(&mut self, file: u32, bytes: &[u8]) -> (News, bool) {
        let before = self.latest();
        let mut read = Vec::new();
        if file as usize >= self.files.len() {
            self.files.push(0);
            if file > 0 {
                read = self.parser.end_file();
            }
        }
        if let Some(length) = self.files.get_mut(file as usize) {
            *length += bytes.len() as u64;
        }
        read.append(&mut self.parser.push(bytes));
        let points: Vec<RunPoint> = read.iter().filter_map(|point| self.take(point)).collect();
        let open = self.parser.open().filter(|_| self.points < self.most_points);
        let open = open.map(|point| RunPoint { open: true, ..self.observed.point(self.points + 1, point) });
        let stepped = self.latest() != before;
        let report = self.report(self.parser.report());
        let (median_step_s, last_step) = (self.steps_s.median(), self.last_step());
        (News { points, early_points: 0, open, report, median_step_s, last_step }, stepped)
    }

    /// Returns the result if the log ended here. The state does not change, because more bytes may
    /// follow.
    pub(super) fn ending(&self) -> News {
        let (last, report) = self.parser.clone().finish();
        let mut converter = self.observed;
        let mut steps_s = self.steps_s.clone();
        let mut points = Vec::new();
        for (point, row) in last.iter().zip(self.points + 1..=self.most_points) {
            let run_point = converter.point(row, point);
            if let Some(step) = run_point.step_s {
                steps_s.push(step);
            }
            points.push(run_point);
            converter.advance(point);
        }
        let early_points = points.len() as u64;
        let last_step = points.last().map(|point| point.step).or(self.last_step());
        let (report, median_step_s) = (self.report(&report), steps_s.median());
        News { points, early_points, open: None, report, median_step_s, last_step }
    }

    fn last_step(&self) -> Option<u64> {
        self.latest().map(|(_, step)| step)
    }

    /// Total number of steps in the training job.
    pub(super) fn total_steps(&self) -> Option<u64> {
        self.parser.open().and_then(|point| point.total_steps).or(self.total_steps)
    }

    /// Stall timeout in ms: five median step intervals, clamped to the minimum and maximum.
    pub(super) fn stall_timeout_ms(&self) -> i64 {
        let patience = self.intervals_s.median().map_or(FIRST_PATIENCE_S, |interval| interval * MISSED);
        (patience.clamp(MIN_PATIENCE_S, MAX_PATIENCE_S) * 1e3).round() as i64
    }

    /// Assigns a row to a completed point. Returns `None` beyond the point limit.
    fn take(&mut self, point: &Point) -> Option<RunPoint> {
        if self.points >= self.most_points {
            return None;
        }
        self.points += 1;
        let run_point = self.observed.point(self.points, point);
        if let Some(step) = run_point.step_s {
            self.steps_s.push(step);
        }
        if let Some(interval) = self.observed.interval_s(point) {
            self.intervals_s.push(interval);
        }
        self.observed.advance(point);
        self.last = Some((point.segment, point.step));
        self.total_steps = point.total_steps.or(self.total_steps);
        Some(run_point)
    }

    fn latest(&self) -> Option<Last> {
        self.parser.open().map(|open| (open.segment, open.step)).or(self.last)
    }

    fn report(&self, report: &ingest::log::Report) -> LogReport {
        let mut report = observed::report(report);
        if self.points >= self.most_points {
            report
                .assumptions
                .push("there are more points than can be stored; the rest of the log is stored, not shown".to_owned());
        }
        report
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LINES: &str = "iteration 1/ 10 | elapsed time per iteration (ms): 2000.0 | lm loss: 3.0E+00 |\n\
                         time (ms) | forward-compute: 250.0\n\
                         iteration 2/ 10 | elapsed time per iteration (ms): 2000.0 | lm loss: 2.0E+00 |\n\
                         iteration 1/ 10 | elapsed time per iteration (ms): 2000.0 | lm loss: 3.0E+00 |\n";

    fn empty(limits: &LiveLimits) -> Reading {
        let state = LogState {
            origin: RunOrigin::Live,
            files: Vec::new(),
            points: 0,
            early_points: 0,
            ended_at_ms: None,
            table: None,
        };
        Reading::new(&state, limits)
    }

    #[test]
    fn growing_point_is_visible_and_keeps_its_row() {
        let mut reading = empty(&LiveLimits::default());
        let (first, rest) = LINES.split_once('\n').unwrap();
        let (news, stepped) = reading.read(0, format!("{first}\n").as_bytes());
        assert!(news.points.is_empty() && stepped);
        let open = news.open.unwrap();
        assert_eq!((open.row, open.open, open.loss, open.phases.len()), (1, true, Some(3.0), 0));
        let (news, _) = reading.read(0, rest.as_bytes());
        let rows: Vec<(u64, u32, u64)> =
            news.points.iter().map(|point| (point.row, point.segment, point.step)).collect();
        assert_eq!(rows, [(1, 0, 1), (2, 0, 2)]);
        assert_eq!((news.points[0].phases[0].time_s, news.points[0].open), (0.25, false));
        // The step number decreased, so a new segment starts.
        assert_eq!(news.open.map(|open| (open.row, open.segment, open.step)), Some((3, 1, 1)));
        assert_eq!((reading.last_step(), reading.total_steps(), news.median_step_s), (Some(1), Some(10), Some(2.0)));
        // Five intervals of 2 s are less than the minimum timeout.
        assert_eq!(reading.stall_timeout_ms(), 30_000);
        let end = reading.ending();
        assert_eq!((end.points.len(), end.early_points, end.points[0].row, end.report.lines), (1, 1, 3, 4));
        assert_eq!(reading.points, 2);
    }

    #[test]
    fn points_beyond_the_limit_are_reported() {
        let mut reading = empty(&LiveLimits { points: 1, ..LiveLimits::default() });
        let (news, _) = reading.read(0, LINES.as_bytes());
        assert_eq!((news.points.len(), news.open), (1, None));
        assert!(news.report.assumptions.iter().any(|assumption| assumption.contains("more points than can be stored")));
        assert!(reading.ending().points.is_empty());
    }

    #[test]
    fn incomplete_last_line_is_read_at_the_end() {
        let mut reading = empty(&LiveLimits::default());
        let (first, rest) = LINES.split_once('\n').unwrap();
        reading.read(0, first.as_bytes());
        let (news, _) = reading.read(1, rest.as_bytes());
        assert_eq!(news.points.len(), 2);
        assert_eq!(reading.files, [first.len() as u64, rest.len() as u64]);
    }

    /// Checks that a log split in two, at multiples of `every` bytes, produces the same points as
    /// the complete log.
    fn cut(log: &[u8], every: usize) {
        let limits = LiveLimits::default();
        let points = |pieces: &[&[u8]]| {
            let mut reading = empty(&limits);
            let mut points: Vec<RunPoint> = Vec::new();
            for piece in pieces {
                points.append(&mut reading.read(0, piece).0.points);
            }
            points.append(&mut reading.ending().points);
            points
        };
        let complete = points(&[log]);
        assert!(!complete.is_empty());
        for cut in (0..=log.len()).step_by(every) {
            let (first, second) = log.split_at(cut);
            assert!(points(&[first, second]) == complete, "cut at byte {cut}");
        }
    }

    #[test]
    fn a_log_may_be_cut_anywhere() {
        cut(LINES.as_bytes(), 1);
        cut(include_bytes!("../../../tests/tests/api/runs/train.log"), 1);
    }

    /// Published logs from the folder in `PLANSCOPE_DATA`, from the first step: split at each byte
    /// in the first 2 kB and at each 61st byte in the first 20 kB.
    #[test]
    fn published_logs_may_be_cut_anywhere() {
        let Some(data) = std::env::var_os("PLANSCOPE_DATA") else {
            eprintln!("skipped: PLANSCOPE_DATA is not set, so there are no published logs");
            return;
        };
        for file in std::fs::read_dir(std::path::Path::new(&data).join("data/logs")).unwrap() {
            let log = std::fs::read(file.unwrap().path()).unwrap();
            let first = log.windows(11).position(|word| word == b" iteration ").unwrap();
            let part = |bytes: usize| &log[first..log.len().min(first + bytes)];
            cut(part(2000), 1);
            // A split at each byte takes minutes in debug builds.
            cut(part(20_000), 61);
        }
    }
}
