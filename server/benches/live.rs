//! Trainers that send logs and browsers that watch them, against a server process.
//!
//! Run `cargo bench --package planscope-server --bench live`. Pass `-- --trainers 50 --watchers 100
//! --seconds 60` to change the numbers. The benchmark runs first with a single trainer and watcher,
//! then with all. Every trainer sends a line per second. A watcher follows the stream of a single
//! run. The delay for a point is the time between sending the log line and receiving the event,
//! open or complete. The benchmark fails if a point is lost in the database or in any stream.

mod crowd;
mod program;

use std::process::ExitCode;
use std::sync::{Arc, Barrier, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use crowd::{STEP, Seen, Sent, follow, train};
use program::Server;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().collect();
    let number = |name: &str, usual: u64| {
        let value = arguments.iter().position(|argument| argument == name).and_then(|index| arguments.get(index + 1));
        value.and_then(|value| value.parse().ok()).unwrap_or(usual)
    };
    let crowd = Load {
        trainers: number("--trainers", 50) as usize,
        watchers: number("--watchers", 100) as usize,
        steps: number("--seconds", 60).max(1),
    };
    let single = Load { trainers: 1, watchers: 1, steps: 10.min(crowd.steps) };
    let lost: u64 = [single, crowd].into_iter().map(Load::measure).sum();
    if lost == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Number of trainers and watchers, and the duration.
#[derive(Debug, Clone, Copy)]
struct Load {
    trainers: usize,
    watchers: usize,
    steps: u64,
}

impl Load {
    /// Runs the load, prints the measurements and returns the number of lost points.
    fn measure(self) -> u64 {
        let folder = tempfile::tempdir().expect("a folder");
        let server = Server::start(folder.path(), None);
        let sent: Vec<Arc<Sent>> =
            (0..self.trainers).map(|_| Arc::new(Sent { run: server.opens_run(), moments: Mutex::default() })).collect();
        let before = server.memory_mb();
        // Trainers start after all watchers are connected.
        let open = Arc::new(Barrier::new(self.watchers + 1));
        let watchers: Vec<_> = (0..self.watchers)
            .map(|number| {
                let (address, sent) = (server.address.clone(), Arc::clone(&sent[number % sent.len()]));
                let open = Arc::clone(&open);
                thread::spawn(move || follow(&address, &sent, self.steps, &open))
            })
            .collect();
        open.wait();
        let began = Instant::now();
        let trainers: Vec<_> = sent
            .iter()
            .enumerate()
            .map(|(number, sent)| {
                // Spread the trainers over a second, because real trainers are not synchronised.
                let offset = STEP.mul_f64(number as f64 / self.trainers as f64);
                let (origin, sent) = (server.origin(), Arc::clone(sent));
                thread::spawn(move || train(&origin, &sent, began + offset, self.steps))
            })
            .collect();
        for trainer in trainers {
            trainer.join().expect("a trainer");
        }
        let took = began.elapsed();
        let seen: Vec<Seen> = watchers.into_iter().map(|watcher| watcher.join().expect("a watcher")).collect();
        let stored: u64 = sent.iter().map(|sent| server.points(&sent.run.run)).sum();
        let (due, expected) = (self.trainers as u64 * self.steps, self.watchers as u64 * self.steps);
        let streamed: u64 = seen.iter().map(|seen| seen.rows.len() as u64).sum();
        let mut delays: Vec<Duration> = seen.iter().flat_map(|seen| seen.delays.iter().copied()).collect();
        delays.sort_unstable();
        let at = |share: f64| {
            let index = ((delays.len() as f64 * share) as usize).min(delays.len().saturating_sub(1));
            delays.get(index).map_or(f64::NAN, |delay| delay.as_secs_f64() * 1e3)
        };
        let silence = seen.iter().map(|seen| seen.silence).max().unwrap_or_default();
        println!(
            "{} trainers, {} watchers, {} steps each in {:.1} s: {stored} of {due} points stored, {streamed} of {expected} seen complete",
            self.trainers,
            self.watchers,
            self.steps,
            took.as_secs_f64()
        );
        println!(
            "  from sending to seeing: median {:.1} ms, 99 % {:.1} ms, most {:.1} ms; longest silence of a stream {:.2} s",
            at(0.5),
            at(0.99),
            at(1.0),
            silence.as_secs_f64()
        );
        println!("measured {} trainers, 99 %: {:.1} ms", self.trainers, at(0.99));
        println!(
            "  the server: {before:.0} MB before, {:.0} MB after, {:.0} MB at most; {:.1} s of processor time",
            server.memory_mb(),
            server.peak_mb(),
            server.processor_s()
        );
        due.abs_diff(stored) + expected.abs_diff(streamed)
    }
}
