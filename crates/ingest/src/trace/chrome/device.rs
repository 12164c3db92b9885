//! Models of the devices: Kineto's `deviceProperties`.

use std::collections::BTreeMap;
use std::io::Read;

use super::super::Limits;
use super::job::close;
use crate::json::{JsonError, Scanner, Token};

/// Maximum number of devices.
const MAX_DEVICES: usize = 1024;

/// Parses the next value, and returns the models by device number. Other values than a list of objects give none.
pub(super) fn read<R: Read>(scanner: &mut Scanner<R>, limits: &Limits) -> Result<BTreeMap<String, String>, JsonError> {
    let mut models = BTreeMap::new();
    let depth = scanner.depth();
    if scanner.next()? != Token::BeginArray {
        close(scanner, depth)?;
        return Ok(models);
    }
    while scanner.next()? == Token::BeginObject {
        let (mut id, mut name) = (None, None);
        while let Token::Key(key) = scanner.next()? {
            let key = key.to_owned();
            let depth = scanner.depth();
            match (key.as_str(), scanner.next()?) {
                ("id", Token::Number(text) | Token::String(text)) => id = Some(text.to_owned()),
                ("name", Token::String(text)) => name = Some(text.chars().take(limits.name_bytes).collect()),
                _ => {}
            }
            close(scanner, depth)?;
        }
        if let (Some(id), Some(name), true) = (id, name, models.len() < MAX_DEVICES) {
            models.insert(id, name);
        }
    }
    close(scanner, depth)?;
    Ok(models)
}
