//! Local search: exchanges that lower the highest bucket, and restarts from the best known
//! partition at a local optimum.

use super::Load;
use super::exchange::{Exchange, Few, Pair};
use planscope_core::random::Random;

/// Random seed for the restarts; constant for determinism.
const SEED: u32 = 0x0D_F10B;
/// Number of buckets that a restart redistributes, including the highest.
const MIXED: u64 = 4;

/// State of the local search.
#[derive(Debug, Clone)]
pub(crate) struct Descent<'a> {
    loads: &'a [Load],
    now: Filled,
    best: Filled,
    best_height: u64,
    random: Random,
    steps: u64,
    limit: u64,
}

/// Buckets and loads.
#[derive(Debug, Clone)]
struct Filled {
    items: Vec<Vec<u32>>,
    /// Loads of the items, in the same layout as `items`.
    loads: Vec<Vec<Load>>,
    reached: Vec<Load>,
}

impl Filled {
    fn new(loads: &[Load], items: Vec<Vec<u32>>) -> Self {
        let bucket_loads = |bucket: &Vec<u32>| bucket.iter().map(|&item| loads[item as usize]).collect();
        let loads: Vec<Vec<Load>> = items.iter().map(bucket_loads).collect();
        let sum = |bucket: &Vec<Load>| bucket.iter().fold(Load::default(), |sum, &load| sum.plus(load));
        let reached = loads.iter().map(sum).collect();
        Self { items, loads, reached }
    }

    /// Returns the highest bucket; ties are resolved to the first.
    fn highest(&self) -> usize {
        let height = |bucket: usize| self.reached[bucket].height();
        (1..self.reached.len()).fold(0, |best, bucket| if height(bucket) > height(best) { bucket } else { best })
    }

    fn height(&self) -> u64 {
        self.reached[self.highest()].height()
    }

    fn push(&mut self, bucket: usize, item: u32, load: Load) {
        self.items[bucket].push(item);
        self.loads[bucket].push(load);
        self.reached[bucket] = self.reached[bucket].plus(load);
    }

    fn take(&mut self, bucket: usize, few: &Few) -> Vec<(u32, Load)> {
        // Remove in descending order: `swap_remove` moves only the last element.
        let mut places = few.places().to_vec();
        places.sort_unstable_by(|a, b| b.cmp(a));
        let mut taken = Vec::with_capacity(places.len());
        for position in places {
            let item = self.items[bucket].swap_remove(position as usize);
            let load = self.loads[bucket].swap_remove(position as usize);
            self.reached[bucket] = self.reached[bucket].minus(load);
            taken.push((item, load));
        }
        taken
    }

    fn exchange(&mut self, from: usize, to: usize, exchange: &Exchange) {
        let there = self.take(from, &exchange.there);
        let back = self.take(to, &exchange.back);
        for (item, load) in there {
            self.push(to, item, load);
        }
        for (item, load) in back {
            self.push(from, item, load);
        }
    }

    fn pair(&self, from: usize, to: usize) -> Pair<'_> {
        Pair { from: &self.loads[from], to: &self.loads[to], from_load: self.reached[from], to_load: self.reached[to] }
    }
}

impl<'a> Descent<'a> {
    /// Starts from a partition. `limit` is the total step limit.
    pub(crate) fn new(loads: &'a [Load], buckets: usize, items: Vec<Vec<u32>>, limit: u64) -> Self {
        let now = Filled::new(loads, items);
        let best_height = now.height();
        let random = Random::new(SEED, buckets as u64);
        Self { loads, best: now.clone(), now, best_height, random, steps: 0, limit }
    }

    /// Returns the minimum height found.
    pub(crate) const fn best(&self) -> u64 {
        self.best_height
    }

    /// Returns the number of steps used.
    pub(crate) const fn steps(&self) -> u64 {
        self.steps
    }

    /// Returns a copy of `best`.
    pub(crate) fn partition(&self) -> Vec<Vec<u32>> {
        self.best.items.clone()
    }

    /// Consumes the search and returns `best`.
    pub(crate) fn into_partition(self) -> Vec<Vec<u32>> {
        self.best.items
    }

    /// Continues from another partition and adds `steps` to the total.
    pub(crate) fn take(&mut self, items: Vec<Vec<u32>>, steps: u64) {
        self.steps += steps;
        self.now = Filled::new(self.loads, items);
        self.keep();
    }

    /// Searches until the minimum height does not exceed `enough`, or the total number of steps
    /// reaches `until`.
    pub(crate) fn run(&mut self, enough: u64, until: u64) {
        let until = until.min(self.limit);
        if self.now.reached.len() < 2 || self.loads.len() < 2 {
            return;
        }
        while self.best_height > enough && self.steps < until {
            if self.now.height() > enough && self.lower() {
                continue;
            }
            self.keep();
            if self.best_height > enough {
                self.restart();
            }
        }
        self.keep();
    }

    /// Stores the current partition if it improves `best`; otherwise restores `best`.
    fn keep(&mut self) {
        let height = self.now.height();
        if height <= self.best_height {
            self.best_height = height;
            self.best.clone_from(&self.now);
        } else {
            self.now.clone_from(&self.best);
        }
    }

    /// Lowers the highest bucket by an exchange with another bucket. Tries the other buckets in
    /// ascending height order: first single items, then pairs.
    fn lower(&mut self) -> bool {
        let from = self.now.highest();
        let height = self.now.reached[from].height();
        let mut others: Vec<usize> = (0..self.now.reached.len()).filter(|&other| other != from).collect();
        others.sort_by_key(|&other| (self.now.reached[other].height(), other));
        self.steps += 4 * others.len() as u64;
        for few in [1, 2] {
            for &to in &others {
                if self.steps >= self.limit {
                    return false;
                }
                let pair = self.now.pair(from, to);
                let found = match few {
                    1 => pair.singles(height, &mut self.steps),
                    _ => pair.doubles(height, &mut self.steps),
                };
                if let Some(exchange) = found {
                    self.now.exchange(from, to, &exchange);
                    return true;
                }
            }
        }
        false
    }

    /// Redistributes the items in the highest bucket and some random buckets. Items are in random
    /// order and go to the lowest of these buckets.
    fn restart(&mut self) {
        let count = self.now.reached.len() as u64;
        let mut mixed = vec![self.now.highest()];
        while (mixed.len() as u64) < MIXED.min(count) {
            let bucket = self.random.below(count) as usize;
            if !mixed.contains(&bucket) {
                mixed.push(bucket);
            }
        }
        let mut items = Vec::new();
        for &bucket in &mixed {
            items.append(&mut self.now.items[bucket]);
            self.now.loads[bucket].clear();
            self.now.reached[bucket] = Load::default();
        }
        self.random.shuffle(&mut items);
        // Sort coarsely by descending height, by powers of two, so that restarts differ.
        items.sort_by_key(|&item| self.loads[item as usize].height().leading_zeros());
        self.steps += items.len() as u64 * MIXED;
        for item in items {
            let load = self.loads[item as usize];
            let with = |bucket: &&usize| (self.now.reached[**bucket].plus(load).height(), **bucket);
            let lowest = *mixed.iter().min_by_key(with).unwrap_or(&mixed[0]);
            self.now.push(lowest, item, load);
        }
    }
}
