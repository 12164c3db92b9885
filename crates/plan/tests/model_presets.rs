//! Every model preset makes a valid scenario.

use planscope_core::model::presets::models;
use planscope_plan::scenario::validate::NoDatasets;
use planscope_plan::scenario::{ValidScenario, parse};

#[test]
fn every_preset_is_accepted() {
    for preset in models() {
        let document = serde_json::json!({
            "schema": "scenario/1", "model": preset.model, "cluster": { "preset": "h100", "nodes": 8 },
            "workload": {
                "samples": {
                    "kind": "drawn",
                    "text_tokens": { "kind": "constant", "value": 512 },
                    "images": { "kind": "constant", "value": 0 }
                },
                "global_batch": 8, "context_length": 8192, "packing": "packed"
            },
            "planners": ["1f1b"]
        });
        let scenario = parse(&document.to_string()).unwrap();
        let checked = ValidScenario::new(scenario, &NoDatasets);
        assert!(checked.is_ok(), "{}: {checked:?}", preset.id);
    }
}
