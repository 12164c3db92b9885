//! Failure of a job at the end of its log.

/// Number of bytes and of lines at the end of a log that are searched. A job that starts again after a failure prints more.
const MAX_BYTES: usize = 64 << 10;
const MAX_LINES: usize = 80;
/// Maximum length of a reason in characters.
const MAX_REASON: usize = 200;

/// Texts of lines, with the exit code that a shell reports: 1 after an exception of Python, 128 and the number of the signal
/// after a signal. The first that a line has applies.
const FAILURES: [(&str, i32); 15] = [
    ("DUE TO TIME LIMIT", 143),
    ("CANCELLED AT", 143),
    ("CANCELLED BY", 143),
    ("received SIGTERM", 143),
    ("received signal 15", 143),
    ("oom-kill event", 137),
    ("oom_kill event", 137),
    ("Out Of Memory", 137),
    ("Segmentation fault", 139),
    ("CUDA out of memory", 1),
    ("HIP out of memory", 1),
    ("OutOfMemoryError", 1),
    ("Watchdog caught collective operation timeout", 1),
    ("ChildFailedError", 1),
    ("Traceback (most recent call last)", 1),
];

/// How a job failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Failure {
    /// Exit code that a shell reports for it.
    pub(super) exit_code: i32,
    /// Line of the log that states it.
    pub(super) reason: String,
}

/// Returns the failure that the last lines of a log state: the most specific one, and of equal ones the first.
pub(super) fn find(log: &[u8]) -> Option<Failure> {
    let tail = String::from_utf8_lossy(&log[log.len().saturating_sub(MAX_BYTES)..]);
    let lines: Vec<&str> = tail.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    let last = &lines[lines.len().saturating_sub(MAX_LINES)..];
    let kind = |line: &&str| FAILURES.iter().position(|(text, _)| line.contains(text));
    let (index, line) = last.iter().filter_map(|line| Some((kind(line)?, *line))).min_by_key(|(index, _)| *index)?;
    let exit_code = FAILURES[index].1;
    // The last line of a traceback states the exception.
    let exception = last.iter().rev().find(|line| is_exception(line)).filter(|_| index + 1 == FAILURES.len());
    let reason = exception.unwrap_or(&line).chars().take(MAX_REASON).collect();
    Some(Failure { exit_code, reason })
}

/// True for a line such as `RuntimeError: NCCL error`, also with the prefix of a rank.
fn is_exception(line: &str) -> bool {
    let line = line.rsplit("]: ").next().unwrap_or(line);
    line.split_once(':').is_some_and(|(name, _)| {
        let is_name = name.chars().all(|letter| letter.is_ascii_alphanumeric() || letter == '_' || letter == '.');
        is_name && (name.ends_with("Error") || name.ends_with("Exception"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_of_a_log_states_a_failure() {
        let steps = " iteration 10/ 100 | elapsed time per iteration (ms): 100.0 |\n".repeat(3);
        for (end, expected) in [
            ("slurmstepd: error: *** JOB 7 ON node1 CANCELLED AT 2024-01-01T10:00:00 ***\n", Some(143)),
            ("slurmstepd: error: *** STEP 7.0 ON node1 CANCELLED AT 2024-01-01 DUE TO TIME LIMIT ***\n", Some(143)),
            ("Main process received SIGTERM, exiting\n", Some(143)),
            ("Traceback (most recent call last):\n  File \"x.py\"\nRuntimeError: shapes differ\n", Some(1)),
            ("torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2 GiB\n", Some(1)),
            ("slurmstepd: error: Detected 1 oom_kill event in StepId=7.0\n", Some(137)),
            ("training is done\n", None),
            ("", None),
        ] {
            let found = find(format!("{steps}{end}").as_bytes());
            assert_eq!(found.map(|failure| failure.exit_code), expected, "{end}");
        }
        let traceback = "Traceback (most recent call last):\n  File \"x.py\"\n[rank3]: RuntimeError: shapes differ\n";
        assert_eq!(find(traceback.as_bytes()).unwrap().reason, "[rank3]: RuntimeError: shapes differ");
        // A job that goes on after the failure has not failed.
        let restarted = format!("{traceback}{}", steps.repeat(40));
        assert_eq!(find(restarted.as_bytes()), None);
    }
}
