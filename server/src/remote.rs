//! HTTP client for a running server.

use std::time::Duration;

use anyhow::{Context, bail};
use serde::de::DeserializeOwned;
use ureq::Agent;
use ureq::http::Response;

/// Timeout per request.
const REQUEST: Duration = Duration::from_mins(1);
/// Maximum response size in bytes. Execution plans with many microbatches have the largest
/// responses.
const MAX_RESPONSE: u64 = 256 << 20;

/// A server address and an optional token.
#[derive(Debug, Clone)]
pub struct Remote {
    /// Server address, for example "http://127.0.0.1:8080".
    pub server: String,
    /// Token of the server, if set.
    pub token: Option<String>,
}

impl Remote {
    /// Creates a client for the server address.
    pub fn new(server: &str, token: Option<&str>) -> Self {
        Self { server: server.trim_end_matches('/').to_owned(), token: token.map(str::to_owned) }
    }

    /// Returns the text at a path.
    ///
    /// # Errors
    /// Returns the connection error, or the detail of the problem document.
    pub fn text(&self, path: &str) -> anyhow::Result<String> {
        let server = &self.server;
        self.check_scheme()?;
        let mut request = agent().get(format!("{server}{path}")).header("Accept", "application/json");
        if let Some(token) = &self.token {
            request = request.header("Authorization", format!("Bearer {token}"));
        }
        let mut response = request.call().with_context(|| format!("{server} does not answer"))?;
        accepted(&mut response)
    }

    /// Returns the JSON document at a path.
    ///
    /// # Errors
    /// Same as [`Self::text`]. Also fails if the response is not a Planscope document.
    pub fn document<T: DeserializeOwned>(&self, path: &str) -> anyhow::Result<T> {
        let text = self.text(path)?;
        serde_json::from_str(&text).with_context(|| format!("the answer of {} cannot be read", self.server))
    }
}

impl Remote {
    /// Posts a document to a path and parses the JSON response.
    ///
    /// # Errors
    /// Same as [`Self::document`].
    pub fn post<T: DeserializeOwned>(&self, path: &str, media_type: &str, body: String) -> anyhow::Result<T> {
        let server = &self.server;
        self.check_scheme()?;
        let mut request = agent().post(format!("{server}{path}")).header("Content-Type", media_type);
        if let Some(token) = &self.token {
            request = request.header("Authorization", format!("Bearer {token}"));
        }
        let mut response = request.send(body).with_context(|| format!("{server} does not answer"))?;
        let text = accepted(&mut response)?;
        serde_json::from_str(&text).with_context(|| format!("the answer of {server} cannot be read"))
    }
}

impl Remote {
    /// Refuses addresses that the client cannot reach.
    fn check_scheme(&self) -> anyhow::Result<()> {
        let server = &self.server;
        if server.starts_with("https://") {
            anyhow::bail!(
                "{server}: the command line has no TLS. Use the http address of the server in a trusted network or through a \
                 tunnel, or send the file with curl"
            );
        }
        if !server.starts_with("http://") {
            anyhow::bail!("{server}: the address of a server starts with http://");
        }
        Ok(())
    }
}

/// Creates an agent that does not treat error statuses as errors, so problem documents can be read.
pub(super) fn agent() -> Agent {
    Agent::config_builder().timeout_global(Some(REQUEST)).http_status_as_error(false).build().into()
}

/// Returns the body of a success response, or the detail of a problem document as an error.
pub(super) fn accepted(response: &mut Response<ureq::Body>) -> anyhow::Result<String> {
    #[derive(serde::Deserialize)]
    struct Problem {
        detail: String,
    }
    let status = response.status();
    let text = response.body_mut().with_config().limit(MAX_RESPONSE).read_to_string()?;
    if status.is_success() {
        return Ok(text);
    }
    let detail = serde_json::from_str::<Problem>(&text).map_or(text, |problem| problem.detail);
    bail!("{status}: {detail}")
}
