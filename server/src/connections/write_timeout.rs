//! Closes connections if the peer does not read.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Sleep, sleep};

/// A stream with a timeout for writes without progress. Otherwise an unread response would occupy
/// connection and buffers indefinitely.
#[derive(Debug)]
pub(super) struct WriteTimeout<S> {
    stream: S,
    limit: Duration,
    /// Active while a write is pending.
    timer: Option<Pin<Box<Sleep>>>,
}

impl<S> WriteTimeout<S> {
    /// Sets the timeout for a write.
    pub(super) fn new(stream: S, limit: Duration) -> Self {
        Self { stream, limit, timer: None }
    }

    /// Resets the timer on progress. Returns an error if the timeout has expired.
    fn watched<T>(&mut self, context: &mut Context<'_>, polled: Poll<io::Result<T>>) -> Poll<io::Result<T>> {
        if polled.is_ready() {
            self.timer = None;
            return polled;
        }
        let limit = self.limit;
        let timer = self.timer.get_or_insert_with(|| Box::pin(sleep(limit)));
        ready!(timer.as_mut().poll(context));
        Poll::Ready(Err(io::Error::new(io::ErrorKind::TimedOut, "the other end does not read")))
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for WriteTimeout<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for WriteTimeout<S> {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let polled = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.watched(context, polled)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let polled = Pin::new(&mut self.stream).poll_flush(context);
        self.watched(context, polled)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let polled = Pin::new(&mut self.stream).poll_shutdown(context);
        self.watched(context, polled)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        pieces: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let polled = Pin::new(&mut self.stream).poll_write_vectored(context, pieces);
        self.watched(context, polled)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt, AsyncWriteExt, duplex};

    use super::*;

    const LIMIT: Duration = Duration::from_millis(500);

    #[tokio::test]
    async fn a_write_that_nobody_takes_fails() {
        let (near, _far) = duplex(4);
        let mut near = WriteTimeout::new(near, LIMIT / 10);
        let error = near.write_all(&[0; 5]).await.unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
    }

    #[tokio::test]
    async fn a_write_that_goes_on_slowly_does_not_fail() {
        let (near, mut far) = duplex(4);
        let mut near = WriteTimeout::new(near, LIMIT);
        let reading = async {
            // The total time exceeds the write timeout.
            for _ in 0..8 {
                tokio::time::sleep(LIMIT / 6).await;
                let mut four = [0; 4];
                far.read_exact(&mut four).await.unwrap();
            }
        };
        let writing = async {
            near.write_all(&[0; 32]).await.unwrap();
            near.flush().await.unwrap();
        };
        tokio::join!(writing, reading);
        assert!(near.timer.is_none(), "nothing waits");
    }
}
