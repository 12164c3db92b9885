//! Streams a rehearsal to a running server, as a sidecar streams the log of a training job.

use std::fs::File;
use std::io;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use anyhow::{Context, anyhow};
use api::path;
use api::run::{CreatedRun, FinishRun, NewRun};
use serde::Serialize;

use super::remote::{accepted, agent};

/// How long a server that does not answer is asked again.
const PATIENCE: Duration = Duration::from_secs(20);
const AGAIN: Duration = Duration::from_millis(500);

/// The run that a rehearsal is streamed to.
#[derive(Debug, Clone)]
pub struct Destination {
    /// Address of the server, for example "http://127.0.0.1:8080".
    pub server: String,
    /// Token of the server, where it has one.
    pub token: Option<String>,
    /// Identifier of the run.
    pub run: String,
    /// Token of the run.
    pub run_token: String,
}

impl Destination {
    /// Opens a run.
    pub fn open(server: &str, token: Option<&str>, run: &NewRun) -> anyhow::Result<Self> {
        let server = server.trim_end_matches('/').to_owned();
        let request = json(agent().post(format!("{server}{}", path::RUNS)), token);
        let answered = request.send(&serde_json::to_vec(run)?[..]);
        let mut answer = answered.with_context(|| format!("{server} does not answer"))?;
        let text = accepted(&mut answer).with_context(|| format!("{server} opens no run"))?;
        let created: CreatedRun = serde_json::from_str(&text).with_context(|| format!("{server} is no Planscope"))?;
        Ok(Self { server, token: token.map(str::to_owned), run: created.run, run_token: created.ingest_token })
    }

    /// The page that shows the run.
    pub fn page(&self) -> String {
        format!("{}{}", self.server, path::run_page(&self.run))
    }

    fn url(&self, path: &str) -> String {
        format!("{}{path}", self.server)
    }

    /// Says how the run ended, and why.
    fn finish(&self, exit_code: i32, reason: Option<String>) -> anyhow::Result<()> {
        let request = json(agent().post(self.url(&path::run_finish(&self.run))), Some(&self.run_token));
        accepted(&mut request.send(&serde_json::to_vec(&FinishRun { exit_code, reason })?[..])?)?;
        Ok(())
    }

    /// Stores the trace beside the run.
    fn trace(&self, trace: &File, packed: bool, bytes: u64) -> anyhow::Result<()> {
        let url = self.url(&format!("{}?run={}", path::TRACES, self.run));
        let kind = if packed { "application/gzip" } else { "application/json" };
        let mut request = agent().post(url).header("Content-Type", kind).header("Content-Length", bytes.to_string());
        if let Some(token) = self.token.as_deref().or(Some(&self.run_token)) {
            request = request.header("Authorization", format!("Bearer {token}"));
        }
        accepted(&mut request.send(trace)?)?;
        Ok(())
    }

    /// Appends to the log; returns its end by the server.
    fn append(&self, offset: u64, bytes: &[u8]) -> anyhow::Result<()> {
        let url = self.url(&format!("{}?offset={offset}", path::run_log(&self.run)));
        let request = agent().patch(url).header("Authorization", format!("Bearer {}", self.run_token));
        accepted(&mut request.send(bytes)?)?;
        Ok(())
    }
}

type Request = ureq::RequestBuilder<ureq::typestate::WithBody>;

fn json(request: Request, token: Option<&str>) -> Request {
    let request = request.header("Content-Type", "application/json");
    match token {
        Some(token) => request.header("Authorization", format!("Bearer {token}")),
        None => request,
    }
}

/// A log on its way to a server, which is not waited for.
#[derive(Debug)]
pub struct Upload {
    destination: Destination,
    lines: Option<Sender<String>>,
    sender: Option<JoinHandle<anyhow::Result<()>>>,
}

/// What came of an upload.
#[derive(Debug, Default, Clone, PartialEq, Eq, Serialize)]
pub struct Uploaded {
    /// What did not reach the server, in words.
    pub problems: Vec<String>,
}

impl Upload {
    /// Begins to send; `lost` is called once where the server cannot be reached any more.
    pub fn start(destination: Destination, lost: impl FnOnce() + Send + 'static) -> Self {
        let (lines, waiting) = channel();
        let own = destination.clone();
        let sender = thread::spawn(move || {
            let sent = send(&own, &waiting);
            if sent.is_err() {
                lost();
            }
            sent
        });
        Self { destination, lines: Some(lines), sender: Some(sender) }
    }

    /// Sends lines of the log when there is time.
    pub fn log(&self, lines: &str) -> io::Result<()> {
        if let Some(sender) = &self.lines {
            // Where the server is gone the end of the upload says so.
            drop(sender.send(lines.to_owned()));
        }
        Ok(())
    }

    /// Sends what is left, the trace, and that the run ended, with the reason where it is not its end.
    pub fn finish(mut self, exit_code: i32, reason: Option<String>, trace: Option<(File, bool, u64)>) -> Uploaded {
        drop(self.lines.take());
        let mut problems = Vec::new();
        let mut note = |what: &str, sent: anyhow::Result<()>| {
            if let Err(error) = sent {
                problems.push(format!("{what}: {error:#}"));
            }
        };
        if let Some(sender) = self.sender.take() {
            note(
                "the log was not sent",
                sender.join().unwrap_or_else(|_| Err(anyhow!("its thread stopped unexpectedly"))),
            );
        }
        if let Some((file, packed, bytes)) = trace {
            note("the trace was not stored", self.destination.trace(&file, packed, bytes));
        }
        note("the end was not told", self.destination.finish(exit_code, reason));
        Uploaded { problems }
    }
}

/// Sends lines as they come, in order, until there are no more.
fn send(destination: &Destination, waiting: &Receiver<String>) -> anyhow::Result<()> {
    let mut offset = 0;
    while let Ok(mut text) = waiting.recv() {
        text.extend(waiting.try_iter());
        let until = Instant::now() + PATIENCE;
        // The same bytes at the same place are stored once, so that asking again is safe.
        while let Err(error) = destination.append(offset, text.as_bytes()) {
            if Instant::now() > until {
                return Err(error);
            }
            thread::sleep(AGAIN);
        }
        offset += text.len() as u64;
    }
    Ok(())
}
