//! A complete response.

use api::problem::Problem;
use axum::http::HeaderMap;
use axum::response::Response;
use http_body_util::BodyExt;
use serde::de::DeserializeOwned;
use serde_json::Value;

/// A complete response.
#[derive(Debug)]
pub struct Reply {
    /// HTTP status.
    pub status: u16,
    /// Headers.
    pub headers: HeaderMap,
    /// Body.
    pub body: Vec<u8>,
}

impl Reply {
    /// Reads a response.
    pub async fn read(response: Response) -> Self {
        let (parts, body) = response.into_parts();
        let body = body.collect().await.expect("a whole body").to_bytes().to_vec();
        Self { status: parts.status.as_u16(), headers: parts.headers, body }
    }

    /// Returns a header, or an empty string.
    pub fn header(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", |value| value.to_str().expect("a header of text"))
    }

    /// Returns the body as text.
    pub fn text(&self) -> &str {
        std::str::from_utf8(&self.body).expect("a body of text")
    }

    /// Parses the body as JSON.
    pub fn json<T: DeserializeOwned>(&self) -> T {
        serde_json::from_slice(&self.body).unwrap_or_else(|error| panic!("{error}: {}", self.text()))
    }

    /// Parses the body as a problem document.
    pub fn problem(&self) -> Problem {
        assert_eq!(self.header("content-type"), api::path::PROBLEM_MEDIA_TYPE, "{self:?}");
        let problem: Problem = self.json();
        assert_eq!(problem.status, self.status);
        assert!(problem.kind.starts_with("/problems/") && !problem.detail.is_empty(), "{problem:?}");
        problem
    }

    /// Returns the pointers to the invalid fields.
    pub fn pointers(&self) -> Vec<String> {
        self.problem().errors.into_iter().map(|error| error.pointer).collect()
    }

    /// Returns the documents in server-sent events named "job".
    pub fn events(&self) -> Vec<Value> {
        assert_eq!(self.header("content-type"), "text/event-stream");
        self.text()
            .split("\n\n")
            .filter(|event| event.lines().any(|line| line == "event: job"))
            .filter_map(|event| event.lines().find_map(|line| line.strip_prefix("data: ")))
            .map(|data| serde_json::from_str(data).expect("a document"))
            .collect()
    }
}
