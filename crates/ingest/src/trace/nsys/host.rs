//! Slices of host threads: runtime calls and NVTX ranges.

use super::{Export, Kind, TraceError, columns, interval, optional, process_and_thread};

/// Devices come first in the chart.
const HOST_SORT_INDEX: i64 = 1 << 20;

impl Export<'_, '_, '_> {
    /// Adds the slices of all threads.
    pub(super) fn threads(&mut self) -> Result<(), TraceError> {
        self.runtime()?;
        self.ranges()?;
        self.thread_names()
    }

    fn runtime(&mut self) -> Result<(), TraceError> {
        const TABLE: &str = "CUPTI_ACTIVITY_KIND_RUNTIME";
        let Some(table) = self.database.table(TABLE) else { return Ok(()) };
        let [start, end, thread, correlation, name] =
            columns(table, ["start", "end", "globalTid", "correlationId", "nameId"])?;
        let database = self.database;
        let mut rows = 0;
        let lost = database.scan(table, |row| {
            rows += 1;
            self.builder.report.events += 1;
            let (start, duration) = match interval(row.get(start), row.get(end)) {
                Ok(interval) => interval,
                Err(reason) => return self.builder.report.skip(reason),
            };
            let global = row.get(thread).integer().unwrap_or_default();
            let Some(thread) = self.thread(global) else { return };
            let name = row.get(name).integer().and_then(|id| self.name(id));
            let name = name.unwrap_or_else(|| self.builder.name("(call without a name)"));
            if self.builder.slice(thread, start, duration, name, Kind::Runtime).is_none() {
                return;
            }
            let (process, _) = process_and_thread(global);
            if let Some(correlation) = row.get(correlation).integer()
                && self.launched.contains(&(process, correlation))
            {
                let joined = self.builder.join(&format!("{process} {correlation}"), thread, start, true, false);
                if !joined {
                    self.builder.report.problem("there are more arrows than can be stored");
                }
            }
        })?;
        self.builder.report.phases.insert("runtime".to_owned(), rows);
        self.count_lost(lost, TABLE);
        Ok(())
    }

    fn ranges(&mut self) -> Result<(), TraceError> {
        const TABLE: &str = "NVTX_EVENTS";
        let Some(table) = self.database.table(TABLE) else { return Ok(()) };
        let [start, end, thread] = columns(table, ["start", "end", "globalTid"])?;
        let (text, text_id) = (table.column("text"), table.column("textId"));
        if text.is_none() && text_id.is_none() {
            columns(table, ["text", "textId"])?;
        }
        let database = self.database;
        let mut rows = 0;
        let lost = database.scan(table, |row| {
            rows += 1;
            self.builder.report.events += 1;
            let (start, duration) = match interval(row.get(start), row.get(end)) {
                Ok(interval) => interval,
                Err(reason) => return self.builder.report.skip(reason),
            };
            let Some(thread) = self.thread(row.get(thread).integer().unwrap_or_default()) else { return };
            let own = self.texts.resolve(optional(row, text));
            let Some(text) = own.or_else(|| self.texts.resolve(optional(row, text_id))) else {
                return self.builder.report.skip("a range without a name");
            };
            let name = self.builder.clip(&text).to_owned();
            let name = self.builder.name(&name);
            self.builder.slice(thread, start, duration, name, Kind::Annotation);
        })?;
        self.builder.report.phases.insert("nvtx".to_owned(), rows);
        self.count_lost(lost, TABLE);
        Ok(())
    }

    /// Returns the row of a thread, with its process.
    fn thread(&mut self, global: i64) -> Option<u32> {
        let (process, thread) = process_and_thread(global);
        let (process, thread) = (process.to_string(), thread.to_string());
        let row = self.builder.thread((&process, &process), (&thread, &thread));
        match row {
            None => self.builder.report.skip("there are more threads than can be stored"),
            Some(_) => {
                if let Some(process) = self.builder.process(&process, &process).filter(|row| row.sort_index.is_none()) {
                    process.sort_index = Some(HOST_SORT_INDEX);
                }
            }
        }
        row
    }

    /// Names threads and processes that have slices.
    fn thread_names(&mut self) -> Result<(), TraceError> {
        let database = self.database;
        if let Some(table) = database.table("ThreadNames")
            && let (Some(name), Some(thread)) = (table.column("nameId"), table.column("globalTid"))
        {
            database.scan(table, |row| {
                let (process, thread) = process_and_thread(row.get(thread).integer().unwrap_or_default());
                let (process, thread) = (process.to_string(), thread.to_string());
                let Some(text) = self.texts.resolve(row.get(name)) else { return };
                if let Some(row) = self.builder.known_thread(&process, &thread) {
                    row.name = Some(text);
                }
            })?;
        }
        if let Some(table) = database.table("PROCESSES")
            && let (Some(pid), Some(name)) = (table.column("pid"), table.column("name"))
        {
            database.scan(table, |row| {
                let Some(pid) = row.get(pid).integer().map(|pid| pid.to_string()) else { return };
                let Some(text) = self.texts.resolve(row.get(name)).filter(|_| self.builder.has_process(&pid)) else {
                    return;
                };
                if let Some(process) = self.builder.process(&pid, &pid) {
                    process.name = Some(text);
                }
            })?;
        }
        Ok(())
    }
}
