//! Builds a trace from events in any format.

use std::collections::{BTreeMap, HashMap};
use std::rc::Rc;

use super::action::{actions, unplaced};
use super::collective::Collective;
use super::kind::Kind;
use super::lanes::{Laid, Thread, Unsorted, lay};
use super::report::Report;
use super::table::{Counter, Distributed, Flow, Format, Located, Process, Step, Trace, Transfer, WITHOUT_STAGE};
use super::totals::totals;
use super::{Limits, TraceError};

/// One end of a flow arrow.
#[derive(Debug, Clone, Copy)]
struct FlowEnd {
    arrow: u32,
    thread: u32,
    time: u64,
    /// True if an arrow starts here. An event may both start and end an arrow.
    starts: bool,
    ends: bool,
}

/// A slice without end event so far.
#[derive(Debug, Clone, Copy)]
struct Begun {
    name: u32,
    kind: Kind,
    start: u64,
}

/// Interned strings.
#[derive(Debug, Default)]
struct Texts {
    index: HashMap<Rc<str>, u32>,
    all: Vec<Rc<str>>,
    bytes: usize,
}

impl Texts {
    /// Returns the string index; `None` for a new string above the limit.
    fn number(&mut self, text: &str, max_bytes: usize) -> Option<u32> {
        if let Some(&number) = self.index.get(text) {
            return Some(number);
        }
        if self.bytes + text.len() > max_bytes {
            return None;
        }
        self.bytes += text.len();
        let number = self.all.len() as u32;
        let shared: Rc<str> = text.into();
        self.all.push(Rc::clone(&shared));
        self.index.insert(shared, number);
        Some(number)
    }
}

/// Event collector.
pub(super) struct Builder<'l> {
    limits: &'l Limits,
    pub(super) report: Report,
    /// Job information, if the trace contains it.
    pub(super) distributed: Option<Distributed>,
    /// Models of devices by their number.
    pub(super) device_models: BTreeMap<String, String>,
    /// Wall-clock time at clock zero.
    pub(super) base_ns: Option<i64>,
    names: Texts,
    processes: Vec<Process>,
    process_index: HashMap<String, u32>,
    threads: Vec<Thread>,
    thread_index: HashMap<String, u32>,
    slices: Unsorted,
    begun: HashMap<u32, Vec<Begun>>,
    /// Number of slices without end event.
    open: usize,
    arrows: Texts,
    flow_ends: Vec<FlowEnd>,
    counters: Vec<Counter>,
    collectives: Vec<(u32, Collective)>,
    transfers: Vec<(u32, u64)>,
}

impl<'l> Builder<'l> {
    pub(super) fn new(limits: &'l Limits) -> Self {
        Self {
            limits,
            report: Report::default(),
            distributed: None,
            device_models: BTreeMap::new(),
            base_ns: None,
            names: Texts::default(),
            processes: Vec::new(),
            process_index: HashMap::new(),
            threads: Vec::new(),
            thread_index: HashMap::new(),
            slices: Unsorted::default(),
            begun: HashMap::new(),
            open: 0,
            arrows: Texts::default(),
            flow_ends: Vec::new(),
            counters: Vec::new(),
            collectives: Vec::new(),
            transfers: Vec::new(),
        }
    }

    /// Returns the process for a key, which distinguishes text from numbers. `shown` is its display
    /// identifier.
    pub(super) fn process(&mut self, key: &str, display_id: &str) -> Option<&mut Process> {
        let index = self.process_number(key, display_id)?;
        self.processes.get_mut(index as usize)
    }

    fn process_number(&mut self, key: &str, display_id: &str) -> Option<u32> {
        if let Some(&index) = self.process_index.get(key) {
            return Some(index);
        }
        if self.processes.len() >= self.limits.threads {
            return None;
        }
        let index = self.processes.len() as u32;
        self.process_index.insert(key.to_owned(), index);
        let (id, name) = (display_id.to_owned(), None);
        self.processes.push(Process { id, name, labels: None, sort_index: None, rank: None });
        Some(index)
    }

    /// Returns the thread index; `None` above the limit.
    pub(super) fn thread(&mut self, process: (&str, &str), thread: (&str, &str)) -> Option<u32> {
        let key = format!("{}\0{}", process.0, thread.0);
        if let Some(&index) = self.thread_index.get(&key) {
            return Some(index);
        }
        if self.threads.len() >= self.limits.threads {
            return None;
        }
        let process = self.process_number(process.0, process.1)?;
        let index = self.threads.len() as u32;
        self.thread_index.insert(key, index);
        self.threads.push(Thread { process, id: thread.1.to_owned(), name: None, sort_index: None });
        Some(index)
    }

    /// True if the process exists.
    pub(super) fn has_process(&self, key: &str) -> bool {
        self.process_index.contains_key(key)
    }

    /// Returns a thread that exists.
    pub(super) fn known_thread(&mut self, process: &str, thread: &str) -> Option<&mut Thread> {
        let index = *self.thread_index.get(&format!("{process}\0{thread}"))?;
        self.thread_mut(index)
    }

    /// Returns the maximum number of slices.
    pub(super) fn max_events(&self) -> usize {
        self.limits.events
    }

    pub(super) fn thread_mut(&mut self, thread: u32) -> Option<&mut Thread> {
        self.threads.get_mut(thread as usize)
    }

    /// Truncates a name to the length limit.
    pub(super) fn clip<'t>(&self, name: &'t str) -> &'t str {
        let mut end = name.len().min(self.limits.name_bytes);
        while !name.is_char_boundary(end) {
            end -= 1;
        }
        &name[..end]
    }

    /// Returns the name index. All names above the limit share one index.
    pub(super) fn name(&mut self, name: &str) -> u32 {
        if let Some(number) = self.names.number(name, self.limits.names_bytes) {
            return number;
        }
        self.report.problem("there are more different names than can be stored");
        self.names.number("(other)", usize::MAX).unwrap_or_default()
    }

    /// Adds a slice; `None` above the limit.
    pub(super) fn slice(&mut self, thread: u32, start: u64, duration: u64, name: u32, kind: Kind) -> Option<u32> {
        let index = self.slices.start.len();
        if index >= self.limits.events {
            self.report.skip("there are more slices than can be stored");
            return None;
        }
        self.slices.thread.push(thread);
        self.slices.start.push(start);
        self.slices.duration.push(duration);
        self.slices.name.push(name);
        self.slices.kind.push(kind);
        self.report.used += 1;
        Some(index as u32)
    }

    /// Adds data from slice arguments.
    pub(super) fn tell(&mut self, slice: u32, collective: Collective, bytes: Option<u64>) {
        if collective.is_described() {
            self.collectives.push((slice, collective));
        }
        if let Some(bytes) = bytes {
            self.transfers.push((slice, bytes));
        }
    }

    /// Starts a slice with a later end event.
    pub(super) fn begin(&mut self, thread: u32, start: u64, name: u32, kind: Kind) {
        // Every started slice is eventually added, at the latest at the end of the trace.
        if self.slices.start.len() + self.open >= self.limits.events {
            return self.report.skip("there are more slices than can be stored");
        }
        self.open += 1;
        self.begun.entry(thread).or_default().push(Begun { name, kind, start });
    }

    /// Ends the most recently started slice.
    pub(super) fn end(&mut self, thread: u32, time: u64, name: Option<u32>) {
        let Some(Begun { name: begun_name, kind, start }) = self.begun.get_mut(&thread).and_then(Vec::pop) else {
            return self.report.skip("an end without a beginning");
        };
        self.open -= 1;
        if name.is_some_and(|name| name != begun_name) {
            self.report.repair("an end with another name than the beginning");
        }
        if time < start {
            self.report.repair("an end before its beginning, read as no duration");
        }
        self.slice(thread, start, time.saturating_sub(start), begun_name, kind);
    }

    /// Adds one end of a flow arrow that is an event of the file.
    pub(super) fn flow(&mut self, arrow: &str, thread: u32, time: u64, starts: bool, ends: bool) {
        if self.join(arrow, thread, time, starts, ends) {
            self.report.used += 1;
        } else {
            self.report.skip("there are more arrows than can be stored");
        }
    }

    /// Adds one end of a flow arrow. Returns false above the limit.
    pub(super) fn join(&mut self, arrow: &str, thread: u32, time: u64, starts: bool, ends: bool) -> bool {
        if self.flow_ends.len() >= self.limits.events {
            return false;
        }
        let Some(arrow) = self.arrows.number(arrow, self.limits.names_bytes) else { return false };
        self.flow_ends.push(FlowEnd { arrow, thread, time, starts, ends });
        true
    }

    pub(super) fn counter(
        &mut self,
        process: (&str, &str),
        name: &str,
        series: &str,
        time_ns: u64,
        value: f64,
    ) -> bool {
        if self.counters.len() >= self.limits.events {
            return false;
        }
        let Some(process) = self.process_number(process.0, process.1) else { return false };
        let (name, series) = (self.name(name), self.name(series));
        self.counters.push(Counter { process, name, series, time_ns, value });
        true
    }

    /// Builds the trace.
    pub(super) fn finish(mut self, format: Format) -> Result<Trace, TraceError> {
        self.close();
        if self.slices.start.is_empty() && self.counters.is_empty() {
            let problems: Vec<String> = self
                .report
                .problems
                .iter()
                .take(5)
                .map(|problem| format!("{} ({} times, first event {})", problem.reason, problem.count, problem.event))
                .collect();
            let problems = if problems.is_empty() { "it has none".to_owned() } else { problems.join("; ") };
            return Err(TraceError::NoEvents { problems });
        }
        let mut places: Vec<usize> = (0..self.processes.len()).collect();
        places.sort_by_key(|&process| (self.processes[process].sort_index.unwrap_or_default(), process));
        let mut positions = vec![0; places.len()];
        for (position, &process) in places.iter().enumerate() {
            positions[process] = position;
        }
        let laid = lay(&self.slices, &self.threads, &positions, self.limits.overflow_lanes);
        self.report.overflowed = laid.overflowed;
        if laid.crowded > 0 {
            self.report.assume("some slices overlap on the last lane of their thread, which has no more lanes");
        }
        let flows = self.flows(&laid);
        let Laid { lanes, slices, new_index, .. } = laid;
        self.ranks(&lanes, &slices.lane, &slices.kind);
        self.models();
        let names: Vec<String> = self.names.all.iter().map(|text| text.as_ref().to_owned()).collect();
        let locate = |slice: u32| new_index[slice as usize];
        let mut collectives: Vec<Located<Collective>> =
            self.collectives.into_iter().map(|(slice, value)| Located { slice: locate(slice), value }).collect();
        collectives.sort_by_key(|located| located.slice);
        let mut transfers: Vec<Transfer> =
            self.transfers.into_iter().map(|(slice, bytes)| Transfer { slice: locate(slice), bytes }).collect();
        transfers.sort_by_key(|transfer| transfer.slice);
        // Names are few, slices many, so names are parsed once.
        let by_name: Vec<_> = names.iter().map(|name| (step(name), actions(name), unplaced(name))).collect();
        let (mut steps, mut located, mut without_stage) = (Vec::new(), Vec::new(), Vec::new());
        for slice in 0..slices.len() {
            let (step, actions, unplaced) = &by_name[slices.name[slice] as usize];
            let slice_index = slice as u32;
            if let Some(number) = *step {
                let on_device = slices.kind[slice] == Kind::DeviceAnnotation;
                steps.push(Step { number, slice: slice_index, on_device });
            }
            located.extend(actions.iter().map(|&value| Located { slice: slice_index, value }));
            if let Some(value) = *unplaced
                && matches!(slices.kind[slice], Kind::Annotation | Kind::DeviceAnnotation)
            {
                without_stage.push(Located { slice: slice_index, value });
            }
        }
        if steps.is_empty() {
            let numbers: Vec<Option<u64>> = names.iter().map(|name| named_step(name)).collect();
            for slice in 0..slices.len() {
                let is_device = slices.kind[slice] == Kind::DeviceAnnotation;
                if let Some(number) = numbers[slices.name[slice] as usize]
                    && (is_device || slices.kind[slice] == Kind::Annotation)
                {
                    steps.push(Step { number, slice: slice as u32, on_device: is_device });
                }
            }
        }
        let totals = totals(&self.processes, &lanes, &slices);
        let end = |slice: usize| slices.start_ns[slice].saturating_add(slices.duration_ns[slice]);
        let mut trace = Trace {
            format,
            origin_ns: slices.start_ns.iter().copied().min().unwrap_or_default(),
            end_ns: (0..slices.len()).map(end).max().unwrap_or_default(),
            base_ns: self.base_ns,
            names,
            processes: self.processes,
            lanes,
            slices,
            flows,
            counters: self.counters,
            steps,
            actions: located,
            unplaced: without_stage,
            collectives,
            transfers,
            distributed: self.distributed,
            totals,
            report: self.report,
        };
        let stage = trace.distributed.as_ref().and_then(Distributed::stage);
        if let Some(stage) = stage.filter(|_| !trace.unplaced.is_empty()) {
            let count = trace.unplaced.len();
            trace.report.assume(&format!(
                "{count} actions (Forward 0, Backward 0) name no stage; stage {stage} follows from the rank and the groups of the job"
            ));
            trace.set_missing_stages(stage);
        } else if !trace.unplaced.is_empty() {
            let count = trace.unplaced.len();
            trace.report.assume(&format!("{count} actions (Forward 0, Backward 0) {WITHOUT_STAGE}"));
        }
        Ok(trace)
    }

    /// Closes open slices at the end of the trace.
    fn close(&mut self) {
        let mut open: Vec<(u32, Vec<Begun>)> = std::mem::take(&mut self.begun).into_iter().collect();
        open.sort_unstable_by_key(|(thread, _)| *thread);
        let begun = open.iter().flat_map(|(_, begun)| begun.iter().map(|begun| begun.start));
        let ends = self
            .slices
            .start
            .iter()
            .zip(&self.slices.duration)
            .map(|(start, duration)| start.saturating_add(*duration));
        let last = ends.chain(begun).max().unwrap_or_default();
        for (thread, begun) in open {
            for Begun { name, kind, start } in begun {
                self.report.repair("a beginning without an end, ended with the trace");
                self.slice(thread, start, last - start, name, kind);
            }
        }
    }

    /// Pairs flow ends: each end is connected to the latest start before it.
    fn flows(&mut self, laid: &Laid) -> Vec<Flow> {
        let mut starts: HashMap<u32, Vec<(u64, u32, bool)>> = HashMap::new();
        for end in self.flow_ends.iter().filter(|end| end.starts) {
            starts.entry(end.arrow).or_default().push((end.time, end.thread, false));
        }
        for starts in starts.values_mut() {
            starts.sort_unstable();
        }
        let mut flows = Vec::new();
        let mut lonely = 0_u64;
        for end in self.flow_ends.iter().filter(|end| end.ends) {
            let from = starts.get_mut(&end.arrow).and_then(|starts| {
                // An intermediate flow step connects to an earlier start, not to itself.
                let before = starts.partition_point(|start| (start.0, end.starts) < (end.time, !end.starts));
                match (before.checked_sub(1), end.starts) {
                    (Some(last), _) => starts.get_mut(last),
                    // Host and device clocks differ slightly, so an end may precede its start.
                    (None, false) => starts.first_mut(),
                    (None, true) => None,
                }
            });
            let Some((from_ns, thread, used)) = from else {
                // An event that starts an arrow and may end one is valid without a preceding start.
                lonely += u64::from(!end.starts);
                continue;
            };
            *used = true;
            let lanes = laid.first_lane[*thread as usize].zip(laid.first_lane[end.thread as usize]);
            let Some((from_lane, to_lane)) = lanes else {
                self.report.problem("an arrow to or from a thread without slices");
                continue;
            };
            flows.push(Flow { from_lane, from_ns: *from_ns, to_lane, to_ns: end.time });
        }
        let unused = starts.values().flatten().filter(|(.., used)| !used).count() as u64;
        if lonely > 0 {
            self.report.assume(&format!("{lonely} ends of arrows have no start and are not drawn"));
        }
        if unused > 0 {
            self.report.assume(&format!("{unused} starts of arrows have no end and are not drawn"));
        }
        flows
    }

    /// Adds the models of devices to the labels of their processes, which Kineto sets to `GPU 0`.
    fn models(&mut self) {
        for process in &mut self.processes {
            let number = process.labels.as_deref().and_then(|labels| labels.strip_prefix("GPU "));
            if let Some(model) = number.and_then(|number| self.device_models.get(number)) {
                process.labels = process.labels.as_deref().map(|labels| format!("{labels}, {model}"));
            }
        }
    }

    /// Assigns ranks from the job information if there is a single device, and from names.
    fn ranks(&mut self, lanes: &[super::Lane], lane: &[u32], kind: &[Kind]) {
        for process in &mut self.processes {
            let named = process.name.as_deref().unwrap_or(&process.id).to_ascii_lowercase();
            process.rank = named.strip_prefix("rank").and_then(|rest| rest.trim().parse().ok());
        }
        let mut devices: Vec<u32> = kind
            .iter()
            .zip(lane)
            .filter(|(kind, _)| kind.is_on_device())
            .map(|(_, &lane)| lanes[lane as usize].process)
            .collect();
        devices.sort_unstable();
        devices.dedup();
        let rank = self.distributed.as_ref().and_then(|job| job.rank);
        if let ([only], Some(rank)) = (&devices[..], rank) {
            self.processes[*only as usize].rank = Some(rank);
        }
    }
}

/// Parses the number in `ProfilerStep#12`.
fn step(name: &str) -> Option<u64> {
    name.strip_prefix("ProfilerStep#")?.parse().ok()
}

/// Parses the number in the names that programs give to their own ranges around a step: `step 12`,
/// `iteration_12`, `Iter: 12`.
fn named_step(name: &str) -> Option<u64> {
    let digits = name.find(|letter: char| letter.is_ascii_digit())?;
    let (word, number) = name.split_at(digits);
    let word = word.trim_end_matches([' ', '_', '-', ':', '#', '=']).to_ascii_lowercase();
    let is_step = ["step", "iteration", "iter", "train_step", "train step", "training step"].contains(&word.as_str());
    number.parse().ok().filter(|_| is_step)
}
