//! `planscope rehearse`: walks through a plan for real, a process for every rank.

mod input;

use std::fs::File;
use std::io::{self, Write};
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, bail};
use api::run::NewRun;

use crate::config::RehearseArguments;
use crate::rehearsal::{Destination, Finale, Interrupt, Outlets, Rehearsal, Settings, TraceWriter, Upload, remark};
use input::Input;

/// Exit code of a plan that cannot be followed.
const FAILED: u8 = 1;
/// Exit code of what is no plan, or cannot be rehearsed.
const INVALID: u8 = 2;
/// Exit code where somebody ended it, as shells have it for ctrl-C.
const INTERRUPTED: u8 = 130;

/// What stands behind the flags in `planscope rehearse --help`.
pub const HELP: &str = "\
A plan is the JSON file of an execution plan (of the execution plan panel, or GET .../execution-plans/PLANNER/ITERATION/\
file?form=json), a list of such, or a scenario, which is planned first. With --server and --scenario it is fetched from a \
running server, and log and trace are streamed back to a run there.

Every rank becomes a process. A stage sleeps for its duration, a transfer is a message over a TCP connection on loopback \
that lasts as long as planned, and a wait blocks. A plan that deadlocks, loses a message or takes one for another is told \
with the ranks and actions concerned, and exits with 1.

Times are rehearsed times multiplied by the speed, so that they stand beside the prediction. Without --speed one is taken \
at which late wake-ups and messages add 1.5 % at most. A trace opens in Perfetto, chrome://tracing and Planscope.

  planscope rehearse scenario.json --planner pipeweaver --iterations 4 --trace trace.json.gz
  planscope rehearse planscope-abc-1f1b-0-execution.json --speed 2 --json
  planscope rehearse scenario.json --to http://127.0.0.1:8080
  planscope rehearse --server http://127.0.0.1:8080 --scenario abcdefghij --planner 1f1b --iteration 0";

/// Rehearses.
pub fn run(arguments: &RehearseArguments) -> anyhow::Result<ExitCode> {
    let input = match Input::read(arguments)? {
        Ok(input) => input,
        Err(wrong) => {
            for line in wrong {
                eprintln!("{line}");
            }
            return Ok(ExitCode::from(INVALID));
        }
    };
    let settings = Settings {
        program: std::env::current_exe().context("cannot find this program")?,
        speed: arguments.speed,
        patience: arguments.patience.map(Duration::from_secs_f64),
        message_bytes: arguments.message_bytes,
    };
    let rehearsal = match Rehearsal::prepare(&input.score, settings) {
        Ok(rehearsal) => rehearsal,
        Err(error) => {
            eprintln!("planscope: {error}");
            return Ok(ExitCode::from(INVALID));
        }
    };
    let (ranks, speed) = (input.score.ranks(), rehearsal.tempo().speed);
    // A server that names a speed has refused what it would not have.
    let asked = arguments.speed.is_some() && !arguments.until_input_ends;
    if let Some(refusal) = rehearsal.tempo().refusal().filter(|_| asked) {
        eprintln!("planscope: {refusal}");
        return Ok(ExitCode::from(INVALID));
    }
    // A server has the same in the log.
    if !arguments.until_input_ends {
        tell_tempo(&rehearsal, ranks);
    }
    let upload = upload(arguments, &input, &rehearsal)?;
    end_on_signals(rehearsal.interrupt())?;
    if arguments.until_input_ends {
        end_with_input(rehearsal.interrupt());
    }
    let mut trace = match &arguments.trace {
        Some(path) => {
            Some(TraceWriter::create(path, ranks, speed).with_context(|| format!("cannot write {}", path.display()))?)
        }
        None if upload.is_some() => Some(TraceWriter::unnamed(ranks, speed).context("cannot make a temporary file")?),
        None => None,
    };
    let mut sink = log_sink(arguments)?;
    let mut log = |lines: &str| {
        sink.write_all(lines.as_bytes())?;
        sink.flush()?;
        upload.as_ref().map_or(Ok(()), |upload| upload.log(lines))
    };
    let played = rehearsal.run(Outlets { trace: trace.as_mut(), log: &mut log });
    let (code, reason) = match &played {
        Ok(finale @ Finale::Done(_)) => (0, finale.reason()),
        Ok(finale @ Finale::Interrupted(_)) => (INTERRUPTED, finale.reason()),
        Ok(finale @ Finale::Failed(_)) => (FAILED, finale.reason()),
        Err(error) => (FAILED, Some(format!("stopped: {error:#}"))),
    };
    if let Some(reason) = &reason
        && let Err(error) = log(&remark(reason))
    {
        eprintln!("planscope: the log could not be written: {error}");
    }
    let finished = trace.map(TraceWriter::finish).transpose().context("cannot write the trace");
    // Whatever became of the trace, the run is told its end.
    let (finished, trace_problem) = match finished {
        Ok(finished) => (finished, None),
        Err(error) => (None, Some(error)),
    };
    if let Some(upload) = upload {
        for problem in upload.finish(i32::from(code), reason.clone(), finished).problems {
            eprintln!("planscope: {problem}");
        }
    }
    match played? {
        Finale::Done(report) if arguments.json => {
            let mut out = io::stdout().lock();
            serde_json::to_writer_pretty(&mut out, &report)?;
            writeln!(out)?;
        }
        Finale::Done(report) => print!("{report}"),
        Finale::Failed(_) | Finale::Interrupted(_) => {
            eprintln!("planscope: the rehearsal {}", reason.unwrap_or_default());
        }
    }
    trace_problem.map_or(Ok(ExitCode::from(code)), Err)
}

fn tell_tempo(rehearsal: &Rehearsal<'_>, ranks: usize) {
    let tempo = rehearsal.tempo();
    let (median, mean) = (tempo.precision.median_ns / 1000, tempo.precision.mean_ns / 1000);
    let late = tempo.precision.late_ns / 1000;
    let (empty, full) = (tempo.postage.empty_ns / 1000, tempo.postage.full_ns / 1000);
    eprintln!(
        "rehearsing {ranks} ranks at speed {:.4}; the shortest computation takes {:.3} ms, sleepers wake {median} us late \
         in the median, {mean} us in the mean and {late} us at the 95th percentile, a message takes {empty} to {full} us; together they are \
         expected to add {:.1} % at most",
        tempo.speed,
        tempo.shortest_ns / 1e6,
        tempo.expected * 100.0
    );
    if let Some(warning) = tempo.warning() {
        eprintln!("warning: {warning}");
    }
}

/// Where the log goes on this machine.
fn log_sink(arguments: &RehearseArguments) -> anyhow::Result<Box<dyn Write>> {
    Ok(match arguments.log.as_deref() {
        Some(path) if path != Path::new("-") => {
            Box::new(File::create(path).with_context(|| format!("cannot write {}", path.display()))?)
        }
        // Standard output is for the report then.
        None if arguments.json => Box::new(io::stderr()),
        _ => Box::new(io::stdout()),
    })
}

/// The stream to a server, where one is wanted.
fn upload(arguments: &RehearseArguments, input: &Input, rehearsal: &Rehearsal<'_>) -> anyhow::Result<Option<Upload>> {
    let Some(server) = arguments.destination() else { return Ok(None) };
    let destination = match (&arguments.run, &arguments.run_token) {
        (Some(run), Some(token)) => Destination {
            server: server.trim_end_matches('/').to_owned(),
            token: arguments.token().map(str::to_owned),
            run: run.clone(),
            run_token: token.clone(),
        },
        (Some(_), None) => bail!("a run that is open already needs its token in PLANSCOPE_RUN_TOKEN"),
        (None, _) => {
            let name = format!("Rehearsal of {}", input.name);
            let run =
                NewRun { name: Some(name), scenario: input.scenario.clone(), plan: input.planner, log_table: None };
            let opened = Destination::open(server, arguments.token(), &run);
            // A server that does not know the scenario shows the run by itself.
            opened.or_else(|error| match &run.scenario {
                Some(_) => {
                    eprintln!("planscope: {error:#}; opening a run without its plan");
                    Destination::open(server, arguments.token(), &NewRun { scenario: None, plan: None, ..run })
                }
                None => Err(error),
            })?
        }
    };
    if arguments.run.is_none() {
        eprintln!("streaming to {}", destination.page());
    }
    let interrupt = rehearsal.interrupt();
    // For people the rehearsal goes on without a server; for a server it would be for nobody.
    let attended = arguments.run.is_none();
    Ok(Some(Upload::start(destination, move || {
        if !attended {
            interrupt.send();
        }
    })))
}

/// Ends the rehearsal on ctrl-C and on the signal of service managers.
fn end_on_signals(interrupt: Interrupt) -> anyhow::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    std::thread::spawn(move || {
        runtime.block_on(crate::serve::interrupted());
        interrupt.send();
    });
    Ok(())
}

/// Ends the rehearsal with standard input, so that it does not outlive who holds the other end.
fn end_with_input(interrupt: Interrupt) {
    std::thread::spawn(move || {
        // However it ends, it has ended.
        drop(io::copy(&mut io::stdin().lock(), &mut io::sink()));
        interrupt.send();
    });
}
