//! Tests of columns that depend on others.

use planner::training::{Fp8Recipe, RecomputedModule};

use super::with;

/// NVLink of a rack connects all its hosts of 4 devices.
#[test]
fn hosts_of_a_rack_share_a_fast_link() {
    for (devices, per_node, expected) in [
        ("72", "4", (1, 72)),
        ("512", "4", (8, 64)),
        ("8", "", (1, 8)),
        ("144", "72", (2, 72)),
        ("76", "4", (19, 4)),
        ("100", "", (5, 20)),
        ("144", "36", (4, 36)),
    ] {
        let columns = [("gpu", "GB200 NVL72"), ("n_gpus", devices), ("gpus_per_node", per_node)];
        let cluster = with(&columns).unwrap().cluster;
        assert_eq!((cluster.nodes, cluster.devices_per_node), expected, "{devices} {per_node}");
    }
}

/// Columns that need others.
#[test]
fn columns_of_experts_adapters_and_fp8_are_read() {
    let module = |columns: &[(&str, &str)]| with(columns).unwrap().model.modules[0].clone();
    let experts = module(&[
        ("n_experts", "64"),
        ("ffn", "1024"),
        ("dense_ffn", "8192"),
        ("dense_layers", "1"),
        ("experts_every", "2"),
    ]);
    let moe = experts.moe.unwrap();
    assert_eq!((experts.ffn, moe.expert_width, moe.dense_layers, moe.every), (8192, Some(1024), 1, 2));
    let adapters = module(&[("lora_rank", "8"), ("lora_targets", "attention"), ("base_bits", "4")]).adapters.unwrap();
    assert_eq!((adapters.rank, adapters.mlp, adapters.base_bits), (8, false, Some(4)));
    let windows = module(&[("window", "1024"), ("full_every", "6")]).window.unwrap();
    assert_eq!((windows.tokens, windows.full_every), (1024, 6));
    let fp8 =
        with(&[("gpu", "h100"), ("precision", "fp8"), ("fp8_recipe", "rowwise"), ("fp8_params", "true")]).unwrap();
    assert_eq!((fp8.training.fp8_recipe, fp8.training.fp8_weights), (Some(Fp8Recipe::Rowwise), true));
    let modules = with(&[("recompute", "selective"), ("recompute_modules", "core_attn layernorm")]).unwrap();
    let expected = [RecomputedModule::CoreAttn, RecomputedModule::Layernorm];
    assert_eq!(modules.training.recompute_modules, expected);
    for (columns, says) in [
        (&[("fp8_recipe", "rowwise")][..], "fp8_recipe: needs precision fp8"),
        (&[("fp8_weights", "true")], "fp8_weights: needs precision fp8"),
        (&[("full_every", "6")], "full_every: needs window above 0"),
        (&[("q_lora_rank", "1536")], "q_lora_rank: needs kv_lora_rank above 0"),
        (&[("base_bits", "4")], "base_bits: needs lora_rank above 0"),
        (&[("lora_rank", "8"), ("base_bits", "5")], "base_bits: 5 is neither 4 nor 8"),
        (&[("lora_targets", "attention")], "lora_targets: needs lora_rank above 0"),
        (&[("recompute_modules", "mlp")], "recompute_modules: needs recompute selective"),
        (&[("cp", "3"), ("seq_len", "3072"), ("cp_exchange", "all_to_all")], "cp_exchange: all_to_all: cp 3 does not"),
    ] {
        let reason = with(columns).expect_err(says);
        assert!(reason.starts_with(says), "{reason}, not {says}");
    }
}

/// Latent attention has keys and values of all heads, whatever the row says. Default values need no other column.
#[test]
fn latent_attention_replaces_heads_of_keys() {
    let with_kv = |kv_heads: &str| with(&[("kv_lora_rank", "512"), ("kv_heads", kv_heads)]).unwrap();
    assert_eq!(with_kv("8"), with_kv("32"));
    let says = with(&[("kv_lora_rank", "512"), ("head_size", "64")]).unwrap_err();
    assert!(says.starts_with("head_size: contradicts kv_lora_rank"), "{says}");
    let plain = with(&[("dp", "1")]).unwrap();
    for defaults in [
        &[("window", "0"), ("full_every", "0")][..],
        &[("q_lora_rank", "0")],
        &[("lora_rank", "0"), ("lora_targets", "all")],
    ] {
        assert_eq!(with(defaults).unwrap(), plain, "{defaults:?}");
    }
}

#[test]
fn offloaded_activations_need_host_memory() {
    let feasible = |gib: &str| {
        let columns = [("activation_offload", "1"), ("host_memory_gib", gib), ("layers", "4"), ("microbatch", "4")];
        planner::estimate::estimate(&with(&columns).unwrap()).unwrap().infeasibility
    };
    let says = feasible("1").expect("1 GiB is not enough");
    assert!(says.contains("host memory"), "{says}");
    assert!(!feasible("2000").is_some_and(|says| says.contains("host memory")));
}
