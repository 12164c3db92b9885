//! Context-parallel group problem in JSON. Input: lengths, ranks and costs. Output: microbatches,
//! groups and degrees.

use serde::{Deserialize, Serialize};

use planscope_core::host::{Cancellation, Workers};
use planscope_planners::planners::dhp::{
    AllowedDegrees, DegreeRule, Effort, Exchange, GroupCost, GroupError, GroupProblem, Grouping, Load, Sequence,
    best_static_degree, megatron_balanced, plan_within, static_plan,
};
use planscope_plan::scenario::FieldError;

/// Maximum sequences per batch.
const SEQUENCES: usize = 100_000;
/// Maximum ranks.
const RANKS: u32 = 65_536;
/// Maximum sequence length. The square is exact to 1 part in 10^15.
const MAX: u64 = 1_000_000_000;

/// Maximum total time in seconds. Sums of smaller times cannot overflow.
const MAX_S: f64 = 1e100;

/// A global batch to partition into microbatches and groups.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Request {
    /// Sequence lengths in tokens.
    pub lengths: Vec<u64>,
    /// Mask factor per sequence: 0 causal, 1 full attention. Default: all causal.
    #[serde(default)]
    pub eta: Vec<f64>,
    /// Number of ranks. A rank is a model replica.
    pub ranks: u32,
    /// Memory capacity per rank in tokens.
    pub tokens_per_rank: u64,
    /// Maximum degree. Default: number of ranks.
    #[serde(default)]
    pub max_degree: Option<u32>,
    /// Permitted degrees.
    #[serde(default)]
    pub degrees: Degrees,
    /// Group cost model.
    pub cost: Cost,
    /// Solver effort relative to the published two-stage algorithm.
    #[serde(default)]
    pub effort: EffortLevel,
}

/// Permitted group degrees.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Degrees {
    /// All integers.
    #[default]
    Any,
    /// 1, 2, 4, ...
    PowersOfTwo,
    /// Divisors of the number of attention heads.
    DividesHeads(u32),
}

/// Solver effort.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum EffortLevel {
    /// Published algorithm: grouping by memory only.
    Published,
    /// All grouping methods that the planner uses.
    #[default]
    Portfolio,
    /// Also considers groups that execute their sequences sequentially.
    Unpacked,
}

/// Cost coefficients, see [`GroupCost`].
#[derive(Debug, Clone, Copy, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Cost {
    /// Seconds per squared token.
    pub a1: f64,
    /// Seconds per token.
    pub a2: f64,
    /// Bytes per token.
    pub a3: f64,
    /// Seconds per microbatch.
    pub b1: f64,
    /// Additional seconds in a multi-rank group.
    pub b2: f64,
    /// Intra-node bandwidth between ranks in bytes per second.
    pub bandwidth: f64,
    /// Inter-node bandwidth in bytes per second. Default: `bandwidth`.
    #[serde(default)]
    pub bandwidth_across: Option<f64>,
    /// Ranks per node. Default: all ranks.
    #[serde(default)]
    pub ranks_per_node: Option<u32>,
    /// Group communication method.
    #[serde(default)]
    pub exchange: ExchangeMethod,
}

/// Group communication method.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ExchangeMethod {
    /// Ring attention.
    #[default]
    Ring,
    /// DeepSpeed-Ulysses.
    AllToAll,
}

/// A planned batch.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Response {
    /// Microbatches in execution order.
    pub microbatches: Vec<MicrobatchResponse>,
    /// Degrees in all groups, for example "<6>x2 <4>x1".
    pub degrees: String,
    /// Total makespan, summed over microbatches, in seconds.
    pub makespan_s: f64,
    /// Lower bound on the batch makespan in seconds.
    pub lower_bound_s: f64,
    /// (makespan - bound) / makespan.
    pub gap: f64,
    /// Baselines for the same batch and cost model.
    pub compared: Compared,
}

/// A planned microbatch.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct MicrobatchResponse {
    /// Groups by descending degree.
    pub groups: Vec<GroupResponse>,
    /// Degrees in these groups.
    pub degrees: String,
    /// Maximum group time in seconds.
    pub makespan_s: f64,
    /// Lower bound for any grouping of these sequences, in seconds.
    pub lower_bound_s: f64,
    /// Unused ranks.
    pub idle_ranks: u32,
    /// Grouping method.
    pub grouping: &'static str,
}

/// A planned group.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct GroupResponse {
    /// Sequence indices into `lengths`.
    pub sequences: Vec<u32>,
    /// Total tokens.
    pub tokens: u64,
    /// Minimum degree that satisfies the memory limit.
    pub min_degree: u32,
    /// Selected degree.
    pub degree: u32,
    /// Group time in seconds.
    pub seconds: f64,
}

/// Baselines. Null if the longest sequence exceeds the memory limit, or if the time budget ended.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Compared {
    /// Best static degree among permitted divisors of `ranks`.
    pub static_degree: Option<u32>,
    /// Seconds at the static degree.
    pub static_s: Option<f64>,
    /// Seconds for Megatron-LM balanced context parallelism.
    pub megatron_balanced_s: Option<f64>,
    /// Seconds for this planner if degrees are restricted to powers of two.
    pub powers_of_two_s: Option<f64>,
}

/// Plans the batch. If the time budget ends, the plan is the best so far, and the remaining
/// baselines are null.
///
/// # Errors
/// Returns the JSON pointers to all invalid fields.
pub fn respond(
    request: &Request,
    _: &dyn Workers,
    cancellation: &dyn Cancellation,
) -> Result<Response, Vec<FieldError>> {
    let sequences = sequences(request)?;
    let cost = request.cost.coefficients(request.ranks);
    let errors = overflows(&sequences, &cost);
    if !errors.is_empty() {
        return Err(errors);
    }
    let rule = match request.degrees {
        Degrees::Any => DegreeRule::Any,
        Degrees::PowersOfTwo => DegreeRule::PowersOfTwo,
        Degrees::DividesHeads(heads) => DegreeRule::DividesHeads(heads),
    };
    let degrees = AllowedDegrees::new(rule, request.max_degree, request.ranks);
    let problem = GroupProblem {
        sequences: &sequences,
        ranks: request.ranks,
        tokens_per_rank: request.tokens_per_rank,
        degrees: &degrees,
        cost: &cost,
    };
    let effort = match request.effort {
        EffortLevel::Published => Effort::Published,
        EffortLevel::Portfolio => Effort::Portfolio,
        EffortLevel::Unpacked => Effort::Unpacked,
    };
    let found = plan_within(problem, effort, cancellation).map_err(|error| vec![field_error(&error)])?;
    let powers = degrees.powers_of_two();
    let in_time = || (!cancellation.is_over()).then_some(());
    let restricted = GroupProblem { degrees: &powers, ..problem };
    let static_degree = in_time().and_then(|()| best_static_degree(problem));
    let compared = Compared {
        static_degree,
        static_s: static_degree.and_then(|degree| Some(static_plan(problem, degree).ok()?.seconds)),
        megatron_balanced_s: in_time().and_then(|()| Some(megatron_balanced(problem).ok()?.seconds)),
        powers_of_two_s: in_time().and_then(|()| Some(plan_within(restricted, effort, cancellation).ok()?.seconds)),
    };
    let notation = found.notation();
    let microbatches = found.microbatches.into_iter().map(|microbatch| MicrobatchResponse {
        degrees: microbatch.notation(),
        makespan_s: microbatch.seconds,
        lower_bound_s: microbatch.bound,
        idle_ranks: microbatch.idle_ranks,
        grouping: match microbatch.grouping {
            Grouping::Memory => "memory",
            Grouping::Time => "time",
            Grouping::Static => "static",
            Grouping::Sequential => "one-by-one",
        },
        groups: microbatch
            .groups
            .into_iter()
            .map(|group| GroupResponse {
                sequences: group.sequences,
                tokens: group.tokens,
                min_degree: group.minimum,
                degree: group.degree,
                seconds: group.seconds,
            })
            .collect(),
    });
    Ok(Response {
        microbatches: microbatches.collect(),
        degrees: notation,
        makespan_s: found.seconds,
        lower_bound_s: found.bound,
        gap: if found.seconds > 0.0 { ((found.seconds - found.bound) / found.seconds).max(0.0) } else { 0.0 },
        compared,
    })
}

impl Cost {
    fn coefficients(&self, ranks: u32) -> GroupCost {
        GroupCost {
            a1: self.a1,
            a2: self.a2,
            a3: self.a3,
            b1: self.b1,
            b2: self.b2,
            within_node: self.bandwidth,
            across_nodes: self.bandwidth_across.unwrap_or(self.bandwidth),
            ranks_per_node: self.ranks_per_node.unwrap_or(ranks.max(1)),
            exchange: match self.exchange {
                ExchangeMethod::Ring => Exchange::Ring,
                ExchangeMethod::AllToAll => Exchange::AllToAll,
            },
        }
    }
}

/// Validates the numbers and builds the sequences.
fn sequences(request: &Request) -> Result<Vec<Sequence>, Vec<FieldError>> {
    let mut errors = Vec::new();
    if request.lengths.len() > SEQUENCES {
        errors.push(FieldError::new(
            "/lengths",
            format!("{} sequences are more than {SEQUENCES}", request.lengths.len()),
        ));
    }
    for (index, length) in request.lengths.iter().enumerate().filter(|(_, length)| **length > MAX) {
        errors.push(FieldError::new(&format!("/lengths/{index}"), format!("{length} tokens are more than {MAX}")));
    }
    if !request.eta.is_empty() && request.eta.len() != request.lengths.len() {
        let detail = format!("{} mask factors for {} lengths", request.eta.len(), request.lengths.len());
        errors.push(FieldError::new("/eta", detail));
    }
    if request.ranks > RANKS {
        errors.push(FieldError::new("/ranks", format!("{} ranks are more than {RANKS}", request.ranks)));
    }
    if request.max_degree == Some(0) {
        errors.push(FieldError::new("/max_degree", "a group has at least one rank".to_owned()));
    }
    if request.degrees == Degrees::DividesHeads(0) {
        errors.push(FieldError::new("/degrees/divides-heads", "there is at least one head".to_owned()));
    }
    for field in request.cost.coefficients(request.ranks).wrong_fields() {
        let detail = "must be finite and not negative, a rate or a number of ranks above zero".to_owned();
        errors.push(FieldError::new(&format!("/cost/{field}"), detail));
    }
    if !errors.is_empty() {
        return Err(errors);
    }
    let eta = |sequence: usize| request.eta.get(sequence).copied().unwrap_or(0.0);
    Ok(request.lengths.iter().enumerate().map(|(position, &tokens)| Sequence { tokens, eta: eta(position) }).collect())
}

/// Returns the coefficients for which the whole batch takes too long for sums of floating-point
/// numbers.
fn overflows(sequences: &[Sequence], cost: &GroupCost) -> Vec<FieldError> {
    let total: Load = sequences.iter().map(|&sequence| Load::from_sequence(sequence)).sum();
    let (tokens, count) = (total.tokens as f64, sequences.len() as f64);
    let terms = [
        ("a1", cost.a1 * total.squares),
        ("a2", cost.a2 * tokens),
        ("a3", cost.a3 * tokens / cost.within_node.min(cost.across_nodes)),
        ("b1", cost.b1 * count),
        ("b2", cost.b2 * count),
    ];
    let is_large = |&(_, seconds): &(&str, f64)| seconds.is_nan() || seconds > MAX_S;
    let error = |(field, seconds): (&str, f64)| {
        let detail = format!("makes the batch take {seconds:e} s on one rank, more than {MAX_S:e}: choose a larger unit");
        FieldError::new(&format!("/cost/{field}"), detail)
    };
    terms.into_iter().filter(is_large).map(error).collect()
}

/// Maps a solver error to a request field.
fn field_error(error: &GroupError) -> FieldError {
    let pointer = match error {
        GroupError::Empty => "/lengths".to_owned(),
        GroupError::NoRanks => "/ranks".to_owned(),
        GroupError::NoMemory => "/tokens_per_rank".to_owned(),
        GroupError::NoTokens { sequence } | GroupError::TooLong { sequence, .. } => format!("/lengths/{sequence}"),
        GroupError::Mask { sequence, .. } => format!("/eta/{sequence}"),
        GroupError::Cost { .. } => "/cost".to_owned(),
    };
    FieldError::new(&pointer, error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use planscope_core::host::{NeverCancelled, SequentialWorkers};

    const COST: &str = r#"{"a1": 1e-9, "a2": 1e-6, "a3": 1000.0, "b1": 0.001, "b2": 0.001, "bandwidth": 1e9}"#;

    fn solved(fields: &str) -> Result<Response, Vec<FieldError>> {
        let request = serde_json::from_str(&format!("{{{fields}, \"cost\": {COST}}}")).unwrap();
        respond(&request, &SequentialWorkers, &NeverCancelled)
    }

    /// At 100 tokens per rank, 300 tokens need three ranks, 90 tokens a single rank: a microbatch
    /// on four ranks, <3> and <1>.
    #[test]
    fn a_long_and_a_short_sequence_share_a_microbatch() {
        let response = solved(r#""lengths": [90, 300], "ranks": 4, "tokens_per_rank": 100"#).unwrap();
        assert_eq!((response.degrees.as_str(), response.microbatches.len()), ("<3>x1 <1>x1", 1));
        assert_eq!(response.microbatches[0].groups[0].sequences, [1]);
        assert!(response.lower_bound_s <= response.makespan_s && response.compared.static_degree == Some(4));
    }

    /// 1e300 s per squared token times 1e18 squared tokens exceeds all floating-point numbers. Without
    /// the check, no microbatch has a finite time.
    #[test]
    fn coefficients_that_overflow_are_errors() {
        let cost = |changed: &str| {
            let fields = r#""a1": 1e-9, "a2": 1e-6, "a3": 1000.0, "b1": 0.001, "b2": 0.001, "bandwidth": 1e9"#;
            let json = format!(r#"{{"lengths": [1000000000, 5], "ranks": 4, "tokens_per_rank": 1000000000, "cost": {{{fields}}}}}"#);
            let (name, _) = changed.split_once(':').unwrap();
            let mut value: serde_json::Value = serde_json::from_str(&json).unwrap();
            value["cost"][name] = serde_json::from_str(changed.split_once(':').unwrap().1).unwrap();
            respond(&serde_json::from_value(value).unwrap(), &SequentialWorkers, &NeverCancelled)
        };
        for (changed, field) in [("a1:1e300", "a1"), ("a2:1e300", "a2"), ("bandwidth:1e-300", "a3"), ("b2:1e101", "b2")] {
            let errors = cost(changed).unwrap_err();
            assert_eq!(errors.len(), 1, "{errors:?}");
            assert_eq!(errors[0].pointer, format!("/cost/{field}"));
        }
        assert!(cost("a1:1e-9").unwrap().makespan_s > 0.0);
    }

    /// A budget of 0: every sequence is in exactly one group within memory, and no baseline is
    /// computed.
    #[test]
    fn without_time_the_plan_is_complete() {
        struct Over;
        impl Cancellation for Over {
            fn is_over(&self) -> bool {
                true
            }

            fn seconds(&self) -> f64 {
                0.0
            }
        }
        let lengths: Vec<String> = (0..200).map(|index| (1 + index * 37 % 190).to_string()).collect();
        let fields = format!(r#"{{"lengths": [{}], "ranks": 4, "tokens_per_rank": 100, "cost": {COST}}}"#, lengths.join(","));
        let response = respond(&serde_json::from_str(&fields).unwrap(), &SequentialWorkers, &Over).unwrap();
        let groups: Vec<&GroupResponse> =
            response.microbatches.iter().flat_map(|microbatch| &microbatch.groups).collect();
        let mut sequences: Vec<u32> = groups.iter().flat_map(|group| group.sequences.clone()).collect();
        sequences.sort_unstable();
        assert_eq!(sequences, (0..200).collect::<Vec<u32>>());
        assert!(groups.iter().all(|group| group.tokens <= 100 * u64::from(group.degree)));
        assert!(response.lower_bound_s > 0.0 && response.lower_bound_s <= response.makespan_s);
        assert_eq!(response.compared.static_degree, None);
    }

    #[test]
    fn wrong_fields_are_pointed_at() {
        for (fields, pointer) in [
            (r#""lengths": [], "ranks": 4, "tokens_per_rank": 100"#, "/lengths"),
            (r#""lengths": [5, 401], "ranks": 4, "tokens_per_rank": 100"#, "/lengths/1"),
            (r#""lengths": [5], "ranks": 0, "tokens_per_rank": 100"#, "/ranks"),
            (r#""lengths": [5], "ranks": 4, "tokens_per_rank": 0"#, "/tokens_per_rank"),
            (r#""lengths": [5], "ranks": 4, "tokens_per_rank": 9, "eta": [2.0]"#, "/eta/0"),
            (r#""lengths": [5], "ranks": 4, "tokens_per_rank": 9, "eta": [0.1, 0.2]"#, "/eta"),
            (r#""lengths": [5], "ranks": 4, "tokens_per_rank": 9, "max_degree": 0"#, "/max_degree"),
        ] {
            let errors = solved(fields).unwrap_err();
            assert_eq!(errors.iter().map(|error| error.pointer.as_str()).collect::<Vec<_>>(), [pointer], "{fields}");
        }
    }
}
