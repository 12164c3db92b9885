//! Runs the dashboard from a checkout.

use anyhow::Result;

use crate::setup;
use crate::step::Step;
use crate::web::{self, Profile};
use crate::workspace::Workspace;

const DEFAULT_ADDRESS: &str = "127.0.0.1:8080";

/// Sets up, builds, and replaces this process with the server.
pub(crate) fn serve(workspace: &Workspace, profile: Profile, rest: &[String]) -> Result<()> {
    setup::web(workspace)?;
    web::build(workspace, profile)?;
    // The dev profile also optimises the planner. A first release build would take minutes with
    // little benefit.
    let (flags, folder): (&[&str], _) = match profile {
        Profile::Dev => (&[], "debug"),
        Profile::Release => (&["--release"], "release"),
    };
    Step::cargo(workspace).args(["build", "--package", "planscope-server", "--bin", "planscope"]).args(flags).run()?;
    println!("\n  Planscope: http://{}/   (Ctrl-C ends it)\n", address(rest));
    Step::new(workspace, workspace.program(folder, "planscope"))
        .arg("serve")
        .args(rest)
        .env("PLANSCOPE_WEB", workspace.web())
        .become_it()
}

/// Returns the server address by the rules of the server: flag, environment variable, default.
fn address(rest: &[String]) -> String {
    let flag = rest.iter().enumerate().find_map(|(at, word)| match word.strip_prefix("--address") {
        Some("") => rest.get(at + 1).cloned(),
        Some(joined) => joined.strip_prefix('=').map(str::to_owned),
        None => None,
    });
    flag.or_else(|| std::env::var("PLANSCOPE_ADDRESS").ok()).unwrap_or_else(|| DEFAULT_ADDRESS.to_owned())
}

#[cfg(test)]
mod tests {
    use super::address;

    #[test]
    fn the_address_is_read_as_the_server_reads_it() {
        let arguments = |line: &str| line.split(' ').map(str::to_owned).collect::<Vec<_>>();
        assert_eq!(address(&arguments("--address 127.0.0.1:9000")), "127.0.0.1:9000");
        assert_eq!(address(&arguments("--workers 1 --address=0.0.0.0:80")), "0.0.0.0:80");
        assert_eq!(address(&arguments("--addresses x")), "127.0.0.1:8080");
    }
}
