//! The planscope program.

use std::process::ExitCode;
use std::time::Duration;

use clap::Parser;
use server::config::{Cli, Command};
use tracing_subscriber::EnvFilter;

/// Returns the memory of a plan to the system when the plan is dropped, regardless of the
/// allocating thread (ADR 44).
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Time limit for computations that are still running after the server has stopped. Their clients
/// are disconnected, and their results are not stored.
const LAST_MOMENT: Duration = Duration::from_secs(1);

fn main() -> ExitCode {
    match run() {
        Ok(code) => code,
        // With `planscope plan ... | head`, the reader may close the pipe early.
        Err(error) if is_closed_pipe(&error) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("planscope: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn is_closed_pipe(error: &anyhow::Error) -> bool {
    error.chain().any(|cause| {
        let io = cause.downcast_ref::<std::io::Error>().map(std::io::Error::kind);
        let json = || cause.downcast_ref::<serde_json::Error>().and_then(serde_json::Error::io_error_kind);
        io.or_else(json) == Some(std::io::ErrorKind::BrokenPipe)
    })
}

fn run() -> anyhow::Result<ExitCode> {
    let mut command = Cli::parse().command;
    command.read_token_file()?;
    match command {
        Command::Serve(arguments) => {
            let filter = EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new("info"));
            tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr).init();
            let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
            let served = runtime.block_on(server::serve::run(arguments));
            runtime.shutdown_timeout(LAST_MOMENT);
            served?;
            Ok(ExitCode::SUCCESS)
        }
        Command::Plan(arguments) => server::plan_command::run(&arguments),
        Command::Simulate(arguments) => server::simulate_command::run(&arguments),
        Command::Check(arguments) => server::check_command::run(&arguments),
        Command::Mcp(arguments) => server::mcp_command::run(&arguments),
        Command::Fit(arguments) => server::fit_command::run(&arguments),
        Command::Estimate(arguments) => server::estimate_command::run(&arguments),
        Command::Calibrate(arguments) => server::calibrate_command::run(&arguments),
        Command::Measure(arguments) => server::measure_command::run(&arguments),
        Command::Schedule(arguments) => server::schedule_command::run(&arguments),
        Command::Solve(arguments) => server::solve_command::run(&arguments),
        Command::Sweep(arguments) => server::sweep_command::run(&arguments),
        Command::Trace(arguments) => server::trace_command::run(&arguments),
        Command::Lengths(arguments) => server::lengths_command::run(&arguments),
        Command::Import(arguments) => server::import_command::run(&arguments),
        Command::Backup(arguments) => server::backup_command::backup(&arguments),
        Command::Restore(arguments) => server::backup_command::restore(&arguments),
        Command::CancelWork(arguments) => server::cancel_work_command::run(&arguments),
        Command::Verify(arguments) => server::backup_command::verify(&arguments),
        Command::Token(arguments) => server::token_command::run(&arguments),
        Command::Health(arguments) => server::health_command::run(&arguments),
        Command::Openapi => {
            println!("{}", server::router::document().to_pretty_json()?);
            Ok(ExitCode::SUCCESS)
        }
    }
}
