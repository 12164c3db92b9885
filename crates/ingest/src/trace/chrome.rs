//! Chrome trace events from Kineto, simulators and torch schedules.
//!
//! Times are decimal microseconds, parsed from text with nanosecond precision.

mod device;
mod event;
mod job;

use std::io::Read;

use super::build::Builder;
use super::decimal;
use super::kind::Kind;
use super::scanned::finish_scan;
use super::table::Format;
use super::{Limits, TimeUnit, Trace, TraceError, chakra};
use crate::json::{Bounds, JsonError, Scanner, Token};
use event::{Event, Time};

impl From<JsonError> for TraceError {
    fn from(error: JsonError) -> Self {
        match error {
            JsonError::TooLarge { limit } => Self::TooLarge { limit },
            error => Self::Json { detail: error.to_string() },
        }
    }
}

/// Reason for list entries that are not objects.
const NO_OBJECT: &str = "an event that is no object";

/// Top-level keys.
enum Key {
    Events,
    Nodes,
    Job,
    Devices,
    Base,
    Other,
}

/// Parses a JSON trace. Chakra nodes are passed to the Chakra parser.
pub(super) fn read(source: impl Read, unit: TimeUnit, limits: &Limits) -> Result<Trace, TraceError> {
    let bounds = Bounds { depth: limits.depth, string_bytes: limits.name_bytes, bytes: limits.bytes };
    let mut scanner = Scanner::new(source, bounds);
    let mut builder = Builder::new(limits);
    let mut events = Events {
        event: Event::default(),
        phases: [0; 128],
        power: unit.power(),
        lists: 0,
        launches: Launches::default(),
    };
    let mut found = false;
    let mut keys = Vec::new();
    match scanner.next()? {
        Token::BeginArray => {
            found = true;
            events.read(&mut scanner, &mut builder)?;
        }
        Token::BeginObject => loop {
            let key = match scanner.next()? {
                Token::Key("traceEvents") => Key::Events,
                Token::Key("workload_graph") => Key::Nodes,
                Token::Key("distributedInfo") => Key::Job,
                Token::Key("deviceProperties") => Key::Devices,
                Token::Key("baseTimeNanoseconds") => Key::Base,
                Token::Key(other) => {
                    if keys.len() < 5 {
                        keys.push(other.chars().take(40).collect::<String>());
                    }
                    Key::Other
                }
                _ => break,
            };
            match key {
                Key::Events => {
                    if scanner.next()? != Token::BeginArray {
                        return Err(TraceError::Shape { found: "traceEvents that are no list".to_owned() });
                    }
                    found = true;
                    events.read(&mut scanner, &mut builder)?;
                }
                Key::Nodes => return chakra::read_json(scanner, limits),
                Key::Job => builder.distributed = job::read(&mut scanner)?,
                Key::Devices => builder.device_models = device::read(&mut scanner, limits)?,
                Key::Base => {
                    if let Token::Number(text) | Token::String(text) = scanner.next()? {
                        builder.base_ns = decimal::nanos(text, 0).map(|exact| exact.nanos);
                    }
                }
                Key::Other => scanner.skip()?,
            }
        },
        _ => {}
    }
    if !found && keys.iter().any(|key| key == "nodes") && keys.iter().any(|key| key == "schema") {
        return Err(TraceError::NotATrace {
            looks_like: "an execution trace of torch (ExecutionTraceObserver)",
            remedy: "it has no times of kernels; send the Kineto trace of the same step, written with export_chrome_trace",
        });
    }
    if !found {
        let found = if keys.is_empty() { "no events".to_owned() } else { format!("the keys {}", keys.join(", ")) };
        return Err(TraceError::Shape { found });
    }
    if events.lists > 0 && events.lists == builder.report.events {
        return Err(TraceError::NotATrace {
            looks_like: "JSON lists, as export_memory_timeline of torch writes them",
            remedy: "a memory timeline has no slices; send the file of export_chrome_trace",
        });
    }
    events.finish(&mut builder);
    finish_scan(&scanner, &mut builder);
    if scanner.has_more() {
        builder.report.problem("text after the end of the trace, for example a second trace; it is not read");
    }
    if unit == TimeUnit::Microseconds {
        builder.report.assume("times are in microseconds, as the format says");
        if let Some(doubt) = events.launches.doubt() {
            builder.report.problem(doubt);
        }
    }
    builder.finish(Format::Chrome)
}

/// Event list parser.
struct Events {
    event: Event,
    /// Event count by phase character.
    phases: [u64; 128],
    power: i32,
    /// Count of arrays found instead of events.
    lists: u64,
    launches: Launches,
}

/// Durations of kernel launches on the host. They are 2 to 20 µs on every machine, and longer if the queue of the device is
/// full, so they show a wrong unit.
#[derive(Debug, Default)]
struct Launches {
    count: u32,
    shortest_ns: u64,
    longest_ns: u64,
}

impl Launches {
    const MIN_COUNT: u32 = 10;

    fn add(&mut self, name: &str, duration_ns: u64) {
        if !matches!(
            name,
            "cudaLaunchKernel" | "cudaLaunchKernelExC" | "cuLaunchKernel" | "cuLaunchKernelEx" | "hipLaunchKernel"
        ) {
            return;
        }
        self.shortest_ns = if self.count == 0 { duration_ns } else { self.shortest_ns.min(duration_ns) };
        self.longest_ns = self.longest_ns.max(duration_ns);
        self.count += 1;
    }

    /// Returns the doubt about times that are read in microseconds.
    fn doubt(&self) -> Option<&'static str> {
        match (self.shortest_ns, self.longest_ns) {
            _ if self.count < Self::MIN_COUNT => None,
            (500_000.., _) => {
                Some("every kernel launch takes longer than 0.5 ms: the times can be in nanoseconds (--unit ns)")
            }
            (_, ..1000) => {
                Some("every kernel launch takes less than 1 µs: the times can be in milliseconds (--unit ms)")
            }
            _ => None,
        }
    }
}

impl Events {
    fn read<R: Read>(&mut self, scanner: &mut Scanner<R>, builder: &mut Builder<'_>) -> Result<(), TraceError> {
        loop {
            match scanner.next()? {
                Token::BeginObject => {
                    let depth = scanner.depth();
                    builder.report.events += 1;
                    self.event.read(scanner, self.power)?;
                    builder.report.bytes = scanner.offset();
                    // A truncated last event is incomplete.
                    if scanner.depth() >= depth {
                        builder.report.skip("the last event is cut");
                        return Ok(());
                    }
                    self.take(builder);
                }
                Token::EndArray | Token::End => return Ok(()),
                Token::BeginArray => {
                    builder.report.events += 1;
                    builder.report.skip(NO_OBJECT);
                    self.lists += 1;
                    let depth = scanner.depth();
                    while scanner.depth() >= depth {
                        if scanner.next()? == Token::End {
                            return Ok(());
                        }
                    }
                }
                _ => {
                    builder.report.events += 1;
                    builder.report.skip(NO_OBJECT);
                }
            }
        }
    }

    fn finish(&self, builder: &mut Builder<'_>) {
        for (phase, &count) in self.phases.iter().enumerate().filter(|(_, count)| **count > 0) {
            let phase = if phase == 0 { "none".to_owned() } else { char::from(phase as u8).to_string() };
            builder.report.phases.insert(phase, count);
        }
    }

    fn take(&mut self, builder: &mut Builder<'_>) {
        let Self { event, phases, launches, .. } = self;
        phases[usize::from(event.phase & 0x7f)] += 1;
        let process = (event.pid.as_str(), Event::display_id(&event.pid));
        let thread = (event.tid.as_str(), Event::display_id(&event.tid));
        if event.phase == b'M' {
            return metadata(event, builder);
        }
        if !matches!(event.phase, b'X' | b'B' | b'E' | b'C' | b's' | b't' | b'f') {
            return builder.report.skip(match event.phase {
                b'i' | b'I' | b'R' => "instants have no duration and are not shown",
                b'b' | b'e' | b'n' | b'S' | b'T' | b'p' | b'F' => "asynchronous events are not shown",
                0 => "an event without a phase",
                _ => "events of this phase are not shown",
            });
        }
        let time = match event.time {
            Time::At(exact) if exact.nanos >= 0 => {
                if exact.rounded {
                    builder.report.repair("a time below a nanosecond was rounded");
                }
                exact.nanos as u64
            }
            Time::At(_) => return builder.report.skip("a negative time"),
            Time::Missing => return builder.report.skip("an event without a time"),
            Time::Wrong => return builder.report.skip("a time that is not a number in range"),
        };
        if event.phase == b'C' {
            return counters(event, time, builder);
        }
        let Some(thread) = builder.thread(process, thread) else {
            return builder.report.skip("there are more threads than can be stored");
        };
        match event.phase {
            b'X' => {
                let duration = match event.duration {
                    Time::At(exact) if exact.nanos >= 0 => exact.nanos as u64,
                    Time::At(_) => {
                        builder.report.repair("a negative duration, read as none");
                        0
                    }
                    Time::Missing | Time::Wrong => {
                        builder.report.repair("a slice without a duration");
                        0
                    }
                };
                let name = builder.name(&event.name);
                let kind = Kind::classify(&event.category, &event.name);
                launches.add(&event.name, duration);
                if let Some(slice) = builder.slice(thread, time, duration, name, kind) {
                    let bytes = event.bytes.filter(|_| matches!(kind, Kind::Memcpy | Kind::Memset));
                    builder.tell(slice, std::mem::take(&mut event.collective), bytes);
                }
            }
            b'B' => {
                let name = builder.name(&event.name);
                builder.begin(thread, time, name, Kind::classify(&event.category, &event.name));
            }
            b'E' => {
                let name = (!event.name.is_empty()).then(|| builder.name(&event.name));
                builder.end(thread, time, name);
            }
            phase => {
                let arrow = format!("{}\0{}\0{}", event.category, event.id, event.name);
                builder.flow(&arrow, thread, time, phase != b'f', phase != b's');
            }
        }
    }
}

fn counters(event: &Event, time: u64, builder: &mut Builder<'_>) {
    let process = (event.pid.as_str(), Event::display_id(&event.pid));
    let mut is_stored = true;
    for (series, value) in &event.numbers {
        is_stored &= builder.counter(process, &event.name, series, time, *value);
    }
    if event.numbers.is_empty() {
        builder.report.skip("a counter without a number");
    } else if is_stored {
        builder.report.used += 1;
    } else {
        builder.report.skip("there are more values of counters than can be stored");
    }
}

fn metadata(event: &Event, builder: &mut Builder<'_>) {
    let process = (event.pid.as_str(), Event::display_id(&event.pid));
    let thread = (event.tid.as_str(), Event::display_id(&event.tid));
    let text = || (!event.text.is_empty()).then(|| event.text.chars().take(event::TEXT_CHARS).collect());
    let known = match event.name.as_str() {
        "process_name" => builder.process(process.0, process.1).map(|process| process.name = text()),
        "process_labels" => builder.process(process.0, process.1).map(|process| process.labels = text()),
        "process_sort_index" => {
            builder.process(process.0, process.1).map(|process| process.sort_index = event.sort_index)
        }
        "thread_name" | "thread_sort_index" => {
            let sorts = event.name == "thread_sort_index";
            builder.thread(process, thread).and_then(|thread| builder.thread_mut(thread)).map(|thread| {
                if sorts {
                    thread.sort_index = event.sort_index;
                } else {
                    thread.name = text();
                }
            })
        }
        _ => return builder.report.skip("metadata that is not shown"),
    };
    match known {
        Some(()) => builder.report.used += 1,
        None => builder.report.skip("there are more threads than can be stored"),
    }
}
