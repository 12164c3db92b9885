//! Parallel schemes, cost model and memory model (Hydraulis Sec. 6.1).

/// Scheme <TP, PP, CP> for a pipeline, with fitted latency and length limits.
///
/// `T(l, P) = a l² + b l + c` is the forward and backward time per stage for a microbatch with one
/// sequence of l tokens (Hydraulis App. C.2). For several sequences, the terms a l² + b l are
/// summed and c is added once.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SchemeCost {
    /// Tensor-parallel degree.
    pub tp: u32,
    /// Pipeline stages.
    pub pp: u32,
    /// Context-parallel degree.
    pub cp: u32,
    /// Seconds per token squared.
    pub a: f64,
    /// Seconds per token.
    pub b: f64,
    /// Seconds per microbatch.
    pub c: f64,
    /// MaxLen: maximum tokens per microbatch that fit in memory; 0 if the model states do not fit.
    pub max_len: u64,
    /// UtilLen: minimum tokens per microbatch for good utilization; 0 disables the limit.
    pub util_len: u64,
}

impl SchemeCost {
    /// Returns the devices per pipeline.
    pub const fn devices(&self) -> u32 {
        self.tp.saturating_mul(self.pp).saturating_mul(self.cp)
    }

    /// Returns the seconds that a sequence adds to a microbatch, a l² + b l.
    pub fn work(&self, tokens: u64) -> f64 {
        let length = tokens as f64;
        self.a * length * length + self.b * length
    }

    /// Returns T(l, P) in seconds.
    pub fn seconds(&self, tokens: u64) -> f64 {
        self.work(tokens) + self.c
    }

    /// Returns the shortest length up to MaxLen whose throughput (tokens per second) reaches
    /// `share` times the maximum.
    ///
    /// This is UtilLen(P) in Hydraulis App. D, with a threshold of 0.85. Throughput increases
    /// up to l = sqrt(c / a) and decreases above.
    pub fn utilised_length(&self, share: f64) -> u64 {
        if self.max_len == 0 {
            return 0;
        }
        let rate = |tokens: u64| tokens as f64 / self.seconds(tokens);
        let peak = if self.a > 0.0 { (self.c / self.a).sqrt() as u64 } else { self.max_len };
        let peak = peak.clamp(1, self.max_len);
        let best = if peak < self.max_len { rate(peak).max(rate(peak + 1)) } else { rate(peak) };
        let (mut low, mut high) = (1, peak);
        while low < high {
            let middle = u64::midpoint(low, high);
            if rate(middle) >= share * best {
                high = middle;
            } else {
                low = middle + 1;
            }
        }
        low
    }

    /// Returns the names of invalid fields. Degrees must be positive, coefficients finite and
    /// non-negative.
    pub fn wrong_fields(&self) -> Vec<&'static str> {
        let degrees = [("tp", self.tp), ("pp", self.pp), ("cp", self.cp)];
        let mut wrong: Vec<&'static str> =
            degrees.into_iter().filter(|(_, value)| *value == 0).map(|(name, _)| name).collect();
        let coefficients = [("a", self.a), ("b", self.b), ("c", self.c)];
        wrong.extend(
            coefficients.into_iter().filter(|(_, value)| !(value.is_finite() && *value >= 0.0)).map(|(name, _)| name),
        );
        wrong
    }
}

/// Memory model for MaxLen (Hydraulis App. C.1).
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SchemeMemory {
    /// Number of layers.
    pub layers: f64,
    /// Hidden size, H.
    pub hidden: f64,
    /// Vocabulary size, V.
    pub vocabulary: f64,
    /// Bytes of model states per layer and hidden size squared, B. The measured value for LLaMA-7B
    /// is 197.
    pub state_bytes: f64,
    /// Fraction of the states that is sharded across all devices, alpha. 3/4 for 32-bit optimizer
    /// states and parameters combined with 16-bit parameters and gradients.
    pub sharded: f64,
    /// Memory per device minus the safety margin, in bytes.
    pub capacity: f64,
    /// Devices in the cluster, N.
    pub devices: f64,
}

impl SchemeMemory {
    /// Returns MaxLen in tokens for <TP, PP, CP>. `activation_bytes` (A) is the activation size per
    /// layer, token and hidden unit. The result is not positive if the model states do not fit.
    ///
    /// MaxLen is the solution l of `layers l H A / (TP CP) + layers H² B (alpha / N + (1 - alpha) /
    /// (PP TP)) + 16 H V (alpha / N + (1 - alpha) / TP) = capacity`. On the first stage, PP
    /// microbatches are in flight, each for layers / PP layers.
    pub fn max_len(&self, tp: u32, pp: u32, cp: u32, activation_bytes: f64) -> i64 {
        let (tp, pp, cp) = (f64::from(tp), f64::from(pp), f64::from(cp));
        let replicated = 1.0 - self.sharded;
        let layers = self.layers
            * self.hidden
            * self.hidden
            * self.state_bytes
            * (self.sharded / self.devices + replicated / (pp * tp));
        let embedding = 16.0 * self.hidden * self.vocabulary * (self.sharded / self.devices + replicated / tp);
        let per_token = self.layers * self.hidden * activation_bytes / (tp * cp);
        ((self.capacity - layers - embedding) / per_token).floor() as i64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// T = 1e-8 l² + 1e-4 l + 1. The maximum throughput is at sqrt(1 / 1e-8) = 10,000, where T = 3
    /// and the throughput is 3333.3 per second. 85 % is 2833.3: l = 2833.3 (1e-8 l² + 1e-4 l + 1),
    /// so 2.8333e-5 l² - 0.71667 l + 2833.3 = 0, l = 4904.5 (smaller root).
    #[test]
    fn the_utilised_length_is_where_the_rate_reaches_its_share() {
        let scheme = SchemeCost { tp: 1, pp: 1, cp: 1, a: 1e-8, b: 1e-4, c: 1.0, max_len: 20_000, util_len: 0 };
        assert_eq!(scheme.utilised_length(0.85), 4905);
        assert_eq!(SchemeCost { max_len: 0, ..scheme }.utilised_length(0.85), 0);
    }

    /// One layer with hidden size 10, no vocabulary, B = 4, alpha = 3/4, two devices, TP 2. The
    /// states need 100 * 4 * (3/8 + 1/8) = 200 bytes, a token needs 10 * 2 / 2 = 10 bytes. MaxLen
    /// is (1000 - 200) / 10 = 80 tokens, or -10 with a capacity of 100 bytes.
    #[test]
    fn max_length_fills_memory_left_by_states() {
        let memory = SchemeMemory {
            layers: 1.0,
            hidden: 10.0,
            vocabulary: 0.0,
            state_bytes: 4.0,
            sharded: 0.75,
            capacity: 1000.0,
            devices: 2.0,
        };
        assert_eq!(memory.max_len(2, 1, 1, 2.0), 80);
        assert_eq!(SchemeMemory { capacity: 100.0, ..memory }.max_len(2, 1, 1, 2.0), -10);
    }
}
