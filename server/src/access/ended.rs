//! Tokens and sessions that end while a request is under way: what it still sends or is sent ends too.

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

/// By what an actor was found, as a hash.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Credential {
    /// A named token.
    Token([u8; 32]),
    /// A session of a named token.
    Session([u8; 32]),
    /// A session of the server's token.
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

/// Ends bodies with a credential.
pub(super) struct Watched {
    access: Arc<Access>,
    credential: Credential,
    /// Whether the body of the request was ended.
    is_ended: Arc<AtomicBool>,
}

impl Watched {
    pub(super) fn new(access: &Arc<Access>, credential: Credential) -> Self {
        Self { access: Arc::clone(access), credential, is_ended: Arc::default() }
    }

    /// The body of a request, which breaks off with the credential.
    pub(super) fn request(&self, body: Body) -> Body {
        if body.is_end_stream() {
            return body;
        }
        self.body(body, false, Arc::clone(&self.is_ended))
    }

    /// An answer: a stream of events ends with the credential, another long one breaks off.
    pub(super) fn answer(&self, response: Response) -> Response {
        if response.body().size_hint().exact().is_some() {
            return response;
        }
        let kind = response.headers().get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok());
        let is_events = kind.is_some_and(|kind| kind.starts_with("text/event-stream"));
        response.map(|body| self.body(body, is_events, Arc::default()))
    }

    /// Whether the request ended before all of it came.
    pub(super) fn is_ended(&self) -> bool {
        self.is_ended.load(Ordering::Relaxed)
    }

    fn body(&self, body: Body, is_quiet: bool, is_ended: Arc<AtomicBool>) -> Body {
        let ended = Box::pin(until_ended(Arc::clone(&self.access), self.credential));
        Body::new(Ending { body, ended, is_quiet, is_ended })
    }
}

/// Resolves when a credential is good no longer. What the command line revokes is found within seconds.
async fn until_ended(access: Arc<Access>, credential: Credential) {
    let mut news = access.ended.subscribe();
    loop {
        // The sender lives as long as `access`.
        let _ = tokio::time::timeout(BELIEVED, news.changed()).await;
        match credential.is_good(&access).await {
            Ok(true) => {}
            Ok(false) => return,
            // What cannot be looked up now is looked up again.
            Err(error) => tracing::debug!("a token was not looked up: {error}"),
        }
    }
}

/// A body that ends with a credential.
struct Ending {
    body: Body,
    ended: Pin<Box<dyn Future<Output = ()> + Send>>,
    /// Whether it ends as if it were whole.
    is_quiet: bool,
    is_ended: Arc<AtomicBool>,
}

/// The token or the session of a request ended before its body did.
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
