//! Terminates open requests and responses when their token or session becomes invalid.

use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};

use axum::body::{Body, Bytes};
use axum::http::header::CONTENT_TYPE;
use axum::response::Response;
use hyper::body::{Body as _, Frame, SizeHint};

use super::Access;
use super::known::BELIEVED;
use crate::store::StoreError;

/// Credential of an actor, as a hash.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Credential {
    Token([u8; 32]),
    /// Session opened with a named token.
    Session([u8; 32]),
    /// Session opened with the server token.
    ServerSession([u8; 32]),
}

impl Credential {
    async fn is_good(&self, access: &Access) -> Result<bool, StoreError> {
        let (reader, now) = (access.store.reader(), access.clock.now());
        match self {
            Self::Token(hash) => Ok(reader.token_holder(hash).await?.is_some()),
            Self::Session(hash) => Ok(reader.session_holder(hash, now).await?.is_some()),
            Self::ServerSession(hash) => reader.is_server_session(hash, now).await,
        }
    }
}

/// Ends request and response bodies together with a credential.
pub(super) struct Watched {
    access: Arc<Access>,
    credential: Credential,
    /// True if the request body was terminated.
    is_ended: Arc<AtomicBool>,
}

impl Watched {
    pub(super) fn new(access: &Arc<Access>, credential: Credential) -> Self {
        Self { access: Arc::clone(access), credential, is_ended: Arc::default() }
    }

    /// Returns a request body that fails when the credential becomes invalid.
    pub(super) fn request(&self, body: Body) -> Body {
        if body.is_end_stream() {
            return body;
        }
        self.body(body, false, Arc::clone(&self.is_ended))
    }

    /// Wraps a response body of unknown length. When the credential becomes invalid, an event
    /// stream closes normally and other bodies fail.
    pub(super) fn response(&self, response: Response) -> Response {
        if response.body().size_hint().exact().is_some() {
            return response;
        }
        let kind = response.headers().get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok());
        let is_events = kind.is_some_and(|kind| kind.starts_with("text/event-stream"));
        response.map(|body| self.body(body, is_events, Arc::default()))
    }

    /// Returns true if the request body was terminated.
    pub(super) fn is_ended(&self) -> bool {
        self.is_ended.load(Ordering::Relaxed)
    }

    fn body(&self, body: Body, is_quiet: bool, is_ended: Arc<AtomicBool>) -> Body {
        let ended = Box::pin(until_ended(Arc::clone(&self.access), self.credential));
        Body::new(Ending { body, ended, is_quiet, is_ended })
    }
}

/// Resolves when the credential becomes invalid. Revocations on the command line are detected
/// within seconds.
async fn until_ended(access: Arc<Access>, credential: Credential) {
    let mut news = access.ended.subscribe();
    loop {
        // The sender lives as long as `access`.
        let _ = tokio::time::timeout(BELIEVED, news.changed()).await;
        match credential.is_good(&access).await {
            Ok(true) => {}
            Ok(false) => return,
            // A failed lookup is repeated.
            Err(error) => tracing::debug!("a token was not looked up: {error}"),
        }
    }
}

/// A body that terminates with a credential.
struct Ending {
    body: Body,
    ended: Pin<Box<dyn Future<Output = ()> + Send>>,
    /// If true, the body closes normally instead of failing.
    is_quiet: bool,
    is_ended: Arc<AtomicBool>,
}

/// Error: the token or session became invalid during the transfer.
#[derive(Debug)]
struct Ended;

impl fmt::Display for Ended {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the token or the session was ended")
    }
}

impl std::error::Error for Ended {}

impl hyper::body::Body for Ending {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        if self.is_ended.load(Ordering::Relaxed) {
            return Poll::Ready(None);
        }
        if self.ended.as_mut().poll(context).is_ready() {
            self.is_ended.store(true, Ordering::Relaxed);
            return Poll::Ready((!self.is_quiet).then(|| Err(axum::Error::new(Ended))));
        }
        Pin::new(&mut self.body).poll_frame(context)
    }

    fn is_end_stream(&self) -> bool {
        self.is_ended.load(Ordering::Relaxed) || self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
