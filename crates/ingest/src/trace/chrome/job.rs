//! Job information of the traced rank: Kineto's `distributedInfo`.

use std::io::Read;

use super::super::table::{Distributed, Group};
use crate::json::{JsonError, Scanner, Token};

/// Maximum number of groups, and of ranks per group.
const MAX_RANKS: usize = 100_000;

/// Parses the next value; `None` if it is not an object.
pub(super) fn read<R: Read>(scanner: &mut Scanner<R>) -> Result<Option<Distributed>, JsonError> {
    let depth = scanner.depth();
    if scanner.next()? != Token::BeginObject {
        close(scanner, depth)?;
        return Ok(None);
    }
    let mut job = Distributed::default();
    loop {
        let key = match scanner.next()? {
            Token::Key(key) => key.to_owned(),
            _ => return Ok(Some(job)),
        };
        let depth = scanner.depth();
        match (key.as_str(), scanner.next()?) {
            ("rank", Token::Number(text) | Token::String(text)) => job.rank = text.parse().ok(),
            ("world_size", Token::Number(text) | Token::String(text)) => job.world_size = text.parse().ok(),
            ("backend", Token::String(text)) => job.backend = Some(text.to_owned()),
            ("pg_config", Token::BeginArray) => groups(scanner, &mut job.groups)?,
            _ => {}
        }
        close(scanner, depth)?;
    }
}

/// Parses groups after the opening bracket.
fn groups<R: Read>(scanner: &mut Scanner<R>, groups: &mut Vec<Group>) -> Result<(), JsonError> {
    while scanner.next()? == Token::BeginObject {
        let mut group = Group::default();
        while let Token::Key(key) = scanner.next()? {
            let key = key.to_owned();
            let depth = scanner.depth();
            match (key.as_str(), scanner.next()?) {
                ("pg_name", Token::String(text) | Token::Number(text)) => text.clone_into(&mut group.name),
                ("pg_desc", Token::String(text)) => group.description = Some(text.to_owned()),
                ("pg_size", Token::Number(text) | Token::String(text)) => group.size = text.parse().ok(),
                ("ranks", Token::BeginArray) => {
                    while let Token::Number(text) = scanner.next()? {
                        if let (Ok(rank), true) = (text.parse(), group.ranks.len() < MAX_RANKS) {
                            group.ranks.push(rank);
                        }
                    }
                }
                // On-demand profiling writes the list as text: "[0, 1]", or "{}" if empty.
                ("ranks", Token::String(text)) => {
                    let ranks = text.split(|c: char| !c.is_ascii_digit()).filter_map(|rank| rank.parse::<u32>().ok());
                    group.ranks.extend(ranks.take(MAX_RANKS));
                }
                _ => {}
            }
            close(scanner, depth)?;
        }
        if groups.len() < MAX_RANKS {
            groups.push(group);
        }
    }
    Ok(())
}

/// Skips the remainder of an unused value.
pub(super) fn close<R: Read>(scanner: &mut Scanner<R>, depth: usize) -> Result<(), JsonError> {
    while scanner.depth() > depth {
        if scanner.next()? == Token::End {
            break;
        }
    }
    Ok(())
}
