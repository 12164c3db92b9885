//! Events of any format to a trace.

use std::collections::HashMap;
use std::rc::Rc;

use super::action::{actions, unplaced};
use super::collective::Collective;
use super::kind::Kind;
use super::lanes::{Laid, Thread, Unsorted, lay};
use super::report::Report;
use super::table::{Counter, Distributed, Flow, Format, Located, Process, Step, Trace, Transfer, WITHOUT_STAGE};
use super::totals::totals;
use super::{Limits, TraceError};

/// One end of an arrow.
#[derive(Debug, Clone, Copy)]
struct FlowEnd {
    arrow: u32,
    thread: u32,
    time: u64,
    /// Whether the arrow starts here, ends here, or both.
    starts: bool,
    ends: bool,
}

/// A slice whose end has not come yet.
#[derive(Debug, Clone, Copy)]
struct Begun {
    name: u32,
    kind: Kind,
    start: u64,
}

/// Different texts and their numbers.
#[derive(Debug, Default)]
struct Texts {
    index: HashMap<Rc<str>, u32>,
    all: Vec<Rc<str>>,
    bytes: usize,
}

impl Texts {
    /// The number of a text; none where it is new and there is no more room.
    fn number(&mut self, text: &str, most_bytes: usize) -> Option<u32> {
        if let Some(&number) = self.index.get(text) {
            return Some(number);
        }
        if self.bytes + text.len() > most_bytes {
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

/// Collects events.
pub(super) struct Builder<'l> {
    limits: &'l Limits,
    /// What was read so far and what was not.
    pub(super) report: Report,
    /// The job, where the trace says it.
    pub(super) distributed: Option<Distributed>,
    /// Time of day of the clock's zero.
    pub(super) base_ns: Option<i64>,
    names: Texts,
    processes: Vec<Process>,
    process_index: HashMap<String, u32>,
    threads: Vec<Thread>,
    thread_index: HashMap<String, u32>,
    slices: Unsorted,
    begun: HashMap<u32, Vec<Begun>>,
    /// Slices whose end has not come yet.
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

    /// The process of a key, which tells texts from numbers; `shown` is its identifier.
    pub(super) fn process(&mut self, key: &str, shown: &str) -> Option<&mut Process> {
        let index = self.process_number(key, shown)?;
        self.processes.get_mut(index as usize)
    }

    fn process_number(&mut self, key: &str, shown: &str) -> Option<u32> {
        if let Some(&index) = self.process_index.get(key) {
            return Some(index);
        }
        if self.processes.len() >= self.limits.threads {
            return None;
        }
        let index = self.processes.len() as u32;
        self.process_index.insert(key.to_owned(), index);
        let (id, name) = (shown.to_owned(), None);
        self.processes.push(Process { id, name, labels: None, sort_index: None, rank: None });
        Some(index)
    }

    /// The number of a thread; none where there are more than are kept.
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

    /// A thread by its number.
    pub(super) fn thread_mut(&mut self, thread: u32) -> Option<&mut Thread> {
        self.threads.get_mut(thread as usize)
    }

    /// A name that is not longer than is kept.
    pub(super) fn clip<'t>(&self, name: &'t str) -> &'t str {
        let mut end = name.len().min(self.limits.name_bytes);
        while !name.is_char_boundary(end) {
            end -= 1;
        }
        &name[..end]
    }

    /// The number of a name; one number for all names beyond the limit.
    pub(super) fn name(&mut self, name: &str) -> u32 {
        if let Some(number) = self.names.number(name, self.limits.names_bytes) {
            return number;
        }
        self.report.problem("there are more different names than are kept");
        self.names.number("(other)", usize::MAX).unwrap_or_default()
    }

    /// Adds a slice; none where there are more than are kept.
    pub(super) fn slice(&mut self, thread: u32, start: u64, duration: u64, name: u32, kind: Kind) -> Option<u32> {
        let index = self.slices.start.len();
        if index >= self.limits.events {
            self.report.skip("there are more slices than are kept");
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

    /// Adds what the arguments of a slice say.
    pub(super) fn tell(&mut self, slice: u32, collective: Collective, bytes: Option<u64>) {
        if collective.is_told() {
            self.collectives.push((slice, collective));
        }
        if let Some(bytes) = bytes {
            self.transfers.push((slice, bytes));
        }
    }

    /// Begins a slice whose end comes later.
    pub(super) fn begin(&mut self, thread: u32, start: u64, name: u32, kind: Kind) {
        // Every slice that begins becomes one, at the latest with the trace's end.
        if self.slices.start.len() + self.open >= self.limits.events {
            return self.report.skip("there are more slices than are kept");
        }
        self.open += 1;
        self.begun.entry(thread).or_default().push(Begun { name, kind, start });
    }

    /// Ends the slice that was begun last.
    pub(super) fn end(&mut self, thread: u32, time: u64, name: Option<u32>) {
        let Some(Begun { name: own, kind, start }) = self.begun.get_mut(&thread).and_then(Vec::pop) else {
            return self.report.skip("an end without a beginning");
        };
        self.open -= 1;
        if name.is_some_and(|name| name != own) {
            self.report.repair("an end with another name than the beginning");
        }
        if time < start {
            self.report.repair("an end before its beginning, read as no duration");
        }
        self.slice(thread, start, time.saturating_sub(start), own, kind);
    }

    /// Adds one end of an arrow.
    pub(super) fn flow(&mut self, arrow: &str, thread: u32, time: u64, starts: bool, ends: bool) {
        if self.flow_ends.len() >= self.limits.events {
            return self.report.skip("there are more arrows than are kept");
        }
        let Some(arrow) = self.arrows.number(arrow, self.limits.names_bytes) else {
            return self.report.skip("there are more arrows than are kept");
        };
        self.flow_ends.push(FlowEnd { arrow, thread, time, starts, ends });
        self.report.used += 1;
    }

    /// Adds a value of a counter.
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

    /// The trace.
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
        let mut place = vec![0; places.len()];
        for (position, &process) in places.iter().enumerate() {
            place[process] = position;
        }
        let laid = lay(&self.slices, &self.threads, &place, self.limits.overflow_lanes);
        self.report.overflowed = laid.overflowed;
        if laid.crowded > 0 {
            self.report.assume("some slices overlap on the last lane of their thread, which has no more lanes");
        }
        let flows = self.flows(&laid);
        let Laid { lanes, slices, new_index, .. } = laid;
        self.ranks(&lanes, &slices.lane, &slices.kind);
        let names: Vec<String> = self.names.all.iter().map(|text| text.as_ref().to_owned()).collect();
        let locate = |slice: u32| new_index[slice as usize];
        let mut collectives: Vec<Located<Collective>> =
            self.collectives.into_iter().map(|(slice, value)| Located { slice: locate(slice), value }).collect();
        collectives.sort_by_key(|located| located.slice);
        let mut transfers: Vec<Transfer> =
            self.transfers.into_iter().map(|(slice, bytes)| Transfer { slice: locate(slice), bytes }).collect();
        transfers.sort_by_key(|transfer| transfer.slice);
        // Names are few, slices many.
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
            trace.place_actions(stage);
        } else if !trace.unplaced.is_empty() {
            let count = trace.unplaced.len();
            trace.report.assume(&format!("{count} actions (Forward 0, Backward 0) {WITHOUT_STAGE}"));
        }
        Ok(trace)
    }

    /// Ends at the trace's end what has no end.
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

    /// Arrows between ends that belong together: from the last start before each end.
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
                // A step in the middle of an arrow does not come from itself, but from what is earlier.
                let before = starts.partition_point(|start| (start.0, end.starts) < (end.time, !end.starts));
                match (before.checked_sub(1), end.starts) {
                    (Some(last), _) => starts.get_mut(last),
                    // Clocks of host and device differ a little, so that an end may lie before its start.
                    (None, false) => starts.first_mut(),
                    (None, true) => None,
                }
            });
            let Some((from_ns, thread, used)) = from else {
                // What starts here and may end here too need not end anything.
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

    /// Ranks by the job where there is one device, and by names.
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

/// The number of `ProfilerStep#12`.
fn step(name: &str) -> Option<u64> {
    name.strip_prefix("ProfilerStep#")?.parse().ok()
}
