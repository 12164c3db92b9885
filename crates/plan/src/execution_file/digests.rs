//! Digests of the fields that the simulation of a file cannot check.

use std::collections::BTreeMap;

use serde::Serialize;
use sha2::{Digest, Sha256};

use super::{ExecutionFile, Run};

/// Domain separation for the hash.
const DOMAIN: &[u8] = b"planscope execution plan field\0";
/// Bytes of a digest.
const BYTES: usize = 8;

impl ExecutionFile {
    /// Returns the file with the digests of its fields.
    #[must_use]
    pub fn with_digests(mut self) -> Self {
        self.digests = self.field_digests();
        self
    }

    /// Returns the digests of the fields by name: SHA-256 of the name and the JSON of the value, the first 8 bytes in
    /// hexadecimal. Actions and most costs have none, because the simulation compares them.
    pub fn field_digests(&self) -> BTreeMap<String, String> {
        let runs = |value: fn(&Run) -> serde_json::Value| self.runs.iter().map(value).collect::<Vec<_>>();
        let ranks = |run: &Run| {
            let rank = |rank: &super::RankRun| (rank.devices, rank.phase, rank.sync_group, rank.static_bytes);
            json(&run.ranks.iter().map(rank).collect::<Vec<_>>())
        };
        // The peak memory and the times need not depend on each of these costs.
        let costs = |run: &Run| {
            let columns = run.microbatches.iter().map(|costs| (&costs.send_backward_ns, &costs.transient_bytes));
            json(&(columns.collect::<Vec<_>>(), &run.buffers, run.overlapped_ppm))
        };
        let activations = |run: &Run| {
            let columns = run.microbatches.iter().map(|costs| (&costs.send_forward_ns, &costs.activation_bytes));
            json(&columns.collect::<Vec<_>>())
        };
        let fields = [
            ("engine", json(&self.engine)),
            ("scenario", json(&self.scenario)),
            ("planner", json(&self.planner)),
            ("source", json(&self.source)),
            ("iteration", json(&self.iteration)),
            ("devices", json(&self.devices)),
            ("modules", json(&self.modules)),
            ("layout", json(&self.layout)),
            ("module_layouts", json(&self.module_layouts)),
            ("activations", json(&self.activations)),
            ("sharding", json(&self.sharding)),
            ("runs.activations", json(&runs(activations))),
            ("runs.costs", json(&runs(costs))),
            ("runs.pipelines", json(&runs(|run| json(&run.pipelines)))),
            ("runs.groups", json(&runs(|run| json(&run.groups)))),
            ("runs.stages", json(&runs(|run| json(&run.stages)))),
            ("runs.ranks", json(&runs(ranks))),
            ("replicas", json(&self.replicas)),
        ];
        fields.into_iter().map(|(name, value)| (name.to_owned(), digest(name, &value))).collect()
    }
}

fn json(value: &impl Serialize) -> serde_json::Value {
    serde_json::to_value(value).expect("the fields of a file have only text keys")
}

fn digest(name: &str, value: &serde_json::Value) -> String {
    let hash =
        Sha256::new().chain_update(DOMAIN).chain_update(name).chain_update(b"\0").chain_update(value.to_string());
    data_encoding::HEXLOWER.encode(&hash.finalize()[..BYTES])
}
