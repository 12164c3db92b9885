//! Middleware in front of all routes: admits requests, records changes and adds security headers.

use std::sync::Arc;

use axum::extract::{MatchedPath, Request, State};
use axum::http::header::SET_COOKIE;
use axum::http::{HeaderName, HeaderValue};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};

use super::ended::Watched;
use super::{Access, Admitted, bearer};
use crate::actor::Actor;
use crate::changes::Change;
use crate::client::{self, sender};
use crate::error::ApiError;

/// Security headers for all responses.
///
/// The policy permits scripts only from this server, including WebAssembly. Inline styles are
/// permitted because the chart library uses them to position elements. `data:` and `blob:` images
/// are permitted for chart export.
pub const SECURITY_HEADERS: [(HeaderName, &str); 5] = [
    (
        HeaderName::from_static("content-security-policy"),
        "default-src 'self'; script-src 'self' 'wasm-unsafe-eval'; style-src 'self' 'unsafe-inline'; \
         img-src 'self' data: blob:; connect-src 'self'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'",
    ),
    (HeaderName::from_static("x-content-type-options"), "nosniff"),
    (HeaderName::from_static("referrer-policy"), "no-referrer"),
    (HeaderName::from_static("cross-origin-opener-policy"), "same-origin"),
    (HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
];

/// Middleware: runs admitted requests and rejects all others.
pub async fn guard(
    State(access): State<Arc<Access>>,
    route: Option<MatchedPath>,
    request: Request,
    next: Next,
) -> Response {
    let route = route.as_ref().map(MatchedPath::as_str);
    // Borrow only the parts: a body is not `Sync`.
    let (parts, body) = request.into_parts();
    let mut response = match access.admit(&parts, route).await {
        Ok(admitted) => pass(&access, admitted, route, Request::from_parts(parts, body), next).await,
        Err(error) => error.into_response(),
    };
    for (name, value) in SECURITY_HEADERS {
        response.headers_mut().insert(name, HeaderValue::from_static(value));
    }
    response
}

/// Runs an admitted request and records the change.
async fn pass(
    access: &Arc<Access>,
    admitted: Option<Admitted>,
    route: Option<&str>,
    mut request: Request,
    next: Next,
) -> Response {
    let cookie = client::new_cookie(&request);
    let change = route.and_then(|route| Change::from_request(request.method(), request.uri(), route));
    // The handlers for logs validate the token themselves, so it may still be invalid here.
    let may_be_wrong =
        (admitted.is_none() && bearer(request.headers()).is_some()).then(|| sender(request.extensions()));
    let Admitted { actor, credential } = admitted.unwrap_or_else(|| Actor::for_run_token().into());
    let watched = credential.map(|credential| Watched::new(access, credential));
    if let Some(watched) = &watched {
        request = request.map(|body| watched.request(body));
    }
    request.extensions_mut().insert(actor.clone());
    let mut response = next.run(request).await;
    if let Some(watched) = &watched {
        response = if watched.is_ended() && !response.status().is_success() {
            ApiError::Unauthorised.into_response()
        } else {
            watched.response(response)
        };
    }
    if let Some(sender) = may_be_wrong.filter(|_| response.status().as_u16() == 403) {
        access.note_wrong(sender).await;
    }
    if let Some(change) = change.and_then(|change| change.completed(&response)) {
        access.record(&actor.name, &change).await;
    }
    if let Some(cookie) = cookie.and_then(|cookie| HeaderValue::try_from(cookie).ok()) {
        response.headers_mut().append(SET_COOKIE, cookie);
    }
    response
}

impl Access {
    /// Records a change. The change is already made, so a failure goes to the server's log and not to the client.
    pub(super) async fn record(&self, actor: &str, change: &Change) {
        if let Err(error) = self.store.writer().record_change(actor, change, self.clock.now()).await {
            tracing::error!(actor, ?change, "a change was not recorded: {error}");
        }
    }
}
