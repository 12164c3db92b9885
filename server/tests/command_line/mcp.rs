//! Tests of `planscope mcp`.

use serde_json::{Value, json};

use super::planscope;

/// Sends messages and returns the result of each request by its identifier.
fn results(messages: &[Value]) -> Vec<(i64, Value)> {
    let lines: String = messages.iter().fold(String::new(), |lines, message| lines + &message.to_string() + "\n");
    let output = planscope(&["mcp"], &lines);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout).unwrap();
    let answers = text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    answers.filter_map(|answer| Some((answer["id"].as_i64()?, answer["result"].clone()))).collect()
}

fn call(id: i64, tool: &str, arguments: &Value) -> Value {
    json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call", "params": { "name": tool, "arguments": arguments } })
}

fn text(results: &[(i64, Value)], id: i64) -> (bool, String) {
    let (_, result) = results.iter().find(|(other, _)| *other == id).expect("every request has a response");
    let text = result["content"][0]["text"].as_str().unwrap_or_default().to_owned();
    (result["isError"] == true, text)
}

#[test]
fn tools_check_compare_and_explain() {
    let job = "[model]\nname = \"llama3\"\nflavor = \"8B\"\n\n[training]\nlocal_batch_size = 1\nseq_len = 8192\n\n\
               [activation_checkpoint]\nmode = \"full\"\n";
    let configuration = json!({ "text": job, "devices": 8, "device": "h100" });
    let initialize = json!({
        "jsonrpc": "2.0", "id": 0, "method": "initialize",
        "params": { "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": { "name": "test", "version": "1" } }
    });
    let results = results(&[
        initialize,
        json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }),
        json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/list" }),
        call(2, "check", &configuration),
        call(3, "compare", &json!({ "a": configuration, "b": configuration })),
        call(4, "why_slow", &json!({ "configuration": configuration, "step_s": 30.0 })),
        call(5, "explain", &json!({ "term": "microbatch" })),
        call(6, "check", &json!({ "text": "hello" })),
    ]);
    let (_, tools) = results.iter().find(|(id, _)| *id == 1).unwrap();
    let mut names: Vec<&str> =
        tools["tools"].as_array().unwrap().iter().filter_map(|tool| tool["name"].as_str()).collect();
    names.sort_unstable();
    assert_eq!(names, ["check", "compare", "explain", "fit", "plan", "why_slow"]);
    let (is_error, checked) = text(&results, 2);
    assert!(!is_error && checked.contains("80 % intervals") && checked.contains("mode = \"selective\""), "{checked}");
    assert!(text(&results, 3).1.contains("a is faster than b with 50 %"));
    assert!(text(&results, 4).1.contains("slower than predicted"));
    assert!(text(&results, 5).1.starts_with("microbatch"));
    assert!(text(&results, 6).0, "an unknown format is an error of the tool");
}
