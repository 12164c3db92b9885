//! Reads consecutive length-prefixed messages.

use std::io::Read;

use super::{Limits, TraceError};
use crate::protobuf::varint;

/// Maximum message size. Packets and nodes have at most kilobytes.
const MAX_BYTES: u64 = 16 << 20;

pub(super) struct Messages<R> {
    source: R,
    limit: u64,
    pub(super) offset: u64,
    /// Offset of the last message, including its length prefix.
    pub(super) start: u64,
    pub(super) read: u64,
    /// True if the file is truncated inside a message, or a read failed.
    pub(super) cut: bool,
    bytes: Vec<u8>,
}

impl<R: Read> Messages<R> {
    pub(super) fn new(source: R, limits: &Limits) -> Self {
        Self { source, limit: limits.bytes, offset: 0, start: 0, read: 0, cut: false, bytes: Vec::new() }
    }

    /// Returns the next message. `tag` is the byte before each length, if any.
    pub(super) fn next(&mut self, tag: Option<u8>) -> Result<Option<&[u8]>, TraceError> {
        self.start = self.offset;
        if let Some(tag) = tag {
            match self.byte()? {
                None => return Ok(None),
                Some(byte) if byte == tag => {}
                Some(byte) => return Err(self.broken(format!("byte {byte:#04x} begins no packet"))),
            }
        }
        let mut head = [0; 10];
        let mut used = 0;
        let length = loop {
            let Some(byte) = self.byte()? else {
                self.cut = used > 0 || tag.is_some();
                return Ok(None);
            };
            head[used] = byte;
            used += 1;
            if let Some((length, _)) = varint(&head[..used]).filter(|_| byte & 0x80 == 0) {
                break length;
            }
            if used == head.len() {
                return Err(self.broken("its length has more than 64 bits".to_owned()));
            }
        };
        if length > MAX_BYTES {
            return Err(self.broken(format!("it has {length} bytes; at most {MAX_BYTES} are read")));
        }
        self.bytes.clear();
        // The buffer grows with received data, so a large length alone allocates nothing.
        let outcome = (&mut self.source).take(length).read_to_end(&mut self.bytes);
        self.offset += self.bytes.len() as u64;
        if outcome.is_err() || (self.bytes.len() as u64) < length {
            self.cut = true;
            return Ok(None);
        }
        if self.offset > self.limit {
            return Err(TraceError::TooLarge { limit: self.limit });
        }
        self.read += 1;
        Ok(Some(&self.bytes))
    }

    /// Builds an error for the last message.
    pub(super) fn broken(&self, detail: String) -> TraceError {
        TraceError::Message { message: self.read + 1, offset: self.start, detail }
    }

    fn byte(&mut self) -> Result<Option<u8>, TraceError> {
        let mut byte = [0];
        match self.source.read_exact(&mut byte) {
            Ok(()) => {
                self.offset += 1;
                Ok(Some(byte[0]))
            }
            Err(error) if error.kind() == std::io::ErrorKind::UnexpectedEof => Ok(None),
            Err(_) if self.read > 0 => {
                self.cut = true;
                Ok(None)
            }
            Err(error) => Err(TraceError::Unreadable { offset: self.offset, detail: error.to_string() }),
        }
    }
}
