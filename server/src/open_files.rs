//! Operating system limit on open files and connections.

/// Open files in addition to connections: the database and its journal for each database
/// connection, standard streams, reserve connections for health checks, and the async runtime.
const OTHERS: u64 = 128;

/// Returns the number of connections supported by the limit on open files, at most `most`. An
/// upload of a trace uses a connection and a temporary file, so each connection counts twice.
///
/// Raises the default limit, often 1024, as far as the system permits.
#[cfg(unix)]
pub(crate) fn connections(max_connections: usize) -> usize {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

    let wanted = OTHERS + 2 * max_connections as u64;
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    // `None` means unlimited.
    let Some(current) = current.filter(|current| *current < wanted) else { return max_connections };
    let raised = maximum.map_or(wanted, |maximum| maximum.min(wanted)).max(current);
    let limit = match setrlimit(Resource::Nofile, Rlimit { current: Some(raised), maximum }) {
        Ok(()) => raised,
        Err(_) => current,
    };
    fitting(limit, max_connections)
}

/// Returns `most`, because this platform has no such limit.
#[cfg(not(unix))]
pub(crate) fn connections(most: usize) -> usize {
    most
}

/// Number of connections within a limit on open files.
#[cfg(unix)]
fn fitting(limit: u64, max: usize) -> usize {
    let fitting = limit.saturating_sub(OTHERS) / 2;
    // A page opens several connections at once, so at least 16 are required.
    usize::try_from(fitting).unwrap_or(usize::MAX).max(16).min(max)
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    #[test]
    fn connections_fit_the_open_file_limit() {
        // 128 for other files, two per connection.
        for (limit, fits) in [(8320, 4096), (8318, 4095), (1024, 448), (100, 16), (u64::MAX, 4096)] {
            assert_eq!(fitting(limit, 4096), fits, "{limit}");
        }
        assert!((1..=64).contains(&connections(64)));
    }
}
