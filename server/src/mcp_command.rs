//! `planscope mcp`: the tools of the Model Context Protocol on standard input and output.

mod lines;

use std::process::ExitCode;

use rmcp::ServiceExt;
use rmcp::service::ServerInitializeError;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::sync::mpsc;

use crate::config::McpArguments;
use crate::mcp::{Host, Tools};
use crate::workers::Threads;

/// Bytes of the buffers between the standard streams and the service.
const BUFFER: usize = 1 << 20;
/// Answers that wait for standard output.
const ANSWERS: usize = 16;

/// Serves the tools until the client closes standard input.
pub fn run(arguments: &McpArguments) -> anyhow::Result<ExitCode> {
    let threads = arguments.search_threads.map_or_else(Threads::all_cores, Threads::new);
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(async {
        let (requests, service_input) = tokio::io::duplex(BUFFER);
        let (service_output, responses) = tokio::io::duplex(BUFFER);
        let (answers, mut written) = mpsc::channel::<Vec<u8>>(ANSWERS);
        let input = BufReader::new(tokio::io::stdin());
        let reader = tokio::spawn(lines::forward(input, requests, answers.clone()));
        let copier = tokio::spawn(async move {
            let mut responses = BufReader::new(responses);
            let mut line = Vec::new();
            while responses.read_until(b'\n', &mut line).await? > 0 {
                if answers.send(std::mem::take(&mut line)).await.is_err() {
                    break;
                }
            }
            Ok::<(), std::io::Error>(())
        });
        let writer = tokio::spawn(async move {
            let mut output = tokio::io::stdout();
            while let Some(line) = written.recv().await {
                output.write_all(&line).await?;
                output.flush().await?;
            }
            Ok::<(), std::io::Error>(())
        });
        let service = match Tools::new(Host::Process(threads)).serve((service_input, service_output)).await {
            Ok(service) => service,
            // The client closed the input before the first request.
            Err(ServerInitializeError::ConnectionClosed(_)) => return Ok(ExitCode::SUCCESS),
            Err(error) => return Err(error.into()),
        };
        service.waiting().await?;
        // The service can stop before the input ends.
        reader.abort();
        if let Ok(read) = reader.await {
            read?;
        }
        copier.await??;
        writer.await??;
        Ok(ExitCode::SUCCESS)
    })
}
