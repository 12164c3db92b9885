//! Files of schedulers that contain a command: tasks of SkyPilot and workloads of Kubernetes.
//!
//! The file becomes a script: directives with the nodes and devices, its variables, and the command.

use super::keys::Keys;
use super::yaml::{self, Node};

/// Keys of devices in the resources of a container.
const DEVICES: [&str; 2] = ["nvidia.com/gpu", "amd.com/gpu"];

/// Instances of clouds with the type of their devices, by a part of their name. A longer name precedes a shorter one.
const INSTANCES: [(&str, &str); 5] = [
    ("a3-megagpu", "h100"),
    ("a3-highgpu", "h100"),
    ("a3-ultragpu", "h200"),
    ("a4-highgpu", "b200"),
    ("a2-ultragpu", "a100-80gb"),
];

/// Keys of the number of pods, nodes or templates of a workload.
const COUNTS: [&str; 4] = ["replicas", "parallelism", "numNodes", "num_nodes"];

/// A script with the names of its directives in the file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Script {
    pub(super) text: String,
    kind: &'static str,
    nodes: &'static str,
    devices: &'static str,
}

impl Script {
    /// Names the directives as the file does, and reports the file.
    pub(super) fn name_directives(&self, keys: &mut Keys) {
        keys.set_name("#SBATCH nodes", self.nodes);
        keys.set_name("#SBATCH gpus-per-node", self.devices);
        keys.set_name("#SBATCH constraint", self.devices);
        keys.assume(format!("The command, the nodes and the devices of the {} are read.", self.kind));
    }
}

/// Returns the script of a file; `None` if it is no file of a scheduler, or contains no command.
pub(super) fn script(text: &str) -> Option<Script> {
    let has = |words: &[&str]| words.iter().all(|word| text.lines().any(|line| line.starts_with(word)));
    if has(&["apiVersion:", "kind:"]) {
        return kubernetes(text);
    }
    let is_task = ["resources:", "num_nodes:", "setup:"].iter().any(|word| has(&[word]));
    if has(&["run:"]) && is_task { sky(text) } else { None }
}

fn field<'a>(node: &'a Node, name: &str) -> Option<&'a Node> {
    let Node::Map(entries) = node else { return None };
    entries.iter().find(|(key, _)| key == name).map(|(_, node)| node)
}

fn text<'a>(node: &'a Node, name: &str) -> Option<&'a str> {
    match field(node, name) {
        Some(Node::Text(text)) => Some(text),
        _ => None,
    }
}

fn count(node: &Node, name: &str) -> Option<u32> {
    text(node, name)?.trim().parse().ok()
}

/// Returns statements that set variables. Values with line feeds are left out.
fn exports<'a>(variables: impl Iterator<Item = (&'a str, &'a str)>) -> Vec<String> {
    let is_plain = |value: &str| !value.contains(['\n', '"', '$', '`']);
    let plain = variables.filter(|(name, value)| !name.is_empty() && is_plain(value));
    plain.map(|(name, value)| format!("export {name}=\"{value}\"")).collect()
}

/// Reads a task of SkyPilot.
fn sky(file: &str) -> Option<Script> {
    let document = yaml::document(file).ok()?;
    let command = text(&document, "run")?;
    let nodes = count(&document, "num_nodes").unwrap_or(1);
    let mut lines = vec![format!("#SBATCH --nodes={nodes}"), format!("export SKYPILOT_NUM_NODES={nodes}")];
    let resources = field(&document, "resources");
    let stated = resources.and_then(|resources| accelerators(field(resources, "accelerators")?));
    if let Some((device, number)) = &stated {
        lines.push(format!("#SBATCH --gpus-per-node={device}:{number}"));
        lines.push(format!("export SKYPILOT_NUM_GPUS_PER_NODE={number}"));
    }
    let instance = resources.and_then(|resources| text(resources, "instance_type"));
    if let (None, Some(instance)) = (&stated, instance) {
        lines.push(format!("#SBATCH --constraint={}", of_instance(instance)));
    }
    if let Some(Node::Map(variables)) = field(&document, "envs") {
        let plain = variables.iter().filter_map(|(name, value)| match value {
            Node::Text(value) => Some((name.as_str(), value.as_str())),
            _ => None,
        });
        lines.extend(exports(plain));
    }
    lines.push(command.to_owned());
    let devices = if stated.is_some() { "resources.accelerators" } else { "resources.instance_type" };
    Some(Script { text: lines.join("\n"), kind: "SkyPilot task", nodes: "num_nodes", devices })
}

/// Returns type and number of `H100:8`, `{H100: 8}`, or of the first entry of a list of them.
fn accelerators(node: &Node) -> Option<(String, u32)> {
    let (device, number) = match node {
        Node::Text(text) => {
            let (device, number) = text.split_once(':').unwrap_or((text, "1"));
            (device.to_owned(), number.trim().parse().ok()?)
        }
        Node::List(items) => return accelerators(items.first()?),
        Node::Map(entries) => match entries.first()? {
            (device, Node::Text(number)) => (device.clone(), number.trim().parse().ok()?),
            (device, _) => (device.clone(), 1),
        },
        Node::Null => return None,
    };
    let device = device.trim().to_lowercase();
    // SkyPilot names the A100 with 80 GB "A100-80GB".
    Some((if device == "a100" { "a100-40gb".to_owned() } else { device }, number))
}

fn of_instance(name: &str) -> String {
    let name = name.trim().to_lowercase();
    INSTANCES.into_iter().find(|(part, _)| name.contains(part)).map_or(name, |(_, device)| device.to_owned())
}

/// Reads the first workload with a command. Documents that are not read have none.
fn kubernetes(text: &str) -> Option<Script> {
    text.split("\n---").find_map(|part| {
        let document = yaml::document(part.trim_start_matches(['-', '\n', ' '])).ok()?;
        let mut command = String::new();
        commands(&document, &mut command);
        (!command.trim().is_empty()).then(|| workload(&document, &command))
    })
}

fn workload(document: &Node, command: &str) -> Script {
    let mut lines = vec![format!("#SBATCH --nodes={}", pods(document).max(1))];
    let number = devices(document);
    let mut labels = Vec::new();
    types(document, false, &mut labels);
    let device = labels.iter().map(|label| of_instance(label)).find(|label| super::launcher::preset(label).is_some());
    lines.extend(match (number, device) {
        (Some(number), Some(device)) => Some(format!("#SBATCH --gpus-per-node={device}:{number}")),
        (Some(number), None) => Some(format!("#SBATCH --gpus-per-node={number}")),
        (None, Some(device)) => Some(format!("#SBATCH --constraint={device}")),
        (None, None) => None,
    });
    let mut variables = Vec::new();
    environment(document, &mut variables);
    lines.extend(exports(variables.into_iter()));
    lines.push(command.to_owned());
    Script { text: lines.join("\n"), kind: "Kubernetes workload", nodes: "replicas", devices: "resources.limits" }
}

/// Appends the commands of the containers with their arguments.
fn commands(node: &Node, script: &mut String) {
    match node {
        Node::Map(entries) => {
            let is_container = field(node, "image").is_some() || field(node, "resources").is_some();
            let parts = ["command", "args"].map(|name| field(node, name));
            if is_container || matches!(parts, [Some(Node::List(_)), _]) {
                parts.into_iter().flatten().for_each(|part| append(part, script));
            }
            if let Some(Node::Text(entrypoint)) = field(node, "entrypoint") {
                script.push_str(entrypoint);
            }
            for (key, node) in entries.iter().filter(|(key, _)| !matches!(key.as_str(), "command" | "args")) {
                // Containers that start before the job prepare data.
                if key != "initContainers" {
                    commands(node, script);
                }
            }
            if is_container {
                script.push('\n');
            }
        }
        Node::List(items) => items.iter().for_each(|item| commands(item, script)),
        Node::Text(_) | Node::Null => {}
    }
}

fn append(node: &Node, script: &mut String) {
    match node {
        Node::Text(text) => {
            script.push_str(if text.trim_end().contains('\n') { "\n" } else { " " });
            script.push_str(text);
        }
        Node::List(items) => items.iter().for_each(|item| append(item, script)),
        Node::Map(_) | Node::Null => {}
    }
}

/// Returns the number of pods with devices.
fn pods(node: &Node) -> u32 {
    match node {
        Node::Map(entries) => {
            if let Some(group) = field(node, "leaderWorkerTemplate") {
                let replicas = COUNTS.iter().filter_map(|name| count(node, name)).fold(1, u32::saturating_mul);
                return group_pods(group).saturating_mul(replicas);
            }
            let is_pod = field(node, "containers").is_some() || field(node, "resourcesPerNode").is_some();
            let below = if is_pod {
                u32::from(devices(node).is_some())
            } else {
                entries.iter().map(|(_, node)| pods(node)).fold(0, u32::saturating_add)
            };
            COUNTS.iter().filter_map(|name| count(node, name)).fold(below, u32::saturating_mul)
        }
        Node::List(items) => items.iter().map(pods).fold(0, u32::saturating_add),
        Node::Text(_) | Node::Null => 0,
    }
}

/// Returns the pods with devices of a group of a `LeaderWorkerSet`: its size counts the leader, which has the template of the
/// workers unless it has one of its own.
fn group_pods(group: &Node) -> u32 {
    let has_devices = |name| field(group, name).map(|template| u32::from(devices(template).is_some()));
    let workers = has_devices("workerTemplate").unwrap_or_default();
    let leader = has_devices("leaderTemplate").unwrap_or(workers);
    let size = count(group, "size").unwrap_or(1);
    workers.saturating_mul(size.saturating_sub(1)).saturating_add(leader)
}

/// Returns the most devices of a container.
fn devices(node: &Node) -> Option<u32> {
    match node {
        Node::Map(entries) => {
            let own = DEVICES.iter().filter_map(|name| count(node, name)).filter(|&count| count > 0).max();
            entries.iter().filter_map(|(_, node)| devices(node)).chain(own).max()
        }
        Node::List(items) => items.iter().filter_map(devices).max(),
        Node::Text(_) | Node::Null => None,
    }
}

/// Adds the labels that select nodes.
fn types(node: &Node, is_selector: bool, labels: &mut Vec<String>) {
    match node {
        Node::Text(text) if is_selector => labels.push(text.clone()),
        Node::Map(entries) => {
            for (key, node) in entries {
                types(node, is_selector || matches!(key.as_str(), "nodeSelector" | "nodeAffinity"), labels);
            }
        }
        Node::List(items) => items.iter().for_each(|item| types(item, is_selector, labels)),
        Node::Text(_) | Node::Null => {}
    }
}

/// Adds the variables of the containers.
fn environment<'a>(node: &'a Node, variables: &mut Vec<(&'a str, &'a str)>) {
    match node {
        Node::Map(entries) => {
            for (key, node) in entries {
                match node {
                    Node::List(items) if key == "env" => {
                        variables
                            .extend(items.iter().filter_map(|item| Some((text(item, "name")?, text(item, "value")?))));
                    }
                    other => environment(other, variables),
                }
            }
        }
        Node::List(items) => items.iter().for_each(|item| environment(item, variables)),
        Node::Text(_) | Node::Null => {}
    }
}
