//! Models with several modules.

use serde_json::json;

use crate::{Plans, scenario, with};

/// Question 14. Encoder of 5 billion parameters with image-heavy samples: every placement has a time, and each says where the encoder is.
#[tokio::test(flavor = "multi_thread")]
async fn should_the_encoder_share_devices_with_the_backbone() {
    let placements = ["homogeneous", "heterogeneous_colocated", "heterogeneous_non_colocated"];
    let job = with(
        scenario("vlm-s", 2, 8192),
        &[
            ("/workload/samples/text_tokens/value", json!(2048)),
            ("/workload/samples/images/value", json!(8)),
            ("/workload/packing", json!("packed")),
            ("/training", json!({"recompute": "full"})),
            ("/planners", json!(placements)),
        ],
    );
    let plans = Plans::of(&job).await;
    let fastest = placements.into_iter().min_by(|a, b| plans.step_s(a).total_cmp(&plans.step_s(b))).unwrap();
    assert_eq!(fastest, "heterogeneous_colocated");
    assert!(plans.step_s("heterogeneous_colocated") < 0.97 * plans.step_s("homogeneous"));
    let separate = plans.answer("heterogeneous_non_colocated").to_string();
    assert!(separate.contains("ViT 5B") && separate.contains("Llama-3 8B"), "{separate}");
}
