//! A command that is printed before it runs and named in its error message.

use std::ffi::{OsStr, OsString};
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};

use crate::workspace::Workspace;

/// Command to run.
#[derive(Debug)]
pub(crate) struct Step {
    command: Command,
    command_line: Vec<OsString>,
}

impl Step {
    /// Creates a step that runs in the root folder of the checkout.
    pub(crate) fn new(workspace: &Workspace, program: impl AsRef<OsStr>) -> Self {
        let mut command = Command::new(program.as_ref());
        command.current_dir(workspace.root());
        Self { command, command_line: vec![program.as_ref().to_owned()] }
    }

    /// Uses the cargo executable that runs xtask.
    pub(crate) fn cargo(workspace: &Workspace) -> Self {
        let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
        let mut step = Self::new(workspace, cargo);
        step.command_line = vec!["cargo".into()];
        step
    }

    pub(crate) fn arg(mut self, argument: impl AsRef<OsStr>) -> Self {
        self.command.arg(argument.as_ref());
        self.command_line.push(argument.as_ref().to_owned());
        self
    }

    pub(crate) fn args<S: AsRef<OsStr>>(self, arguments: impl IntoIterator<Item = S>) -> Self {
        arguments.into_iter().fold(self, Self::arg)
    }

    pub(crate) fn env(mut self, name: &str, value: impl AsRef<OsStr>) -> Self {
        self.command.env(name, value);
        self
    }

    /// Returns the command line as typed in a shell.
    pub(crate) fn line(&self) -> String {
        let texts: Vec<_> = self.command_line.iter().map(|word| word.to_string_lossy()).collect();
        texts.join(" ")
    }

    /// Runs the command and waits. A non-zero exit status is an error that contains the command.
    pub(crate) fn run(mut self) -> Result<()> {
        let line = self.line();
        println!("$ {line}");
        let status = self.command.status().with_context(|| format!("cannot run `{line}`"))?;
        if !status.success() {
            bail!("`{line}` failed ({status})");
        }
        Ok(())
    }

    /// Like [`Step::run`], but also returns the output.
    pub(crate) fn run_and_read(mut self) -> Result<String> {
        let line = self.line();
        println!("$ {line}");
        let mut child = self.command.stdout(Stdio::piped()).spawn().with_context(|| format!("cannot run `{line}`"))?;
        let mut printed = String::new();
        if let Some(stdout) = child.stdout.take() {
            for output_line in BufReader::new(stdout).lines() {
                let text = output_line.with_context(|| format!("cannot read what `{line}` prints"))?;
                println!("{text}");
                printed.push_str(&text);
                printed.push('\n');
            }
        }
        let status = child.wait().with_context(|| format!("cannot wait for `{line}`"))?;
        if !status.success() {
            bail!("`{line}` failed ({status})");
        }
        Ok(printed)
    }

    /// Replaces this process with the command, so that signals reach it directly. Returns only on
    /// failure, or after the command on systems without process replacement.
    pub(crate) fn become_it(mut self) -> Result<()> {
        let line = self.line();
        println!("$ {line}");
        #[cfg(unix)]
        {
            use std::os::unix::process::CommandExt;
            Err(self.command.exec()).with_context(|| format!("cannot run `{line}`"))
        }
        #[cfg(not(unix))]
        {
            let status = self.command.status().with_context(|| format!("cannot run `{line}`"))?;
            if status.success() { Ok(()) } else { bail!("`{line}` failed ({status})") }
        }
    }

    /// Returns the output, or `None` if the command is missing or fails. Use it for checks such as
    /// "is it installed?".
    pub(crate) fn output(mut self) -> Option<String> {
        let output = self.command.stderr(Stdio::null()).stdin(Stdio::null()).output().ok()?;
        output.status.success().then(|| String::from_utf8_lossy(&output.stdout).trim().to_owned())
    }
}

/// Returns the path of a program found in PATH.
pub(crate) fn on_path(name: &str) -> Option<std::path::PathBuf> {
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path).map(|folder: std::path::PathBuf| folder.join(name)).find(|file| is_program(file))
}

fn is_program(file: &Path) -> bool {
    file.is_file() || file.with_extension("exe").is_file()
}
