//! Load test for a team against a server process: watched streams, trainers that log, planners and
//! page readers.
//!
//! Run `cargo bench --workspace --bench load`. Pass `-- --streams 500 --trainers 50 --planners 20
//! --seconds 600` to change the numbers. Each trainer sends a line per second. A stream follows one
//! run. A planner changes a scenario, reads the result, and pauses for 2 to 8 seconds. A fifth of
//! the scenarios are stored and planned in a job. Four readers open pages, lists and a stored
//! outcome, at intervals of 250 ms. The benchmark shares the machine with the server.
//!
//! It fails if a point is lost, if a stream receives no event for 5 s although a point arrives
//! every second, or if a page request gets no response. Built pages are read from `target/web`, or
//! from the folder in `PLANSCOPE_WEB`.

mod crowd;
mod program;
mod users;

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Barrier, Mutex};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use crowd::{STEP, Seen, Sent, follow, train};
use program::Server;
use users::{Latencies, Planner, Reader};

/// Maximum gap between events. A stream with a longer gap is starved.
const STARVED: Duration = Duration::from_secs(5);
/// Stack size of client threads in bytes. The test starts hundreds.
const STACK: usize = 256 << 10;
/// Interval for sampling the server's memory.
const LOOK: Duration = Duration::from_secs(2);
const READERS: usize = 4;
/// Limit for the 99th percentile page latency, in ms.
const PAGES_MS: f64 = 250.0;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().collect();
    let number = |name: &str, usual: u64| {
        let value = arguments.iter().position(|argument| argument == name).and_then(|index| arguments.get(index + 1));
        value.and_then(|value| value.parse().ok()).unwrap_or(usual)
    };
    let load = Load {
        streams: number("--streams", 500) as usize,
        trainers: number("--trainers", 50).max(1) as usize,
        planners: number("--planners", 20) as usize,
        steps: number("--seconds", 60).max(1),
    };
    if load.measure() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Number of clients per kind, and the duration.
#[derive(Debug, Clone, Copy)]
struct Load {
    streams: usize,
    trainers: usize,
    planners: usize,
    steps: u64,
}

struct Measured {
    took: Duration,
    stored: u64,
    seen: Vec<Seen>,
    pages: Latencies,
    previews: Latencies,
    plans: Latencies,
    /// Server memory in MB, with the time since the start.
    memory: Vec<(Duration, f64)>,
    peak_mb: f64,
    processor_s: f64,
}

impl Load {
    /// Runs the load and prints the measurements. Returns false if a point was lost, a stream
    /// starved or a request failed.
    fn measure(self) -> bool {
        let folder = tempfile::tempdir().expect("a folder");
        let web = std::env::var_os("PLANSCOPE_WEB").map_or_else(built_pages, PathBuf::from);
        let server = Server::start(folder.path(), Some(&web));
        let example = users::stored_example(&server.origin());
        let sent: Vec<Arc<Sent>> =
            (0..self.trainers).map(|_| Arc::new(Sent { run: server.opens_run(), moments: Mutex::default() })).collect();
        // Trainers start after all watchers are connected.
        let open = Arc::new(Barrier::new(self.streams + 1));
        let streams: Vec<JoinHandle<Seen>> = (0..self.streams)
            .map(|number| {
                let (address, sent) = (server.address.clone(), Arc::clone(&sent[number % sent.len()]));
                let (open, steps) = (Arc::clone(&open), self.steps);
                client(move || follow(&address, &sent, steps, &open))
            })
            .collect();
        open.wait();
        let (began, over) = (Instant::now(), Arc::new(AtomicBool::new(false)));
        let trainers: Vec<JoinHandle<()>> = sent
            .iter()
            .enumerate()
            .map(|(number, sent)| {
                let offset = STEP.mul_f64(number as f64 / self.trainers as f64);
                let (origin, sent, steps) = (server.origin(), Arc::clone(sent), self.steps);
                client(move || train(&origin, &sent, began + offset, steps))
            })
            .collect();
        let planners: Vec<JoinHandle<(Latencies, Latencies)>> = (0..self.planners)
            .map(|number| {
                let (planner, over) = (Planner::new(&server.origin(), number as u64), Arc::clone(&over));
                client(move || planner.work(&over))
            })
            .collect();
        let readers: Vec<JoinHandle<Latencies>> = (0..READERS)
            .map(|number| {
                let reader = Reader::new(&server.origin(), &web, &example, &sent[number % sent.len()].run.run, number);
                let over = Arc::clone(&over);
                client(move || reader.read(&over))
            })
            .collect();
        let mut memory = Vec::new();
        while trainers.iter().any(|trainer| !trainer.is_finished()) {
            memory.push((began.elapsed(), server.memory_mb()));
            thread::sleep(LOOK);
        }
        let (took, peak_mb, processor_s) = (began.elapsed(), server.peak_mb(), server.processor_s());
        over.store(true, Ordering::Relaxed);
        for trainer in trainers {
            trainer.join().expect("a trainer");
        }
        let seen = streams.into_iter().map(|stream| stream.join().expect("a stream")).collect();
        let (mut previews, mut plans) = (Latencies::default(), Latencies::default());
        for planner in planners {
            let (previewed, planned) = planner.join().expect("a planner");
            previews.add(previewed);
            plans.add(planned);
        }
        let mut pages = Latencies::default();
        for reader in readers {
            pages.add(reader.join().expect("a reader"));
        }
        let stored = sent.iter().map(|sent| server.points(&sent.run.run)).sum();
        self.tell(&Measured { took, stored, seen, pages, previews, plans, memory, peak_mb, processor_s })
    }

    /// Prints the measurements and returns whether they meet the limits.
    fn tell(self, measured: &Measured) -> bool {
        let Measured { took, stored, seen, pages, previews, plans, memory, peak_mb, processor_s } = measured;
        let (due, expected) = (self.trainers as u64 * self.steps, self.streams as u64 * self.steps);
        let streamed: u64 = seen.iter().map(|seen| seen.rows.len() as u64).sum();
        println!(
            "{} streams, {} trainers, {} planners, {:.1} s: {stored} of {due} points stored, {streamed} of {expected} seen complete",
            self.streams,
            self.trainers,
            self.planners,
            took.as_secs_f64()
        );
        let mut delays = Latencies::default();
        seen.iter().flat_map(|seen| &seen.delays).for_each(|&delay| delays.took("point", delay));
        println!("  a point, from sending to seeing: {}", delays.spread());
        let silence = seen.iter().map(|seen| seen.silence).max().unwrap_or_default();
        let starved = seen.iter().filter(|seen| seen.silence > STARVED).count();
        let slowest = seen.iter().filter_map(|seen| seen.delays.iter().max()).max().copied().unwrap_or_default();
        println!(
            "  the slowest stream: a point after {:.0} ms; longest silence {:.2} s; {starved} starved",
            slowest.as_secs_f64() * 1e3,
            silence.as_secs_f64()
        );
        println!("  pages: {}, {} not answered", pages.spread(), pages.failed());
        print!("{}", pages.by_kind());
        println!("  what-ifs: {}, {} refused", previews.spread(), previews.failed());
        println!("  jobs, until their timeline is there: {}, {} refused", plans.spread(), plans.failed());
        let (first, last) =
            (peak_memory(memory, Duration::ZERO), peak_memory(memory, took.saturating_sub(Duration::from_mins(1))));
        println!(
            "  the server: {first:.0} MB at most in the first minute, {last:.0} MB in the last, {peak_mb:.0} MB ever; {:.2} of \
             a core",
            processor_s / took.as_secs_f64()
        );
        let minutes = (0..took.as_secs().div_ceil(60)).map(|minute| peak_memory(memory, Duration::from_mins(minute)));
        let minutes: Vec<String> = minutes.map(|mb| format!("{mb:.0}")).collect();
        println!("    by minute, in MB: {}", minutes.join(" "));
        println!("  of the {PAGES_MS} ms that pages may take: {:.2}", pages.ms(0.99) / PAGES_MS);
        println!("measured pages, 99 %: {:.1} ms", pages.ms(0.99));
        println!("measured point, 99 %: {:.1} ms", delays.ms(0.99));
        println!("measured memory, last minute over first: {:.3}", last / first);
        let is_complete = *stored == due && streamed == expected;
        is_complete && starved == 0 && pages.failed() == 0
    }
}

/// Peak memory in MB during the minute after `from`.
fn peak_memory(memory: &[(Duration, f64)], from: Duration) -> f64 {
    let minute = memory.iter().filter(|(at, _)| (from..from + Duration::from_mins(1)).contains(at));
    minute.map(|&(_, mb)| mb).fold(f64::NAN, f64::max)
}

/// Folder with the built pages.
fn built_pages() -> PathBuf {
    [env!("CARGO_MANIFEST_DIR"), "..", "target", "web"].iter().collect()
}

/// Starts a client thread.
fn client<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> JoinHandle<T> {
    thread::Builder::new().stack_size(STACK).spawn(work).expect("a thread")
}
