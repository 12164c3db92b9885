//! Request body as a blocking reader.

use std::io::{self, Read};

use axum::body::Bytes;
use tokio::sync::mpsc::{Receiver, Sender, channel};

/// Number of buffered chunks.
const WAITING: usize = 8;

/// Sender for body chunks, for the async handler.
pub(crate) type BodySender = Sender<Option<Bytes>>;

/// Reader for a body during upload. Returns an error if the sender is dropped and has not sent
/// `None`.
#[derive(Debug)]
pub(crate) struct BodyReader {
    pieces: Receiver<Option<Bytes>>,
    piece: Bytes,
    is_over: bool,
}

impl BodyReader {
    /// Creates a sender and a reader. The reader starts with the bytes in `received`.
    pub(crate) fn new(received: Bytes) -> (BodySender, Self) {
        let (sender, pieces) = channel(WAITING);
        (sender, Self { pieces, piece: received, is_over: false })
    }

    /// Returns the following bytes, or an empty buffer at the end.
    pub(crate) fn next_piece(&mut self) -> io::Result<Bytes> {
        while self.piece.is_empty() && !self.is_over {
            match self.pieces.blocking_recv() {
                Some(Some(piece)) => self.piece = piece,
                Some(None) => self.is_over = true,
                None => return Err(io::Error::new(io::ErrorKind::UnexpectedEof, "the body did not arrive")),
            }
        }
        Ok(std::mem::take(&mut self.piece))
    }
}

impl Read for BodyReader {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let mut piece = self.next_piece()?;
        let read = piece.split_to(piece.len().min(buffer.len()));
        buffer[..read.len()].copy_from_slice(&read);
        self.piece = piece;
        Ok(read.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_body_that_breaks_off_is_an_error() {
        let (sender, mut reader) = BodyReader::new(Bytes::from_static(b"ab"));
        sender.try_send(Some(Bytes::from_static(b"cde"))).unwrap();
        let mut three = [0; 3];
        reader.read_exact(&mut three).unwrap();
        assert_eq!(&three, b"abc");
        drop(sender);
        let mut rest = Vec::new();
        assert_eq!(reader.read_to_end(&mut rest).unwrap_err().kind(), io::ErrorKind::UnexpectedEof);
        assert_eq!(rest, b"de");

        let (sender, mut reader) = BodyReader::new(Bytes::new());
        sender.try_send(None).unwrap();
        assert_eq!(reader.read_to_end(&mut rest).unwrap(), 0);
    }
}
