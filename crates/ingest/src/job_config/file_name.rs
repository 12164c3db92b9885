//! Devices in the name of a file, for example `llama3_70b_h100_8node.sh`. They are assumptions, and only used if
//! nothing else states them.

use planner::cluster::presets;

use super::Hardware;
use super::keys::Keys;
use super::settings::{NODE, Settings};

/// Maximum number of devices.
const MAX_DEVICES: u32 = 131_072;

/// Device names with their presets. Other words that start with them are no devices.
const DEVICES: [(&str, &str); 24] = [
    ("a100", "a100-80gb"),
    ("a800", "a800"),
    ("h100", "h100"),
    ("h800", "h800"),
    ("h200", "h200"),
    ("h20", "h20"),
    ("b200", "b200"),
    ("b300", "b300"),
    ("gb200", "gb200-nvl72"),
    ("gb300", "gb300-nvl72"),
    ("l40s", "l40s"),
    ("l20", "l20"),
    ("l4", "l4"),
    ("a10", "a10"),
    ("a10g", "a10g"),
    ("a6000", "rtx-a6000"),
    ("rtx3090", "rtx-3090"),
    ("rtx4090", "rtx-4090"),
    ("rtx5090", "rtx-5090"),
    ("v100", "v100-32gb"),
    ("mi300x", "mi300x"),
    ("mi325x", "mi325x"),
    ("mi355x", "mi355x"),
    ("trainium2", "trainium2"),
];

/// Device and numbers that a name states.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct Named {
    preset: Option<&'static str>,
    /// Total number of devices.
    devices: Option<u32>,
    nodes: Option<u32>,
    per_node: Option<u32>,
}

/// Reads the device type and the number of devices from the names of the files, if neither the settings nor the caller
/// state them. Names that contradict each other are not read.
pub(super) fn read(names: &[&str], hardware: Hardware, settings: &mut Settings, keys: &mut Keys) {
    let all = names.iter().map(|name| (base_name(name), named(base_name(name))));
    let stated: Vec<(&str, Named)> = all.filter(|(_, named)| *named != Named::default()).collect();
    let Some(&(file, named)) = stated.first() else { return };
    if stated.iter().any(|(_, other)| *other != named) {
        return;
    }
    let is_open = hardware.preset.is_none() && settings.device.is_none();
    if let Some(cluster) = named.preset.filter(|_| is_open).and_then(presets::cluster) {
        settings.device = named.preset;
        keys.assume(format!("The device is read as {}, which the file name {file} names.", cluster.name));
    }
    if hardware.devices.is_some() || settings.stated_devices().is_some() || settings.replicas.is_some() {
        return;
    }
    let in_rack = settings.device.is_some_and(|device| device.contains("nvl"));
    let Some((nodes, devices)) = numbers(named, settings.devices_per_node, in_rack) else { return };
    let mut with_devices = Settings { devices: Some(devices), ..settings.clone() };
    with_devices.devices_per_node = settings.devices_per_node.or(nodes.map(|nodes| devices / nodes));
    let unit = settings.devices_per_replica();
    let fits = devices.is_multiple_of(unit)
        && (devices / unit * settings.context.unwrap_or(1)).is_multiple_of(settings.expert.unwrap_or(1).max(1))
        && with_devices.check_batch().is_ok();
    if fits {
        *settings = with_devices;
        keys.assume(format!("The number of devices is read as {devices}, from the file name {file}."));
    } else {
        keys.assume(format!(
            "The file name {file} names {devices} devices, which contradict the settings. They are not used."
        ));
    }
}

fn base_name(path: &str) -> &str {
    path.rsplit(['/', '\\']).next().unwrap_or_default()
}

/// Returns nodes and devices, or `None` if the numbers are ambiguous. In a rack, a node can have 4 devices or all of
/// the rack.
fn numbers(named: Named, stated_per_node: Option<u32>, in_rack: bool) -> Option<(Option<u32>, u32)> {
    let per_node = stated_per_node.or(named.per_node);
    let (nodes, devices) = match (named.nodes, named.devices) {
        (None, Some(devices)) => (None, devices),
        (Some(nodes), None) => {
            let per_node = per_node.or_else(|| (!in_rack).then_some(NODE))?;
            (Some(nodes), nodes.checked_mul(per_node)?)
        }
        // "2node_8gpu" can count the devices of a node or of the job.
        (Some(1), Some(devices)) => (Some(1), devices),
        (Some(nodes), Some(devices)) if devices > NODE && devices.is_multiple_of(nodes) => (Some(nodes), devices),
        (None, None) | (Some(_), Some(_)) => return None,
    };
    (1..=MAX_DEVICES).contains(&devices).then_some((nodes, devices))
}

/// Reads the words of a name. A word that states a second type or number makes the type or the numbers ambiguous.
fn named(file: &str) -> Named {
    let file = file.to_lowercase();
    let terms: Vec<&str> =
        file.split(|letter: char| !letter.is_alphanumeric()).filter(|word| !word.is_empty()).collect();
    let (mut found, mut is_clear, mut has_one_type) = (Named::default(), true, true);
    for (index, word) in terms.iter().enumerate() {
        let next = terms.get(index + 1).copied().unwrap_or_default();
        let Some(part) = part(word, next) else { continue };
        has_one_type &= join(&mut found.preset, part.preset);
        for (own, other) in
            [(&mut found.devices, part.devices), (&mut found.nodes, part.nodes), (&mut found.per_node, part.per_node)]
        {
            is_clear &= join(own, other);
        }
    }
    if !has_one_type {
        found.preset = None;
    }
    if is_clear { found } else { Named { preset: found.preset, ..Named::default() } }
}

/// Sets a value. False if it has another value.
fn join<T: PartialEq + Copy>(own: &mut Option<T>, other: Option<T>) -> bool {
    let Some(value) = other else { return true };
    *own.get_or_insert(value) == value
}

/// Reads a word such as `h100`, `8xh200`, `h100x16`, `64gpus`, `8node` or `n8g8`. `next` is the next word of the name.
fn part(word: &str, next: &str) -> Option<Named> {
    if let Some(preset) = preset(word, next) {
        return Some(Named { preset: Some(preset), ..Named::default() });
    }
    if let Some((first, second)) = word.split_once('x') {
        let (count, device) = if number(first).is_some() { (first, second) } else { (second, first) };
        // "2x8xh100": nodes and devices of a node.
        let both = device.split_once('x').filter(|(per_node, _)| number(per_node).is_some());
        return match both {
            Some((per_node, device)) => Some(Named {
                preset: Some(preset(device, next)?),
                nodes: number(count),
                per_node: number(per_node),
                devices: None,
            }),
            None => {
                Some(Named { preset: Some(preset(device, next)?), devices: Some(number(count)?), ..Named::default() })
            }
        };
    }
    for (ending, is_nodes) in [("gpus", false), ("gpu", false), ("nodes", true), ("node", true)] {
        if let Some(count) = word.strip_suffix(ending).and_then(number) {
            let (devices, nodes) = if is_nodes { (None, Some(count)) } else { (Some(count), None) };
            return Some(Named { devices, nodes, ..Named::default() });
        }
    }
    let (nodes, per_node) = word.strip_prefix('n')?.split_once('g')?;
    Some(Named { nodes: Some(number(nodes)?), per_node: Some(number(per_node)?), ..Named::default() })
}

/// Returns the preset of a device name. The next word can state a variant.
fn preset(word: &str, next: &str) -> Option<&'static str> {
    let (_, preset) = DEVICES.into_iter().find(|(name, _)| *name == word)?;
    match (word, next) {
        ("a100", "40gb" | "40g") => Some("a100-40gb"),
        ("v100", "16gb" | "16g") => Some("v100-16gb"),
        // Two sizes are usual.
        ("v100", other) if !matches!(other, "32gb" | "32g") => None,
        ("h100", "96gb" | "96g") => Some("h100-96gb"),
        ("h100", "pcie") => Some("h100-pcie"),
        // The H100 NVL and the H20 with 141 GB have no presets. The A100 PCIe has two sizes.
        ("h100", "nvl") | ("h20", "141gb" | "141g") | ("a100", "pcie") => None,
        _ => Some(preset),
    }
}

fn number(text: &str) -> Option<u32> {
    let is_number = !text.is_empty() && text.bytes().all(|digit| digit.is_ascii_digit());
    text.parse().ok().filter(|&number| is_number && number > 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(preset: Option<&'static str>, devices: Option<u32>, nodes: Option<u32>, per_node: Option<u32>) -> Named {
        Named { preset, devices, nodes, per_node }
    }

    #[test]
    fn devices_and_numbers_are_words_of_a_name() {
        let expected = [
            ("llama3_70b_h100_8node.sh", words(Some("h100"), None, Some(8), None)),
            ("train-8xH200.yaml", words(Some("h200"), Some(8), None, None)),
            ("deepseek_gb200.toml", words(Some("gb200-nvl72"), None, None, None)),
            ("2x8xh100.sh", words(Some("h100"), None, Some(2), Some(8))),
            ("qwen-A100-40GB-x.json", words(Some("a100-40gb"), None, None, None)),
            ("h100x16.sh", words(Some("h100"), Some(16), None, None)),
            ("mixtral-8x7b_mi300x_64gpus.yaml", words(Some("mi300x"), Some(64), None, None)),
            ("run n8g8.sh", words(None, None, Some(8), Some(8))),
        ];
        for (name, found) in expected {
            assert_eq!(named(name), found, "{name}");
        }
    }

    #[test]
    fn other_words_are_no_devices() {
        let names = [
            "gpt-a100b.sh",
            "xh100.sh",
            "h1000.sh",
            "h100nvl.sh",
            "ch200k.yaml",
            "mixtral_8x22b.yaml",
            "llama3-8b.toml",
            "node.sh",
            "gpus.sh",
            "0gpu.sh",
            "ngpu.sh",
            "config.json",
            "",
            "big.sh",
            "h100_nvl.sh",
        ];
        for name in names {
            assert_eq!(named(name), Named::default(), "{name}");
        }
    }

    #[test]
    fn ambiguous_names_state_nothing() {
        assert_eq!(named("a100_to_h100.sh"), Named::default());
        assert_eq!(named("h100_8gpu_16gpu.sh"), words(Some("h100"), None, None, None));
        let of = |file: &str, per_node, in_rack| numbers(named(file), per_node, in_rack);
        assert_eq!(of("2node_8gpu.sh", None, false), None);
        assert_eq!(of("2node_16gpu.sh", None, false), Some((Some(2), 16)));
        assert_eq!(of("1node_8gpu.sh", None, false), Some((Some(1), 8)));
        assert_eq!(of("3node_16gpu.sh", None, false), None);
        assert_eq!(of("8node.sh", None, false), Some((Some(8), 64)));
        assert_eq!(of("8node.sh", Some(4), true), Some((Some(8), 32)));
        assert_eq!(of("8node.sh", None, true), None);
        assert_eq!(of("4294967295node.sh", None, false), None);
        assert_eq!(of("999999gpu.sh", None, false), None);
    }
}
