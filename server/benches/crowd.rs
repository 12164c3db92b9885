//! Trainers that send a log line per second, and watchers that follow their runs.

use std::collections::BTreeSet;
use std::io::{BufRead, BufReader, Write};
use std::net::TcpStream;
use std::sync::{Barrier, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use api::path;
use api::run::{CreatedRun, RunPoint};

/// Interval between two log lines from a trainer.
pub(crate) const STEP: Duration = Duration::from_secs(1);
/// Timeout for a sent point. A later point is considered lost.
const PATIENCE: Duration = Duration::from_secs(30);

pub(crate) struct Sent {
    pub(crate) run: CreatedRun,
    /// Send time per step.
    pub(crate) moments: Mutex<Vec<Instant>>,
}

#[derive(Default)]
pub(crate) struct Seen {
    /// Delay from send to receipt, per step.
    pub(crate) delays: Vec<Duration>,
    /// Rows received complete.
    pub(crate) rows: BTreeSet<u64>,
    /// Maximum gap between two events.
    pub(crate) silence: Duration,
}

/// Sends a line per step, then marks the run as ended.
pub(crate) fn train(origin: &str, sent: &Sent, first: Instant, steps: u64) {
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
        let response = agent.patch(url).header("Authorization", &bearer).send(line.as_bytes());
        response.expect("a line that is taken");
        offset += line.len();
    }
    let url = format!("{origin}{}", path::run_finish(&sent.run.run));
    let finish = agent.post(url).header("Authorization", &bearer).header("Content-Type", "application/json");
    finish.send(r#"{"exit_code": 0}"#).expect("an end that is taken");
}

/// Follows the stream for a run until all steps are received complete.
pub(crate) fn follow(address: &str, sent: &Sent, steps: u64, open: &Barrier) -> Seen {
    let mut stream = TcpStream::connect(address).expect("a server that listens");
    stream.set_read_timeout(Some(PATIENCE)).expect("a timeout");
    // HTTP/1.0 sends events without chunked encoding. Each watcher sends a distinct cookie, like a
    // separate browser.
    let cookie = stream.local_addr().expect("an address").port();
    let request = format!(
        "GET {} HTTP/1.0\r\nHost: localhost\r\nCookie: planscope_client={cookie}\r\n\r\n",
        path::run_events(&sent.run.run)
    );
    stream.write_all(request.as_bytes()).expect("a request");
    let mut reader = BufReader::new(stream);
    // The response head confirms that the stream is open.
    let mut head = String::new();
    let answered = reader.read_line(&mut head).is_ok();
    open.wait();
    assert!(answered && head.contains(" 200 "), "the server refuses a stream: {head:?}");
    let (mut seen, mut line, mut data, mut is_row) = (Seen::default(), String::new(), String::new(), false);
    let (mut known, mut last) = (0_u64, None::<Instant>);
    while (seen.rows.len() as u64) < steps {
        line.clear();
        // After a read timeout, missing points are considered lost.
        if reader.read_line(&mut line).unwrap_or(0) == 0 {
            break;
        }
        if let Some(text) = line.strip_prefix("data:") {
            text.trim().clone_into(&mut data);
        }
        // An open point has no identifier. The server sends it again once it is complete.
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
