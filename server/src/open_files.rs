//! How many files and connections the system lets the program have open.

/// Files beside those of connections: the database and its journal, once for every one of its connections, standard streams,
/// connections that are accepted for health checks alone, the runtime's own.
const OTHERS: u64 = 128;

/// Connections that there can be files for, at most so many. A trace that comes is a connection and a file beside the database, so
/// that every connection counts twice.
///
/// The limit that the system sets by default, which is often 1024, is raised as far as it allows.
#[cfg(unix)]
pub(crate) fn connections(most: usize) -> usize {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

    let wanted = OTHERS + 2 * most as u64;
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    // Nothing where there is no limit.
    let Some(current) = current.filter(|current| *current < wanted) else { return most };
    let raised = maximum.map_or(wanted, |maximum| maximum.min(wanted)).max(current);
    let limit = match setrlimit(Resource::Nofile, Rlimit { current: Some(raised), maximum }) {
        Ok(()) => raised,
        Err(_) => current,
    };
    fitting(limit, most)
}

/// As many as are wanted: there is no such limit here.
#[cfg(not(unix))]
pub(crate) fn connections(most: usize) -> usize {
    most
}

/// Connections within a limit of open files.
#[cfg(unix)]
fn fitting(limit: u64, most: usize) -> usize {
    let fitting = limit.saturating_sub(OTHERS) / 2;
    // A page opens a few at once, however tight the limit is.
    usize::try_from(fitting).unwrap_or(usize::MAX).max(16).min(most)
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    #[test]
    fn connections_fit_into_the_limit_of_open_files() {
        // 128 for the rest, two for every connection.
        for (limit, fits) in [(8320, 4096), (8318, 4095), (1024, 448), (100, 16), (u64::MAX, 4096)] {
            assert_eq!(fitting(limit, 4096), fits, "{limit}");
        }
        assert!((1..=64).contains(&connections(64)));
    }
}
