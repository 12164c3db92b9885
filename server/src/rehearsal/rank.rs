//! The process of one rank.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::process::ExitCode;
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::Duration;

use anyhow::{Context, bail};

use super::clock;
use super::control::{self, Content, FromRank, Greeting, Part, ToRank, hear, prompt};
use super::journal::Journal;
use super::post::Post;
use super::walk::Walk;

/// How often the conductor is told what has happened.
const NEWS: Duration = Duration::from_millis(50);
/// A caller that does not say who it is within that time is none of ours.
const PATIENCE: Duration = Duration::from_secs(5);

/// Is one rank of a rehearsal, for the conductor whose greeting stands on standard input.
pub fn run() -> anyhow::Result<ExitCode> {
    clock::sharpen();
    let mut line = String::new();
    std::io::stdin().lock().take(4096).read_line(&mut line)?;
    let greeting: Greeting =
        serde_json::from_str(&line).context("this command is started by `planscope rehearse`, not by people")?;
    let conductor = prompt(TcpStream::connect(greeting.conductor).context("the conductor does not answer")?)?;
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).context("cannot listen on loopback")?;
    let port = listener.local_addr()?.port();
    let journal = Arc::new(Journal::new(conductor.try_clone()?));
    let post = Arc::new(Post::new(Arc::clone(&journal)));
    journal.tell(&FromRank::Hello { rank: greeting.rank, secret: greeting.secret.clone(), port })?;
    let (orders, ordered) = mpsc::channel();
    {
        let journal = Arc::clone(&journal);
        thread::spawn(move || obey(conductor, &journal, &orders));
    }
    {
        let (post, secret) = (Arc::clone(&post), greeting.secret.clone());
        thread::spawn(move || let_in(&listener, &secret, &post));
    }
    {
        let post = Arc::clone(&post);
        thread::spawn(move || post.send_on());
    }
    {
        let journal = Arc::clone(&journal);
        thread::spawn(move || {
            // When the conductor is gone the other thread ends the process.
            while journal.flush().is_ok() {
                thread::sleep(NEWS);
            }
        });
    }
    Rank { greeting, journal, post, ports: Vec::new(), content: Content { divisor: 1, unknown: 0, most: 0 } }
        .follow(&ordered)
}

/// Reads what the conductor says; the process ends with the connection.
fn obey(conductor: TcpStream, journal: &Journal, orders: &mpsc::Sender<ToRank>) {
    let mut reader = BufReader::new(conductor);
    loop {
        match hear::<ToRank>(&mut reader) {
            Ok(Some(ToRank::Where)) => drop(journal.tell(&FromRank::At { index: journal.at() })),
            Ok(Some(ToRank::End)) => std::process::exit(0),
            Ok(Some(order)) => {
                if orders.send(order).is_err() {
                    std::process::exit(1);
                }
            }
            Ok(None) | Err(_) => std::process::exit(1),
        }
    }
}

/// Lets in ranks that know the secret.
fn let_in(listener: &TcpListener, secret: &str, post: &Arc<Post>) {
    for connection in listener.incoming().flatten() {
        let (post, secret) = (Arc::clone(post), secret.to_owned());
        thread::spawn(move || {
            if let Some(peer) = caller(&connection, &secret) {
                let connection = Arc::new(connection);
                post.accept(peer, Arc::clone(&connection));
                post.take_in(peer, &connection);
            }
        });
    }
}

/// Who calls, where it knows the secret.
fn caller(mut connection: &TcpStream, secret: &str) -> Option<u32> {
    connection.set_read_timeout(Some(PATIENCE)).ok()?;
    connection.set_nodelay(true).ok()?;
    let mut name = vec![0; 4 + secret.len()];
    connection.read_exact(&mut name).ok()?;
    connection.set_read_timeout(None).ok()?;
    let (rank, told) = name.split_at(4);
    (told == secret.as_bytes()).then(|| u32::from_le_bytes(rank.try_into().expect("four bytes")))
}

struct Rank {
    greeting: Greeting,
    journal: Arc<Journal>,
    post: Arc<Post>,
    ports: Vec<u16>,
    content: Content,
}

impl Rank {
    fn follow(mut self, orders: &mpsc::Receiver<ToRank>) -> anyhow::Result<ExitCode> {
        let mut prepared = None;
        loop {
            match orders.recv()? {
                ToRank::Peers { ports, content } => (self.ports, self.content) = (ports, content),
                ToRank::Part(part) => {
                    self.post.turn_to(part.iteration);
                    self.journal.arrive(0);
                    self.connect(&part)?;
                    self.journal.tell(&FromRank::Ready)?;
                    prepared = Some(part);
                }
                ToRank::Begin { at_ns } => {
                    let Some(part) = prepared.take() else { bail!("told to begin without a list") };
                    let walk = Walk { part: &part, content: self.content, post: &self.post, journal: &self.journal };
                    let walked = walk.run(at_ns);
                    self.journal.flush()?;
                    let word = match walked {
                        Ok(()) => FromRank::Done { processor_ns: clock::processor_ns() },
                        Err((index, why)) => FromRank::Fault(match part.actions.get(index) {
                            Some(action) => format!("{}: {why}", super::standstill::words(index, action)),
                            None => why,
                        }),
                    };
                    self.journal.tell(&word)?;
                }
                ToRank::Where | ToRank::End => {}
            }
        }
    }

    /// Opens a connection to every rank that is sent something and has none yet.
    fn connect(&self, part: &Part) -> anyhow::Result<()> {
        for action in
            part.actions.iter().filter(|action| action.action == planner::execution_plan::PlanActionKind::Isend)
        {
            let Some(peer) = action.transfer.map(|transfer| transfer.peer) else { continue };
            if self.post.reaches(peer) {
                continue;
            }
            let Some(&port) = self.ports.get(peer as usize) else { bail!("there is no rank {peer}") };
            let mut connection = prompt(TcpStream::connect((Ipv4Addr::LOCALHOST, port))?)?;
            connection.write_all(&self.greeting.rank.to_le_bytes())?;
            connection.write_all(self.greeting.secret.as_bytes())?;
            let connection = Arc::new(connection);
            self.post.connect(peer, Arc::clone(&connection));
            let post = Arc::clone(&self.post);
            thread::spawn(move || post.take_word(peer, &connection));
        }
        Ok(())
    }
}

/// Greets a rank on its standard input.
pub(super) fn greet(input: impl Write, greeting: &Greeting) -> std::io::Result<()> {
    control::tell(input, greeting)
}
