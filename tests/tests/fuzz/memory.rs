//! The most memory that the process had, as Linux tells it.

/// The most resident memory since a moment.
pub(crate) struct Peak {
    before: u64,
}

impl Peak {
    /// Forgets the peak so far. Where there is no such file, nothing is measured.
    pub(crate) fn begin() -> Self {
        drop(std::fs::write("/proc/self/clear_refs", "5"));
        Self { before: status("VmRSS:") }
    }

    /// Bytes of the peak above what there was.
    pub(crate) fn grown(&self) -> u64 {
        status("VmHWM:").saturating_sub(self.before)
    }
}

/// A line of the status of the process, in bytes; 0 where there is none.
fn status(name: &str) -> u64 {
    let text = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix(name));
    let kib = line.and_then(|line| line.trim().trim_end_matches(" kB").parse::<u64>().ok());
    kib.unwrap_or(0) << 10
}
