//! Tests with published profiles in the folder `PLANSCOPE_DATA`.

use std::path::PathBuf;

use ingest::profile::{Format, Hints, Kinds, Profile, ProfileError, layers, read};
use planner::cost::kernel::{Kernel, Product};

/// Parses a published file, or returns `None` if the folder is not available.
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

/// Checks the format and the number of used and rejected values.
fn counts(path: &str, format: Format, used: u64, rejected: u64) -> Option<Profile> {
    let profile = published(path)?.unwrap_or_else(|error| panic!("{path}: {error}"));
    assert_eq!(profile.format, format, "{path}");
    assert_eq!((profile.report.used, profile.report.rows), (used, used + rejected), "{path}: {:?}", profile.report);
    Some(profile)
}

/// Returns TFLOP/s of matching product and attention samples.
fn rates(profile: &Profile, is_selected: impl Fn(&Kernel) -> bool) -> Vec<f64> {
    let measured = profile.samples.iter().filter(|sample| is_selected(&sample.kernel));
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

fn max_rate(rates: &[f64]) -> f64 {
    rates.iter().copied().fold(0.0, f64::max)
}

/// 1,044 rows with ten operators. Products remain below the peaks, 312 and 989 TFLOP/s, and
/// approach them.
#[test]
fn vidur_products_run_at_device_rates() {
    for (device, peak) in [("a100", 312.0), ("h100", 989.0)] {
        for model in ["Qwen__Qwen-72B", "meta-llama__Llama-2-70b-hf", "meta-llama__Llama-2-7b-hf"] {
            let path = format!("operators/compute_{device}__{model}__mlp.csv");
            let Some(profile) = counts(&path, Format::VidurCompute, 10_440, 0) else { return };
            assert_eq!(profile.report.by_kind, Kinds { matmul: 4176, streaming: 6264, ..Kinds::default() });
            assert_eq!(profile.device, Some(device.to_uppercase()));
            let best = max_rate(&rates(&profile, |_| true));
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

/// The GPU count from bus bandwidths equals the count in the file name.
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

/// Both measure a 64 MiB all-reduce among 8 devices on the same machines. If Vidur sizes were
/// element counts, its rate would be twice as high.
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

/// A100 causal attention reaches 185 TFLOP/s forward and 157 backward, equal to FlashAttention-2.
#[test]
fn simumax_attention_is_counted_as_it_was() {
    let Some(profile) = counts("operators/simumax_a100_pcie.json", Format::SimuMax, 219, 11) else { return };
    assert_eq!(profile.report.by_kind, Kinds { matmul: 195, attention: 24, ..Kinds::default() });
    for (backward, expected) in [(false, 185.2), (true, 156.8)] {
        let best =
            max_rate(&rates(&profile, |kernel| matches!(kernel, Kernel::Attention(a) if a.backward == backward)));
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
fn files_without_times_are_rejected() {
    for (path, message) in [
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
        assert!(error.contains(message), "{path}: {error}");
    }
}

/// Galvatron profile with two layers by samples per microbatch, and memory by layout and rank
/// (counted with Python's json). Derived values are skipped.
#[test]
fn full_layers_are_read() {
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
