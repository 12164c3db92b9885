//! Reader for server-sent events.

use std::time::Duration;

use axum::body::{Body, HttpBody};
use axum::response::Response;
use http_body_util::BodyExt;
use serde_json::Value;

/// Event timeout, long enough for a busy machine.
const PATIENCE: Duration = Duration::from_secs(30);

/// A stream of server-sent events.
#[derive(Debug)]
pub struct Listener {
    /// HTTP status.
    pub status: u16,
    body: Body,
    text: String,
}

/// An event.
#[derive(Debug, Clone, PartialEq)]
pub struct Heard {
    /// Event id.
    pub id: Option<String>,
    /// Event name.
    pub name: String,
    /// Event data.
    pub data: Value,
}

impl Listener {
    pub(crate) fn new(response: Response) -> Self {
        Self { status: response.status().as_u16(), body: response.into_body(), text: String::new() }
    }

    /// Returns the next event without comments. `None` at the end of the stream.
    pub async fn next(&mut self) -> Option<Heard> {
        loop {
            if let Some(end) = self.text.find("\n\n") {
                let heard = read(&self.text[..end]);
                self.text.drain(..end + 2);
                if heard.is_some() {
                    return heard;
                }
                continue;
            }
            if self.body.is_end_stream() {
                return None;
            }
            let frame = tokio::time::timeout(PATIENCE, self.body.frame()).await.expect("an event in time")?;
            let data = frame.expect("a stream that does not break").into_data().expect("data");
            self.text.push_str(std::str::from_utf8(&data).expect("events of text"));
        }
    }

    /// Returns the next event with a name and skips others.
    pub async fn next_named(&mut self, name: &str) -> Heard {
        loop {
            let heard = self.next().await.expect("a further event");
            if heard.name == name {
                return heard;
            }
        }
    }
}

fn read(event: &str) -> Option<Heard> {
    let field = |name: &str| event.lines().find_map(|line| line.strip_prefix(name)).map(str::trim_start);
    let data = field("data:")?;
    Some(Heard {
        id: field("id:").map(str::to_owned),
        name: field("event:").expect("a name").to_owned(),
        data: serde_json::from_str(data).expect("data is JSON"),
    })
}
