//! Tests of cells that contradict each other, and of kernels that a device does not have.

use planner::estimate::estimate;
use planner::model::Model;
use planner::training::{AttentionKernel, Framework, MasterWeights, Recompute};

use super::{row, with};

#[test]
fn contradictions_are_errors() {
    for (columns, says) in [
        (
            &[("dp", "2"), ("zero", "3"), ("parameter_offload", "true"), ("optimizer_offload", "0")][..],
            "optimizer_offload: 0 contradicts parameter_offload true",
        ),
        (&[("framework", "fsdp"), ("fsdp", "false")], "fsdp: false contradicts the framework, which is FSDP"),
        (&[("n_experts", "8"), ("router_skew", "1.5")], "router_skew: 1.5 exceeds ep 1"),
        (&[("n_experts", "8"), ("dp", "4"), ("ep", "4"), ("router_skew", "5")], "router_skew: 5 exceeds ep 4"),
        (
            &[("n_experts", "8"), ("top_k", "4"), ("dp", "4"), ("ep", "4"), ("router_skew", "3")],
            "router_skew: 3 exceeds 8 experts / top_k 4",
        ),
        (&[("n_experts", "8"), ("dense_layers", "32")], "dense_layers: 32 of 32 layers leave no layer with experts"),
        (&[("n_experts", "8"), ("experts_every", "33")], "experts_every: 33 exceeds the 32 layers"),
        (&[("window", "64"), ("full_every", "33")], "full_every: 33 exceeds 32 layers"),
        (&[("preset", "deepseek-v3"), ("ffn", "4096"), ("dense_ffn", "8192")], "dense_ffn: 8192 contradicts ffn 4096"),
        (&[("preset", "llama-3-8b"), ("model", "llama-3-70b")], "model: Llama-3 70B contradicts preset Llama-3 8B"),
        (&[("framework", "Megatron-FSDP")], "framework: \"Megatron-FSDP\" is none of megatron, "),
        (&[("gpu", "V100")], "gpu: \"V100\" is ambiguous: v100-16gb or v100-32gb"),
    ] {
        let reason = with(columns).expect_err(says);
        assert!(reason.starts_with(says), "{reason}, not {says}");
    }
    assert!(with(&[("n_experts", "8"), ("dp", "4"), ("ep", "4"), ("router_skew", "4")]).is_ok());
    assert!(with(&[("preset", "llama-3-8b"), ("model", "run 17")]).is_ok());
}

#[test]
fn unknown_values_have_suggestions() {
    for (column, value, meant) in [
        ("gpu", "h1000", "h100"),
        ("model", "lama-3-8b", "llama-3-8b"),
        ("framework", "megatorn", "megatron"),
        ("recompute", "selectve", "selective"),
    ] {
        let reason = with(&[(column, value)]).unwrap_err();
        assert!(reason.contains(&format!("did you mean {meant}?")), "{reason}");
    }
}

#[test]
fn two_headings_of_a_column_have_one_value() {
    assert_eq!(row("tp,TP size\n2,4\n"), Err("tp: two values in the row, \"2\" and \"4\"".to_owned()));
    assert_eq!(row("tp,TP size\n2,2\n").unwrap().layout.tensor, 2);
    // The other heading states what the first does not.
    assert_eq!(row("tp,TP size\n,4\n").unwrap().layout.tensor, 4);
    for table in [
        "gpu,device\nh100,NVIDIA H100 80GB HBM3\n",
        "memory_reserve_gib,Reserved memory (GB)\n4,4.295\n",
        "precision,dtype\nbf16,bfloat16\n",
        "seq_len,Max seq len\n8192,\"8,192\"\n",
    ] {
        assert!(row(table).is_ok(), "{table}");
    }
    assert!(row("gpu,device\nh100,a100\n").unwrap_err().starts_with("gpu: two values in the row"));
}

#[test]
fn kernels_need_a_device_that_has_them() {
    let kernel =
        |gpu: &str, attention: &str| with(&[("gpu", gpu), ("attention", attention)]).map(|it| it.training.attention);
    for (gpu, attention) in [
        ("a100", "flash3"),
        ("mi300x", "flash3"),
        ("l40s", "flash3"),
        ("mi300x", "cudnn"),
        ("v100-16gb", "flash2"),
        ("tpu-v5p", "flash2"),
    ] {
        assert!(kernel(gpu, attention).is_err_and(|says| says.starts_with("attention: ")), "{gpu} {attention}");
    }
    assert_eq!(kernel("h100", "flash3"), Ok(AttentionKernel::Flash3));
    assert_eq!(kernel("mi300x", "flash2"), Ok(AttentionKernel::Flash2));
    assert!(kernel("v100-16gb", "flash").is_ok());
    let recipe = |gpu: &str| with(&[("gpu", gpu), ("precision", "fp8"), ("fp8_recipe", "mxfp8")]).map(drop);
    assert_eq!(
        recipe("h100"),
        Err("fp8_recipe: H100 has no mxfp8, which needs B200, MI355X or a newer device".to_owned())
    );
    assert!(recipe("b200").is_ok());
}

#[test]
fn words_of_engineers_are_read() {
    for text in ["FlashAttention-2", "FlashAttention 2", "flash_attn_2", "fa2", "Flash-Attn2"] {
        assert_eq!(with(&[("attention", text)]).unwrap().training.attention, AttentionKernel::Flash2, "{text}");
    }
    for (texts, recompute) in
        [(["yes", "true", "on", "1"], Recompute::Full), (["no", "false", "off", "0"], Recompute::None)]
    {
        for text in texts {
            assert_eq!(with(&[("recompute", text)]).unwrap().training.recompute, recompute, "{text}");
        }
    }
    let masters = |columns: &[(&str, &str)]| with(columns).unwrap().training.master_weights;
    assert_eq!(masters(&[("precision", "bf16-true")]), MasterWeights::None);
    assert_eq!(masters(&[("precision", "16-true")]), MasterWeights::None);
    assert_eq!(masters(&[("precision", "bf16-mixed")]), MasterWeights::Fp32);
    assert_eq!(masters(&[("precision", "bf16-true"), ("master_weights", "fp32")]), MasterWeights::Fp32);
}

#[test]
fn fsdp_with_zero_2_is_stage_2() {
    let by_flag = with(&[("dp", "8"), ("fsdp", "true"), ("zero", "2")]).unwrap();
    assert_eq!((by_flag.training.zero_stage(), by_flag.training.framework), (2, Framework::Fsdp));
    assert_eq!(by_flag, with(&[("dp", "8"), ("framework", "fsdp"), ("zero", "2")]).unwrap());
    assert_eq!(with(&[("dp", "8"), ("fsdp", "true")]).unwrap().training.zero_stage(), 3);
}

/// In a preset with experts, `ffn` is the width of layers without experts.
#[test]
fn ffn_does_not_change_experts_of_a_preset() {
    let model = |columns: &[(&str, &str)]| -> Model { with(columns).unwrap().model };
    let parameters = |columns: &[(&str, &str)]| model(columns).parameters();
    for preset in ["mixtral-8x7b", "qwen3-30b-a3b"] {
        assert_eq!(parameters(&[("preset", preset), ("ffn", "4096")]), parameters(&[("preset", preset)]), "{preset}");
    }
    let deepseek = |columns: &[(&str, &str)]| {
        let mut all = vec![("preset", "deepseek-v3")];
        all.extend(columns);
        let module = model(&all).modules[0].clone();
        (module.ffn, module.moe.unwrap().expert_width)
    };
    assert_eq!(deepseek(&[("ffn", "4096")]), (4096, Some(2048)));
    assert_eq!(deepseek(&[("dense_ffn", "4096")]), (4096, Some(2048)));
    // The width of an expert.
    assert_eq!(deepseek(&[("ffn", "2048")]), (18432, Some(2048)));
    assert_eq!(deepseek(&[("ffn", "2048"), ("dense_ffn", "18432")]), (18432, Some(2048)));
    assert_eq!(deepseek(&[("expert_ffn", "1024")]), (18_432, Some(1024)));
    // Without a preset, `ffn` is the width of all layers.
    let own = model(&[("n_experts", "8"), ("ffn", "1024")]).modules[0].clone();
    assert_eq!((own.ffn, own.moe.unwrap().expert_width), (1024, None));
}

/// The first stages have the layers that PP does not divide, and no split is faster than the best.
#[test]
fn uneven_stages_begin_with_the_longer_ones() {
    let time = |split: &str| {
        let columns = [("pp", "5"), ("n_gpus", "40"), ("layers_per_stage", split), ("vocab", "128000")];
        let configuration = with(&columns).unwrap();
        (estimate(&configuration).unwrap().iteration.secs(), planner::estimate::layers_per_stage(&configuration))
    };
    let (natural, split) = time("");
    assert_eq!(split, Some(vec![7, 7, 6, 6, 6]));
    assert!((natural - time("7*2 6*3").0).abs() < 1e-12);
    // The last stage also has the output head.
    assert!(time("7*4 4").0 < natural);
}

#[test]
fn a_single_rank_has_no_bubble() {
    for columns in [&[("tp", "8"), ("gpu", "h100")][..], &[("dp", "8"), ("preset", "llama-3-8b")]] {
        let estimate = estimate(&with(columns).unwrap()).unwrap();
        assert!(estimate.bubble_fraction == 0.0 || estimate.bubble_fraction > 1e-9, "{}", estimate.bubble_fraction);
    }
}
