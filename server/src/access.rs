//! Access control for HTTP requests: host names, origins, tokens, sessions and security headers.

mod ended;
mod guard;
mod known;
mod names;
mod origin;
mod session;
mod wrong_tokens;

pub use guard::{SECURITY_HEADERS, guard};

use std::net::IpAddr;
use std::sync::Arc;

use api::access::Role;
use axum::http::header::AUTHORIZATION;
use axum::http::request::Parts;
use axum::http::{HeaderMap, Method, Uri};
use jiff::SignedDuration;
use sha2::{Digest, Sha256};
use tokio::sync::watch;

use crate::actor::Actor;
use crate::changes::{Change, NOBODY};
use crate::client::{network, sender, sender_network};
use crate::clock::Clock;
use crate::error::ApiError;
use crate::store::{NewSession, Store};
use crate::token::Token;
use ended::Credential;
use known::Known;
use names::Names;
use wrong_tokens::{WrongTokenLimits, WrongTokens};

/// Maximum length in characters.
const MAX_NAME: usize = 60;
/// Maximum length in bytes. Longer tokens are rejected.
const MAX_TOKEN: usize = 1024;

/// Access control state: allowed host names, server token, cached actors and invalid-token
/// counters.
#[derive(Debug)]
pub struct Access {
    store: Store,
    clock: Arc<dyn Clock>,
    names: Names,
    /// SHA-256 hash of the server token. `None` if the server requires no token.
    token: Option<[u8; 32]>,
    wrong: WrongTokens,
    known: Known,
    /// Notifies subscribers when a token or session becomes invalid.
    ended: watch::Sender<()>,
}

impl Access {
    /// Creates the access control from host names and an optional server token.
    pub fn new(hosts: &[String], token: Option<&str>, store: Store, clock: Arc<dyn Clock>) -> Self {
        Self {
            store,
            clock,
            names: Names::new(hosts),
            token: token.map(hash),
            wrong: WrongTokens::new(WrongTokenLimits::default()),
            known: Known::default(),
            ended: watch::Sender::default(),
        }
    }

    pub(crate) fn needs_token(&self) -> bool {
        self.token.is_some()
    }

    /// Returns the actor, or an error if the request is rejected. Returns `None` outside the API
    /// and if the request may carry a run token; the handler validates run tokens.
    async fn admit(&self, request: &Parts, route: Option<&str>) -> Result<Option<Admitted>, ApiError> {
        let host = self.names.host(request)?;
        origin::check(request, host)?;
        let path = request.uri.path();
        if !is_api_path(path) {
            return Ok(None);
        }
        let Some(server_token) = self.token else { return Ok(Some(Actor::anyone().into())) };
        let headers = &request.headers;
        let run = trainer_run(&request.method, &request.uri);
        let looking = bearer(headers).map(|_| self.wrong.look(sender(&request.extensions)));
        if looking.as_ref().is_some_and(Option::is_none) {
            return self.admit_run_token(run, headers).await;
        }
        let admitted = self.actor(&server_token, headers).await?;
        drop(looking);
        match admitted {
            Some(admitted) => {
                admit_actor(&admitted.actor, request, route)?;
                Ok(Some(admitted))
            }
            None if run.is_some() => Ok(None),
            None => {
                if bearer(headers).is_none() {
                    return Err(ApiError::Unauthorised);
                }
                self.note_wrong(sender(&request.extensions)).await;
                Err(ApiError::InvalidToken)
            }
        }
    }

    /// Admits a request from an address with too many pending responses to invalid tokens. Only the
    /// run token is accepted, so a misconfigured job does not block its neighbors.
    async fn admit_run_token(&self, run: Option<&str>, headers: &HeaderMap) -> Result<Option<Admitted>, ApiError> {
        if let (Some(run), Some(token)) = (run, bearer(headers))
            && self.store.reader().run_admits(run, &Token::digest(token)).await?
        {
            return Ok(None);
        }
        self.wrong.note_refusal();
        Err(ApiError::WrongTokens)
    }

    /// Counts an invalid token, writes it to the audit log and delays the response.
    async fn note_wrong(&self, sender: IpAddr) {
        if self.wrong.is_to_be_recorded(sender) {
            self.record(NOBODY, &Change::for_session("failed-login", network(sender).to_string())).await;
        }
        self.wrong.note(sender).await;
    }

    /// Returns true if the request carries a token or session with permission to write logs. Always
    /// false if the server requires no token.
    pub(crate) async fn may_write_logs(&self, headers: &HeaderMap) -> Result<bool, ApiError> {
        let Some(server_token) = self.token else { return Ok(false) };
        let actor = self.actor(&server_token, headers).await?;
        Ok(actor.is_some_and(|admitted| admitted.actor.role >= Role::Editor))
    }

    /// Returns the actor for the token or session in a request.
    async fn actor(&self, server_token: &[u8; 32], headers: &HeaderMap) -> Result<Option<Admitted>, ApiError> {
        // An invalid token is rejected even with a valid session. Otherwise an attacker could guess
        // tokens with the session as a cover.
        if let Some(token) = bearer(headers) {
            return self.holder(server_token, token).await;
        }
        for value in session::values(headers) {
            let hashes = [session::hash(value), session::hash_with(server_token, value)];
            if let Some(admitted) = self.session_actor(hashes).await? {
                return Ok(Some(admitted));
            }
        }
        Ok(None)
    }

    /// Returns the actor for a token. Compares hashes, so the response time reveals nothing about
    /// tokens.
    async fn holder(&self, server_token: &[u8; 32], token: &str) -> Result<Option<Admitted>, ApiError> {
        if token.len() > MAX_TOKEN {
            return Ok(None);
        }
        let hash = hash(token);
        if *server_token == hash {
            return Ok(Some(Actor::for_server_token().into()));
        }
        let named = |actor| Some(Admitted { actor, credential: Some(Credential::Token(hash)) });
        if let Some(actor) = self.known.get(&hash, self.clock.elapsed()) {
            return Ok(named(actor));
        }
        let Some((name, role)) = self.store.reader().token_holder(&hash).await? else { return Ok(None) };
        let actor = Actor { name, role };
        self.found(hash, &actor);
        Ok(named(actor))
    }

    async fn session_actor(&self, hashes: [[u8; 32]; 2]) -> Result<Option<Admitted>, ApiError> {
        let [named, server_hash] = hashes;
        for (hash, credential) in
            [(named, Credential::Session(named)), (server_hash, Credential::ServerSession(server_hash))]
        {
            if let Some(actor) = self.known.get(&hash, self.clock.elapsed()) {
                return Ok(Some(Admitted { actor, credential: Some(credential) }));
            }
        }
        let reader = self.store.reader();
        let now = self.clock.now();
        let (hash, actor, credential) = if let Some((name, role)) = reader.session_holder(&named, now).await? {
            (named, Actor { name, role }, Credential::Session(named))
        } else if reader.is_server_session(&server_hash, now).await? {
            (server_hash, Actor::for_server_token(), Credential::ServerSession(server_hash))
        } else {
            return Ok(None);
        };
        self.found(hash, &actor);
        Ok(Some(Admitted { actor, credential: Some(credential) }))
    }

    /// Caches an actor and records the token use.
    fn found(&self, hash: [u8; 32], actor: &Actor) {
        self.known.put(hash, actor, self.clock.elapsed());
        let (writer, name, now) = (self.store.writer().clone(), actor.name.clone(), self.clock.now());
        if name != Actor::for_server_token().name {
            tokio::spawn(async move {
                if let Err(error) = writer.note_token_use(&name, now).await {
                    tracing::debug!(name, "the use of a token was not noted: {error}");
                }
            });
        }
    }

    /// Opens a session for a valid token and returns the session cookies.
    pub(crate) async fn login(&self, token: &str, request: &Parts) -> Result<Vec<String>, ApiError> {
        let Some(server_token) = self.token else { return Err(ApiError::Unauthorised) };
        origin::check_login(request)?;
        let Some(looking) = self.wrong.look(sender(&request.extensions)) else {
            self.wrong.note_refusal();
            return Err(ApiError::WrongTokens);
        };
        let holder = self.holder(&server_token, token).await?;
        drop(looking);
        let Some(holder) = holder else {
            self.note_wrong(sender(&request.extensions)).await;
            return Err(ApiError::InvalidToken);
        };
        let value = Token::draw();
        let value = value.as_str();
        let now = self.clock.now();
        let lifetime = SignedDuration::try_from(session::LIFETIME).unwrap_or(SignedDuration::ZERO);
        let is_named = holder.credential.is_some();
        let hash = if is_named { session::hash(value) } else { session::hash_with(&server_token, value) };
        let session = NewSession {
            hash,
            token_name: is_named.then(|| holder.actor.name.clone()),
            expires_at: now.saturating_add(lifetime).unwrap_or(now),
        };
        self.store.writer().open_session(&session, now).await?;
        self.record(&holder.actor.name, &Change::for_session("login", sender_network(&request.extensions).to_string()))
            .await;
        // The new session may have evicted an older session.
        self.forget();
        let host = self.names.host(request)?;
        Ok(session::begun(value, session::is_behind_tls(&self.names, request, host)))
    }

    /// Ends the sessions in a request and returns cookies that delete them in the browser.
    pub(crate) async fn logout(&self, headers: &HeaderMap) -> Result<Vec<String>, ApiError> {
        for value in session::values(headers) {
            self.store.writer().end_session(&session::hash(value)).await?;
            if let Some(server_token) = &self.token {
                self.store.writer().end_session(&session::hash_with(server_token, value)).await?;
            }
        }
        self.forget();
        Ok(session::ended())
    }

    /// Clears the actor cache and notifies open requests that a token or session has become
    /// invalid.
    pub(crate) fn forget(&self) {
        self.known.clear();
        self.ended.send_replace(());
    }
}

/// Returns an error if the actor's role does not permit the request.
fn admit_actor(actor: &Actor, request: &Parts, route: Option<&str>) -> Result<(), ApiError> {
    let forbidden = |needed| ApiError::NotAllowed { actor: actor.name.clone(), role: actor.role, needed };
    let path = request.uri.path();
    let below = |root: &str| path.strip_prefix(root).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'));
    if actor.role < Role::Admin && (below(api::path::TOKENS) || below(api::path::AUDIT)) {
        return Err(forbidden(Role::Admin));
    }
    // Requests outside all routes have no effect.
    if actor.role < Role::Editor
        && let Some(change) = route.and_then(|route| Change::from_request(&request.method, &request.uri, route))
        && !change.is_session_end()
    {
        return Err(forbidden(Role::Editor));
    }
    Ok(())
}

/// An admitted actor with its credential. The credential is `None` if the server token is used or
/// the server requires no token, because access is then permanent.
#[derive(Debug)]
struct Admitted {
    actor: Actor,
    credential: Option<Credential>,
}

impl From<Actor> for Admitted {
    fn from(actor: Actor) -> Self {
        Self { actor, credential: None }
    }
}

/// Returns the bearer token in the request headers.
pub(crate) fn bearer(headers: &HeaderMap) -> Option<&str> {
    let value = headers.get(AUTHORIZATION)?.to_str().ok()?;
    value.split_once(' ').filter(|(scheme, _)| scheme.eq_ignore_ascii_case("bearer")).map(|(_, token)| token.trim())
}

/// Returns the SHA-256 hash that the database stores for a token.
pub(crate) fn hash(token: &str) -> [u8; 32] {
    Sha256::digest(token).into()
}

/// Rule for token names, used in error messages.
pub(crate) const TOKEN_NAME_RULE: &str = "1 to 60 letters (A to Z), digits and any of - _ .";

/// Returns true if a token may have this name. Such a name can be used in URLs and in the audit log
/// unescaped, and has no visual lookalike. The database also ensures that names differ in more than
/// letter case.
pub(crate) fn is_token_name(name: &str) -> bool {
    let is_good = |letter: char| letter.is_ascii_alphanumeric() || "-_.".contains(letter);
    (1..=MAX_NAME).contains(&name.len()) && name.chars().all(is_good) && !name.chars().all(|letter| letter == '.')
}

/// Returns true if the path requires a token.
fn is_api_path(path: &str) -> bool {
    path.starts_with("/api/") || [api::path::METRICS, api::path::MCP].contains(&path)
}

/// Returns the run ID if the request may use the run token instead of the server token: log upload,
/// end of run, and trace upload. The handlers validate these tokens.
fn trainer_run<'p>(method: &Method, uri: &'p Uri) -> Option<&'p str> {
    let path = uri.path();
    if method == Method::POST && path == api::path::TRACES {
        return uri.query()?.split('&').find_map(|pair| pair.strip_prefix("run=")).filter(|run| !run.is_empty());
    }
    let (run, rest) = path.strip_prefix(api::path::RUNS)?.strip_prefix('/')?.split_once('/')?;
    let is_theirs = match rest {
        "log" => [Method::HEAD, Method::PATCH, Method::PUT].contains(method),
        "finish" => method == Method::POST,
        _ => false,
    };
    is_theirs.then_some(run)
}
