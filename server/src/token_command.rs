//! `planscope token`: manages named tokens in a database, which a server may be using.

use std::path::Path;
use std::process::ExitCode;

use anyhow::{Context, ensure};

use crate::access::{TOKEN_NAME_RULE, hash, is_token_name};
use crate::changes::{COMMAND_LINE, Change};
use crate::clock::{Clock, SystemClock};
use crate::config::{TokenArguments, TokenCommand};
use crate::store::{Store, is_current};
use crate::token::Token;

/// Creates, lists or revokes named tokens.
pub fn run(arguments: &TokenArguments) -> anyhow::Result<ExitCode> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let lines = runtime.block_on(lines(arguments))?;
    for line in lines {
        println!("{line}");
    }
    Ok(ExitCode::SUCCESS)
}

async fn lines(arguments: &TokenArguments) -> anyhow::Result<Vec<String>> {
    let store = open(&arguments.database).await?;
    let lines = done(&store, &arguments.command).await;
    store.close().await;
    lines
}

/// Opens a database with the current schema version. An older database is refused, because a
/// migration would affect a running server of an earlier version.
async fn open(database: &Path) -> anyhow::Result<Store> {
    let path = database.display();
    ensure!(database.is_file(), "there is no database {path}; start the server once");
    let is_current = is_current(database).await.with_context(|| format!("the database {path} cannot be read"))?;
    ensure!(is_current, "another version made the tables of {path}; start this version of the server once");
    Store::open(database).await.with_context(|| format!("cannot open the database {path}"))
}

async fn done(store: &Store, command: &TokenCommand) -> anyhow::Result<Vec<String>> {
    let now = SystemClock::start().now();
    match command {
        TokenCommand::Create { name, role } => {
            ensure!(is_token_name(name), "{name:?} is not {TOKEN_NAME_RULE}");
            let token = Token::draw();
            let is_new = store.writer().add_token(name, *role, &hash(token.as_str()), now).await?;
            ensure!(
                is_new,
                "there is a token {name:?} already, or there was one (upper and lower case are the same); take another name"
            );
            record(store, "create", "POST", name).await?;
            Ok(vec![token.as_str().to_owned()])
        }
        TokenCommand::List => {
            let tokens = store.reader().tokens().await?;
            let line = |token: api::access::TokenLine| {
                let used = token.last_used_at.as_deref().unwrap_or("never");
                let state = token.revoked_at.as_ref().map_or_else(String::new, |at| format!(", revoked {at}"));
                format!("{}: {}, created {}, last used {used}{state}", token.name, token.role.id(), token.created_at)
            };
            Ok(tokens.into_iter().map(line).collect())
        }
        TokenCommand::Revoke { name } => {
            store.writer().revoke_token(name, now).await?;
            record(store, "delete", "DELETE", name).await?;
            Ok(vec![format!("{name} is revoked")])
        }
    }
}

async fn record(store: &Store, action: &str, method: &str, name: &str) -> anyhow::Result<()> {
    let change = Change {
        method: method.to_owned(),
        action: action.to_owned(),
        kind: "token".to_owned(),
        object: name.to_owned(),
    };
    Ok(store.writer().record_change(COMMAND_LINE, &change, SystemClock::start().now()).await?)
}

#[cfg(test)]
mod tests {
    use api::access::Role;

    use super::*;

    #[tokio::test]
    async fn tokens_are_created_listed_and_revoked_during_operation() {
        let folder = tempfile::tempdir().unwrap();
        let database = folder.path().join("a.db");
        let arguments = |command| TokenArguments { database: database.clone(), command };
        let create = || arguments(TokenCommand::Create { name: "ada".to_owned(), role: Role::Editor });
        let error = lines(&create()).await.unwrap_err().to_string();
        assert!(error.contains("there is no database"), "{error}");

        // Simulates the open connections of a running server.
        let server = Store::open(&database).await.unwrap();
        let token = lines(&create()).await.unwrap().remove(0);
        assert_eq!(token.len(), 32);
        let holder = server.reader().token_holder(&hash(&token)).await.unwrap();
        assert_eq!(holder, Some(("ada".to_owned(), Role::Editor)));
        assert!(lines(&create()).await.unwrap_err().to_string().contains("already"));
        let listed = lines(&arguments(TokenCommand::List)).await.unwrap().remove(0);
        assert!(listed.starts_with("ada: editor, created 2") && listed.ends_with("last used never"), "{listed}");

        lines(&arguments(TokenCommand::Revoke { name: "ada".to_owned() })).await.unwrap();
        assert_eq!(server.reader().token_holder(&hash(&token)).await.unwrap(), None);
        assert!(lines(&arguments(TokenCommand::Revoke { name: "bob".to_owned() })).await.is_err());
        let changes = server.reader().changes(None, 10).await.unwrap().changes;
        let records: Vec<_> = changes.iter().map(|change| (change.actor.as_str(), change.action.as_str())).collect();
        assert_eq!(records, [("(command line)", "delete"), ("(command line)", "create")]);
        let wrong = arguments(TokenCommand::Create { name: "a/b".to_owned(), role: Role::Reader });
        assert!(lines(&wrong).await.unwrap_err().to_string().contains("letters"));
    }

    #[tokio::test]
    async fn journal_survives_an_emptied_database() {
        let folder = tempfile::tempdir().unwrap();
        let database = folder.path().join("a.db");
        let journal = folder.path().join("a.db-wal");
        std::fs::write(&database, []).unwrap();
        std::fs::write(&journal, [7; 4096]).unwrap();
        let list = TokenArguments { database, command: TokenCommand::List };
        let error = format!("{:#}", lines(&list).await.unwrap_err());
        assert!(error.contains("a.db-wal"), "{error}");
        assert_eq!(std::fs::read(&journal).unwrap(), [7; 4096]);
    }
}
