//! Containers run with minimal privileges.

use std::path::Path;
use std::process::Command;

use yaml_rust2::{Yaml, YamlLoader};

fn text(path: &str) -> String {
    let xtask = std::env::var_os("CARGO_MANIFEST_DIR").expect("cargo names the package");
    let path = Path::new(&xtask).parent().expect("xtask stands in the workspace").join(path);
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn compose() -> Yaml {
    YamlLoader::load_from_str(&text("docker-compose.yml")).expect("YAML").remove(0)
}

fn strings(list: &Yaml) -> Vec<&str> {
    list.as_vec().map(|list| list.iter().filter_map(Yaml::as_str).collect()).unwrap_or_default()
}

#[test]
fn every_service_can_do_no_more_than_it_must() {
    let compose = compose();
    let services = compose["services"].as_hash().expect("services");
    assert_eq!(services.len(), 2);
    for (name, service) in services {
        assert_eq!(service["read_only"].as_bool(), Some(true), "{name:?}: the root file system");
        assert_eq!(strings(&service["cap_drop"]), ["ALL"], "{name:?}");
        assert_eq!(strings(&service["security_opt"]), ["no-new-privileges:true"], "{name:?}");
        assert!(service["privileged"].is_badvalue() && service["network_mode"].is_badvalue(), "{name:?}");
        assert!(!strings(&service["healthcheck"]["test"]).is_empty(), "{name:?}: how to see whether it is well");
        assert_eq!(service["restart"].as_str(), Some("unless-stopped"), "{name:?}");
        assert!(service["pids_limit"].as_i64().is_some_and(|limit| limit > 0), "{name:?}: processes");
        assert!(service["mem_limit"].as_str().is_some_and(|limit| !limit.is_empty()), "{name:?}: memory");
        assert_eq!(service["mem_limit"], service["memswap_limit"], "{name:?}: swap is no further memory");
        assert!(service["cpus"].as_str().is_some_and(|limit| !limit.is_empty()), "{name:?}: processors");
    }
}

/// docker-compose 1.29 (Debian) does not expand a variable inside the default value of another
/// variable.
#[test]
fn variable_defaults_contain_no_variables() {
    let text = text("docker-compose.yml");
    let mut variables = text.split("${").skip(1);
    assert!(variables.clone().count() >= 8);
    assert!(variables.all(|variable| variable.contains('}')), "a variable within another");
}

/// Returns the documents in deploy/kubernetes.yaml of this kind.
fn kubernetes(kind: &str) -> Yaml {
    let documents = YamlLoader::load_from_str(&text("deploy/kubernetes.yaml")).expect("YAML");
    documents.into_iter().find(|document| document["kind"].as_str() == Some(kind)).expect("a document of the kind")
}

#[test]
fn on_kubernetes_the_server_can_do_no_more_than_it_must_either() {
    let deployment = kubernetes("Deployment");
    assert_eq!(deployment["spec"]["replicas"].as_i64(), Some(1), "one server has the database");
    assert_eq!(deployment["spec"]["strategy"]["type"].as_str(), Some("Recreate"));
    let pod = &deployment["spec"]["template"]["spec"];
    assert_eq!(pod["automountServiceAccountToken"].as_bool(), Some(false));
    assert_eq!(pod["securityContext"]["runAsNonRoot"].as_bool(), Some(true));
    let user = pod["securityContext"]["runAsUser"].as_i64().expect("a user");
    assert!(text("Dockerfile").lines().any(|line| line == format!("USER {user}")), "the image has another user");
    assert_eq!(pod["containers"].as_vec().map(Vec::len), Some(1));
    let server = &pod["containers"][0];
    assert_eq!(server["securityContext"]["readOnlyRootFilesystem"].as_bool(), Some(true));
    assert_eq!(server["securityContext"]["allowPrivilegeEscalation"].as_bool(), Some(false));
    assert_eq!(strings(&server["securityContext"]["capabilities"]["drop"]), ["ALL"]);
    for limit in ["cpu", "memory", "ephemeral-storage"] {
        assert!(server["resources"]["limits"][limit].as_str().is_some(), "{limit}");
    }
    for probe in ["startupProbe", "livenessProbe", "readinessProbe"] {
        assert_eq!(strings(&server[probe]["exec"]["command"]), ["planscope", "health"], "{probe}");
    }
    let token = server["env"]
        .as_vec()
        .expect("variables")
        .iter()
        .find(|variable| variable["name"].as_str() == Some("PLANSCOPE_TOKEN_FILE"));
    let token = token.and_then(|variable| variable["value"].as_str()).expect("a file with the token");
    let mounts = server["volumeMounts"].as_vec().expect("volumes");
    let secret = mounts.iter().find(|mount| mount["name"].as_str() == Some("token")).expect("the secret");
    assert!(secret["mountPath"].as_str().is_some_and(|folder| token.starts_with(folder)), "{token}");
    assert_eq!(secret["readOnly"].as_bool(), Some(true));
}

#[test]
fn server_is_unprivileged_with_a_single_volume_and_local_port() {
    let compose = compose();
    let server = &compose["services"]["planscope"];
    let user = server["user"].as_str().expect("a user");
    assert!(user.parse::<u32>().is_ok_and(|user| user > 0), "{user}");
    assert!(text("Dockerfile").lines().any(|line| line == format!("USER {user}")), "the image has another user");
    assert!(server["cap_add"].is_badvalue());
    assert_eq!(strings(&server["volumes"]), ["data:/data"]);
    assert!(compose["volumes"]["data"].is_null(), "a named volume of the engine's own");
    assert_eq!(strings(&server["healthcheck"]["test"]), ["CMD", "planscope", "health"]);
    // If the file is missing or empty, the server exits. It never starts without a token.
    assert_eq!(server["environment"]["PLANSCOPE_TOKEN_FILE"].as_str(), Some("/run/secrets/planscope_token"));
    assert!(server["environment"]["PLANSCOPE_TOKEN"].is_badvalue(), "the environment is shown by `docker inspect`");
    assert_eq!(strings(&server["secrets"]), ["planscope_token"]);
    assert!(compose["secrets"]["planscope_token"]["file"].as_str().is_some_and(|file| file.ends_with('}')));
    for ignored in [".dockerignore", ".gitignore"] {
        assert!(text(ignored).lines().any(|line| line == "/secrets"), "{ignored}: the token must not get into images");
    }
    assert!(
        strings(&server["ports"]).iter().all(|port| port.starts_with("${PLANSCOPE_BIND:-127.0.0.1}:")),
        "{server:?}"
    );
    assert!(server["profiles"].is_badvalue(), "it runs in every profile");
}

#[test]
fn tls_ends_at_a_proxy_before_the_server() {
    let compose = compose();
    let proxy = &compose["services"]["proxy"];
    assert_eq!(strings(&proxy["profiles"]), ["tls"]);
    assert_eq!(strings(&proxy["cap_add"]), ["NET_BIND_SERVICE"]);
    assert_eq!(proxy["depends_on"]["planscope"]["condition"].as_str(), Some("service_healthy"));
    // The server trusts forwarded client addresses only from the proxy address.
    let address = proxy["networks"]["default"]["ipv4_address"].as_str();
    assert!(address.is_some_and(|address| address.ends_with(".2")), "{address:?}");
    assert_eq!(compose["services"]["planscope"]["environment"]["PLANSCOPE_TRUSTED_PROXIES"].as_str(), address);
    let image = proxy["image"].as_str().expect("an image");
    assert!(
        image.rsplit_once(':').is_some_and(|(_, tag)| tag.starts_with(|digit: char| digit.is_ascii_digit())),
        "{image}"
    );
    let file =
        strings(&proxy["volumes"]).into_iter().find_map(|volume| volume.strip_suffix(":/etc/caddy/Caddyfile:ro"));
    let settings = text(file.expect("the settings, which it cannot write"));
    assert!(settings.contains("reverse_proxy planscope:8080") && settings.contains("flush_interval -1"), "{settings}");
    assert_eq!(settings.matches('{').count(), settings.matches('}').count());
}

/// Returns the file after variable expansion by docker-compose. Returns `None` with a message if
/// docker-compose is missing.
fn put_in(variables: &[(&str, &str)]) -> Option<Yaml> {
    let xtask = std::env::var_os("CARGO_MANIFEST_DIR").expect("cargo names the package");
    let root = Path::new(&xtask).parent().expect("xtask stands in the workspace").to_owned();
    let commands: [&[&str]; 2] = [&["docker-compose"], &["docker", "compose"]];
    let is_there = |command: &&[&str]| {
        let mut version_command = Command::new(command[0]);
        version_command.args(&command[1..]).arg("version").output().is_ok_and(|output| output.status.success())
    };
    let Some(command) = commands.into_iter().find(is_there) else {
        eprintln!("skipped: there is no docker-compose on this machine (Debian: apt-get install docker-compose)");
        return None;
    };
    let mut config_command = Command::new(command[0]);
    config_command
        .args(&command[1..])
        .args(["--file", "docker-compose.yml", "--profile", "tls", "config"])
        .current_dir(root);
    for name in ["SITE", "HOSTS", "MEMORY", "CPUS", "NETWORK", "QUOTA", "BIND", "PORT", "TOKEN_FILE"] {
        config_command.env_remove(format!("PLANSCOPE_{name}"));
    }
    let output = config_command.envs(variables.iter().copied()).output().expect("docker-compose runs");
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "docker-compose does not accept docker-compose.yml: {stderr}");
    let text = String::from_utf8(output.stdout).expect("text");
    Some(YamlLoader::load_from_str(&text).expect("YAML").remove(0))
}

/// True for a memory value: version 1 prints it as written, version 2 as a byte count.
fn is_memory(value: &Yaml, written: &str, bytes: &str) -> bool {
    value.as_str().is_some_and(|value| value == written || value == bytes)
}

fn is_number(value: &Yaml, number: f64) -> bool {
    let read = value.as_f64().or_else(|| value.as_i64().map(|value| value as f64));
    read.or_else(|| value.as_str()?.parse().ok()).is_some_and(|read| (read - number).abs() < 1e-9)
}

#[test]
fn docker_compose_accepts_the_file_and_sets_the_limits() {
    let Some(compose) = put_in(&[]) else { return };
    for (name, memory, bytes, processors, processes) in
        [("planscope", "8g", "8589934592", 2.0, 1024), ("proxy", "512m", "536870912", 1.0, 256)]
    {
        let service = &compose["services"][name];
        assert_eq!(service["read_only"].as_bool(), Some(true), "{name}");
        assert_eq!(strings(&service["cap_drop"]), ["ALL"], "{name}");
        assert!(is_memory(&service["mem_limit"], memory, bytes), "{name}: {:?}", service["mem_limit"]);
        assert!(is_memory(&service["memswap_limit"], memory, bytes), "{name}: {:?}", service["memswap_limit"]);
        assert!(is_number(&service["cpus"], processors), "{name}: {:?}", service["cpus"]);
        assert_eq!(service["pids_limit"].as_i64(), Some(processes), "{name}");
        assert!(!strings(&service["tmpfs"]).is_empty(), "{name}: a folder for temporary files in memory");
    }
    let environment = &compose["services"]["planscope"]["environment"];
    assert_eq!(environment["PLANSCOPE_HOSTS"].as_str(), Some("localhost,localhost"));
    assert_eq!(environment["PLANSCOPE_TRUSTED_PROXIES"].as_str(), Some("172.31.250.2"));
    let token = compose["secrets"]["planscope_token"]["file"].as_str().expect("a file");
    assert!(token.ends_with("/secrets/planscope_token"), "{token}");

    let variables = [
        ("PLANSCOPE_SITE", "plan.example.org"),
        ("PLANSCOPE_MEMORY", "3g"),
        ("PLANSCOPE_CPUS", "1.5"),
        ("PLANSCOPE_NETWORK", "10.99.0"),
        ("PLANSCOPE_TOKEN_FILE", "/etc/planscope/token"),
    ];
    let Some(compose) = put_in(&variables) else { return };
    let server = &compose["services"]["planscope"];
    assert!(is_memory(&server["mem_limit"], "3g", "3221225472"), "{:?}", server["mem_limit"]);
    assert!(is_number(&server["cpus"], 1.5), "{:?}", server["cpus"]);
    assert_eq!(server["environment"]["PLANSCOPE_HOSTS"].as_str(), Some("plan.example.org,localhost"));
    assert_eq!(server["environment"]["PLANSCOPE_TRUSTED_PROXIES"].as_str(), Some("10.99.0.2"));
    let address = &compose["services"]["proxy"]["networks"]["default"]["ipv4_address"];
    assert_eq!(address.as_str(), Some("10.99.0.2"));
    assert_eq!(compose["secrets"]["planscope_token"]["file"].as_str(), Some("/etc/planscope/token"));
}
