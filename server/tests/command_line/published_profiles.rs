//! Runs `planscope calibrate` on published profiles in the folder `PLANSCOPE_DATA`. The results
//! must match the device presets.

use std::path::{Path, PathBuf};
use std::process::Command;

use planner::calibration::Sample;
use planner::cluster::{Cluster, presets};
use planner::cost::Group;
use planner::cost::kernel::Kernel;
use planner::cost::operator::Rates;

/// Maximum relative difference between a fitted parameter and the preset.
const FIGURE: f64 = 0.02;
/// Maximum mean relative difference between predicted times, for parameters that the timings do not
/// determine well.
const TIME: f64 = 0.01;

/// JSON pointers of the parameters in a part.
type FieldPaths = &'static [&'static str];

const MATMUL: FieldPaths = &["/device/matmul_efficiency", "/device/launch_us", "/device/curves/matmul"];
const GRADIENTS: FieldPaths =
    &["/device/curves/matmul/input_grad", "/device/curves/matmul/weight_grad", "/device/curves/matmul/grouped"];
const ATTENTION: FieldPaths = &["/device/attention_efficiency", "/device/curves/attention"];
const STREAMS: FieldPaths = &["/device/memory_efficiency"];
const COLLECTIVES: FieldPaths = &["/intra_node/efficiency", "/intra_node/curve"];

struct Data(PathBuf);

impl Data {
    /// Returns the folder with published profiles, if available.
    fn find() -> Option<Self> {
        let folder = std::env::var_os("PLANSCOPE_DATA").map(|data| Self(Path::new(&data).join("data")));
        if folder.is_none() {
            eprintln!("skipped: PLANSCOPE_DATA is not set, so there are no profiles");
        }
        folder
    }

    /// Lists files in a folder by name prefix, in name order.
    fn files(&self, folder: &str, start: &str) -> Vec<PathBuf> {
        let folder = std::fs::read_dir(self.0.join(folder)).unwrap();
        let mut files: Vec<PathBuf> = folder.map(|entry| entry.unwrap().path()).collect();
        files.retain(|path| path.file_name().unwrap().to_string_lossy().starts_with(start));
        files.sort();
        assert!(!files.is_empty(), "{start}");
        files
    }
}

/// Calibrates a cluster from profiles.
fn calibrate(profiles: &[PathBuf], start: [&str; 2]) -> Cluster {
    let output =
        Command::new(env!("CARGO_BIN_EXE_planscope")).arg("calibrate").args(profiles).args(start).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

fn samples(profiles: &[PathBuf]) -> Vec<Sample> {
    let read = |path: &PathBuf| {
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        let hints = ingest::profile::Hints { name, ..Default::default() };
        ingest::profile::read(&std::fs::read(path).unwrap(), &hints).unwrap().samples
    };
    profiles.iter().flat_map(read).collect()
}

fn predicted(cluster: &Cluster, sample: &Sample) -> f64 {
    match sample.kernel {
        Kernel::Collective(collective) => Group::spread(cluster, collective.ranks, collective.ranks_per_node)
            .time(collective.operation, collective.bytes)
            .secs(),
        kernel => Rates::new(&cluster.device).time(&kernel).secs(),
    }
}

/// Checks that all parameters match the preset, or that the predicted times match.
fn agree(fitted: &Cluster, shipped: &Cluster, paths: FieldPaths, samples: &[Sample], part: fn(&Kernel) -> bool) {
    let [ours, theirs] = [fitted, shipped].map(|cluster| serde_json::to_value(cluster).unwrap());
    let numbers = |value: &serde_json::Value| -> Vec<f64> {
        match value {
            serde_json::Value::Object(fields) => fields.values().filter_map(serde_json::Value::as_f64).collect(),
            number => number.as_f64().into_iter().collect(),
        }
    };
    let mut differences = Vec::new();
    for pointer in paths {
        let [ours, theirs] = [&ours, &theirs].map(|cluster| numbers(cluster.pointer(pointer).unwrap()));
        assert!(!ours.is_empty() && ours.len() == theirs.len(), "{pointer}");
        if ours.iter().zip(&theirs).any(|(ours, theirs)| (ours - theirs).abs() > FIGURE * theirs.abs()) {
            differences.push(format!("{pointer}: {ours:?}, preset {theirs:?}"));
        }
    }
    let part_samples: Vec<&Sample> = samples.iter().filter(|sample| part(&sample.kernel)).collect();
    assert!(!part_samples.is_empty(), "{paths:?}");
    let ratio = |sample: &&Sample| (predicted(fitted, sample) / predicted(shipped, sample) - 1.0).abs();
    let mean = part_samples.iter().map(ratio).sum::<f64>() / part_samples.len() as f64;
    eprintln!(
        "{}: times differ by {:.3} % on average; {} of {} figures apart",
        shipped.name,
        mean * 100.0,
        differences.len(),
        paths.len()
    );
    assert!(differences.is_empty() || mean <= TIME, "times differ by {mean}: {}", differences.join("; "));
}

const fn is_product(kernel: &Kernel) -> bool {
    matches!(kernel, Kernel::MatMul(_))
}

const fn is_attention(kernel: &Kernel) -> bool {
    matches!(kernel, Kernel::Attention(_))
}

const fn is_stream(kernel: &Kernel) -> bool {
    matches!(kernel, Kernel::Streaming(_))
}

const fn is_collective(kernel: &Kernel) -> bool {
    matches!(kernel, Kernel::Collective(_))
}

#[test]
fn an_a100_is_fitted_in_two_steps() {
    let Some(data) = Data::find() else { return };
    let shipped = presets::cluster("a100-80gb").unwrap();
    let pcie = data.files("operators", "simumax_a100_pcie.json");
    let first = calibrate(&pcie, ["--device", "a100-80gb"]);
    let folder = tempfile::tempdir().unwrap();
    let from = folder.path().join("first.json");
    std::fs::write(&from, serde_json::to_vec(&first).unwrap()).unwrap();
    let mut sxm = data.files("operators", "compute_a100");
    sxm.extend(data.files("collectives/vtrain_allreduce_a100", "AR_"));
    sxm.extend(data.files("collectives", "sp_time"));
    let fitted = calibrate(&sxm, ["--from", from.to_str().unwrap()]);
    let (early, late) = (samples(&pcie), samples(&sxm));
    agree(&fitted, &shipped, MATMUL, &late, is_product);
    agree(&fitted, &shipped, GRADIENTS, &early, is_product);
    agree(&fitted, &shipped, ATTENTION, &early, is_attention);
    agree(&fitted, &shipped, STREAMS, &late, is_stream);
    agree(&fitted, &shipped, COLLECTIVES, &late, is_collective);
}

#[test]
fn an_h100_is_fitted_without_attention() {
    let Some(data) = Data::find() else { return };
    let shipped = presets::cluster("h100").unwrap();
    let mut files = data.files("operators", "compute_h100");
    files.extend(data.files("collectives", "network_h100_dgx__all_reduce.csv"));
    let fitted = calibrate(&files, ["--device", "h100"]);
    let samples = samples(&files);
    agree(&fitted, &shipped, MATMUL, &samples, is_product);
    agree(&fitted, &shipped, STREAMS, &samples, is_stream);
    agree(&fitted, &shipped, COLLECTIVES, &samples, is_collective);
    assert_eq!(fitted.device.attention_efficiency.to_bits(), shipped.device.attention_efficiency.to_bits());
}

#[test]
fn a_b200_is_fitted_without_collectives() {
    let Some(data) = Data::find() else { return };
    let shipped = presets::cluster("b200").unwrap();
    let files = data.files("operators", "simumax_b200_bf16.json");
    let fitted = calibrate(&files, ["--device", "b200"]);
    let samples = samples(&files);
    agree(&fitted, &shipped, MATMUL, &samples, is_product);
    agree(&fitted, &shipped, ATTENTION, &samples, is_attention);
    assert_eq!(fitted.intra_node, shipped.intra_node);
}
