//! Duration and cost.

use planner::outcome::Budget;

use crate::{LLAMA_3_70B_ARGUMENTS, check, job};

/// Question 4. Meta reports 6.4 million H100 hours for 15 trillion tokens of Llama 3 70B (model card), interruptions included.
#[tokio::test(flavor = "multi_thread")]
async fn how_long_does_llama_3_70b_train_on_15_trillion_tokens_and_what_does_it_cost() {
    let degrees = "--tensor-model-parallel-size 8 --pipeline-model-parallel-size 4 --overlap-grad-reduce";
    let text = LLAMA_3_70B_ARGUMENTS.replace("--global-batch-size 128", "--global-batch-size 1024");
    let mut request = job(&format!("{text} {degrees}"), 2048);
    request.budget = Some(Budget { tokens: 15e12, goodput: 0.9, price_per_hour: 2.0 });
    let run = check(&request).await.run.expect("the job fits");
    let hours = run.expected.device_hours;
    assert!((3.2e6..6.4e6).contains(&hours), "{hours}");
    assert!((run.expected.days - hours / 2048.0 / 24.0).abs() < 1e-6);
    assert!((run.expected.money - 2.0 * hours).abs() < 1.0);
    assert!(run.low.days < run.expected.days && run.expected.days < run.high.days);
    // 15 trillion tokens in steps of 1,024 sequences of 8,192 tokens.
    assert!((run.steps - (15e12_f64 / (1024.0 * 8192.0)).ceil()).abs() < 0.5, "{}", run.steps);
}
