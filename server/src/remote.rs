//! A running server, asked as any client asks it.

use std::time::Duration;

use anyhow::{Context, bail};
use serde::de::DeserializeOwned;
use ureq::Agent;
use ureq::http::Response;

/// How long one request may take.
const REQUEST: Duration = Duration::from_mins(1);
/// Most bytes of an answer: execution plans of many microbatches are the largest.
const LARGEST_ANSWER: u64 = 256 << 20;

/// A server and what it knows us by.
#[derive(Debug, Clone)]
pub struct Remote {
    /// Its address, for example "http://127.0.0.1:8080".
    pub server: String,
    /// Its token, where it has one.
    pub token: Option<String>,
}

impl Remote {
    /// The server at an address.
    pub fn new(server: &str, token: Option<&str>) -> Self {
        Self { server: server.trim_end_matches('/').to_owned(), token: token.map(str::to_owned) }
    }

    /// What stands at a path, as text.
    ///
    /// # Errors
    /// Why there is no answer, or what the server says is wrong.
    pub fn text(&self, path: &str) -> anyhow::Result<String> {
        let server = &self.server;
        let mut request = agent().get(format!("{server}{path}")).header("Accept", "application/json");
        if let Some(token) = &self.token {
            request = request.header("Authorization", format!("Bearer {token}"));
        }
        let mut answer = request.call().with_context(|| format!("{server} does not answer"))?;
        accepted(&mut answer)
    }

    /// What stands at a path, read as JSON.
    ///
    /// # Errors
    /// As [`Self::text`]; or the answer is none of Planscope's.
    pub fn document<T: DeserializeOwned>(&self, path: &str) -> anyhow::Result<T> {
        let text = self.text(path)?;
        serde_json::from_str(&text).with_context(|| format!("the answer of {} cannot be read", self.server))
    }
}

impl Remote {
    /// What the server answers to a document that is sent to a path, read as JSON.
    ///
    /// # Errors
    /// As [`Self::document`].
    pub fn post<T: DeserializeOwned>(&self, path: &str, media_type: &str, body: String) -> anyhow::Result<T> {
        let server = &self.server;
        let mut request = agent().post(format!("{server}{path}")).header("Content-Type", media_type);
        if let Some(token) = &self.token {
            request = request.header("Authorization", format!("Bearer {token}"));
        }
        let mut answer = request.send(body).with_context(|| format!("{server} does not answer"))?;
        let text = accepted(&mut answer)?;
        serde_json::from_str(&text).with_context(|| format!("the answer of {server} cannot be read"))
    }
}

/// Asks without taking refusals for failures: what they say is to be told.
pub(super) fn agent() -> Agent {
    Agent::config_builder().timeout_global(Some(REQUEST)).http_status_as_error(false).build().into()
}

/// The body of a success; of a refusal what its problem document says.
pub(super) fn accepted(answer: &mut Response<ureq::Body>) -> anyhow::Result<String> {
    #[derive(serde::Deserialize)]
    struct Problem {
        detail: String,
    }
    let status = answer.status();
    let text = answer.body_mut().with_config().limit(LARGEST_ANSWER).read_to_string()?;
    if status.is_success() {
        return Ok(text);
    }
    let detail = serde_json::from_str::<Problem>(&text).map_or(text, |problem| problem.detail);
    bail!("{status}: {detail}")
}
