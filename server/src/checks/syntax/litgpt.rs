//! Keys of litgpt. Its programs fix sharding and recomputation.

use super::{Setting, Target};
use crate::checks::expected::{GLOBAL_BATCH, REPLICAS};

pub(super) fn settings(target: &Target, field: &str) -> Option<Vec<Setting>> {
    match field {
        "/layout/microbatch" => {
            Some(vec![Setting::set(&["train.micro_batch_size"], target.scenario.layout.microbatch?)])
        }
        GLOBAL_BATCH => Some(vec![Setting::set(&["train.global_batch_size"], target.scenario.workload.global_batch)]),
        REPLICAS => Some(Vec::new()),
        _ => None,
    }
}
