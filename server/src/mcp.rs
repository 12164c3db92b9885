//! Checks of training configurations as tools of the Model Context Protocol: on standard input and output
//! (`planscope mcp`), and over HTTP (`/mcp`).

mod glossary;
mod host;
mod message;
mod structured;
mod tools;

pub(crate) use host::Host;
pub(crate) use message::{error, incomplete_call};
pub(crate) use tools::Tools;
