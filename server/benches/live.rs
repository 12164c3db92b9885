//! Trainers that send and browsers that watch, against the program itself.
//!
//! `cargo bench --package planscope-server --bench live`, with `-- --trainers 50 --watchers 100 --seconds 60` for other numbers.
//! First one trainer and one watcher by themselves, then all of them. Every trainer sends a line per second, every watcher
//! keeps a stream of one run open. A point is seen when its event has come in whole, open or complete, counted from just before
//! its line is sent. It fails where a point is lost: in the database, or in any stream.

use std::collections::BTreeSet;
use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, ExitCode, Stdio};
use std::sync::{Arc, Barrier, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use api::path;
use api::run::{CreatedRun, RunDetail, RunPoint};

/// Between two lines of a trainer.
const STEP: Duration = Duration::from_secs(1);
/// How long what was sent last may take to be seen before it counts as lost.
const PATIENCE: Duration = Duration::from_secs(30);

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().collect();
    let number = |name: &str, usual: u64| {
        let value = arguments.iter().position(|argument| argument == name).and_then(|place| arguments.get(place + 1));
        value.and_then(|value| value.parse().ok()).unwrap_or(usual)
    };
    let crowd = Load {
        trainers: number("--trainers", 50) as usize,
        watchers: number("--watchers", 100) as usize,
        steps: number("--seconds", 60).max(1),
    };
    let alone = Load { trainers: 1, watchers: 1, steps: 10.min(crowd.steps) };
    let lost: u64 = [alone, crowd].into_iter().map(Load::measure).sum();
    if lost == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// How much is sent, and to how many.
#[derive(Debug, Clone, Copy)]
struct Load {
    trainers: usize,
    watchers: usize,
    steps: u64,
}

/// A run and the moments at which its steps were sent.
struct Sent {
    run: CreatedRun,
    moments: Mutex<Vec<Instant>>,
}

/// What a watcher saw.
#[derive(Default)]
struct Seen {
    /// From sending to seeing, for every step.
    delays: Vec<Duration>,
    /// Rows that came complete.
    rows: BTreeSet<u64>,
    /// Longest time without an event between the first and the last.
    silence: Duration,
}

impl Load {
    /// Runs it and prints what was measured; answers how many points were lost.
    fn measure(self) -> u64 {
        let folder = tempfile::tempdir().expect("a folder");
        let server = Server::start(folder.path());
        let sent: Vec<Arc<Sent>> =
            (0..self.trainers).map(|_| Arc::new(Sent { run: server.opens_run(), moments: Mutex::default() })).collect();
        let before = server.memory_mb();
        // Nobody sends before all watch.
        let open = Arc::new(Barrier::new(self.watchers + 1));
        let watchers: Vec<_> = (0..self.watchers)
            .map(|number| {
                let (address, sent) = (server.address.clone(), Arc::clone(&sent[number % sent.len()]));
                let open = Arc::clone(&open);
                thread::spawn(move || watch(&address, &sent, self.steps, &open))
            })
            .collect();
        open.wait();
        let began = Instant::now();
        let trainers: Vec<_> = sent
            .iter()
            .enumerate()
            .map(|(number, sent)| {
                // Spread over the second, as nobody tells trainers when to log.
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
            let place = ((delays.len() as f64 * share) as usize).min(delays.len().saturating_sub(1));
            delays.get(place).map_or(f64::NAN, |delay| delay.as_secs_f64() * 1e3)
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

/// Sends a line per step and says that the run ended.
fn train(origin: &str, sent: &Sent, first: Instant, steps: u64) {
    let agent = ureq::Agent::new_with_defaults();
    let bearer = format!("Bearer {}", sent.run.ingest_token);
    let mut offset = 0;
    for step in 1..=steps {
        let due = first + STEP.mul_f64((step - 1) as f64);
        thread::sleep(due.saturating_duration_since(Instant::now()));
        let line = format!(
            " [2026-01-02 03:04:05] iteration {step:8}/{steps:8} | consumed samples: {:12} | elapsed time per iteration (ms): \
             {}.5 | learning rate: 1.500000E-04 | global batch size:   256 | lm loss: 1.{step:06}E+00 | grad norm: 0.5 |\n",
            step * 256,
            1000 + step % 7
        );
        sent.moments.lock().expect("nobody panics").push(Instant::now());
        let url = format!("{origin}{}?offset={offset}", path::run_log(&sent.run.run));
        let answer = agent.patch(url).header("Authorization", &bearer).send(line.as_bytes());
        answer.expect("a line that is taken");
        offset += line.len();
    }
    let url = format!("{origin}{}", path::run_finish(&sent.run.run));
    let finish = agent.post(url).header("Authorization", &bearer).header("Content-Type", "application/json");
    finish.send(r#"{"exit_code": 0}"#).expect("an end that is taken");
}

/// Keeps a stream of one run open until every step has come complete.
fn watch(address: &str, sent: &Sent, steps: u64, open: &Barrier) -> Seen {
    let mut stream = TcpStream::connect(address).expect("a server that listens");
    stream.set_read_timeout(Some(PATIENCE)).expect("a timeout");
    // The older version of HTTP sends events without chunks around them.
    let request = format!("GET {} HTTP/1.0\r\nHost: localhost\r\n\r\n", path::run_events(&sent.run.run));
    stream.write_all(request.as_bytes()).expect("a request");
    let mut reader = BufReader::new(stream);
    // A head that comes is a stream that is open.
    let mut head = String::new();
    let answered = reader.read_line(&mut head).is_ok();
    open.wait();
    assert!(answered && head.contains(" 200 "), "the server refuses a stream: {head:?}");
    let (mut seen, mut line, mut data, mut is_row) = (Seen::default(), String::new(), String::new(), false);
    let (mut known, mut last) = (0_u64, None::<Instant>);
    while (seen.rows.len() as u64) < steps {
        line.clear();
        // Nothing for longer than it may take: what is missing is lost.
        if reader.read_line(&mut line).unwrap_or(0) == 0 {
            break;
        }
        if let Some(text) = line.strip_prefix("data:") {
            text.trim().clone_into(&mut data);
        }
        // An open point has no identifier; it comes again when it is complete.
        is_row |= line.starts_with("id:");
        if !line.trim().is_empty() {
            continue;
        }
        let event = (std::mem::take(&mut data), std::mem::take(&mut is_row));
        let Ok(point) = serde_json::from_str::<RunPoint>(&event.0) else { continue };
        let now = Instant::now();
        if let Some(last) = last.replace(now) {
            seen.silence = seen.silence.max(now - last);
        }
        if point.step > known {
            known = point.step;
            let moments = sent.moments.lock().expect("nobody panics");
            seen.delays.extend(moments.get(point.step as usize - 1).map(|&moment| now - moment));
        }
        if event.1 {
            seen.rows.insert(point.row);
        }
    }
    seen
}

/// The program on a free port of this machine, until it is dropped.
struct Server {
    address: String,
    running: Child,
}

impl Server {
    fn start(folder: &Path) -> Self {
        let address = TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr()).expect("a free port");
        let address = address.to_string();
        let mut command = Command::new(env!("CARGO_BIN_EXE_planscope"));
        command.args(["serve", "--address", &address]).current_dir(folder).env_clear().env("RUST_LOG", "warn");
        let running = command.stdin(Stdio::null()).stdout(Stdio::null()).spawn().expect("the program");
        let server = Self { address, running };
        let health = format!("{}{}", server.origin(), path::HEALTH);
        while ureq::get(&health).call().is_err() {
            thread::sleep(Duration::from_millis(20));
        }
        server
    }

    fn origin(&self) -> String {
        format!("http://{}", self.address)
    }

    fn opens_run(&self) -> CreatedRun {
        let request = ureq::post(format!("{}{}", self.origin(), path::RUNS)).header("Content-Type", "application/json");
        let text = request.send("{}").and_then(|mut answer| answer.body_mut().read_to_string()).expect("a run");
        serde_json::from_str(&text).expect("a run")
    }

    fn points(&self, run: &str) -> u64 {
        let answer = ureq::get(format!("{}{}", self.origin(), path::run(run))).call();
        let text = answer.and_then(|mut answer| answer.body_mut().read_to_string()).expect("a run");
        serde_json::from_str::<RunDetail>(&text).expect("a run").summary.points
    }

    fn memory_mb(&self) -> f64 {
        self.status_mb("VmRSS:")
    }

    fn peak_mb(&self) -> f64 {
        self.status_mb("VmHWM:")
    }

    /// A line of the process's status, in MB; not a number where the system does not keep it.
    fn status_mb(&self, name: &str) -> f64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.running.id())).unwrap_or_default();
        let line = status.lines().find_map(|line| line.strip_prefix(name)).unwrap_or_default();
        let kib: Option<f64> = line.trim().trim_end_matches("kB").trim().parse().ok();
        kib.map_or(f64::NAN, |kib| kib * 1024.0 / 1e6)
    }

    /// Processor time so far, in s: fields 14 and 15 of its statistics, in hundredths of a second.
    fn processor_s(&self) -> f64 {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.running.id())).unwrap_or_default();
        let fields = stat.rsplit(')').next().unwrap_or_default().split_whitespace();
        fields.skip(11).take(2).filter_map(|field| field.parse::<f64>().ok()).sum::<f64>() / 100.0
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // It may have ended already.
        drop(self.running.kill());
        drop(self.running.wait());
    }
}
