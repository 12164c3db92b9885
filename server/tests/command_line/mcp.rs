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
        call(7, "compare", &json!({ "a": "export HF_TOKEN=\"hf_secret\"\ntrain", "b": configuration })),
    ]);
    let (_, tools) = results.iter().find(|(id, _)| *id == 1).unwrap();
    let mut names: Vec<&str> =
        tools["tools"].as_array().unwrap().iter().filter_map(|tool| tool["name"].as_str()).collect();
    names.sort_unstable();
    assert_eq!(names, ["check", "compare", "explain", "fit", "plan", "why_slow"]);
    // Answers of the computing tools have the JSON that their schemas describe.
    let tool = |name: &str| tools["tools"].as_array().unwrap().iter().find(|tool| tool["name"] == name).unwrap();
    for (id, name) in [(2, "check"), (3, "compare"), (4, "why_slow")] {
        let answer = &results.iter().find(|(other, _)| *other == id).unwrap().1["structuredContent"];
        let schema = &tool(name)["outputSchema"];
        assert_eq!(schema["type"], "object", "{name}");
        let stated: Vec<&String> = answer.as_object().unwrap().keys().collect();
        let described: Vec<&String> = schema["properties"].as_object().unwrap().keys().collect();
        assert_eq!(stated, described, "{name}");
        for key in schema["required"].as_array().unwrap() {
            assert!(
                !answer[key.as_str().unwrap()].is_null() || answer.get(key.as_str().unwrap()).is_some(),
                "{name}: {key}"
            );
        }
    }
    let of = |id: i64| &results.iter().find(|(other, _)| *other == id).unwrap().1["structuredContent"];
    assert_eq!(of(2)["verdict"], "fits");
    let changes = of(2)["changes"].as_array().unwrap();
    let edits = changes.iter().flat_map(|change| change["edits"].as_array().unwrap());
    assert!(edits.map(|edit| &edit["setting"]).any(|setting| setting == "mode = \"selective\""));
    assert!(of(3)["probability_a_faster"].as_f64().is_some_and(|share| (share - 0.5).abs() < 1e-9));
    assert!(of(4)["relation"] == "slower" && of(4)["causes"][0]["explains_s"].as_f64().is_some());
    let (is_error, checked) = text(&results, 2);
    assert!(!is_error && checked.contains("80 % intervals") && checked.contains("mode = \"selective\""), "{checked}");
    assert!(text(&results, 3).1.contains("probability that a is faster: 50 %"));
    assert!(text(&results, 4).1.contains("slower than predicted"));
    assert!(text(&results, 5).1.starts_with("microbatch"));
    assert!(text(&results, 6).0, "an unknown format is an error of the tool");
    let (is_error, refused) = text(&results, 7);
    assert!(is_error && refused.contains("a string") && !refused.contains("hf_secret"), "{refused}");
}
