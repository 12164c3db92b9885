//! Trace counters, downsampled for charts.

use api::trace::{CounterList, CounterSeries};
use ingest::trace::Trace;
use serde::{Deserialize, Serialize};

/// Maximum number of stored series.
const MAX_SERIES: usize = 256;

/// Counters in column format, as stored.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Counters(Vec<Series>);

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
struct Series {
    process: u32,
    name: String,
    time_ns: Vec<u64>,
    value: Vec<f64>,
}

impl Counters {
    /// Collects the counters of a trace. Each series is sorted by time.
    pub(crate) fn from_trace(trace: &Trace) -> Self {
        let mut order: Vec<usize> = (0..trace.counters.len()).collect();
        let key = |at: usize| {
            let counter = &trace.counters[at];
            (counter.process, counter.name, counter.series)
        };
        order.sort_by_key(|&at| (key(at), trace.counters[at].time_ns));
        let text = |index: u32| trace.names.get(index as usize).map_or("", String::as_str);
        let to_series = |all: &[usize]| {
            let (process, name, series) = key(all[0]);
            let name = if name == series || text(series).is_empty() {
                text(name).to_owned()
            } else {
                format!("{}: {}", text(name), text(series))
            };
            let time = |&at: &usize| trace.counters[at].time_ns.saturating_sub(trace.origin_ns);
            let value = |&at: &usize| trace.counters[at].value;
            Series { process, name, time_ns: all.iter().map(time).collect(), value: all.iter().map(value).collect() }
        };
        Self(order.chunk_by(|&left, &other| key(left) == key(other)).take(MAX_SERIES).map(to_series).collect())
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Downsamples each series to about `points` values. Minimum and maximum of each interval are
    /// preserved.
    pub(crate) fn thinned(self, points: usize) -> CounterList {
        let thin = |series: Series| {
            let indices = extreme_indices(&series.value, points.max(2));
            CounterSeries {
                process: series.process,
                name: series.name,
                values: series.value.len() as u64,
                time_ns: indices.iter().map(|&at| series.time_ns[at]).collect(),
                value: indices.iter().map(|&at| series.value[at]).collect(),
            }
        };
        CounterList { series: self.0.into_iter().map(thin).collect() }
    }
}

/// Returns the indices of minimum and maximum in each interval, plus both ends.
fn extreme_indices(values: &[f64], points: usize) -> Vec<usize> {
    if values.len() <= points {
        return (0..values.len()).collect();
    }
    let stretch = values.len().div_ceil((points / 2).max(1));
    let mut indices: Vec<usize> = Vec::with_capacity(points + 2);
    for start in (0..values.len()).step_by(stretch) {
        let range = start..(start + stretch).min(values.len());
        let min = range.clone().min_by(|&left, &other| values[left].total_cmp(&values[other]));
        let max = range.max_by(|&left, &other| values[left].total_cmp(&values[other]));
        indices.extend(min.into_iter().chain(max));
    }
    indices.extend([0, values.len() - 1]);
    indices.sort_unstable();
    indices.dedup();
    indices
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn peaks_survive_thinning() {
        let mut values: Vec<f64> = (0..1000_u32).map(|at| f64::from(at % 10)).collect();
        values[777] = 1e9;
        values[123] = -5.0;
        let indices = extreme_indices(&values, 20);
        assert!(indices.len() <= 22 && indices.contains(&777) && indices.contains(&123));
        assert_eq!((indices[0], indices[indices.len() - 1]), (0, 999));
        assert_eq!(super::extreme_indices(&[1.0, 2.0], 20), [0, 1]);
        assert!(super::extreme_indices(&[], 20).is_empty());
    }
}
