//! Server-sent events, read as they come.

use std::time::Duration;

use axum::body::{Body, HttpBody};
use axum::response::Response;
use http_body_util::BodyExt;
use serde_json::Value;

/// How long a test waits for an event before it fails: long enough for a machine that does something else.
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
    /// Its id, where it has one.
    pub id: Option<String>,
    /// Its name.
    pub name: String,
    /// Its data.
    pub data: Value,
}

impl Listener {
    pub(crate) fn new(response: Response) -> Self {
        Self { status: response.status().as_u16(), body: response.into_body(), text: String::new() }
    }

    /// The next event, comments left out; `None` at the end of the stream.
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

    /// The next event of that name; others are passed over.
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
