//! Reads a log while it grows.

mod beginning;
mod decided;
mod pieces;
mod runs;

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

use super::bars::Bars;
use super::cut::{self, LineEnd};
use super::hugging_face::{Dict, Progress};
use super::lines::{Line, Lines};
use super::mlperf::Counting;
use super::point::{Note, NoteKind, Point, Timer};
use super::prefix::{self, Stripped};
use super::reading::{Reading, Table, Tear};
use super::report::{Location, Report};
use super::shapes::{self, Shapes};
use super::steps::{Mark, Steps};
use super::table::LogTable;
use super::text::{self, without_rank};
use super::utf16::Decoder;
use super::{Limits, deepspeed, docker, hugging_face, json_lines, megatron, mlperf, progress_bar, table, torchtitan};
use beginning::{Beginning, MIN_LINES, WHOLE_FILE};
use pieces::pieces;
use runs::{LabelState, listed};

/// Reads log text in pieces while it grows. The points do not depend on the piece boundaries.
///
/// The format is detected per line, because logs mix formats. A point is returned when a later step
/// begins or the log ends. Until then timers, memory and validation are added to it, and
/// [`LogParser::open`] returns it.
#[derive(Debug, Clone)]
pub struct LogParser {
    limits: Limits,
    decoder: Decoder,
    lines: Lines,
    reader: Reader,
    beginning: Beginning,
    seen: u64,
}

/// Reader state.
#[derive(Debug, Clone, Default)]
pub(super) struct Reader {
    pub(super) steps: Steps,
    pub(super) report: Report,
    timers: Table,
    /// Last epoch per rank for counted steps.
    epochs: BTreeMap<Option<u32>, f64>,
    progress: Progress,
    bars: Bars,
    mlperf: Counting,
    /// Position of the best step name in rows.
    step_name: Option<usize>,
    /// User's pattern table.
    table: Option<LogTable>,
    /// Table entry for the previous line.
    entry: Option<Arc<str>>,
    /// End of the current line.
    line_end: LineEnd,
    shapes: Shapes,
    /// Clock time of a wrapped line.
    wrapped_us: Option<i64>,
    /// Run of the current line, if lines name runs.
    run: Option<String>,
    /// All named runs, in segment order.
    runs: Vec<String>,
    /// Other runs, which can continue later.
    others: Vec<(String, Steps)>,
    /// Labels of earlier rows.
    labels: LabelState,
    /// Start of a line that the container runtime split, with its stream.
    part: Option<(String, &'static str, Location)>,
}

impl Default for LogParser {
    fn default() -> Self {
        Self::new()
    }
}

impl LogParser {
    /// Creates a parser.
    pub fn new() -> Self {
        Self::with_limits(Limits::default())
    }

    /// Creates a parser with limits.
    pub fn with_limits(limits: Limits) -> Self {
        Self::with_table(limits, None)
    }

    /// Creates a parser with limits and the user's pattern table. Its patterns have priority.
    pub fn with_table(limits: Limits, table: Option<LogTable>) -> Self {
        Self {
            lines: Lines::new(limits.line_bytes),
            limits,
            decoder: Decoder::default(),
            reader: Reader { table, ..Reader::default() },
            beginning: Beginning::Unknown(Vec::new()),
            seen: 0,
        }
    }

    /// Creates a parser for the lines of a complete file.
    pub(super) fn for_file(limits: Limits, table: Option<LogTable>) -> Self {
        Self { beginning: Beginning::Lines, ..Self::with_table(limits, table) }
    }

    /// Reads bytes and returns the completed points. A last line without a newline is buffered.
    pub fn push(&mut self, bytes: &[u8]) -> Vec<Point> {
        let Self { limits, decoder, lines, reader, beginning, seen } = self;
        let decoded = decoder.decode(bytes);
        if decoder.is_wide() {
            reader.report.assume("the log is UTF-16 text; places are those of its UTF-8 form");
        }
        let text = decoded.as_deref().unwrap_or(bytes);
        beginning.push(text, false);
        lines.push(text, |line| reader.line(line, limits));
        if matches!(beginning, Beginning::WholeFile) {
            if reader.report.steps > 0 {
                reader.report.assumptions.retain(|note| note != WHOLE_FILE);
                *beginning = Beginning::Lines;
            } else if reader.report.lines >= MIN_LINES {
                reader.report.assume(WHOLE_FILE);
            }
        }
        *seen += bytes.len() as u64;
        reader.report.bytes = *seen;
        reader.steps.take_done()
    }

    /// Ends a file that another file of the same log follows. Its last line is complete only if its
    /// form shows it.
    pub fn end_file(&mut self) -> Vec<Point> {
        let Self { limits, lines, reader, .. } = self;
        lines.finish(|line| reader.line(line, limits));
        lines.push(b"\n", |_| {});
        reader.steps.take_done()
    }

    /// Reads the buffered line and returns the last points and the report.
    pub fn finish(mut self) -> (Vec<Point>, Report) {
        self.beginning.push(&[], true);
        let (points, mut report) = self.finish_lines();
        if matches!(self.beginning, Beginning::WholeFile) {
            report.assumptions.retain(|note| note != WHOLE_FILE);
            if report.points == 0 {
                report.assume(WHOLE_FILE);
                report.forget_torn_lines();
            }
        }
        (points, report)
    }

    /// Reads the buffered line of a complete log and completes `points`, all points so far.
    pub(super) fn finish_file(mut self, mut points: Vec<Point>) -> (Vec<Point>, Report) {
        let (last, mut report) = self.finish_lines();
        points.extend(last);
        self.reader.complete_file(&mut points, &mut report);
        (points, report)
    }

    fn finish_lines(&mut self) -> (Vec<Point>, Report) {
        let Self { limits, decoder, lines, reader, .. } = self;
        lines.push(&decoder.finish(), |line| reader.line(line, limits));
        lines.finish(|line| reader.line(line, limits));
        reader.finish(limits)
    }

    /// Returns the point of the latest step, which later lines can extend.
    pub fn open(&self) -> Option<&Point> {
        self.reader.steps.open()
    }

    /// Returns the setup timers before the first step.
    pub fn setup(&self) -> &[Timer] {
        self.reader.steps.setup()
    }

    /// Returns the report so far.
    pub fn report(&self) -> &Report {
        &self.reader.report
    }
}

impl Reader {
    /// Completes the last point.
    pub(super) fn finish(&mut self, limits: &Limits) -> (Vec<Point>, Report) {
        if let Some((line, _, location)) = self.part.take() {
            self.line_end = LineEnd::Missing;
            self.text(&line, false, location, limits);
        }
        for (reading, rank, location) in self.mlperf.finish() {
            self.take_decided(reading, rank, location, limits);
        }
        self.take_bars(limits);
        self.steps.finish(limits, &mut self.report);
        let mut points = self.steps.take_done();
        for (_, steps) in &mut self.others {
            steps.finish(limits, &mut self.report);
            points.append(&mut steps.take_done());
        }
        if self.runs.len() > 1 {
            self.report.assume(&format!("each run is a segment: {}", listed(&self.runs)));
        }
        self.report_labels();
        let by_calls = self.step_name.filter(|&name| json_lines::is_logger_step(name)).map(|_| LOGGER_STEPS.to_owned());
        for note in by_calls.into_iter().chain(self.shapes.wrapped()) {
            self.report.assume(&note);
        }
        (points, std::mem::take(&mut self.report))
    }

    /// Returns the preference rank of the best step name so far.
    pub(super) fn step_name(&self) -> Option<usize> {
        self.step_name
    }

    fn line(&mut self, line: Line<'_>, limits: &Limits) {
        let location = Location { line: line.number, offset: line.offset };
        let mut bytes = line.bytes;
        if line.offset == 0 {
            bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
        }
        if bytes.is_empty() && !line.too_long {
            return;
        }
        if line.too_long {
            self.report.lines += 1;
            return self.report.skip("the line is longer than is read", location);
        }
        let text = String::from_utf8_lossy(bytes);
        let invalid = matches!(text, Cow::Owned(_));
        let plain = text::plain(&text);
        let is_open = !line.is_ended && !cut::ends_with_colour(&text);
        self.line_end = if is_open { LineEnd::Missing } else { LineEnd::Terminated };
        if let Some((inner, time_us)) = docker::unwrapped(&plain) {
            self.wrapped_us = time_us;
            // The closing brace shows that the text is complete.
            self.line_end = LineEnd::Terminated;
            for piece in inner.split(['\n', '\r']).filter(|piece| !piece.is_empty()) {
                self.text(&text::plain(piece), false, location, limits);
            }
            self.wrapped_us = None;
            return;
        }
        self.container_line(&plain, invalid, location, limits);
    }

    /// Joins line parts split by a container runtime.
    fn container_line(&mut self, plain: &str, invalid: bool, location: Location, limits: &Limits) {
        let Some(docker::RuntimeLine { stream, is_part, text }) = docker::runtime_line(plain) else {
            return self.text(plain, invalid, location, limits);
        };
        let (line, location) = match self.part.take_if(|(_, part_stream, _)| *part_stream == stream) {
            Some((line, _, location)) => (line + text, location),
            None => (plain.to_owned(), location),
        };
        if line.len() > limits.line_bytes {
            self.report.lines += 1;
            return self.report.skip("the line is longer than is read", location);
        }
        if !is_part {
            return self.text(&line, invalid, location, limits);
        }
        if let Some((line, _, location)) = self.part.replace((line, stream, location)) {
            self.text(&line, invalid, location, limits);
        }
    }

    fn text(&mut self, plain: &str, invalid: bool, location: Location, limits: &Limits) {
        self.report.lines += 1;
        let (run, plain) = docker::pod(plain);
        if STARTS.iter().any(|start| plain.contains(start)) {
            self.steps.started();
            self.progress.started();
        }
        let (launcher_rank, text) = without_rank(plain);
        let stripped = prefix::strip(text);
        let rank = stripped.rank.or(launcher_rank);
        // An empty line, which is left out without a prefix.
        if !stripped.prefix.is_empty() && stripped.text.trim().is_empty() {
            self.report.ignored += 1;
            return;
        }
        let pieces = pieces(text, stripped.prefix.len());
        let entry = self.entry.take();
        if pieces.len() == 1 {
            let reading = self.read(text, stripped, rank, entry.as_deref(), limits);
            self.shapes.end(text, reading.as_ref().is_some_and(shapes::is_step));
            match reading.and_then(|reading| self.checked(reading, text)) {
                Some(reading) => {
                    if let Some(run) = run {
                        self.turn_to(&run, location, limits);
                    }
                    if invalid && !matches!(reading, Reading::Torn(_)) {
                        self.report.repair("bytes that are not UTF-8 were replaced", location);
                    }
                    self.take(reading, rank, location, text, limits);
                }
                None => self.report.ignored += 1,
            }
            return;
        }
        if self.line_end == LineEnd::Missing && cut::may_continue(text) {
            return self.report.tear(Tear::Cut, text, location, limits);
        }
        // Ranks write concurrently, so a line may contain several complete messages.
        let readings: Vec<Option<Reading>> =
            pieces.iter().map(|piece| self.read(piece, prefix::strip(piece), rank, None, limits)).collect();
        if readings.iter().any(|reading| matches!(reading, Some(Reading::Torn(_)) | None)) {
            return self.report.tear(Tear::Mixed, text, location, limits);
        }
        self.report.repair("the lines of several ranks were joined in one line", location);
        // The line is counted once, independent of the number of pieces.
        let before = (self.report.steps, self.report.companions);
        for (reading, piece) in readings.into_iter().flatten().zip(pieces) {
            self.take(reading, rank, location, piece, limits);
        }
        let stepped = self.report.steps > before.0;
        self.report.steps = before.0 + u64::from(stepped);
        self.report.companions = before.1 + u64::from(!stepped);
    }

    /// Returns a reading, or that the line is torn if its end is missing.
    fn checked(&mut self, reading: Reading, text: &str) -> Option<Reading> {
        if self.line_end == LineEnd::Missing && cut::may_continue(text) {
            return cut::cut(reading);
        }
        Some(self.shapes.checked(reading, text))
    }

    /// Classifies a line without changing state; `None` if it contains no metrics. `stripped` is the
    /// line without its prefix, `entry` the table entry that matched the previous line.
    fn read(
        &self,
        text: &str,
        stripped: Stripped<'_>,
        rank: Option<u32>,
        entry: Option<&str>,
        limits: &Limits,
    ) -> Option<Reading> {
        let Stripped { prefix, text: plain, .. } = stripped;
        // A pattern can contain the prefix.
        let by_table = |table: &LogTable| {
            let without_prefix = || (!prefix.is_empty()).then(|| table.read(prefix, plain, entry, limits)).flatten();
            table.read("", text, entry, limits).or_else(without_prefix)
        };
        self.table
            .as_ref()
            .and_then(by_table)
            .or_else(|| self.known(text, plain, rank, limits))
            .or_else(|| table::trainers().and_then(by_table))
    }

    /// Tries the built-in trainer formats. `plain` is the line without its prefix, for formats that
    /// are recognised by the start of a line.
    fn known(&self, text: &str, plain: &str, rank: Option<u32>, limits: &Limits) -> Option<Reading> {
        let has = |word: &str| text.contains(word);
        if has("iteration") {
            let found = megatron::step(text, limits)
                .or_else(|| megatron::memory(text))
                .or_else(|| megatron::validation(text, limits));
            if found.is_some() {
                return found;
            }
        }
        if has("time (ms)") || self.timers != Table::None {
            let found = deepspeed::breakdown(text, limits)
                .or_else(|| megatron::timers(plain, limits))
                .or_else(|| megatron::row(plain, &self.timers, limits));
            if found.is_some() {
                return found;
            }
        }
        if has("memory (MB)") {
            return megatron::memory(text);
        }
        if has("step") {
            let found = torchtitan::step(text, rank, limits)
                .or_else(|| deepspeed::step(text, limits))
                .or_else(|| deepspeed::pipeline(text, limits));
            if found.is_some() {
                return found;
            }
        }
        if has("SamplesPerSec=") {
            return deepspeed::timer(text, limits);
        }
        // Strings in a JSON line may contain text that looks like a Python dict.
        if plain.trim_start().starts_with("{\"") {
            return json_lines::step(text, self.step_name, limits);
        }
        if has("{'") {
            return hugging_face::dict(text, limits);
        }
        if has(":::MLLOG") {
            return mlperf::event(text, limits);
        }
        if has("{\"") {
            return json_lines::step(text, self.step_name, limits);
        }
        if ["s/it", "it/s", "s/ba", "ba/s", "global_step="].into_iter().any(has) {
            return progress_bar::step(text, limits).or_else(|| progress_bar::bar(text).map(Reading::Bar));
        }
        if has("Step Time :") {
            return megatron::bridge(text, limits);
        }
        if has("Effective Tera Flops") {
            return megatron::flops(text, limits);
        }
        if has("across ranks (ms):") {
            return megatron::table(text).map(Reading::Table);
        }
        if has("global batch size") || has("device mesh") {
            return torchtitan::job(text).map(Reading::Job);
        }
        if has("Num Epochs") || has("Total optimization steps") {
            return hugging_face::length(text);
        }
        None
    }

    /// Counts a reading and adds it to the points.
    pub(super) fn take(
        &mut self,
        reading: Reading,
        rank: Option<u32>,
        location: Location,
        text: &str,
        limits: &Limits,
    ) {
        // Lines from other ranks may occur between rows of a timer table.
        if matches!(reading, Reading::Step { .. } | Reading::Listed { .. }) {
            self.timers = Table::None;
        }
        let report = &mut self.report;
        let is_stored = match reading {
            Reading::Torn(tear) => return report.tear(tear, text, location, limits),
            Reading::Skipped(why) => return report.skip(why, location),
            Reading::Step { mut point, mark, left_out } => {
                (point.line, point.offset) = (location.line, location.offset);
                point.time_us = point.time_us.or(self.wrapped_us);
                report.missing_values(&point, left_out);
                let epoch = point.others.iter().find(|other| other.name == "epoch").map(|other| other.value);
                if mark == Mark::Counted {
                    // In a log without steps this is the only sign of a restart.
                    let rank = rank.filter(|_| self.epochs.len() < limits.ranks);
                    let last = self.epochs.get(&rank).copied();
                    if epoch.zip(last).is_some_and(|(epoch, last)| epoch < last) {
                        self.restart(limits);
                    }
                    if let Some(epoch) = epoch {
                        self.epochs.insert(rank, epoch);
                    }
                }
                self.steps.take(*point, mark, rank, limits, &mut self.report);
                return;
            }
            Reading::Row { reading, step_name, labels, note } => {
                if let Some(note) = note {
                    report.assume(&note);
                }
                self.step_name = Some(self.step_name.map_or(step_name, |known| known.min(step_name)));
                return self.row(*reading, labels, rank, location, limits);
            }
            Reading::Listed { reading, name, flops, note } => {
                if let Some(note) = note {
                    report.assume(note);
                }
                if !report.tables.iter().any(|known| **known == *name) {
                    report.tables.push((*name).to_owned());
                }
                if let (Some(flops), None) = (flops, &report.flop_formula) {
                    report.flop_formula = Some((*flops).to_owned());
                }
                self.entry = Some(name);
                return self.take(*reading, rank, location, text, limits);
            }
            Reading::Dict(dict) => return self.dict(dict, rank, location, limits),
            Reading::BeforeStep(mut point) => {
                (point.line, point.offset) = (location.line, location.offset);
                self.steps.hold(*point, limits, &mut self.report);
                true
            }
            Reading::Bar(bar) => {
                self.progress.bar(bar);
                self.bars.push(bar, location, limits);
                report.ignored += 1;
                return;
            }
            Reading::Length(length) => {
                self.progress.length(length);
                report.ignored += 1;
                return;
            }
            Reading::Job(job) => {
                self.steps.job(job);
                report.ignored += 1;
                return;
            }
            reading @ (Reading::Mlperf(_) | Reading::Note(Note { kind: NoteKind::Event, .. })) => {
                for (reading, rank, location) in self.mlperf.push(reading, rank, location, limits) {
                    self.take_decided(reading, rank, location, limits);
                }
                return;
            }
            Reading::Memory { step, memory } => self.steps.memory(step, memory, limits),
            Reading::Timers(timers) => timers.into_iter().all(|timer| self.steps.timer(timer, limits)),
            Reading::RankTime(time) => match (self.steps.last_timer(), time) {
                (Some(timer), Some(time)) if timer.ranks.len() < limits.ranks => {
                    timer.ranks.push(time);
                    true
                }
                _ => false,
            },
            Reading::Table(table) => {
                self.timers = table;
                true
            }
            Reading::Note(note) => {
                let rate = note.values.iter().find(|value| value.name == "train_steps_per_second");
                if let Some(rate) = rate.filter(|rate| rate.value > 0.0) {
                    self.steps.average(1.0 / rate.value);
                }
                self.steps.note(note, limits)
            }
        };
        self.companion(is_stored, location);
    }

    /// Processes a Hugging Face trainer dict.
    fn dict(&mut self, dict: Dict, rank: Option<u32>, location: Location, limits: &Limits) {
        if let Some(bar) = dict.bar {
            self.progress.bar(bar);
        }
        let Reading::Step { mut point, mut mark, left_out } = *dict.reading else {
            return self.take(*dict.reading, rank, location, "", limits);
        };
        // Without rank prefixes, identical dicts from different ranks cannot be distinguished.
        if rank.is_none() && self.progress.is_repeated(dict.hash) {
            return Steps::repeat(point.source, &mut self.report);
        }
        if mark == Mark::Counted {
            let epoch = point.others.iter().find(|other| other.name == "epoch").map(|other| other.value);
            if self.progress.is_printed_twice(&point, dict.keys, rank, epoch) {
                return self.take(Reading::Step { point, mark: Mark::Open, left_out }, rank, location, "", limits);
            }
            let last = self.epochs.get(&rank).copied();
            let is_back = epoch.zip(last).is_some_and(|(epoch, last)| epoch < last);
            if is_back || self.progress.repeats_step(epoch.is_some() && epoch == last) {
                self.restart(limits);
            }
            if self.progress.number(&mut point, epoch, rank, &mut self.report) {
                mark = Mark::Named;
                if let Some(epoch) = epoch.filter(|_| self.epochs.len() < limits.ranks) {
                    self.epochs.insert(rank, epoch);
                }
            }
        }
        self.take(Reading::Step { point, mark, left_out }, rank, location, "", limits);
    }

    /// Handles a training restart.
    fn restart(&mut self, limits: &Limits) {
        self.epochs.clear();
        self.progress.restart();
        self.steps.restart(limits, &mut self.report);
    }
}

/// Note for rows whose only step is that of Weights & Biases.
const LOGGER_STEPS: &str =
    "steps are those of Weights & Biases (_step): they count calls of log unless the program states its step";

/// Text that Megatron-LM, torchtitan and the Hugging Face trainer print at each start, before the
/// first step.
const STARTS: [&str; 3] = ["-- arguments --", "Trainer is initialized with", "***** Running training *****"];
