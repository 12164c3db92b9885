//! Slices of devices: kernels, copies, memory fills and CUDA graphs.

use std::collections::HashMap;

use super::{Export, Kind, TraceError, columns, interval, optional, process_and_thread};
use crate::sqlite::Value;

/// Copy kinds of CUPTI, for exports without their names.
const COPY_KINDS: [(i64, &str); 5] = [(1, "HtoD"), (2, "DtoH"), (8, "DtoD"), (9, "HtoH"), (10, "PtoP")];

/// A device table.
struct Source {
    table: &'static str,
    /// Counted as this phase in the report.
    phase: &'static str,
    label: Label,
}

/// Origin of slice names.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Label {
    /// Columns with texts, the preferred one first.
    Kernel([&'static str; 2]),
    /// Copy kind.
    Copy,
    Fill,
    /// Number of a CUDA graph whose kernels are not recorded one by one.
    Graph,
}

const SOURCES: [Source; 4] = [
    Source {
        table: "CUPTI_ACTIVITY_KIND_KERNEL",
        phase: "kernel",
        label: Label::Kernel(["demangledName", "shortName"]),
    },
    Source { table: "CUPTI_ACTIVITY_KIND_MEMCPY", phase: "memcpy", label: Label::Copy },
    Source { table: "CUPTI_ACTIVITY_KIND_MEMSET", phase: "memset", label: Label::Fill },
    Source { table: "CUPTI_ACTIVITY_KIND_GRAPH_TRACE", phase: "graph", label: Label::Graph },
];

impl Export<'_, '_, '_> {
    /// Adds the slices of all devices.
    pub(super) fn devices(&mut self) -> Result<(), TraceError> {
        if self.database.table(SOURCES[0].table).is_none() && self.database.table(SOURCES[3].table).is_none() {
            self.builder.report.assume(
                "the export has no table CUPTI_ACTIVITY_KIND_KERNEL: no kernel was recorded; profile with nsys profile --trace=cuda,nvtx",
            );
        }
        let copies = self.names("ENUM_CUDA_MEMCPY_OPER", "id", "label")?;
        for source in &SOURCES {
            self.device_table(source, &copies)?;
        }
        self.models()
    }

    /// Labels the devices with their model. Processes may number the same devices differently.
    fn models(&mut self) -> Result<(), TraceError> {
        let models = self.names("TARGET_INFO_GPU", "id", "name")?;
        let mut numbers: HashMap<(i64, i64), i64> = HashMap::new();
        if let Some(table) = self.database.table("TARGET_INFO_CUDA_DEVICE")
            && let (Some(gpu), Some(cuda), Some(pid)) =
                (table.column("gpuId"), table.column("cudaId"), table.column("pid"))
        {
            self.database.scan(table, |row| {
                let values = [pid, cuda, gpu].map(|column| row.get(column).integer());
                if let ([Some(pid), Some(cuda), Some(gpu)], true) = (values, numbers.len() < 4096) {
                    numbers.insert((pid, cuda), gpu);
                }
            })?;
        }
        for &(process, device) in &self.devices {
            let gpu = numbers.get(&(process.cast_signed(), device)).copied().unwrap_or(device);
            let key = device_key(process, device);
            if let (Some(model), Some(row)) = (models.get(&gpu), self.builder.process(&key, &device.to_string())) {
                row.labels = Some(model.clone());
            }
        }
        Ok(())
    }

    fn device_table(&mut self, source: &Source, copies: &HashMap<i64, String>) -> Result<(), TraceError> {
        let Some(table) = self.database.table(source.table) else { return Ok(()) };
        let [start, end, device, stream, correlation] =
            columns(table, ["start", "end", "deviceId", "streamId", "correlationId"])?;
        let process = table.column("globalPid");
        let bytes = table.column("bytes");
        let label_columns = match source.label {
            Label::Kernel(names) => {
                let found = names.map(|name| table.column(name));
                if found == [None, None] {
                    columns(table, names)?;
                }
                found
            }
            Label::Copy => [table.column("copyKind"), None],
            Label::Fill => [None, None],
            Label::Graph => [table.column("graphId"), None],
        };
        let mut rows = 0;
        let database = self.database;
        let lost = database.scan(table, |row| {
            rows += 1;
            self.builder.report.events += 1;
            let (start, duration) = match interval(row.get(start), row.get(end)) {
                Ok(interval) => interval,
                Err(reason) => return self.builder.report.skip(reason),
            };
            let device = row.get(device).integer().unwrap_or_default();
            let stream = row.get(stream).integer().unwrap_or_default().to_string();
            let process = process_and_thread(optional(row, process).integer().unwrap_or_default()).0;
            let (key, shown) = (device_key(process, device), device.to_string());
            let Some(thread) = self.builder.thread((&key, &shown), (&stream, &stream)) else {
                return self.builder.report.skip("there are more threads than can be stored");
            };
            if let Some(row) = self.builder.thread_mut(thread).filter(|row| row.name.is_none()) {
                row.name = Some(format!("stream {stream}"));
                self.devices.insert((process, device));
                if let Some(row) = self.builder.process(&key, &shown) {
                    row.name = Some(format!("process {process}, GPU"));
                    row.sort_index = Some(device);
                }
            }
            let values = label_columns.map(|column| optional(row, column));
            let (name, kind) = self.label(source.label, values, copies);
            let Some(slice) = self.builder.slice(thread, start, duration, name, kind) else { return };
            let bytes = optional(row, bytes).integer().and_then(|bytes| u64::try_from(bytes).ok());
            self.builder.tell(slice, super::super::Collective::default(), bytes);
            if let Some(correlation) = row.get(correlation).integer()
                && self.launched.len() < self.builder.max_events()
            {
                self.launched.insert((process, correlation));
                let joined = self.builder.join(&format!("{process} {correlation}"), thread, start, false, true);
                if !joined {
                    self.builder.report.problem("there are more arrows than can be stored");
                }
            }
        })?;
        self.builder.report.phases.insert(source.phase.to_owned(), rows);
        self.count_lost(lost, source.table);
        Ok(())
    }

    /// Returns name and kind of a slice.
    fn label(&mut self, label: Label, values: [Value<'_>; 2], copies: &HashMap<i64, String>) -> (u32, Kind) {
        match label {
            Label::Kernel(_) => {
                for value in values {
                    let id = value.integer();
                    if let Some(id) = id
                        && let Some(name) = self.name(id)
                    {
                        let kind =
                            self.texts.0.get(&id).map_or(Kind::Compute, |text| Kind::classify("kernel", &text.text));
                        return (name, kind);
                    }
                    if let Some(text) = value.text() {
                        let text = self.builder.clip(&text).to_owned();
                        return (self.builder.name(&text), Kind::classify("kernel", &text));
                    }
                }
                self.builder.report.problem("a kernel whose name is not in StringIds");
                (self.builder.name("(kernel without a name)"), Kind::Compute)
            }
            Label::Copy => {
                let kind = values[0].integer().unwrap_or(-1);
                let known = COPY_KINDS.iter().find(|(known, _)| *known == kind).map(|(_, name)| (*name).to_owned());
                let name = known.or_else(|| copies.get(&kind).cloned()).unwrap_or_else(|| format!("kind {kind}"));
                (self.builder.name(&format!("Memcpy {name}")), Kind::Memcpy)
            }
            Label::Fill => (self.builder.name("Memset"), Kind::Memset),
            Label::Graph => {
                let graph = values[0].integer().unwrap_or_default();
                (self.builder.name(&format!("CUDA graph {graph}")), Kind::Compute)
            }
        }
    }

    /// Returns a table of numbers and names, if the export has it.
    fn names(&self, table: &str, id: &str, name: &str) -> Result<HashMap<i64, String>, TraceError> {
        let mut names = HashMap::new();
        let Some(table) = self.database.table(table) else { return Ok(names) };
        let (Some(id), Some(name)) = (table.column(id), table.column(name)) else { return Ok(names) };
        self.database.scan(table, |row| {
            if let (Some(id), Some(name), true) = (row.get(id).integer(), row.get(name).text(), names.len() < 4096) {
                names.insert(id, name.chars().take(200).collect());
            }
        })?;
        Ok(names)
    }
}

fn device_key(process: u64, device: i64) -> String {
    format!("device {process} {device}")
}
