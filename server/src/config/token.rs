//! Tokens in files, and arguments for named tokens.

use std::ffi::OsString;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use api::access::Role;
use clap::{Args, Subcommand};

use super::Command;

/// Maximum token file size in bytes.
const MAX: u64 = 4096;

/// Argument for a file that contains the server token. Container engines provide secrets as files.
#[derive(Debug, Clone, Default, Args)]
pub struct TokenFile {
    /// File that contains the token, instead of the token itself.
    #[arg(long, env = "PLANSCOPE_TOKEN_FILE", value_name = "FILE")]
    token_file: Option<OsString>,
}

/// Errors when reading a token file.
#[derive(Debug, thiserror::Error)]
pub enum TokenFileError {
    /// The file is not readable.
    #[error("the file {path} of the token cannot be read")]
    Unreadable {
        /// Path of the token file.
        path: PathBuf,
        /// Cause.
        source: std::io::Error,
    },
    /// The content is not a single line.
    #[error("the file {0} must hold the token on one line and nothing else")]
    NotAToken(PathBuf),
    /// Both a token and a token file are set.
    #[error("both a token and the file {0} of a token are given; take one of PLANSCOPE_TOKEN and PLANSCOPE_TOKEN_FILE")]
    Both(PathBuf),
}

impl TokenFile {
    /// Reads the file, if set, into `token`.
    fn fill(&self, token: &mut Option<String>) -> Result<(), TokenFileError> {
        // Container files set unused variables to an empty value.
        let Some(path) = self.token_file.as_deref().filter(|path| !path.is_empty()).map(Path::new) else {
            return Ok(());
        };
        if token.as_deref().is_some_and(|token| !token.is_empty()) {
            return Err(TokenFileError::Both(path.to_owned()));
        }
        let unreadable = |source| TokenFileError::Unreadable { path: path.to_owned(), source };
        let mut text = String::new();
        File::open(path).and_then(|file| file.take(MAX).read_to_string(&mut text)).map_err(unreadable)?;
        let line = text.trim();
        // An empty file must not make the server public.
        if line.is_empty() || line.contains(char::is_whitespace) {
            return Err(TokenFileError::NotAToken(path.to_owned()));
        }
        *token = Some(line.to_owned());
        Ok(())
    }
}

impl Command {
    /// Reads the token file for commands that accept a token.
    pub fn read_token_file(&mut self) -> Result<(), TokenFileError> {
        match self {
            Self::Serve(arguments) => arguments.token_file.fill(&mut arguments.token),
            Self::Health(arguments) => arguments.token_file.fill(&mut arguments.token),
            Self::Import(arguments) => arguments.token_file.fill(&mut arguments.token),
            Self::Lengths(arguments) => arguments.token_file.fill(&mut arguments.token),
            Self::Measure(arguments) => arguments.token_file.fill(&mut arguments.token),
            _ => Ok(()),
        }
    }
}

/// Arguments of `planscope token`.
#[derive(Debug, Clone, Args)]
pub struct TokenArguments {
    /// Database file, which a server may be using.
    #[arg(long, env = "PLANSCOPE_DATABASE", default_value = "planscope.db", global = true)]
    pub database: PathBuf,
    /// Subcommand.
    #[command(subcommand)]
    pub command: TokenCommand,
}

/// Subcommands of `planscope token`.
#[derive(Debug, Clone, Subcommand)]
pub enum TokenCommand {
    /// Create a token and write it to standard output; it is shown only once.
    Create {
        /// User name: letters, digits and any of - _ . @
        name: String,
        /// Role of the user: reader, editor or admin.
        #[arg(long, value_parser = role)]
        role: Role,
    },
    /// List the tokens with their roles.
    List,
    /// Revoke a token and its sessions; effective within five seconds on a running server.
    Revoke {
        /// Name of the token.
        name: String,
    },
}

fn role(text: &str) -> Result<Role, String> {
    Role::from_id(text).ok_or_else(|| format!("there are {}", Role::ALL.map(Role::id).join(", ")))
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::super::Cli;
    use super::*;

    fn file(text: &str) -> (tempfile::TempDir, PathBuf) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("token");
        std::fs::write(&path, text).unwrap();
        (folder, path)
    }

    fn token(flags: &[&str], path: &Path) -> Result<Option<String>, String> {
        let command_line = ["planscope"].iter().chain(flags).map(OsString::from);
        let full_command = command_line.chain([OsString::from("--token-file"), path.into()]);
        let mut command = Cli::try_parse_from(full_command).unwrap().command;
        command.read_token_file().map_err(|error| error.to_string())?;
        match command {
            Command::Serve(arguments) => Ok(arguments.token),
            Command::Health(arguments) => Ok(arguments.token),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_token_comes_from_a_file() {
        let (_folder, path) = file("0123456789abcdef\n");
        for arguments in [&["serve"][..], &["health"], &["serve", "--token", ""]] {
            assert_eq!(token(arguments, &path).unwrap().as_deref(), Some("0123456789abcdef"), "{arguments:?}");
        }
        let error = token(&["serve", "--token", "fedcba9876543210"], &path).unwrap_err();
        assert!(error.contains("PLANSCOPE_TOKEN_FILE"), "{error}");
        assert_eq!(token(&["serve"], Path::new("")).unwrap(), None, "a variable that is left empty");
    }

    #[test]
    fn a_file_without_a_token_starts_no_server() {
        for text in ["", "\n", "one\ntwo\n", "a token"] {
            let (_folder, path) = file(text);
            assert!(token(&["serve"], &path).unwrap_err().contains("one line"), "{text:?}");
        }
        let (folder, path) = file("x");
        assert!(token(&["serve"], &path.with_file_name("other")).unwrap_err().contains("cannot be read"));
        assert!(token(&["serve"], folder.path()).unwrap_err().contains("cannot be read"), "a folder");
    }

    #[test]
    fn token_commands_require_a_role_and_a_database() {
        let parsed = |flags: &[&str]| {
            Cli::try_parse_from(["planscope", "token"].iter().chain(flags)).map(|cli| match cli.command {
                Command::Token(arguments) => arguments,
                other => panic!("{other:?}"),
            })
        };
        let created = parsed(&["create", "ada", "--role", "editor", "--database", "a.db"]).unwrap();
        assert_eq!(created.database, Path::new("a.db"));
        assert!(matches!(created.command, TokenCommand::Create { name, role: Role::Editor } if name == "ada"));
        assert!(matches!(parsed(&["revoke", "ada"]).unwrap().command, TokenCommand::Revoke { name } if name == "ada"));
        assert!(
            parsed(&["create", "ada", "--role", "owner"]).unwrap_err().to_string().contains("reader, editor, admin")
        );
        assert!(parsed(&["create", "ada"]).is_err(), "a role is never guessed");
    }
}
