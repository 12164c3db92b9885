//! Rehearsals that the server starts: this program again, which streams its log back into a run.

use std::collections::BTreeMap;
use std::fmt;
use std::net::SocketAddr;
use std::process::Stdio;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use tokio::io::AsyncWriteExt;
use tokio::process::{Child, Command};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, oneshot};

use crate::app::App;
use crate::health_command::on_this_machine;
use crate::live::{Live, Token};
use crate::rehearsal::Score;

/// Rehearsals at once: each is a process for every rank, and they take each other's precision.
const AT_ONCE: usize = 1;
/// Most ranks of one.
pub const MOST_RANKS: usize = 64;
/// Longest time of one.
pub const LONGEST: Duration = Duration::from_mins(10);
/// Exit code of what was ended, as shells have it.
const ENDED: i32 = 130;

/// Rehearsals at work.
#[derive(Clone)]
pub struct Rehearsals {
    places: Arc<Semaphore>,
    /// What ends each, by run.
    running: Arc<Mutex<BTreeMap<String, oneshot::Sender<()>>>>,
    /// Where the server is reached on this machine, once it listens.
    address: Arc<OnceLock<SocketAddr>>,
    token: Option<String>,
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

impl Rehearsals {
    /// For a server with that token, or none.
    pub fn new(token: Option<&str>) -> Self {
        Self {
            places: Arc::new(Semaphore::new(AT_ONCE)),
            running: Arc::default(),
            address: Arc::default(),
            token: token.map(str::to_owned),
        }
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
        command.args(["--speed", &speed.to_string(), "--json"]);
        command.env_clear().env("PLANSCOPE_RUN_TOKEN", run_token.as_str());
        if let Some(token) = &self.token {
            command.env("PLANSCOPE_TOKEN", token);
        }
        command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null()).kill_on_drop(true);
        let mut child = command.spawn()?;
        let mut plan = serde_json::to_vec(score)?;
        plan.push(b'\n');
        let (end, ended) = oneshot::channel();
        let number = run.to_owned();
        self.running().insert(number.clone(), end);
        let own = self.clone();
        tokio::spawn(async move {
            let input = child.stdin.take();
            let write = async {
                let mut input = input?;
                // Where it does not read its plan, its end says so.
                drop(input.write_all(&plan).await);
                // The input stays open: its end would end the rehearsal.
                Some(input)
            };
            let input = write.await;
            let told = attend(&mut child, ended, &app.live).await;
            drop(input);
            if let Some(exit_code) = told
                && let Err(error) = app.live.finish(&number, exit_code).await
            {
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

/// Waits for the end; returns the exit code where the rehearsal has not told it itself.
async fn attend(child: &mut Child, ended: oneshot::Receiver<()>, live: &Live) -> Option<i32> {
    let told = tokio::select! {
        status = child.wait() => {
            // What ends by itself tells its run so; what is killed cannot.
            return match status.ok().and_then(|status| status.code()) {
                Some(0 | 1 | 130) => None,
                code => Some(code.unwrap_or(ENDED)),
            };
        }
        _ = ended => ENDED,
        () = tokio::time::sleep(LONGEST) => ENDED,
        () = live.stopped() => ENDED,
    };
    if let Err(error) = child.kill().await {
        tracing::warn!("a rehearsal could not be ended: {error}");
    }
    Some(told)
}
