//! An event, member by member in any order.

use std::io::Read;

use super::super::collective::Collective;
use super::super::decimal::{Exact, nanos};
use crate::json::{JsonError, Scanner, Token};

/// A time of an event.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum Time {
    /// There is none.
    #[default]
    Missing,
    /// It is no number, or beyond the range.
    Wrong,
    /// It is this.
    At(Exact),
}

/// What is needed of an event. One is filled again and again, so that its texts keep their memory.
#[derive(Debug, Default)]
pub(super) struct Event {
    /// The phase, one ASCII character; zero where there is none.
    pub(super) phase: u8,
    /// The category.
    pub(super) category: String,
    /// The name.
    pub(super) name: String,
    /// The process: a quote stands before texts, so that "0" is another one than 0.
    pub(super) pid: String,
    /// The thread, likewise.
    pub(super) tid: String,
    /// The identifier of an arrow, likewise.
    pub(super) id: String,
    /// When.
    pub(super) time: Time,
    /// How long.
    pub(super) duration: Time,
    /// `args.name` or `args.labels`.
    pub(super) text: String,
    /// `args.sort_index`.
    pub(super) sort_index: Option<i64>,
    /// `args.bytes`.
    pub(super) bytes: Option<u64>,
    /// Numbers among the arguments of a counter.
    pub(super) numbers: Vec<(String, f64)>,
    /// What the arguments say of a message.
    pub(super) collective: Collective,
}

/// Longest identifier of a process or thread, in characters.
const ID_CHARS: usize = 200;
/// Longest name of a process or thread, in characters.
pub(super) const TEXT_CHARS: usize = 500;
/// Most series of a counter.
const MAX_SERIES: usize = 64;

/// A member that is needed.
#[derive(Debug, Clone, Copy)]
enum Member {
    Phase,
    Category,
    Name,
    Process,
    Thread,
    Id,
    Time,
    Duration,
    Arguments,
    Other,
}

impl Event {
    /// What people are shown of an identifier.
    pub(super) fn shown(id: &str) -> &str {
        id.strip_prefix('"').unwrap_or(id)
    }

    /// Reads an event whose brace is open.
    pub(super) fn read<R: Read>(&mut self, scanner: &mut Scanner<R>, power: i32) -> Result<(), JsonError> {
        self.clear();
        loop {
            let member = match scanner.next()? {
                Token::Key(key) => match key {
                    "ph" => Member::Phase,
                    "cat" => Member::Category,
                    "name" => Member::Name,
                    "pid" => Member::Process,
                    "tid" => Member::Thread,
                    "id" => Member::Id,
                    "ts" => Member::Time,
                    "dur" => Member::Duration,
                    "args" => Member::Arguments,
                    _ => Member::Other,
                },
                _ => return Ok(()),
            };
            if let Member::Other = member {
                scanner.skip()?;
                continue;
            }
            let depth = scanner.depth();
            let token = scanner.next()?;
            match (member, token) {
                (Member::Arguments, Token::BeginObject) => {
                    self.arguments(scanner)?;
                    continue;
                }
                (Member::Phase, Token::String(text)) => {
                    self.phase = text.as_bytes().first().copied().filter(u8::is_ascii).unwrap_or_default();
                }
                (Member::Category, Token::String(text)) => set(&mut self.category, "", text),
                (Member::Name, Token::String(text) | Token::Number(text)) => set(&mut self.name, "", text),
                (Member::Process, token) => identify(&mut self.pid, token),
                (Member::Thread, token) => identify(&mut self.tid, token),
                (Member::Id, token) => identify(&mut self.id, token),
                (Member::Time, token) => self.time = time(token, power),
                (Member::Duration, token) => self.duration = time(token, power),
                _ => {}
            }
            close(scanner, depth)?;
        }
    }

    fn clear(&mut self) {
        self.phase = 0;
        for text in [&mut self.category, &mut self.name, &mut self.pid, &mut self.tid, &mut self.id, &mut self.text] {
            text.clear();
        }
        (self.time, self.duration) = (Time::Missing, Time::Missing);
        (self.sort_index, self.bytes) = (None, None);
        self.numbers.clear();
        self.collective = Collective::default();
    }

    /// Reads arguments whose brace is open.
    fn arguments<R: Read>(&mut self, scanner: &mut Scanner<R>) -> Result<(), JsonError> {
        /// Arguments of a message are told by their first letters; most events have none of them.
        const MESSAGE: [&str; 11] = [
            "Collective name",
            "dtype",
            "In msg nelems",
            "Out msg nelems",
            "Group size",
            "Process Group Name",
            "Process Group Description",
            "Process Group Ranks",
            "Src Rank",
            "Dst Rank",
            "Seq",
        ];
        let mut series = String::new();
        loop {
            let (message, known) = match scanner.next()? {
                Token::Key(key) => {
                    set(&mut series, "", key);
                    (MESSAGE.contains(&key), matches!(key, "name" | "labels" | "sort_index" | "bytes" | "size"))
                }
                _ => return Ok(()),
            };
            // Arguments may stand before the phase.
            if !(message || known || matches!(self.phase, b'C' | 0)) {
                scanner.skip()?;
                continue;
            }
            let depth = scanner.depth();
            match scanner.next()? {
                Token::String(text) | Token::Number(text) if message => {
                    self.collective.set(&series, text);
                }
                Token::String(text) if matches!(series.as_str(), "name" | "labels") => set(&mut self.text, "", text),
                Token::Number(text) | Token::String(text) => {
                    match series.as_str() {
                        "sort_index" => self.sort_index = text.parse().ok(),
                        "bytes" => self.bytes = text.parse().ok(),
                        // AMD's profiler writes numbers as text, and this name.
                        "size" => self.bytes = self.bytes.or_else(|| text.parse().ok()),
                        _ => {}
                    }
                    let value = text.parse::<f64>().ok().filter(|value| value.is_finite());
                    let room = matches!(self.phase, b'C' | 0) && self.numbers.len() < MAX_SERIES;
                    if let Some(value) = value.filter(|_| room) {
                        self.numbers.push((series.clone(), value));
                    }
                }
                _ => {}
            }
            close(scanner, depth)?;
        }
    }
}

/// Passes over the rest of a value that was opened and is not needed.
fn close<R: Read>(scanner: &mut Scanner<R>, depth: usize) -> Result<(), JsonError> {
    while scanner.depth() > depth {
        if scanner.next()? == Token::End {
            break;
        }
    }
    Ok(())
}

fn set(slot: &mut String, prefix: &str, text: &str) {
    slot.clear();
    slot.push_str(prefix);
    slot.push_str(text);
}

/// Identifiers are numbers or texts; anything else is one that has no name.
fn identify(slot: &mut String, token: Token<'_>) {
    match token {
        Token::Number(text) => set(slot, "", text),
        Token::String(text) => {
            slot.clear();
            slot.push('"');
            slot.extend(text.chars().take(ID_CHARS));
        }
        Token::BeginObject | Token::BeginArray => set(slot, "", "(object)"),
        _ => set(slot, "", "(none)"),
    }
}

/// Some write times as text.
fn time(token: Token<'_>, power: i32) -> Time {
    match token {
        Token::Number(text) | Token::String(text) => nanos(text, power).map_or(Time::Wrong, Time::At),
        Token::Null => Time::Missing,
        _ => Time::Wrong,
    }
}
