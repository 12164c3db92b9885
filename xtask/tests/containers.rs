//! Containers run with as little as they need.

use std::path::Path;

use yaml_rust2::{Yaml, YamlLoader};

fn text(path: &str) -> String {
    let xtask = std::env::var_os("CARGO_MANIFEST_DIR").expect("cargo names the package");
    let path = Path::new(&xtask).parent().expect("xtask stands in the workspace").join(path);
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn compose() -> Yaml {
    YamlLoader::load_from_str(&text("docker-compose.yml")).expect("YAML").remove(0)
}

fn words(list: &Yaml) -> Vec<&str> {
    list.as_vec().map(|list| list.iter().filter_map(Yaml::as_str).collect()).unwrap_or_default()
}

#[test]
fn every_service_can_do_no_more_than_it_must() {
    let compose = compose();
    let services = compose["services"].as_hash().expect("services");
    assert_eq!(services.len(), 2);
    for (name, service) in services {
        assert_eq!(service["read_only"].as_bool(), Some(true), "{name:?}: the root file system");
        assert_eq!(words(&service["cap_drop"]), ["ALL"], "{name:?}");
        assert_eq!(words(&service["security_opt"]), ["no-new-privileges:true"], "{name:?}");
        assert!(service["privileged"].is_badvalue() && service["network_mode"].is_badvalue(), "{name:?}");
        assert!(!words(&service["healthcheck"]["test"]).is_empty(), "{name:?}: how to see whether it is well");
        assert_eq!(service["restart"].as_str(), Some("unless-stopped"), "{name:?}");
    }
}

#[test]
fn the_server_is_nobody_has_one_volume_and_is_reached_from_this_machine() {
    let compose = compose();
    let server = &compose["services"]["planscope"];
    let user = server["user"].as_str().expect("a user");
    assert!(user.parse::<u32>().is_ok_and(|user| user > 0), "{user}");
    assert!(text("Dockerfile").lines().any(|line| line == format!("USER {user}")), "the image has another user");
    assert!(server["cap_add"].is_badvalue());
    assert_eq!(words(&server["volumes"]), ["data:/data"]);
    assert!(compose["volumes"]["data"].is_null(), "a named volume of the engine's own");
    assert_eq!(words(&server["healthcheck"]["test"]), ["CMD", "planscope", "health"]);
    assert!(
        server["environment"]["PLANSCOPE_TOKEN"].as_str().expect("a token").contains(":?"),
        "it may start without a token"
    );
    assert!(words(&server["ports"]).iter().all(|port| port.starts_with("${PLANSCOPE_BIND:-127.0.0.1}:")), "{server:?}");
    assert!(server["profiles"].is_badvalue(), "it runs in every profile");
}

#[test]
fn tls_ends_at_a_proxy_in_front_of_the_server() {
    let compose = compose();
    let proxy = &compose["services"]["proxy"];
    assert_eq!(words(&proxy["profiles"]), ["tls"]);
    assert_eq!(words(&proxy["cap_add"]), ["NET_BIND_SERVICE"]);
    assert_eq!(proxy["depends_on"]["planscope"]["condition"].as_str(), Some("service_healthy"));
    let image = proxy["image"].as_str().expect("an image");
    assert!(
        image.rsplit_once(':').is_some_and(|(_, tag)| tag.starts_with(|digit: char| digit.is_ascii_digit())),
        "{image}"
    );
    let file = words(&proxy["volumes"]).into_iter().find_map(|volume| volume.strip_suffix(":/etc/caddy/Caddyfile:ro"));
    let settings = text(file.expect("the settings, which it cannot write"));
    assert!(settings.contains("reverse_proxy planscope:8080") && settings.contains("flush_interval -1"), "{settings}");
    assert_eq!(settings.matches('{').count(), settings.matches('}').count());
}
