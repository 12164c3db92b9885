//! The trace of a rehearsal: Chrome trace events with the annotations that torch's pipelines write.

use std::fs::File;
use std::io::{self, BufWriter, Seek, Write};
use std::path::Path;

use flate2::Compression;
use flate2::write::GzEncoder;
use planner::execution_plan::{ExecutionPlan, PlanAction, PlanActionKind};
use planner::timeline::SpanKind;

use super::control::Record;
use super::post::letter;
use super::walk::unit;

/// Threads of a rank's process.
const COMPUTE: u32 = 0;
const SEND: u32 = 1;
const RECEIVE: u32 = 2;

/// Writes a trace while the rehearsal goes on. It is an array of events, which readers take although it is cut.
#[derive(Debug)]
pub struct TraceWriter {
    sink: Sink,
    /// The same file, to be read from the beginning.
    file: File,
    speed: f64,
    /// Zero of the trace on the common clock, where the first iteration has begun.
    origin_ns: Option<u64>,
}

#[derive(Debug)]
enum Sink {
    Plain(BufWriter<File>),
    Packed(Box<GzEncoder<BufWriter<File>>>),
}

impl Write for Sink {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::Plain(out) => out.write(bytes),
            Self::Packed(out) => out.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Self::Plain(out) => out.flush(),
            Self::Packed(out) => out.flush(),
        }
    }
}

impl TraceWriter {
    /// Writes to a file, packed with gzip where its name ends in `.gz`.
    pub fn create(path: &Path, ranks: usize, speed: f64) -> io::Result<Self> {
        let file = File::options().read(true).write(true).create(true).truncate(true).open(path)?;
        Self::to(file, path.extension().is_some_and(|extension| extension == "gz"), ranks, speed)
    }

    /// Writes to a file without a name, packed, that is gone with the process.
    pub fn unnamed(ranks: usize, speed: f64) -> io::Result<Self> {
        Self::to(tempfile::tempfile()?, true, ranks, speed)
    }

    fn to(file: File, packed: bool, ranks: usize, speed: f64) -> io::Result<Self> {
        let out = BufWriter::new(file.try_clone()?);
        let sink =
            if packed { Sink::Packed(Box::new(GzEncoder::new(out, Compression::fast()))) } else { Sink::Plain(out) };
        let mut writer = Self { sink, file, speed, origin_ns: None };
        // Every further event stands behind a comma.
        write!(
            writer.sink,
            "[\n{{\"name\":\"clock\",\"ph\":\"M\",\"pid\":0,\"tid\":0,\"args\":{{\"speed\":{speed}}}}}"
        )?;
        for rank in 0..ranks {
            writer.name("process_name", rank, COMPUTE, &format!("{{\"name\":\"rank {rank}\"}}"))?;
            writer.name("process_sort_index", rank, COMPUTE, &format!("{{\"sort_index\":{rank}}}"))?;
            for (thread, name) in [(COMPUTE, "compute"), (SEND, "send"), (RECEIVE, "receive")] {
                writer.name("thread_name", rank, thread, &format!("{{\"name\":\"{name}\"}}"))?;
                writer.name("thread_sort_index", rank, thread, &format!("{{\"sort_index\":{thread}}}"))?;
            }
        }
        Ok(writer)
    }

    fn name(&mut self, what: &str, rank: usize, thread: u32, value: &str) -> io::Result<()> {
        write!(self.sink, ",\n{{\"name\":\"{what}\",\"ph\":\"M\",\"pid\":{rank},\"tid\":{thread},\"args\":{value}}}")
    }

    /// An iteration begins; the first one's begin is the zero of the trace.
    pub(super) fn begin(&mut self, at_ns: u64) {
        self.origin_ns.get_or_insert(at_ns);
    }

    /// Writes what a rank did.
    pub(super) fn record(&mut self, rank: usize, plan: &ExecutionPlan, record: &Record) -> io::Result<()> {
        let (thread, name) = match plan.ranks[rank].get(record.index as usize) {
            Some(action) if action.action.computes() => {
                (COMPUTE, annotation(unit(&plan.ranks[rank], record.index as usize)))
            }
            Some(action) => match (action.action, action.transfer) {
                (PlanActionKind::Isend, Some(transfer)) => {
                    (SEND, format!("PP:{}SEND_{}{}", action.stage, letter(transfer.payload), action.microbatch))
                }
                (PlanActionKind::Irecv, Some(transfer)) => {
                    (RECEIVE, format!("PP:{}RECV_{}{}", action.stage, letter(transfer.payload), action.microbatch))
                }
                _ => return Ok(()),
            },
            None => {
                let place = record.index as usize - plan.ranks[rank].len();
                let own = plan.endings.iter().filter(|ending| ending.rank as usize == rank).nth(place);
                match own.map(|ending| ending.kind) {
                    Some(SpanKind::GradientSync) => (COMPUTE, "gradient synchronisation".to_owned()),
                    Some(_) => (COMPUTE, "Optimizer.step".to_owned()),
                    None => return Ok(()),
                }
            }
        };
        self.slice(rank, thread, &name, record.begin_ns, record.end_ns)
    }

    /// Writes an iteration of a rank.
    pub(super) fn step(&mut self, rank: usize, number: usize, begin_ns: u64, end_ns: u64) -> io::Result<()> {
        self.slice(rank, COMPUTE, &format!("ProfilerStep#{number}"), begin_ns, end_ns)
    }

    fn slice(&mut self, rank: usize, thread: u32, name: &str, begin_ns: u64, end_ns: u64) -> io::Result<()> {
        let origin_ns = self.origin_ns.unwrap_or(begin_ns);
        let [begin, end] =
            [begin_ns, end_ns].map(|time| (time.saturating_sub(origin_ns) as f64 * self.speed).round() as u64);
        let lasts = end.saturating_sub(begin);
        write!(
            self.sink,
            ",\n{{\"name\":\"{name}\",\"cat\":\"user_annotation\",\"ph\":\"X\",\"pid\":{rank},\"tid\":{thread},\"ts\":{}.{:03},\
             \"dur\":{}.{:03}}}",
            begin / 1000,
            begin % 1000,
            lasts / 1000,
            lasts % 1000
        )
    }

    /// Hands what was written to the file system.
    pub(super) fn flush(&mut self) -> io::Result<()> {
        self.sink.flush()
    }

    /// Closes the trace; returns it from the beginning, whether it is packed, and its size in bytes.
    pub fn finish(mut self) -> io::Result<(File, bool, u64)> {
        self.sink.write_all(b"\n]\n")?;
        let packed = match self.sink {
            Sink::Plain(mut out) => {
                out.flush()?;
                false
            }
            Sink::Packed(out) => {
                out.finish()?.flush()?;
                true
            }
        };
        let bytes = self.file.metadata()?.len();
        self.file.rewind()?;
        Ok((self.file, packed, bytes))
    }
}

/// An action as torch annotates it, or several that overlap.
fn annotation(unit: &[PlanAction]) -> String {
    let name = |action: &PlanAction| {
        let letter = match action.action {
            PlanActionKind::ForwardStage => "F",
            PlanActionKind::InputGradStage => "I",
            PlanActionKind::WeightGradStage => "W",
            _ => "B",
        };
        format!("{}{letter}{}", action.stage, action.microbatch)
    };
    match unit {
        [only] => format!("PP:{}", name(only)),
        several => format!("PP:({})OVERLAP_F_B", several.iter().map(name).collect::<Vec<_>>().join(";")),
    }
}
