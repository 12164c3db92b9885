//! Tests of the list of values that a row does not state.

use super::super::read;

fn defaults(table: &str) -> Vec<String> {
    let row = read(table.as_bytes()).unwrap().rows().next().unwrap();
    row.configuration.as_ref().unwrap_or_else(|reason| panic!("{table}: {reason}"));
    row.defaults.split("; ").map(str::to_owned).collect()
}

#[test]
fn values_with_an_effect_are_listed() {
    let plain = defaults("gpu,n_gpus\nh100,16\n");
    for term in [
        "tp 1",
        "pp 1",
        "cp 1",
        "dp 16",
        "gpus_per_node 8",
        "causal true",
        "head_size 128",
        "norm layer",
        "gated false",
        "bias all",
        "positions learned",
        "shard_degree 16",
        "chunked_loss false",
        "n_experts 0",
        "network_gb_per_s 50",
    ] {
        assert!(plain.iter().any(|it| it == term), "{term}: {plain:?}");
    }
    // Values without effect: TP, PP and CP are 1, and there are no experts.
    for column in ["vpp", "send_overlap", "sequence_parallel", "cp_exchange", "top_k", "router_skew", "host_memory_gib"]
    {
        assert!(!plain.iter().any(|it| it.starts_with(&format!("{column} "))), "{column}: {plain:?}");
    }
    let experts = defaults("n_experts,pp,dp,ep,layers\n8,5,8,8,32\n");
    for term in ["top_k 2", "router_skew 1", "n_gpus 40", "send_overlap false", "layers_per_stage 7*2 6*3", "vpp 1"] {
        assert!(experts.iter().any(|it| it == term), "{term}: {experts:?}");
    }
}

/// A known name is a preset, whether or not the row states layers and hidden. Stated columns replace its values.
#[test]
fn a_known_model_is_named() {
    for table in ["model\nllama-3-8b\n", "model,layers,hidden\nllama-3-8b,32,4096\n"] {
        let row = read(table.as_bytes()).unwrap().rows().next().unwrap();
        assert_eq!(row.configuration.unwrap().model.modules[0].ffn, 14_336);
        assert!(row.defaults.starts_with("preset Llama-3 8B; "), "{}", row.defaults);
    }
    let published = "model,layers,hidden\nmeta-llama/Llama-3.1-8B,16,4096\n";
    let row = read(published.as_bytes()).unwrap().rows().next().unwrap();
    let module = row.configuration.unwrap().model.modules[0].clone();
    assert_eq!((module.layers, module.ffn, module.kv_heads), (16, 14_336, 8));
    assert!(defaults("model,layers,hidden\nrun 17,16,4096\n").contains(&"model is a label".to_owned()));
}

/// "A100" has 40 or 80 GB.
#[test]
fn a_general_name_of_devices_is_specified() {
    assert!(defaults("gpu\nA100\n").contains(&"gpu A100-80GB".to_owned()));
    assert!(!defaults("gpu\nA100-40GB\n").iter().any(|it| it.starts_with("gpu ")));
}
