//! Event parser. Members may appear in any order.

use std::io::Read;

use super::super::collective::Collective;
use super::super::decimal::{Exact, nanos};
use crate::json::{JsonError, Scanner, Token};

/// Time value of an event.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum Time {
    #[default]
    Missing,
    /// Not a number, or out of range.
    Wrong,
    At(Exact),
}

/// Required event data. The struct is reused to avoid string allocations.
#[derive(Debug, Default)]
pub(super) struct Event {
    /// Phase as an ASCII character; zero if missing.
    pub(super) phase: u8,
    pub(super) category: String,
    pub(super) name: String,
    /// Process. Text identifiers have a quote prefix, so that "0" differs from 0.
    pub(super) pid: String,
    /// Thread, in the same form.
    pub(super) tid: String,
    /// Flow identifier, in the same form.
    pub(super) id: String,
    pub(super) time: Time,
    pub(super) duration: Time,
    /// `args.name` or `args.labels`.
    pub(super) text: String,
    /// `args.sort_index`.
    pub(super) sort_index: Option<i64>,
    /// `args.bytes`.
    pub(super) bytes: Option<u64>,
    /// Numeric counter arguments.
    pub(super) numbers: Vec<(String, f64)>,
    /// Collective data in the arguments.
    pub(super) collective: Collective,
}

/// Maximum process or thread identifier length in characters.
const ID_CHARS: usize = 200;
/// Maximum process or thread name length in characters.
pub(super) const TEXT_CHARS: usize = 500;
/// Maximum series per counter.
const MAX_SERIES: usize = 64;

/// Members used by the parser.
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
    /// Returns the display form of an identifier.
    pub(super) fn display_id(id: &str) -> &str {
        id.strip_prefix('"').unwrap_or(id)
    }

    /// Parses an event after its opening brace.
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

    /// Parses arguments after the opening brace.
    fn arguments<R: Read>(&mut self, scanner: &mut Scanner<R>) -> Result<(), JsonError> {
        /// Keys of collective arguments. Most events have none.
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
            // Arguments may precede the phase.
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
                        // AMD's profiler uses this name and writes numbers as text.
                        "size" => self.bytes = self.bytes.or_else(|| text.parse().ok()),
                        _ => {}
                    }
                    let value = text.parse::<f64>().ok().filter(|value| value.is_finite());
                    let has_capacity = matches!(self.phase, b'C' | 0) && self.numbers.len() < MAX_SERIES;
                    if let Some(value) = value.filter(|_| has_capacity) {
                        self.numbers.push((series.clone(), value));
                    }
                }
                _ => {}
            }
            close(scanner, depth)?;
        }
    }
}

/// Skips the remainder of an unused value.
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

/// Identifiers are numbers or text. Other values count as missing.
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

/// Some writers use text for times.
fn time(token: Token<'_>, power: i32) -> Time {
    match token {
        Token::Number(text) | Token::String(text) => nanos(text, power).map_or(Time::Wrong, Time::At),
        Token::Null => Time::Missing,
        _ => Time::Wrong,
    }
}
