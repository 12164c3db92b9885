//! The processes of a rehearsal.

use std::io::{self, BufReader};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::Sender;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use data_encoding::HEXLOWER;

use super::control::{FromRank, Greeting, ToRank, hear, prompt, tell};
use super::rank::greet;

/// How long processes may take to start and call.
const START: Duration = Duration::from_secs(30);
/// How long a caller may take to say who it is.
const CALL: Duration = Duration::from_secs(5);
/// Between looks at who has called.
const LOOK: Duration = Duration::from_millis(2);

/// What happens while ranks are at work.
#[derive(Debug)]
pub(super) enum Event {
    /// A rank says something.
    Said(usize, FromRank),
    /// The connection to a rank has ended.
    Gone(usize),
    /// Somebody wants it to end.
    Interrupted,
}

/// All ranks. They are killed when this is dropped, and end by themselves when this process does.
#[derive(Debug)]
pub(super) struct Crew {
    children: Vec<Child>,
    connections: Vec<TcpStream>,
    /// Where each listens.
    pub(super) ports: Vec<u16>,
}

impl Crew {
    /// Starts a process for every rank and waits until all have called.
    pub(super) fn start(program: &Path, ranks: usize, events: &Sender<Event>) -> anyhow::Result<Self> {
        let mut bytes = [0; 16];
        getrandom::fill(&mut bytes).context("the system gives no random numbers")?;
        let secret = HEXLOWER.encode(&bytes);
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).context("cannot listen on loopback")?;
        let conductor = listener.local_addr()?;
        let mut crew = Self { children: Vec::with_capacity(ranks), connections: Vec::new(), ports: vec![0; ranks] };
        for rank in 0..ranks as u32 {
            let mut child = child(program).with_context(|| format!("cannot start rank {rank}"))?;
            let input = child.stdin.take();
            crew.children.push(child);
            if let Some(input) = input {
                greet(input, &Greeting { rank, conductor, secret: secret.clone() })?;
            }
        }
        crew.meet(&listener, &secret, events)?;
        Ok(crew)
    }

    /// Takes the calls of all ranks.
    fn meet(&mut self, listener: &TcpListener, secret: &str, events: &Sender<Event>) -> anyhow::Result<()> {
        listener.set_nonblocking(true)?;
        let mut called: Vec<Option<TcpStream>> = self.children.iter().map(|_| None).collect();
        let until = Instant::now() + START;
        while called.iter().any(Option::is_none) {
            match listener.accept() {
                Ok((connection, _)) => {
                    if let Some((rank, port, connection, reader)) = hello(connection, secret)
                        && let Some(slot) = called.get_mut(rank).filter(|slot| slot.is_none())
                    {
                        *slot = Some(connection);
                        self.ports[rank] = port;
                        let events = events.clone();
                        thread::spawn(move || listen(rank, reader, &events));
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    for (rank, child) in self.children.iter_mut().enumerate() {
                        if let Some(status) = child.try_wait()? {
                            bail!("rank {rank} ended before it called: {status}");
                        }
                    }
                    if Instant::now() > until {
                        let missing = called.iter().filter(|slot| slot.is_none()).count();
                        bail!("{missing} ranks did not call within {} s", START.as_secs());
                    }
                    thread::sleep(LOOK);
                }
                Err(error) => return Err(error).context("cannot take calls on loopback"),
            }
        }
        self.connections = called.into_iter().flatten().collect();
        Ok(())
    }

    /// Tells one rank something.
    pub(super) fn tell(&self, rank: usize, order: &ToRank) -> anyhow::Result<()> {
        tell(&self.connections[rank], order).with_context(|| format!("rank {rank} is gone"))
    }

    /// Tells all ranks the same.
    pub(super) fn tell_all(&self, order: &ToRank) -> anyhow::Result<()> {
        (0..self.connections.len()).try_for_each(|rank| self.tell(rank, order))
    }

    /// How a rank ended, where it did.
    pub(super) fn ending(&mut self, rank: usize) -> String {
        // The connection ends a moment before the process.
        for _ in 0..50 {
            match self.children[rank].try_wait() {
                Ok(Some(status)) => return status.to_string(),
                Ok(None) => thread::sleep(LOOK),
                Err(error) => return error.to_string(),
            }
        }
        "it closed its connection".to_owned()
    }
}

impl Drop for Crew {
    fn drop(&mut self) {
        for child in &mut self.children {
            // It may have ended already.
            drop(child.kill());
        }
        for child in &mut self.children {
            drop(child.wait());
        }
    }
}

fn child(program: &Path) -> io::Result<Child> {
    let mut command = Command::new(program);
    command.arg("rehearse-rank").stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::inherit());
    // Tokens are not for ranks.
    command.env_clear();
    // Ctrl-C in a terminal is for the conductor, which then ends the ranks.
    #[cfg(unix)]
    std::os::unix::process::CommandExt::process_group(&mut command, 0);
    command.spawn()
}

/// Who calls and where it listens, where it knows the secret.
fn hello(connection: TcpStream, secret: &str) -> Option<(usize, u16, TcpStream, BufReader<TcpStream>)> {
    connection.set_nonblocking(false).ok()?;
    connection.set_read_timeout(Some(CALL)).ok()?;
    let connection = prompt(connection).ok()?;
    let mut reader = BufReader::new(connection.try_clone().ok()?);
    let word = hear::<FromRank>(&mut reader).ok()??;
    connection.set_read_timeout(None).ok()?;
    match word {
        FromRank::Hello { rank, secret: told, port } if told == secret => {
            Some((rank as usize, port, connection, reader))
        }
        _ => None,
    }
}

/// Hands on what a rank says.
fn listen(rank: usize, mut reader: BufReader<TcpStream>, events: &Sender<Event>) {
    while let Ok(Some(word)) = hear(&mut reader) {
        if events.send(Event::Said(rank, word)).is_err() {
            return;
        }
    }
    // Nobody listens any more where the rehearsal is over.
    drop(events.send(Event::Gone(rank)));
}
