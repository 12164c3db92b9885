//! `planscope measure`: runs a Python program that measures the operators of a device, and writes or
//! uploads the profile.

use std::ffi::OsString;
use std::io::{ErrorKind, Write};
use std::path::Path;
use std::process::{Command, ExitCode, Stdio};

use anyhow::{Context, bail};
use api::profile::Profile;

use crate::config::MeasureArguments;
use crate::remote::Remote;

/// The Python program. It needs PyTorch and the standard library.
pub const SCRIPT: &str = include_str!("measure_command/measure.py");

/// Exit codes of [`PROBE`].
const OLD_PYTHON: i32 = 3;
const NO_TORCH: i32 = 4;
/// Python program that exits with an error code if the measurement cannot run. It does not import PyTorch, which takes
/// seconds.
const PROBE: &str =
    "import sys, importlib.util as u; sys.exit(3 if sys.version_info < (3, 9) else 0 if u.find_spec('torch') else 4)";

/// Prints the program, or runs it and uploads the profile if requested. The output of the program passes through.
///
/// # Errors
/// The interpreter is missing, too old or without PyTorch, the program fails, or the server refuses the profile.
pub fn run(arguments: &MeasureArguments) -> anyhow::Result<ExitCode> {
    if arguments.script {
        std::io::stdout().lock().write_all(SCRIPT.as_bytes())?;
        return Ok(ExitCode::SUCCESS);
    }
    probe(&arguments.python)?;
    // The compiler of PyTorch reads the source of functions, so that the program must be a file.
    let folder = tempfile::tempdir().context("cannot create a temporary folder")?;
    let path = folder.path().join("measure.py");
    std::fs::write(&path, SCRIPT).with_context(|| format!("cannot write {}", path.display()))?;
    let python = arguments.python.display();
    let status = Command::new(&arguments.python)
        .args(command_line(arguments, &path))
        .stdin(Stdio::null())
        .status()
        .with_context(|| format!("cannot run {python}"))?;
    if !status.success() {
        bail!("the measurement failed ({status})");
    }
    if let Some(server) = &arguments.upload {
        upload(server, arguments)?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Returns the arguments of the interpreter. Several devices start through the launcher of PyTorch.
fn command_line(arguments: &MeasureArguments, script: &Path) -> Vec<OsString> {
    let mut line: Vec<OsString> = Vec::new();
    if arguments.devices > 1 {
        let ranks = arguments.devices.to_string();
        line.extend(["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", &ranks].map(OsString::from));
    }
    line.push(script.into());
    line.extend(["--minutes", &arguments.minutes.to_string(), "--device", &arguments.device].map(OsString::from));
    line.extend(["--out".into(), arguments.out.clone().into()]);
    if !arguments.sections.is_empty() {
        line.push("--sections".into());
        line.extend(arguments.sections.iter().map(OsString::from));
    }
    line
}

/// Returns an error with the remedy if the interpreter cannot run the program.
fn probe(python: &Path) -> anyhow::Result<()> {
    let name = python.display();
    let status = match Command::new(python).args(["-c", PROBE]).stdin(Stdio::null()).status() {
        Ok(status) => status,
        Err(error) if error.kind() == ErrorKind::NotFound => {
            bail!("there is no Python interpreter {name}; name the one that trains with --python")
        }
        Err(error) => return Err(error).with_context(|| format!("cannot run {name}")),
    };
    match status.code() {
        Some(0) => Ok(()),
        Some(OLD_PYTHON) => bail!("{name} is older than Python 3.9; name another interpreter with --python"),
        Some(NO_TORCH) => bail!("{name} has no PyTorch; name the interpreter of an environment with it with --python"),
        _ => bail!("{name} is no Python interpreter ({status})"),
    }
}

/// Uploads the profile. The token is sent by this program, so that the list of processes does not show it.
fn upload(server: &str, arguments: &MeasureArguments) -> anyhow::Result<()> {
    let path = &arguments.out;
    let profile = std::fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
    // Names in a query have letters, digits and a few marks.
    let is_plain = |c: &char| c.is_ascii_alphanumeric() || "-_.".contains(*c);
    let name = path.file_name().unwrap_or_default().to_string_lossy().chars().filter(is_plain).collect::<String>();
    let target = format!("/api/v1/profiles?name={name}");
    let stored: Profile = Remote::new(server, arguments.token.as_deref())
        .post(&target, "application/json", profile)
        .with_context(|| format!("the upload failed; the profile is in {}", path.display()))?;
    let residual =
        stored.summary.residual.map_or_else(String::new, |mean| format!(", mean residual {:.1} %", 100.0 * mean));
    writeln!(std::io::stderr(), "uploaded as profile {}{residual}", stored.summary.id)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;
    use crate::config::{Cli, Command as Planscope};

    fn arguments(line: &str) -> MeasureArguments {
        match Cli::try_parse_from(line.split(' ')).unwrap().command {
            Planscope::Measure(arguments) => arguments,
            other => panic!("{other:?}"),
        }
    }

    fn line(words: &str) -> String {
        let line = command_line(&arguments(words), Path::new("x.py"));
        line.iter().map(|word| word.to_string_lossy()).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn several_devices_start_through_the_launcher() {
        assert_eq!(line("planscope measure"), "x.py --minutes 10 --device cuda --out profile.json");
        assert_eq!(
            line("planscope measure --devices 8 --minutes 2.5 --sections collectives --out a.json"),
            "-m torch.distributed.run --standalone --nproc-per-node 8 x.py --minutes 2.5 --device cuda --out a.json \
             --sections collectives"
        );
        // The token is not an argument of the interpreter.
        assert!(!line("planscope measure --upload http://a --token secret").contains("secret"));
    }

    #[test]
    fn a_missing_or_wrong_interpreter_has_a_remedy() {
        let missing = probe(Path::new("/nowhere/python3")).unwrap_err().to_string();
        assert_eq!(missing, "there is no Python interpreter /nowhere/python3; name the one that trains with --python");
        #[cfg(unix)]
        for (code, expected) in
            [(0, None), (3, Some("Python 3.9")), (4, Some("no PyTorch")), (7, Some("no Python interpreter"))]
        {
            use std::os::unix::fs::PermissionsExt;
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path().join("python");
            std::fs::write(&path, format!("#!/bin/sh\nexit {code}\n")).unwrap();
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
            let error = probe(&path).err().map(|error| error.to_string());
            assert_eq!(error.is_some(), expected.is_some(), "{error:?}");
            assert!(expected.is_none_or(|part| error.as_ref().is_some_and(|error| error.contains(part))), "{error:?}");
        }
    }

    #[test]
    fn the_program_needs_only_torch_and_the_standard_library() {
        // Imported where they are used, for cases that are skipped without them.
        const OPTIONAL: [&str; 2] = ["fla", "mamba_ssm"];
        const MODULES: [&str; 26] = [
            "__future__",
            "argparse",
            "contextlib",
            "dataclasses",
            "datetime",
            "functools",
            "gc",
            "itertools",
            "json",
            "logging",
            "math",
            "os",
            "platform",
            "signal",
            "subprocess",
            "sys",
            "threading",
            "time",
            "torch",
            "typing",
            "urllib",
            "warnings",
            "collections",
            "random",
            "statistics",
            "tempfile",
        ];
        let imports: Vec<&str> = SCRIPT
            .lines()
            .map(str::trim_start)
            .filter_map(|line| {
                line.strip_prefix("import ")
                    .or_else(|| line.strip_prefix("from ").filter(|rest| rest.contains(" import ")))
            })
            .map(|rest| rest.split([' ', '.', ',']).next().unwrap_or_default())
            .collect();
        assert!(imports.len() > 20, "{imports:?}");
        let is_known = |module: &str| MODULES.contains(&module) || OPTIONAL.contains(&module);
        let foreign: Vec<_> = imports.iter().filter(|module| !is_known(module)).collect();
        assert!(foreign.is_empty(), "{foreign:?}");
    }

    /// Every parameter except `self` has a type, and every function a result type.
    #[test]
    fn every_function_of_the_program_is_annotated() {
        let mut functions = 0;
        for (at, _) in
            SCRIPT.match_indices("def ").filter(|(at, _)| SCRIPT[..*at].trim_end_matches(' ').ends_with('\n'))
        {
            let head = &SCRIPT[at..];
            let open = head.find('(').unwrap();
            let (mut depth, mut close) = (0_i32, 0);
            let mut parts = vec![String::new()];
            for (place, c) in head.char_indices().skip(open) {
                depth += i32::from("([{".contains(c)) - i32::from(")]}".contains(c));
                if depth == 0 {
                    close = place;
                    break;
                }
                match c {
                    ',' if depth == 1 => parts.push(String::new()),
                    '(' if place == open => {}
                    _ => parts.last_mut().unwrap().push(c),
                }
            }
            let name = &head[..open];
            assert!(head[close + 1..].trim_start().starts_with("->"), "{name} has no result type");
            for part in
                parts.iter().map(|part| part.trim()).filter(|part| !part.is_empty() && *part != "self" && *part != "*")
            {
                assert!(part.contains(':'), "{name}: {part} has no type");
            }
            functions += 1;
        }
        assert!(functions > 100, "{functions}");
    }

    /// Needs an interpreter; a machine without it checks the rest.
    #[test]
    fn the_program_compiles() {
        if probe(Path::new("python3")).is_err_and(|error| error.to_string().starts_with("there is no")) {
            return;
        }
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("measure.py");
        std::fs::write(&path, SCRIPT).unwrap();
        let output = Command::new("python3").args(["-m", "py_compile"]).arg(&path).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    }
}
