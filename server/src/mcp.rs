//! Checks of training configurations as tools of the Model Context Protocol: on standard input and output
//! (`planscope mcp`), and over HTTP (`/mcp`).

mod glossary;
mod host;
mod structured;
mod tools;

pub(crate) use host::Host;
pub(crate) use tools::Tools;
