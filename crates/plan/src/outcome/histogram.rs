//! Histograms for display, from values or from other histograms.

use super::HistogramColumns;

/// Limit on displayed bins.
const BINS: usize = 60;

/// Number of bins by the Rice rule, twice the cube root of the number of values, between 10 and 60.
fn bins_for(values: usize) -> u64 {
    ((2.0 * libm::cbrt(values as f64)) as u64).clamp(10, BINS as u64)
}

impl HistogramColumns {
    /// Builds a histogram from integers, using bins of equal integer width. Each value has a bin if
    /// the range has at most 60 values. `None` for empty input.
    pub fn from_values(values: &[u32]) -> Option<Self> {
        let mut sorted = values.to_vec();
        sorted.sort_unstable();
        let (&min, &max) = (sorted.first()?, sorted.last()?);
        let span = u64::from(max) - u64::from(min) + 1;
        let width = if span <= BINS as u64 { 1 } else { span.div_ceil(bins_for(sorted.len())) };
        let bins = span.div_ceil(width) as usize;
        let mut counts = vec![0_u64; bins];
        for &value in &sorted {
            counts[((u64::from(value) - u64::from(min)) / width) as usize] += 1;
        }
        let edges = (0..=bins as u64).map(|bin| (u64::from(min) + bin * width) as f64).collect();
        let quantile = |share: f64| f64::from(sorted[((sorted.len() - 1) as f64 * share).round() as usize]);
        let mean = sorted.iter().map(|&value| u64::from(value)).sum::<u64>() as f64 / sorted.len() as f64;
        Some(Self { edges, counts, mean, median: quantile(0.5), p99: quantile(0.99), max: f64::from(max) })
    }

    /// Converts the values to multiples of `unit`, for example milliseconds to seconds with 1000.
    #[must_use]
    pub fn in_unit(mut self, unit: f64) -> Self {
        for value in self.edges.iter_mut().chain([&mut self.mean, &mut self.median, &mut self.p99, &mut self.max]) {
            *value /= unit;
        }
        self
    }

    /// Merges neighbouring histogram bins down to the display limit. Values are assumed uniform
    /// inside a bin.
    pub fn from_bins(edges: &[f64], counts: &[f64]) -> Option<Self> {
        let total: f64 = counts.iter().sum();
        if total <= 0.0 || edges.len() != counts.len() + 1 {
            return None;
        }
        let mean =
            counts.iter().zip(edges.windows(2)).map(|(count, bin)| count * f64::midpoint(bin[0], bin[1])).sum::<f64>()
                / total;
        let quantile = |share: f64| {
            let mut left = share * total;
            for (&count, bin) in counts.iter().zip(edges.windows(2)) {
                if count > 0.0 && left <= count {
                    return bin[0] + (bin[1] - bin[0]) * left / count;
                }
                left -= count;
            }
            edges[edges.len() - 1]
        };
        let last = counts.iter().rposition(|&count| count > 0.0)?;
        let step = counts.len().div_ceil(BINS);
        let mut joined_edges = vec![edges[0]];
        let mut joined_counts = Vec::with_capacity(BINS);
        for start in (0..counts.len()).step_by(step) {
            let end = (start + step).min(counts.len());
            joined_edges.push(edges[end]);
            joined_counts.push(counts[start..end].iter().sum::<f64>().round() as u64);
        }
        Some(Self {
            edges: joined_edges,
            counts: joined_counts,
            mean,
            median: quantile(0.5),
            p99: quantile(0.99),
            max: edges[last + 1],
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 270 times 1..=100: the cube root of 27,000 is 30, so 60 bins in a range of 100. The width is
    /// 2, with 50 bins of 540.
    #[test]
    fn values_fall_into_integer_bins() {
        let values: Vec<u32> = (0..270).flat_map(|_| 1..=100).collect();
        let histogram = HistogramColumns::from_values(&values).unwrap();
        assert_eq!(histogram.counts, vec![540; 50]);
        assert_eq!((histogram.edges[0], histogram.edges[50]), (1.0, 101.0));
        assert_eq!((histogram.mean, histogram.max), (50.5, 100.0));
        assert_eq!((histogram.median, histogram.p99), (51.0, 99.0));
        assert_eq!(HistogramColumns::from_values(&[]), None);
        assert_eq!(HistogramColumns::from_values(&[7, 7]).unwrap().edges, [7.0, 8.0]);
        assert_eq!(HistogramColumns::from_values(&[1, 1_000_000_000]).unwrap().counts.len(), 10);
    }

    #[test]
    fn bins_are_joined_and_keep_their_sum() {
        let edges: Vec<f64> = (0..=130).map(f64::from).collect();
        let histogram = HistogramColumns::from_bins(&edges, &[1.0; 130]).unwrap();
        // 130 bins merged by three: 43 full bins and a single bin.
        assert_eq!(histogram.counts.len(), 44);
        assert_eq!(histogram.counts.iter().sum::<u64>(), 130);
        assert_eq!((histogram.mean, histogram.median, histogram.max), (65.0, 65.0, 130.0));
        assert_eq!(HistogramColumns::from_bins(&[4.0, 4.0], &[3.0]).unwrap().edges, [4.0, 4.0]);
    }
}
