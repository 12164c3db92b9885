//! Heuristic assignment to a fixed number of microbatches: initial solution and local search.

/// Sequences in descending length order, with their work.
#[derive(Debug, Clone)]
pub(crate) struct Items {
    /// Lengths in tokens, descending.
    pub tokens: Vec<u64>,
    /// Work in seconds. Also descending, because work increases with length.
    pub work: Vec<f64>,
    /// Token capacity per microbatch.
    pub capacity: u64,
}

/// Limit for the subset-sum search in 64-bit words; takes a few hundredths of a second.
const MAX_SUMS: usize = 50_000_000;

/// An assignment of items to bins.
#[derive(Debug, Clone)]
pub(crate) struct Partition {
    /// Items per bin.
    pub bins: Vec<Vec<usize>>,
    /// Work per bin, in seconds.
    pub work: Vec<f64>,
    /// Tokens per bin.
    pub tokens: Vec<u64>,
}

impl Partition {
    fn empty(bins: usize) -> Self {
        Self { bins: vec![Vec::new(); bins], work: vec![0.0; bins], tokens: vec![0; bins] }
    }

    fn add(&mut self, items: &Items, item: usize, bin: usize) {
        self.bins[bin].push(item);
        self.work[bin] += items.work[item];
        self.tokens[bin] += items.tokens[item];
    }

    fn remove(&mut self, items: &Items, item: usize, bin: usize) {
        self.bins[bin].retain(|&other| other != item);
        self.tokens[bin] -= items.tokens[item];
        // Recompute the sum; subtraction would accumulate rounding errors.
        self.work[bin] = self.bins[bin].iter().map(|&other| items.work[other]).sum();
    }

    /// Returns the bin with the maximum work; ties are resolved to the first.
    fn fullest(&self) -> usize {
        (1..self.work.len()).fold(0, |best, bin| if self.work[bin] > self.work[best] { bin } else { best })
    }

    /// Returns the maximum work of all bins.
    pub(crate) fn max_work(&self) -> f64 {
        self.work.iter().copied().fold(0.0, f64::max)
    }
}

impl Items {
    /// Returns a lower bound for the maximum work in `bins` bins: the mean work, the maximum item,
    /// and for k = 1, 2, ... the sum of the k + 1 smallest among the k bins + 1 largest items,
    /// because some bin contains k + 1 such items.
    pub(crate) fn bound(&self, bins: usize) -> f64 {
        let total: f64 = self.work.iter().sum();
        let mut bound = (total / bins as f64).max(self.work.first().copied().unwrap_or(0.0));
        let mut share = 1;
        while share * bins < self.work.len() {
            let last = share * bins;
            bound = bound.max(self.work[last - share..=last].iter().sum());
            share += 1;
        }
        bound
    }

    /// Returns a lower bound on the number of bins by tokens (Martello and Toth, 1990): items above
    /// half the capacity are in different bins. For any length t, items longer than the capacity
    /// minus t share no bin with items of at least t, and the items from t to half the capacity fill
    /// what the others leave. In addition, a bin holds no more of the j longest items than the
    /// shortest of these that fit.
    pub(crate) fn fewest_bins(&self) -> usize {
        let (count, capacity) = (self.tokens.len(), self.capacity);
        // `sums[i]` is the total of the i longest items.
        let mut sums = vec![0_u64; count + 1];
        for (index, &tokens) in self.tokens.iter().enumerate() {
            sums[index + 1] = sums[index] + tokens;
        }
        let longer_than = |tokens: u64| self.tokens.partition_point(|&other| other > tokens);
        let above_half = longer_than(capacity / 2);
        let mut bound = sums[count].div_ceil(capacity.max(1)).max(1) as usize;
        let mut fitting = 0;
        for longest in 1..=count {
            let shortest = self.tokens[longest - 1];
            // The window of the shortest items that fit ends at `longest`, so its size never
            // decreases by more than the items become shorter.
            fitting += 1;
            while sums[longest] - sums[longest - fitting] > capacity {
                fitting -= 1;
            }
            bound = bound.max(longest.div_ceil(fitting.max(1)));
            if longest > above_half {
                // Items longer than the capacity minus `shortest` leave no room for it.
                let alone = longer_than(capacity - shortest).min(above_half);
                let room = (above_half - alone) as u64 * capacity - (sums[above_half] - sums[alone]);
                let rest = (sums[longest] - sums[above_half]).saturating_sub(room);
                bound = bound.max(above_half + rest.div_ceil(capacity.max(1)) as usize);
            }
        }
        bound.max(above_half)
    }

    /// Returns an assignment to `bins` bins, or `None` if no feasible assignment is found. Stops
    /// when the maximum work reaches the bound `enough`.
    pub(crate) fn partition(&self, bins: usize, enough: f64) -> Option<Partition> {
        let start = self.by_work(bins).or_else(|| self.by_tokens(bins)).or_else(|| self.by_subset_sum(bins));
        let mut partition = start?;
        // Each step reduces the maximum. The iteration limit prevents endless loops due to
        // rounding.
        for _ in 0..20 * self.work.len() + 100 {
            if partition.max_work() <= enough || !self.improve(&mut partition) {
                break;
            }
        }
        Some(partition)
    }

    /// Assigns items in descending length order to the bin with the minimum work and enough space.
    fn by_work(&self, bins: usize) -> Option<Partition> {
        let mut partition = Partition::empty(bins);
        for (item, &tokens) in self.tokens.iter().enumerate() {
            let roomy = (0..bins).filter(|&bin| partition.tokens[bin] + tokens <= self.capacity);
            let lightest = roomy.min_by(|&a, &b| partition.work[a].total_cmp(&partition.work[b]))?;
            partition.add(self, item, lightest);
        }
        Some(partition)
    }

    /// Assigns items in descending length order to the fullest bin with enough space.
    fn by_tokens(&self, bins: usize) -> Option<Partition> {
        let mut partition = Partition::empty(bins);
        for (item, &tokens) in self.tokens.iter().enumerate() {
            let roomy = (0..bins).filter(|&bin| partition.tokens[bin] + tokens <= self.capacity);
            let best = roomy.max_by_key(|&bin| (partition.tokens[bin], std::cmp::Reverse(bin)))?;
            partition.add(self, item, best);
        }
        Some(partition)
    }

    /// Fills one bin after another: the first remaining item, then the subset that fills the bin
    /// optimally. Used if the capacity is tight. Returns `None` if the subset-sum search exceeds
    /// its limit.
    fn by_subset_sum(&self, bins: usize) -> Option<Partition> {
        let blocks = self.capacity as usize / 64 + 1;
        if blocks.checked_mul(self.tokens.len())?.checked_mul(bins)? > MAX_SUMS {
            return None;
        }
        let mut left: Vec<usize> = (0..self.tokens.len()).collect();
        let mut partition = Partition::empty(bins);
        for bin in 0..bins {
            if left.is_empty() {
                break;
            }
            let first = left.remove(0);
            partition.add(self, first, bin);
            for item in self.fullest_subset(&left, (self.capacity - self.tokens[first]) as usize) {
                partition.add(self, item, bin);
                left.retain(|&other| other != item);
            }
        }
        left.is_empty().then_some(partition)
    }

    /// Returns the subset with the maximum token sum up to `room`.
    fn fullest_subset(&self, left: &[usize], capacity: usize) -> Vec<usize> {
        // Bit s is set if a subset has sum s; `by[s]` is the item that first reached this sum.
        let mut reached = vec![0_u64; capacity / 64 + 1];
        let mut by = vec![usize::MAX; capacity + 1];
        reached[0] = 1;
        for &item in left {
            let (far, near) = (self.tokens[item] as usize / 64, self.tokens[item] % 64);
            // In descending order, so that an item is used once.
            for word in (far..reached.len()).rev() {
                let low = reached[word - far] << near;
                let high = if near > 0 && word > far { reached[word - far - 1] >> (64 - near) } else { 0 };
                let mut new = (low | high) & !reached[word];
                reached[word] |= new;
                while new > 0 {
                    let sum = word * 64 + new.trailing_zeros() as usize;
                    new &= new - 1;
                    if sum <= capacity {
                        by[sum] = item;
                    }
                }
            }
        }
        let mut sum = (0..=capacity).rev().find(|&sum| sum == 0 || by[sum] != usize::MAX).unwrap_or(0);
        let mut subset = Vec::new();
        while sum > 0 {
            subset.push(by[sum]);
            sum -= self.tokens[by[sum]] as usize;
        }
        subset
    }

    /// Unloads the fullest bin by the move or the exchange that minimizes the maximum of the two
    /// bins. Returns false if no step improves.
    fn improve(&self, partition: &mut Partition) -> bool {
        let from = partition.fullest();
        let max_work = partition.work[from];
        let mut best: Option<(f64, usize, usize, Option<usize>)> = None;
        let mut consider = |after: f64, item: usize, to: usize, back: Option<usize>| {
            if after < max_work * (1.0 - 1e-12) && best.is_none_or(|best| after < best.0) {
                best = Some((after, item, to, back));
            }
        };
        for &item in &partition.bins[from] {
            let (work, tokens) = (self.work[item], self.tokens[item]);
            for to in (0..partition.bins.len()).filter(|&to| to != from) {
                if partition.work[to] >= max_work {
                    continue;
                }
                if partition.tokens[to] + tokens <= self.capacity {
                    consider((partition.work[to] + work).max(max_work - work), item, to, None);
                }
                for &back in &partition.bins[to] {
                    let less = work - self.work[back];
                    let fits = partition.tokens[to] + tokens - self.tokens[back] <= self.capacity
                        && partition.tokens[from] + self.tokens[back] - tokens <= self.capacity;
                    if less > 0.0 && fits {
                        consider((partition.work[to] + less).max(max_work - less), item, to, Some(back));
                    }
                }
            }
        }
        let Some((_, item, to, back)) = best else { return false };
        partition.remove(self, item, from);
        partition.add(self, item, to);
        if let Some(back) = back {
            partition.remove(self, back, to);
            partition.add(self, back, from);
        }
        true
    }
}
