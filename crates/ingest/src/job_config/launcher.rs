//! Devices that launchers, schedulers and variables of a script state.

use super::JobConfigError;
use super::keys::Keys;
use super::settings::Settings;

/// Directives of SLURM that state nodes and devices.
const SLURM: [&str; 9] = [
    "#SBATCH nodes",
    "#SBATCH gpus-per-node",
    "#SBATCH gres",
    "#SBATCH constraint",
    "#SBATCH partition",
    "#SBATCH gpus",
    "#SBATCH gpus-per-task",
    "#SBATCH ntasks-per-node",
    "#SBATCH ntasks",
];

/// Returns the variables that SLURM sets for the directives that were read.
pub(super) fn slurm_variables(keys: &Keys) -> Vec<(String, String)> {
    let count = |name: &str| keys.peek(&format!("#SBATCH {name}")).and_then(gpus);
    let nodes = count("nodes");
    let per_node = count("gpus-per-node").or_else(|| count("gres"));
    let tasks_per_node = count("ntasks-per-node");
    let tasks = count("ntasks").or_else(|| nodes.zip(tasks_per_node).map(|(nodes, tasks)| nodes.saturating_mul(tasks)));
    let variables = [
        ("SLURM_NNODES", nodes),
        ("SLURM_JOB_NUM_NODES", nodes),
        ("SLURM_GPUS_PER_NODE", per_node),
        ("SLURM_GPUS_ON_NODE", per_node),
        ("SLURM_NTASKS_PER_NODE", tasks_per_node),
        ("SLURM_NTASKS", tasks),
        ("SLURM_NPROCS", tasks),
        ("SLURM_GPUS", count("gpus")),
    ];
    variables.into_iter().filter_map(|(name, count)| Some((name.to_owned(), count?.to_string()))).collect()
}

/// Options of `srun` in a command that state tasks, one for each device.
pub(super) const TASKS: [&str; 2] = ["ntasks-per-node", "ntasks"];

/// True for a directive of SLURM that states nodes or devices.
pub(super) fn is_directive(argument: &str) -> bool {
    SLURM.contains(&argument)
}

/// Device names used by schedulers, with their presets. A name must precede all names that it is a
/// substring of.
const DEVICES: [(&str, &str); 34] = [
    ("gb200", "gb200-nvl72"),
    ("gb300", "gb300-nvl72"),
    ("h100", "h100"),
    ("h800", "h800"),
    ("h200", "h200"),
    ("b200", "b200"),
    ("b300", "b300"),
    ("h20", "h20"),
    ("a100-40", "a100-40gb"),
    ("a100", "a100-80gb"),
    ("a800", "a800"),
    ("mi300x", "mi300x"),
    ("mi325x", "mi325x"),
    ("mi355x", "mi355x"),
    ("l40s", "l40s"),
    ("l20", "l20"),
    ("l4", "l4"),
    ("a10g", "a10g"),
    ("a10", "a10"),
    ("rtxa6000", "rtx-a6000"),
    ("a6000", "rtx-a6000"),
    ("rtx3090", "rtx-3090"),
    ("3090", "rtx-3090"),
    ("rtx4090", "rtx-4090"),
    ("4090", "rtx-4090"),
    ("rtx5090", "rtx-5090"),
    ("5090", "rtx-5090"),
    ("v100", "v100-32gb"),
    // Instances of AWS.
    ("p5en", "h200"),
    ("p5e", "h200"),
    ("p5", "h100"),
    ("p4de", "a100-80gb"),
    ("p4d", "a100-40gb"),
    ("p6-b200", "b200"),
];

/// Arguments and variables that state nodes.
const NODES: [&str; 10] = [
    "nnodes",
    "num-nodes",
    "#SBATCH nodes",
    "nodes",
    "actor-num-nodes",
    "$NNODES",
    "$NUM_NODES",
    "$SLURM_NNODES",
    "$PET_NNODES",
    "$SKYPILOT_NUM_NODES",
];

/// Arguments and variables that state the devices of a node.
const PER_NODE: [&str; 8] = [
    "nproc-per-node",
    "gpus-per-node",
    "num-gpus",
    "actor-num-gpus-per-node",
    "$GPUS_PER_NODE",
    "$NPROC_PER_NODE",
    "$NGPU",
    "$SKYPILOT_NUM_GPUS_PER_NODE",
];

/// SLURM directives that state the devices of a node, or their type.
const DIRECTIVES: [&str; 6] = [
    "#SBATCH gpus-per-node",
    "#SBATCH gres",
    "gres",
    "#SBATCH gpus-per-task",
    "#SBATCH constraint",
    "#SBATCH partition",
];

/// SLURM directives that state only the type of the devices.
const TYPES: [&str; 2] = ["#SBATCH constraint", "#SBATCH partition"];

/// Reads the devices that the launcher, the scheduler and variables state.
pub(super) fn devices(keys: &mut Keys, settings: &mut Settings) -> Result<(), JobConfigError> {
    settings.nodes = keys.launch_count(&NODES, "nodes")?;
    settings.devices_per_node = keys.launch_count(&PER_NODE, "devices of a node")?;
    for name in DIRECTIVES {
        let is_type = TYPES.contains(&name);
        // The name of a partition is any word.
        if name == "#SBATCH partition" && keys.peek(name).and_then(preset).is_none() {
            continue;
        }
        let setting = if is_type { "device" } else { "devices of a node" };
        let Some(text) = keys.text(&[name], setting) else { continue };
        settings.device = settings.device.or_else(|| preset(&text));
        if settings.device.is_none() {
            settings.other_device = settings.other_device.take().or_else(|| other_device(&text));
        }
        // The scheduler does not state the memory of an A100.
        if settings.device == Some("a100-80gb") && !text.to_lowercase().contains("80g") && !is_type {
            keys.assume("A100 is read as the device with 80 GB.");
        }
        if settings.device == Some("v100-32gb") && !text.to_lowercase().contains("32g") {
            keys.assume("V100 is read as the device with 32 GB.");
        }
        if !is_type {
            settings.devices_per_node = settings.devices_per_node.or_else(|| gpus(&text));
        }
    }
    settings.devices = keys.launch_count(&["world-size", "$WORLD_SIZE"], "devices")?;
    if let Some(text) = keys.text(&["#SBATCH gpus"], "devices") {
        settings.device = settings.device.or_else(|| preset(&text));
        settings.devices = settings.devices.or_else(|| gpus(&text));
    }
    // A task for each device.
    let names = [TASKS[0], "#SBATCH ntasks-per-node"];
    let tasks = keys.launch_count(&names, "devices of a node")?.filter(|&tasks| tasks > 1);
    settings.devices_per_node = settings.devices_per_node.or(tasks);
    let tasks = keys.launch_count(&[TASKS[1], "#SBATCH ntasks"], "devices")?;
    let nodes = settings.nodes.unwrap_or(1);
    // A launcher such as torchrun has a task for each node.
    let is_of_devices = settings.devices_per_node.is_none() && settings.devices.is_none();
    if let Some(tasks) = tasks.filter(|&tasks| is_of_devices && tasks > nodes && tasks.is_multiple_of(nodes)) {
        settings.devices = Some(tasks);
        settings.devices_per_node = settings.nodes.map(|nodes| tasks / nodes);
    }
    Ok(())
}

/// Default number of nodes of launchers.
pub(super) const ONE_NODE: &str = "The number of nodes is not stated. It is 1, the default of the launcher.";

/// Returns the hosts and the devices in `localhost:0,1,2,3` and in `one:0,1@two:0,1`, or in a list of devices.
pub(super) fn included(text: &str) -> (u32, u32) {
    let hosts = text.split('@').map(|host| host.rsplit_once(':').map_or(host, |(_, devices)| devices));
    let devices = hosts.flat_map(|devices| devices.split(',')).filter(|device| !device.trim().is_empty()).count();
    (text.split('@').count() as u32, devices as u32)
}

/// Reads a launcher without a number of nodes as one node, if a replica fits in it: `torchrun --nproc-per-node`,
/// `deepspeed --num_gpus` and `deepspeed --include`.
pub(super) fn one_node(keys: &mut Keys, settings: &mut Settings) {
    let is_undecided = settings.devices.is_none() && settings.devices_per_node.is_none();
    if is_undecided && let Some(text) = keys.text(&["include"], "devices") {
        let (hosts, devices) = included(text.split_whitespace().next().unwrap_or_default());
        if devices > 0 && devices.is_multiple_of(hosts) {
            (settings.nodes, settings.devices_per_node) = (Some(hosts), Some(devices / hosts));
        }
    }
    let is_open = settings.devices.is_none() && settings.nodes.is_none() && !keys.has("nnodes");
    let fits = settings.devices_per_node.is_some_and(|devices| devices >= settings.devices_per_replica());
    if is_open && fits && ["nproc-per-node", "num-gpus"].iter().any(|name| keys.has(name)) {
        keys.assume(ONE_NODE);
        settings.nodes = Some(1);
    }
}

/// Adds the devices of the launcher to those that a job file states.
pub(super) fn complete(keys: &mut Keys, settings: &mut Settings) -> Result<(), JobConfigError> {
    let mut stated = Settings::default();
    devices(keys, &mut stated)?;
    settings.device = settings.device.or(stated.device);
    if settings.devices.is_some() || settings.nodes.is_some() {
        return Ok(());
    }
    settings.devices = stated.devices;
    settings.nodes = stated.nodes;
    settings.devices_per_node = stated.devices_per_node.or(settings.devices_per_node);
    if settings.devices.is_none() && settings.nodes.is_none() && settings.devices_per_node.is_some() {
        keys.assume(ONE_NODE);
        settings.nodes = Some(1);
    }
    Ok(())
}

/// Devices without a preset.
const OTHER_DEVICES: [&str; 19] = [
    "gh200",
    "p100",
    "a30",
    "a40",
    "l40",
    "t4",
    "mi100",
    "mi210",
    "mi250",
    "mi250x",
    "a5000",
    "rtx6000",
    "gaudi",
    "gaudi2",
    "gaudi3",
    "pvc",
    "v5e",
    "v5litepod",
    "p40",
];

/// Returns the device preset for text such as `gpu:a100:4`, `a100-80gb` and `NVIDIA-H100-80GB-HBM3`.
pub(super) fn preset(text: &str) -> Option<&'static str> {
    let text = text.to_lowercase().replace('_', "-");
    let is_word = |(start, name): (usize, &str)| {
        !text[..start].ends_with(|letter: char| letter.is_ascii_alphanumeric()) && {
            let after = &text[start + name.len()..];
            let is_instance = name.starts_with('p');
            !after
                .starts_with(|letter: char| letter.is_ascii_digit() || (is_instance && letter != '.' && letter != '-'))
        }
    };
    let is_named = |(name, _): &(&str, &str)| text.match_indices(name).any(is_word);
    let found = DEVICES.into_iter().find(is_named).map(|(_, id)| id);
    // Names such as `nvidia-a100-sxm4-40gb`.
    match found {
        Some("a100-80gb") if text.contains("40gb") => Some("a100-40gb"),
        Some("v100-32gb") if text.contains("16gb") => Some("v100-16gb"),
        found => found,
    }
}

/// Returns the name of a device without a preset.
pub(super) fn other_device(text: &str) -> Option<String> {
    let text = text.to_lowercase();
    let mut names = text.split(|letter: char| !letter.is_ascii_alphanumeric());
    names.find(|name| OTHER_DEVICES.contains(name)).map(str::to_uppercase)
}

/// Returns the GPU count in `gpu:a100:4,nvme:1`, `a100:4` and `4`.
fn gpus(text: &str) -> Option<u32> {
    let mut resources = text.split(',');
    let gpu_resource = resources.clone().find(|resource| resource.trim_start().starts_with("gpu"));
    let resource = gpu_resource.or_else(|| resources.next())?;
    resource.split([':', ' ', '(']).find_map(|part| part.parse().ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slurm_resources_state_gpus_and_devices() {
        for (text, count, device) in [
            ("a100:4", Some(4), Some("a100-80gb")),
            ("4", Some(4), None),
            ("gpu:a100:4,nvme:1", Some(4), Some("a100-80gb")),
            ("nvme:1,gpu:h100:8", Some(8), Some("h100")),
            ("gpu:8", Some(8), None),
            ("gpu:a100_40gb:4(S:0-1)", Some(4), Some("a100-40gb")),
            ("a100-80gb", None, Some("a100-80gb")),
            ("NVIDIA-H100-80GB-HBM3", None, Some("h100")),
            ("NVIDIA-A100-SXM4-40GB", None, Some("a100-40gb")),
            ("p4d.24xlarge", None, Some("a100-40gb")),
            ("p5.48xlarge", None, Some("h100")),
            ("p5en.48xlarge", None, Some("h200")),
            ("p50", None, None),
            ("gpu:v100:4", Some(4), Some("v100-32gb")),
            ("gpu:a10g:1", Some(1), Some("a10g")),
            ("gpu:rtx4090:8", Some(8), Some("rtx-4090")),
            ("l40", None, None),
        ] {
            assert_eq!((gpus(text), preset(text)), (count, device), "{text}");
        }
    }
}
