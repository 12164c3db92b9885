//! Parser from text to cells.

use csv::{ReaderBuilder, StringRecord, Trim};

use super::problem::Problems;
use super::{CellAddress, MAX_BYTES, MAX_CELLS, TableRejection};
use planscope_core::action::{Action, ActionKind};

/// Maximum number of digits; nine digits fit in 32 bits.
const DIGITS: usize = 9;
/// Maximum number of characters quoted in an error message.
const QUOTED: usize = 40;

/// An action with its position.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Placed {
    /// Rank index; empty rows are not counted.
    pub rank: usize,
    pub address: CellAddress,
    pub action: Action,
}

/// Actions in order, by rank, with the problems found so far.
#[derive(Debug, Default)]
pub(super) struct Table {
    pub ranks: usize,
    pub actions: Vec<Placed>,
    pub notes: Vec<String>,
    pub problems: Problems,
    /// True if some cells are not readable. Missing actions may be in these cells.
    pub has_unread: bool,
}

/// Contents of a cell.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Token {
    Idle,
    Single(Action),
    /// Overlapped actions.
    Overlap(Vec<Action>),
    /// Send, receive or wait.
    Exchange,
    /// Gather, release, reduction or wait for sharded weights.
    Sharding,
}

pub(super) fn parse(text: &str) -> Result<Table, TableRejection> {
    if text.len() > MAX_BYTES {
        return Err(TableRejection::from_detail(format!("a table has at most {} MiB", MAX_BYTES >> 20)));
    }
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    // No cell holds a tab or a comma. Semicolons separate the actions of a cell.
    let delimiter = if text.contains('\t') && !text.contains(',') { b'\t' } else { b',' };
    let mut reader = ReaderBuilder::new();
    let reader = reader.delimiter(delimiter).has_headers(false).flexible(true).trim(Trim::All);
    let mut reader = reader.from_reader(text.as_bytes());
    let mut table = Table::default();
    let (mut cells, mut exchanges, mut shardings, mut empty) = (0, 0, 0, 0);
    let mut record = StringRecord::new();
    loop {
        match reader.read_record(&mut record) {
            Ok(true) => {}
            Ok(false) => break,
            Err(error) => return Err(TableRejection::from_detail(format!("not a table: {error}"))),
        }
        if record.iter().all(str::is_empty) {
            empty += 1;
            continue;
        }
        cells += record.len();
        if cells > MAX_CELLS {
            return Err(TableRejection::from_detail(format!("a table has at most {MAX_CELLS} cells")));
        }
        let row = record.position().map_or(0, |position| position.line() as u32);
        for (column, text) in record.iter().enumerate() {
            let address = CellAddress::new(row, column as u32 + 1);
            let rank = table.ranks;
            let placed = |action| Placed { rank, address, action };
            match token(text) {
                Ok(Token::Idle) => {}
                Ok(Token::Single(action)) => table.actions.push(placed(action)),
                Ok(Token::Overlap(actions)) => {
                    let last = actions.len().saturating_sub(1);
                    let overlapped = actions.into_iter().enumerate();
                    table.actions.extend(overlapped.map(|(index, action)| {
                        // The leading forward overlaps the backward. I and W of the same backward
                        // run in sequence.
                        placed(if index == 0 && last > 0 { action.overlapped() } else { action })
                    }));
                }
                Ok(Token::Exchange) => exchanges += 1,
                Ok(Token::Sharding) => shardings += 1,
                Err(detail) => {
                    table.has_unread = true;
                    table.problems.add(Some(address), detail);
                }
            }
        }
        table.ranks += 1;
    }
    if table.actions.is_empty() {
        table.problems.finish()?;
        return Err(TableRejection::from_detail("there is no action in the table".to_owned()));
    }
    let mut note = |count: usize, kind: &str| {
        if count > 0 {
            table.notes.push(format!("{count} {kind}"));
        }
    };
    note(exchanges, "sends, receives and waits left out: the simulation adds its own");
    note(shardings, "UNSHARD, RESHARD and REDUCE_GRAD, and waits for them, left out");
    note(empty, "empty rows left out");
    Ok(table)
}

/// Parses a cell.
fn token(text: &str) -> Result<Token, String> {
    if text.is_empty() {
        return Ok(Token::Idle);
    }
    let Some(pair) = text.strip_prefix('(') else { return single(text) };
    let wrong = || format!("{} is not of the form (4F4;3B0)OVERLAP_F_B", quoted(text));
    let (inside, kind) = pair.split_once(')').ok_or_else(wrong)?;
    if !kind.trim().starts_with("OVERLAP_") || !inside.contains(';') {
        return Err(wrong());
    }
    let mut actions = Vec::new();
    for part in inside.split(';') {
        match single(part.trim())? {
            Token::Single(action) => actions.push(action),
            Token::Exchange | Token::Sharding => {}
            Token::Idle | Token::Overlap(_) => return Err(wrong()),
        }
    }
    let (forwards, backwards): (Vec<&Action>, Vec<&Action>) =
        actions.iter().partition(|action| action.kind == ActionKind::Forward);
    let ([forward], 1..=2) = (&forwards[..], backwards.len()) else {
        return Err(format!("{} does not overlap a forward with a backward", quoted(text)));
    };
    if backwards.iter().any(|action| (action.microbatch, action.stage) == (forward.microbatch, forward.stage)) {
        return Err(format!("{} overlaps a forward with its own backward", quoted(text)));
    }
    Ok(Token::Overlap(actions))
}

/// Parses stage, action and microbatch.
fn single(text: &str) -> Result<Token, String> {
    if text.starts_with('-') {
        return Err(format!("{}: a stage cannot be negative", quoted(text)));
    }
    let (stage, rest) = split_number(text);
    if stage.is_empty() {
        return Err(format!("{} is not an action: stage, F, B, I or W, microbatch, like 2F0", quoted(text)));
    }
    let end = rest.find(|letter: char| !(letter.is_ascii_uppercase() || letter == '_')).unwrap_or(rest.len());
    let (name, microbatch) = rest.split_at(end);
    let kind = match name.strip_prefix("WAIT_").unwrap_or(name) {
        "F" | "B" | "I" | "W" if name.starts_with("WAIT_") => {
            return Err(format!("{}: there is no action {}", quoted(text), quoted(action_name(rest))));
        }
        "F" => Some(ActionKind::Forward),
        "B" => Some(ActionKind::Backward),
        "I" => Some(ActionKind::InputGrad),
        "W" => Some(ActionKind::WeightGrad),
        "SEND_F" | "RECV_F" | "SEND_B" | "RECV_B" => None,
        "UNSHARD" | "RESHARD" | "REDUCE_GRAD" => {
            return match split_number(microbatch).1 {
                "" => Ok(Token::Sharding),
                _ => Err(format!("{}: {name} is followed by nothing or by a microbatch", quoted(text))),
            };
        }
        _ => return Err(format!("{}: there is no action {}", quoted(text), quoted(action_name(rest)))),
    };
    if microbatch.starts_with('-') {
        return Err(format!("{}: a microbatch cannot be negative", quoted(text)));
    }
    let (number, rest) = split_number(microbatch);
    if number.is_empty() || !rest.is_empty() {
        return Err(format!("{}: {name} is followed by the number of a microbatch", quoted(text)));
    }
    let (stage, microbatch) = (read(stage)?, read(number)?);
    Ok(kind.map_or(Token::Exchange, |kind| Token::Single(Action::new(kind, stage, microbatch))))
}

fn split_number(text: &str) -> (&str, &str) {
    text.split_at(text.find(|digit: char| !digit.is_ascii_digit()).unwrap_or(text.len()))
}

/// Returns the text at the position of the action name.
fn action_name(rest: &str) -> &str {
    rest.split(|letter: char| letter.is_ascii_digit()).next().unwrap_or(rest)
}

fn read(digits: &str) -> Result<usize, String> {
    let digits = digits.trim_start_matches('0');
    if digits.len() > DIGITS {
        return Err(format!("{} is too large a number", quoted(digits)));
    }
    Ok(if digits.is_empty() { 0 } else { digits.parse().map_err(|_| format!("{} is no number", quoted(digits)))? })
}

/// Quotes a cell for messages: truncated, without non-printable characters.
fn quoted(text: &str) -> String {
    let mut displayed: String = text.chars().filter(|letter| !letter.is_control()).take(QUOTED).collect();
    if displayed.len() < text.len() {
        displayed.push_str("...");
    }
    format!("{displayed:?}")
}
