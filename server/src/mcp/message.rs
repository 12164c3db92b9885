//! Messages that the library of the protocol does not answer.

use serde::Deserialize;
use serde_json::{Value, json};

/// Code of JSON-RPC.
const INVALID_PARAMS: i32 = -32_602;

/// Parts of a message that are checked.
#[derive(Deserialize)]
struct Head {
    #[serde(default)]
    id: Value,
    #[serde(default)]
    method: Option<String>,
    #[serde(default)]
    params: Option<Value>,
}

/// Returns the answer to a call of a tool that lacks its parameters, or the name of the tool. The library does not
/// recognise such a call, so a client would wait for an answer or get an error without a reason.
pub(crate) fn incomplete_call(message: &[u8]) -> Option<Value> {
    let Head { id, method, params } = serde_json::from_slice(message).ok()?;
    if method.as_deref() != Some("tools/call") || id.is_null() {
        return None;
    }
    let lacks = match &params {
        None | Some(Value::Null) => "params with the name of a tool and its arguments",
        Some(params) if params.get("name").and_then(Value::as_str).is_none() => "params.name, the name of a tool",
        Some(_) => return None,
    };
    Some(error(&id, INVALID_PARAMS, &format!("tools/call needs {lacks}; tools/list lists the tools")))
}

/// Returns an error of JSON-RPC.
pub(crate) fn error(id: &Value, code: i32, message: &str) -> Value {
    json!({ "jsonrpc": "2.0", "id": id, "error": { "code": code, "message": message } })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_without_parameters_name_what_is_missing() {
        let message = |text: &str| {
            incomplete_call(text.as_bytes()).map(|answer| answer["error"]["message"].as_str().unwrap().to_owned())
        };
        let call = |params: &str| format!(r#"{{"jsonrpc": "2.0", "id": 7, "method": "tools/call"{params}}}"#);
        for (params, lacks) in [
            ("", "needs params with"),
            (r#", "params": null"#, "needs params with"),
            (r#", "params": {}"#, "params.name"),
        ] {
            assert!(message(&call(params)).is_some_and(|message| message.contains(lacks)), "{params}");
        }
        assert_eq!(message(&call(r#", "params": {"name": "check"}"#)), None);
        assert_eq!(message(r#"{"jsonrpc": "2.0", "id": 7, "method": "ping"}"#), None);
        assert_eq!(message("no JSON"), None);
    }
}
