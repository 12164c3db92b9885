//! Profiles as their authors published them, in the folder that PLANSCOPE_DATA names.

use std::path::PathBuf;

use ingest::profile::{Format, Hints, Kinds, Profile, ProfileError, layers, read};
use planner::cost::kernel::{Kernel, Product};

/// The published file, or `None` where there is no folder of them.
fn published(path: &str) -> Option<Result<Profile, ProfileError>> {
    let Some(folder) = std::env::var_os("PLANSCOPE_DATA") else {
        eprintln!("skipped: PLANSCOPE_DATA is not set, so {path} is not read");
        return None;
    };
    let path = PathBuf::from(folder).join("data").join(path);
    let bytes = std::fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    Some(read(&bytes, &Hints { name, ..Hints::default() }))
}

/// Whether a file is read as this format, with so many values used and refused.
fn counts(path: &str, format: Format, used: u64, refused: u64) -> Option<Profile> {
    let profile = published(path)?.unwrap_or_else(|error| panic!("{path}: {error}"));
    assert_eq!(profile.format, format, "{path}");
    assert_eq!((profile.report.used, profile.report.rows), (used, used + refused), "{path}: {:?}", profile.report);
    Some(profile)
}

/// Rates in TFLOP/s of products and attention that pass the filter.
fn rates(profile: &Profile, of: impl Fn(&Kernel) -> bool) -> Vec<f64> {
    let measured = profile.samples.iter().filter(|sample| of(&sample.kernel));
    measured
        .filter_map(|sample| {
            let flops = match &sample.kernel {
                Kernel::MatMul(product) => product.flops(),
                Kernel::Attention(attention) => attention.flops(),
                Kernel::Streaming(_) | Kernel::Collective(_) => return None,
            };
            Some(flops / sample.time.secs() / 1e12)
        })
        .collect()
}

fn largest(rates: &[f64]) -> f64 {
    rates.iter().copied().fold(0.0, f64::max)
}

/// 1,044 rows of ten operators; products stay below the peaks of 312 and 989 TFLOP/s and come near them.
#[test]
fn vidur_products_run_at_what_the_devices_can_do() {
    for (device, peak) in [("a100", 312.0), ("h100", 989.0)] {
        for model in ["Qwen__Qwen-72B", "meta-llama__Llama-2-70b-hf", "meta-llama__Llama-2-7b-hf"] {
            let path = format!("operators/compute_{device}__{model}__mlp.csv");
            let Some(profile) = counts(&path, Format::VidurCompute, 10_440, 0) else { return };
            assert_eq!(profile.report.by_kind, Kinds { matmul: 4176, streaming: 6264, ..Kinds::default() });
            assert_eq!(profile.device, Some(device.to_uppercase()));
            let best = largest(&rates(&profile, |_| true));
            assert!((0.7 * peak..peak).contains(&best), "{path}: {best}");
        }
    }
}

#[test]
fn vidur_collectives_are_all_read() {
    for (path, used) in [
        ("a100_dgx__all_reduce", 6958),
        ("a100_dgx__send_recv", 1988),
        ("h100_dgx__all_reduce", 2982),
        ("h100_dgx__send_recv", 1988),
    ] {
        counts(&format!("collectives/network_{path}.csv"), Format::VidurNetwork, used, 0);
    }
}

/// The number of GPUs follows from the bus bandwidths and is that of the name.
#[test]
fn vtrain_tables_tell_their_devices() {
    for gpus in 2..=8 {
        let path = format!("collectives/vtrain_allreduce_a100/AR_GPU{gpus}_1M_1024M_LUT");
        let Some(profile) = counts(&path, Format::VtrainAllReduce, 1024, 0) else { return };
        for sample in &profile.samples {
            assert!(matches!(sample.kernel, Kernel::Collective(collective) if collective.ranks == gpus));
        }
    }
}

/// The two measure the same machines' all-reduce of 64 MiB among 8: were Vidur's sizes elements, it would be twice as fast.
#[test]
fn vidur_sizes_are_bytes() {
    let times = ["network_a100_dgx__all_reduce.csv", "vtrain_allreduce_a100/AR_GPU8_1M_1024M_LUT"].map(|path| {
        let profile = published(&format!("collectives/{path}"))?.ok()?;
        let found = profile.samples.into_iter().find(|sample| {
            matches!(sample.kernel, Kernel::Collective(c) if (c.ranks, c.ranks_per_node) == (8, 8) && (c.bytes - 67_108_864.0).abs() < 0.5)
        });
        found.map(|sample| sample.time.secs())
    });
    let [Some(vidur), Some(vtrain)] = times else { return };
    assert!((1.0..1.3).contains(&(vidur / vtrain)), "{vidur} {vtrain}");
}

/// Of the A100: causal attention at up to 185 TFLOP/s forward and 157 backward, as FlashAttention-2 does.
#[test]
fn simumax_attention_is_counted_as_it_was() {
    let Some(profile) = counts("operators/simumax_a100_pcie.json", Format::SimuMax, 219, 11) else { return };
    assert_eq!(profile.report.by_kind, Kinds { matmul: 195, attention: 24, ..Kinds::default() });
    for (backward, expected) in [(false, 185.2), (true, 156.8)] {
        let best = largest(&rates(&profile, |kernel| matches!(kernel, Kernel::Attention(a) if a.backward == backward)));
        assert!((best - expected).abs() < 0.1, "{best}");
    }
    let gradients = rates(&profile, |kernel| matches!(kernel, Kernel::MatMul(p) if p.product == Product::WeightGrad));
    assert_eq!(gradients.len(), 65);
    counts("operators/simumax_b200_bf16.json", Format::SimuMax, 686, 11);
}

#[test]
fn galvatron_times_are_read() {
    counts("collectives/sp_time_1nodes_8gpus_per_node.json", Format::Galvatron, 66, 0);
    for (name, values) in [
        ("allreduce_bandwidth_1nodes", 5),
        ("allreduce_bandwidth_2nodes", 7),
        ("p2p_bandwidth_1nodes", 3),
        ("p2p_bandwidth_2nodes", 4),
    ] {
        counts(&format!("collectives/{name}_8gpus_per_node.json"), Format::Galvatron, values, 0);
    }
}

#[test]
fn what_holds_no_times_is_refused() {
    for (path, told) in [
        ("collectives/overlap_coefficient.json", "overlap coefficient"),
        ("collectives/ata_ratio.csv", "SimAI table of ratios"),
        ("collectives/nic_ratio.csv", "SimAI table of ratios"),
        ("collectives/nvlink_ratio.csv", "SimAI table of ratios"),
        ("profiles/computation_profiling_bf16_llama2-7b_all.json", "whole layers"),
        ("profiles/memory_profiling_bf16_llama2-7b_all.json", "whole layers"),
        ("lengths/splitwise_code.csv", "no known profile"),
        ("traces/sampled_rank-0.json.gz", "gzip"),
    ] {
        let Some(result) = published(path) else { return };
        let error = result.map(|profile| profile.report).expect_err(path).to_string();
        assert!(error.contains(told), "{path}: {error}");
    }
}

/// Galvatron's profile of two layers by samples of a microbatch, and of memory by layout and rank (counted with Python's
/// json): what it derives from them is left out.
#[test]
fn whole_layers_are_read_as_such() {
    let Some(folder) = std::env::var_os("PLANSCOPE_DATA") else { return };
    for (name, timings, footprints, first) in [
        ("computation_profiling_bf16_llama2-7b_all.json", 24, 0, 0.015_078_620_815_277_1),
        ("memory_profiling_bf16_llama2-7b_all.json", 0, 144, 0.0),
    ] {
        let path = PathBuf::from(&folder).join("data/profiles").join(name);
        let bytes = std::fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        let profile = layers::read(&bytes, &Hints::default()).unwrap_or_else(|error| panic!("{name}: {error}"));
        assert_eq!((profile.timings.len(), profile.footprints.len()), (timings, footprints), "{:?}", profile.report);
        let found = profile.timings.first().and_then(|timing| timing.forward_s).unwrap_or_default();
        assert!((found - first).abs() < 1e-15, "{found}");
    }
}
