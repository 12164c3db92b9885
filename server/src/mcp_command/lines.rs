//! Lines of standard input: messages for the service, and answers to lines that are no messages.
//!
//! The library of the protocol ignores lines that are too long or no JSON, so a client would wait for an answer.

use serde::de::IgnoredAny;
use serde_json::Value;
use tokio::io::{AsyncBufRead, AsyncBufReadExt, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::sync::mpsc;

use crate::mcp;

/// Longest message in bytes, with the end of the line.
const MAX_MESSAGE: u64 = 16 << 20;
/// Codes of JSON-RPC.
const PARSE_ERROR: i32 = -32_700;
const INVALID_REQUEST: i32 = -32_600;

/// Forwards messages to the service, and sends answers to other lines, until the input ends.
///
/// # Errors
/// The input cannot be read.
pub(super) async fn forward(
    mut input: impl AsyncBufRead + Unpin,
    mut service: impl AsyncWrite + Unpin,
    answers: mpsc::Sender<Vec<u8>>,
) -> std::io::Result<()> {
    let mut line = Vec::new();
    loop {
        line.clear();
        if (&mut input).take(MAX_MESSAGE).read_until(b'\n', &mut line).await? == 0 {
            return Ok(());
        }
        let is_whole = line.ends_with(b"\n") || (line.len() as u64) < MAX_MESSAGE;
        let answer = if is_whole {
            answer(&line)
        } else {
            skip_line(&mut input).await?;
            Some(error(&Value::Null, INVALID_REQUEST, "the message is longer than 16 MiB"))
        };
        if let Some(answer) = answer {
            if answers.send(answer).await.is_err() {
                return Ok(());
            }
        } else {
            if !line.ends_with(b"\n") {
                line.push(b'\n');
            }
            // The service closes its end when it stops.
            if service.write_all(&line).await.is_err() {
                return Ok(());
            }
        }
    }
}

/// Skips the rest of a line.
async fn skip_line(input: &mut (impl AsyncBufRead + Unpin)) -> std::io::Result<()> {
    loop {
        let available = input.fill_buf().await?;
        let end = available.iter().position(|byte| *byte == b'\n');
        let length = end.map_or(available.len(), |end| end + 1);
        input.consume(length);
        if end.is_some() || length == 0 {
            return Ok(());
        }
    }
}

/// Returns the answer to a line that is no message. `None` for a message or an empty line.
fn answer(line: &[u8]) -> Option<Vec<u8>> {
    if line.trim_ascii().is_empty() {
        return None;
    }
    if let Err(problem) = serde_json::from_slice::<IgnoredAny>(line) {
        return Some(error(&Value::Null, PARSE_ERROR, &format!("the line is not JSON: {problem}")));
    }
    mcp::incomplete_call(line).map(|answer| format!("{answer}\n").into_bytes())
}

fn error(id: &Value, code: i32, message: &str) -> Vec<u8> {
    format!("{}\n", mcp::error(id, code, message)).into_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A line of more than 16 MiB, a line that is not JSON and a call without parameters have an answer. The messages
    /// between them are forwarded.
    #[tokio::test]
    async fn lines_that_are_no_messages_are_answered() {
        let mut input = br#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#.to_vec();
        input.extend_from_slice(b"\n\"");
        input.resize(input.len() + (17 << 20), b'y');
        input.extend_from_slice(b"\"\nhello\n{\"id\":7,\"method\":\"tools/call\"}\n\n{\"id\":2,\"method\":\"ping\"}");
        let (answers, mut received) = mpsc::channel(8);
        let mut forwarded = Vec::new();
        forward(&input[..], &mut forwarded, answers).await.unwrap();
        let forwarded = String::from_utf8(forwarded).unwrap();
        assert_eq!(forwarded.lines().filter(|line| line.contains("ping")).count(), 2, "{forwarded}");
        let mut codes = Vec::new();
        while let Some(line) = received.recv().await {
            let answer: Value = serde_json::from_slice(&line).unwrap();
            codes.push((answer["id"].as_i64(), answer["error"]["code"].as_i64().unwrap()));
        }
        assert_eq!(codes, [(None, -32_600), (None, -32_700), (Some(7), -32_602)]);
    }
}
