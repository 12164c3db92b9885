//! Parallel schemes: what one pipeline is, costs and holds (Hydraulis, section 6.1 and appendix C).

/// A pipeline's scheme <TP, PP, CP> with its fitted latency and its limits.
///
/// T(l, P) = a l² + b l + c is the time of one stage, forward and backward, of a microbatch with one sequence of l tokens. A
/// microbatch of several takes the sum of their a l² + b l, and c once.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SchemeCost {
    /// Tensor parallel degree.
    pub tp: u32,
    /// Pipeline stages.
    pub pp: u32,
    /// Context parallel degree.
    pub cp: u32,
    /// Seconds per token squared.
    pub a: f64,
    /// Seconds per token.
    pub b: f64,
    /// Seconds per microbatch.
    pub c: f64,
    /// MaxLen: most tokens of a microbatch that memory allows; 0 where the scheme holds nothing.
    pub max_len: u64,
    /// UtilLen: fewest tokens of a microbatch that use the devices well; 0 where that is of no concern.
    pub util_len: u64,
}

impl SchemeCost {
    /// Devices of one pipeline.
    pub const fn devices(&self) -> u32 {
        self.tp.saturating_mul(self.pp).saturating_mul(self.cp)
    }

    /// Seconds that a sequence adds to a microbatch: a l² + b l.
    pub fn work(&self, tokens: u64) -> f64 {
        let length = tokens as f64;
        self.a * length * length + self.b * length
    }

    /// T(l, P), in seconds.
    pub fn seconds(&self, tokens: u64) -> f64 {
        self.work(tokens) + self.c
    }

    /// The shortest length, up to MaxLen, at which tokens per second are at least `share` of the most at any such length.
    ///
    /// UtilLen(P) of appendix D, whose threshold is 0.85. Tokens per second rise up to l = sqrt(c / a) and fall beyond it.
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

    /// Names of fields that are not what they must be: degrees from 1, coefficients finite and not negative, and any time at all.
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

/// The memory model behind MaxLen (Hydraulis, appendix C.1).
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SchemeMemory {
    /// Layers.
    pub layers: f64,
    /// H: hidden size.
    pub hidden: f64,
    /// Vocabulary.
    pub vocabulary: f64,
    /// B: bytes of model states per layer and hidden size squared; 197 was seen for LLaMA-7B.
    pub state_bytes: f64,
    /// alpha: share of the states that is sharded over all devices; 3/4 for 32-bit optimizer states and parameters beside
    /// 16-bit parameters and gradients.
    pub sharded: f64,
    /// Memory of a device less the safety margin, in bytes.
    pub capacity: f64,
    /// N: devices of the cluster.
    pub devices: f64,
}

impl SchemeMemory {
    /// MaxLen of <TP, PP, CP>, in tokens, where activations take `activation_bytes` (A) per layer, token and hidden unit; not
    /// positive where the states alone are too large.
    ///
    /// layers l H A / (TP CP) + layers H² B (alpha / N + (1 - alpha) / (PP TP)) + 16 H V (alpha / N + (1 - alpha) / TP) = capacity:
    /// PP microbatches of layers / PP each are in flight on the first stage.
    pub fn max_len(&self, tp: u32, pp: u32, cp: u32, activation_bytes: f64) -> i64 {
        let (tp, pp, cp) = (f64::from(tp), f64::from(pp), f64::from(cp));
        let kept = 1.0 - self.sharded;
        let layers = self.layers
            * self.hidden
            * self.hidden
            * self.state_bytes
            * (self.sharded / self.devices + kept / (pp * tp));
        let embedding = 16.0 * self.hidden * self.vocabulary * (self.sharded / self.devices + kept / tp);
        let per_token = self.layers * self.hidden * activation_bytes / (tp * cp);
        ((self.capacity - layers - embedding) / per_token).floor() as i64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Rates of 1e-8 l² + 1e-4 l + 1: best at sqrt(1 / 1e-8) = 10,000, where T = 3 and the rate 3333.3 a second. 85 % of it,
    /// 2833.3: l = 2833.3 (1e-8 l² + 1e-4 l + 1), that is 2.8333e-5 l² - 0.71667 l + 2833.3 = 0, l = 4904.5 (smaller root).
    #[test]
    fn the_utilised_length_is_where_the_rate_reaches_its_share() {
        let scheme = SchemeCost { tp: 1, pp: 1, cp: 1, a: 1e-8, b: 1e-4, c: 1.0, max_len: 20_000, util_len: 0 };
        assert_eq!(scheme.utilised_length(0.85), 4905);
        assert_eq!(SchemeCost { max_len: 0, ..scheme }.utilised_length(0.85), 0);
    }

    /// One layer of hidden size 10, no vocabulary, B = 4, alpha = 3/4, two devices, TP 2: states 100 * 4 * (3/8 + 1/8) = 200
    /// bytes; 10 * 2 / 2 = 10 bytes a token: (1000 - 200) / 10 = 80 tokens, and -10 with a capacity of 100.
    #[test]
    fn the_longest_length_fills_what_the_states_leave() {
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
