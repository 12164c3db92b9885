//! Rehearsals that the server starts: this program again, which streams its log back into a run.

use std::collections::BTreeMap;
use std::fmt;
use std::net::SocketAddr;
use std::process::Stdio;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use api::run::RunState;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::process::{Child, ChildStderr, ChildStdin, Command};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, oneshot};

use crate::app::App;
use crate::health_command::on_this_machine;
use crate::live::{Live, LogRefusal, Token};
use crate::rehearsal::{Score, remark};

/// Rehearsals at once: each is a process for every rank, and they take each other's precision.
const AT_ONCE: usize = 1;
/// Most ranks of one.
pub const MOST_RANKS: usize = 64;
/// Longest time of one.
pub const LONGEST: Duration = Duration::from_mins(10);
/// Exit code of what was ended, as shells have it.
const ENDED: i32 = 130;
/// Exit code of what ended without one: a signal took it.
pub(crate) const LOST: i32 = 137;
/// How long one that is asked to end may take to send what it has, its trace among it.
const LAST_WORDS: Duration = Duration::from_secs(15);
/// How long its complaints are waited for when it has ended.
const COMPLAINTS: Duration = Duration::from_secs(2);
/// What is kept of what it says on standard error, in bytes: the end of it.
const COMPLAINT_BYTES: usize = 2000;

/// Rehearsals at work.
#[derive(Clone)]
pub struct Rehearsals {
    places: Arc<Semaphore>,
    /// What ends each, by run.
    running: Arc<Mutex<BTreeMap<String, oneshot::Sender<()>>>>,
    /// Where the server is reached on this machine, once it listens.
    address: Arc<OnceLock<SocketAddr>>,
}

impl fmt::Debug for Rehearsals {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Rehearsals").field("address", &self.address).finish_non_exhaustive()
    }
}

/// A place among those that rehearse.
#[derive(Debug)]
pub struct Place(OwnedSemaphorePermit, SocketAddr);

/// Why there is no place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NoPlace {
    /// So many are at work.
    Full(usize),
    /// The server listens nowhere.
    Unreachable,
}

impl Default for Rehearsals {
    fn default() -> Self {
        Self::new()
    }
}

impl Rehearsals {
    /// None is at work yet.
    pub fn new() -> Self {
        Self { places: Arc::new(Semaphore::new(AT_ONCE)), running: Arc::default(), address: Arc::default() }
    }

    /// The server listens from now on.
    pub fn listen(&self, address: SocketAddr) {
        // It listens once.
        let _ = self.address.set(on_this_machine(address));
    }

    /// A place, if one is free.
    pub fn place(&self) -> Result<Place, NoPlace> {
        let address = self.address.get().copied().ok_or(NoPlace::Unreachable)?;
        let permit = Arc::clone(&self.places).try_acquire_owned().map_err(|_| NoPlace::Full(AT_ONCE))?;
        Ok(Place(permit, address))
    }

    /// Starts a rehearsal that streams into a run, and looks after it until it ends.
    pub fn start(
        &self,
        place: Place,
        score: &Score,
        speed: f64,
        run: &str,
        run_token: &Token,
        app: Arc<App>,
    ) -> std::io::Result<()> {
        let Place(permit, address) = place;
        let mut command = Command::new(std::env::current_exe()?);
        command.args(["rehearse", "-", "--until-input-ends", "--to", &format!("http://{address}"), "--run", run]);
        command.args(["--speed", &speed.to_string()]);
        // It has the token of its run alone.
        command.env_clear().env("PLANSCOPE_RUN_TOKEN", run_token.as_str());
        command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::piped()).kill_on_drop(true);
        let mut child = command.spawn()?;
        let mut plan = serde_json::to_vec(score)?;
        plan.push(b'\n');
        let (end, ended) = oneshot::channel();
        let number = run.to_owned();
        self.running().insert(number.clone(), end);
        let own = self.clone();
        tokio::spawn(async move {
            let complaints = tokio::spawn(complaints(child.stderr.take()));
            let mut input = child.stdin.take();
            if let Some(input) = &mut input {
                // Where it does not read its plan, its end says so.
                drop(input.write_all(&plan).await);
            }
            let end = match attend(&mut child, input, ended, &app.live).await {
                End::Told if !is_told(&app, &number).await => {
                    End::Mute { exit_code: LOST, reason: "ended without a word" }
                }
                end => end,
            };
            // Its pipe ends with it and with its ranks; neither is waited for long.
            let said = tokio::time::timeout(COMPLAINTS, complaints).await;
            let said = said.ok().and_then(Result::ok).unwrap_or_default();
            let told = match end {
                End::Told => Ok(()),
                End::Alone { exit_code, reason } => app.live.finish(&number, exit_code, Some(reason)).await,
                End::Mute { exit_code, reason } => {
                    tell(&app.live, &number, exit_code, &format!("{reason}{said}")).await
                }
            };
            if let Err(error) = told {
                tracing::warn!(run = number, "the end of a rehearsal was not stored: {error:?}");
            }
            own.running().remove(&number);
            drop(permit);
        });
        Ok(())
    }

    /// Ends a rehearsal; false where there is none of that run.
    pub fn end(&self, run: &str) -> bool {
        // It may have ended in this moment.
        self.running().remove(run).is_some_and(|end| end.send(()).is_ok())
    }

    fn running(&self) -> MutexGuard<'_, BTreeMap<String, oneshot::Sender<()>>> {
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// How a rehearsal came to its end, and what its run has yet to be told.
#[derive(Debug)]
enum End {
    /// It told its run so itself.
    Told,
    /// It told its run that it was ended, but not why.
    Alone { exit_code: i32, reason: &'static str },
    /// It told nothing.
    Mute { exit_code: i32, reason: &'static str },
}

/// Whether the run knows its end. Where that cannot be read, nothing can be written either.
async fn is_told(app: &App, run: &str) -> bool {
    let read = app.store.reader().run(run, app.clock.now()).await;
    read.map_or(true, |detail| matches!(detail.summary.state, RunState::Ended | RunState::Crashed))
}

/// Waits for the end. Its input stays open until then: the end of it asks the rehearsal to end.
async fn attend(child: &mut Child, input: Option<ChildStdin>, ended: oneshot::Receiver<()>, live: &Live) -> End {
    let reason = tokio::select! {
        status = child.wait() => {
            return own_end(status.ok().and_then(|status| status.code()));
        }
        _ = ended => None,
        () = tokio::time::sleep(LONGEST) => Some("was ended: ten minutes are the longest that one may take here"),
        () = live.stopped() => {
            // Nobody would hear its last words.
            kill(child).await;
            return End::Mute { exit_code: ENDED, reason: "was ended with the server" };
        }
    };
    drop(input);
    let Ok(status) = tokio::time::timeout(LAST_WORDS, child.wait()).await else {
        kill(child).await;
        return End::Mute { exit_code: ENDED, reason: reason.unwrap_or("was ended by somebody") };
    };
    match (own_end(status.ok().and_then(|status| status.code())), reason) {
        (End::Told, Some(reason)) => End::Alone { exit_code: ENDED, reason },
        (end, _) => end,
    }
}

/// The end of one that ended by itself, with that exit code.
const fn own_end(exit_code: Option<i32>) -> End {
    match exit_code {
        Some(0 | 1 | ENDED) => End::Told,
        Some(exit_code) => End::Mute { exit_code, reason: "did not begin" },
        None => End::Mute { exit_code: LOST, reason: "was killed" },
    }
}

async fn kill(child: &mut Child) {
    if let Err(error) = child.kill().await {
        tracing::warn!("a rehearsal could not be ended: {error}");
    }
}

/// The end of what a rehearsal says on standard error, in a line; empty where it says nothing.
async fn complaints(from: Option<ChildStderr>) -> String {
    let Some(mut from) = from else { return String::new() };
    let (mut kept, mut piece) = (Vec::new(), vec![0; 4096]);
    // A pipe that breaks has ended.
    while let Ok(read @ 1..) = from.read(&mut piece).await {
        kept.extend_from_slice(&piece[..read]);
        if kept.len() > 2 * COMPLAINT_BYTES {
            kept.drain(..kept.len() - COMPLAINT_BYTES);
        }
    }
    let text = String::from_utf8_lossy(&kept);
    let lines = text.lines().map(|line| line.trim_start_matches("planscope: ")).filter(|line| !line.is_empty());
    let said: Vec<&str> = lines.collect();
    if said.is_empty() { String::new() } else { format!(": {}", said.join("; ")) }
}

/// Writes the reason to the end of the run's log, and that it ended.
async fn tell(live: &Live, run: &str, exit_code: i32, reason: &str) -> Result<(), LogRefusal> {
    let end = live.end_of_log(run, None).await?;
    live.append(run, Some(end.file), end.stored, &remark(reason).into()).await?;
    live.finish(run, exit_code, Some(reason)).await
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    #[tokio::test]
    async fn the_end_of_what_is_said_is_kept() {
        let said = |script: &str| {
            let mut command = Command::new("sh");
            let mut child = command.args(["-c", script]).stderr(Stdio::piped()).spawn().unwrap();
            let from = child.stderr.take();
            async move {
                let said = complaints(from).await;
                drop(child.wait().await);
                said
            }
        };
        assert_eq!(said("true").await, "");
        assert_eq!(said("echo 'planscope: no' >&2; echo >&2; echo why >&2").await, ": no; why");
        let long = said("i=0; while [ $i -lt 3000 ]; do echo line $i >&2; i=$((i + 1)); done").await;
        assert!(long.ends_with("; line 2999") && long.len() < 3 * COMPLAINT_BYTES, "{}", long.len());
    }
}
