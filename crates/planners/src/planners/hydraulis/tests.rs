//! Compares packing, dispatch and proposal to full enumeration on small inputs.

use proptest::prelude::*;

use super::partition::Items;
use super::*;
use planscope_core::optimality::Optimality;
use planscope_core::random::Random;

const SCHEME: SchemeCost =
    SchemeCost { tp: 1, pp: 4, cp: 1, a: 2e-10, b: 1e-5, c: 0.01, max_len: 16_384, util_len: 1024 };

fn schemes() -> impl Strategy<Value = SchemeCost> {
    (1_u32..3, 1_u32..4, 0.0_f64..1e-9, 1e-6_f64..1e-4, 0.0_f64..0.05, 5000_u64..20_000, 0_u64..6000)
        .prop_map(|(tp, pp, a, b, c, max_len, util_len)| SchemeCost { tp, pp, cp: 1, a, b, c, max_len, util_len })
}

/// Lengths with a long-tailed distribution, similar to text.
fn long_tailed(count: usize, seed: u32, limit: u64) -> Vec<u64> {
    let mut random = Random::new(seed, 1);
    (0..count).map(|_| (libm::exp(7.0 + 1.3 * random.normal()) as u64).clamp(64, limit)).collect()
}

/// Returns the minimum of Hydraulis Eq. 1 over all assignments with a number of microbatches in
/// `range`.
fn best_packing(lengths: &[u64], scheme: &SchemeCost, range: (u32, u32)) -> Option<f64> {
    fn follow(
        lengths: &[u64],
        scheme: &SchemeCost,
        bins: &mut Vec<Vec<u64>>,
        range: (u32, u32),
        best: &mut Option<f64>,
    ) {
        let Some((&next, rest)) = lengths.split_first() else {
            let max_work =
                bins.iter().map(|bin| bin.iter().map(|&tokens| scheme.work(tokens)).sum::<f64>()).fold(0.0, f64::max);
            // If fewer microbatches are used than the range requires, the others are empty.
            let count = (bins.len() as u32).max(range.0);
            if count <= range.1 {
                let seconds = (max_work + scheme.c) * f64::from(scheme.pp - 1 + count);
                *best = Some(best.map_or(seconds, |best| best.min(seconds)));
            }
            return;
        };
        for at in 0..=bins.len() {
            if at == bins.len() {
                bins.push(Vec::new());
            }
            if bins[at].iter().sum::<u64>() + next <= scheme.max_len {
                bins[at].push(next);
                follow(rest, scheme, bins, range, best);
                bins[at].pop();
            }
            if bins[at].is_empty() {
                bins.pop();
                break;
            }
        }
    }
    let mut best = None;
    follow(lengths, scheme, &mut Vec::new(), range, &mut best);
    best
}

/// Hydraulis Eq. 2 for one pipeline.
fn pipeline_seconds(tokens: &[u64], scheme: &SchemeCost) -> f64 {
    let Some(&max_length) = tokens.iter().max() else { return 0.0 };
    let microbatches = tokens.iter().sum::<u64>().div_ceil(scheme.max_len) as f64;
    let work: f64 = tokens.iter().map(|&tokens| scheme.work(tokens)).sum();
    work + scheme.c * microbatches + scheme.seconds(max_length) * f64::from(scheme.pp - 1)
}

/// Returns the minimum of Hydraulis Eq. 3 over all dispatches.
fn best_dispatch(lengths: &[u64], pipelines: &[SchemeCost], dealt: &mut Vec<Vec<u64>>) -> f64 {
    let Some((&next, rest)) = lengths.split_first() else {
        return dealt
            .iter()
            .zip(pipelines)
            .map(|(tokens, scheme)| pipeline_seconds(tokens, scheme))
            .fold(0.0, f64::max);
    };
    let mut best = f64::INFINITY;
    for pipeline in 0..pipelines.len() {
        if next <= pipelines[pipeline].max_len {
            dealt[pipeline].push(next);
            best = best.min(best_dispatch(rest, pipelines, dealt));
            dealt[pipeline].pop();
        }
    }
    best
}

/// Hydraulis Eq. 4 as a plain table, with lengths in ascending order and an integer number of
/// device steps. Returns t[N][L] for all L.
fn table(lengths: &[(u64, f64)], devices: u32, schemes: &[SchemeCost], step: f64) -> Vec<f64> {
    let capacity = (f64::from(devices) / step + 1e-6) as usize;
    let mut t = vec![vec![f64::INFINITY; lengths.len() + 1]; capacity + 1];
    for row in &mut t {
        row[0] = 0.0;
    }
    // A scheme that is larger than the cluster cannot be rounded to an integer.
    let fitting: Vec<&SchemeCost> = schemes.iter().filter(|scheme| scheme.devices() <= devices).collect();
    for n in 1..=capacity {
        for l in 1..=lengths.len() {
            t[n][l] = t[n - 1][l];
            for scheme in fitting.iter().filter(|scheme| scheme.max_len >= lengths[l - 1].0) {
                let size = scheme.devices() as usize;
                for parts in 1..=n / size {
                    for cut in 0..l {
                        let seconds: f64 =
                            lengths[cut..l].iter().map(|(tokens, count)| count * scheme.seconds(*tokens)).sum();
                        let value = t[n - parts * size][cut].max(seconds / (parts as f64 * step));
                        t[n][l] = t[n][l].min(value);
                    }
                }
            }
        }
    }
    t[capacity][1..].to_vec()
}

proptest! {
    #[test]
    fn packings_are_optimal_for_few_sequences(lengths in prop::collection::vec(100_u64..9000, 1..8), scheme in schemes()) {
        let settings = PackingSettings { gap: 0.0, nodes: 10_000_000 };
        match pack(&lengths, &scheme, settings) {
            Ok(packing) => {
                let best = best_packing(&lengths, &scheme, packing.range);
                prop_assert!(best.is_some_and(|best| (packing.seconds / best - 1.0).abs() < 1e-6), "{:?} {}", best, packing.seconds);
                prop_assert_eq!(packing.optimality, Optimality::Optimal);
                legal(&lengths, &scheme, &packing)?;
                let quick = pack(&lengths, &scheme, PackingSettings { gap: 0.0, nodes: 0 });
                prop_assert!(quick.is_ok_and(|quick| quick.bound <= packing.seconds * (1.0 + 1e-9) && quick.seconds >= packing.seconds * (1.0 - 1e-9)));
            }
            Err(PackingError::TooLong { sequence, max_len, .. }) => prop_assert!(lengths[sequence as usize] > max_len),
            Err(error) => prop_assert!(false, "{error}"),
        }
    }

    #[test]
    fn dispatches_are_optimal_for_few_sequences(
        lengths in prop::collection::vec(100_u64..9000, 1..7), pipelines in prop::collection::vec(schemes(), 1..4),
    ) {
        let settings = DispatchSettings { gap: 0.0, nodes: 10_000_000, trials: 20, seed: 1 };
        match dispatch(&lengths, &pipelines, settings) {
            Ok(found) => {
                let best = best_dispatch(&lengths, &pipelines, &mut vec![Vec::new(); pipelines.len()]);
                prop_assert!((found.seconds / best - 1.0).abs() < 1e-6, "{best} {}", found.seconds);
                prop_assert_eq!(found.optimality, Optimality::Optimal);
                let mut seen: Vec<u32> = found.pipelines.concat();
                seen.sort_unstable();
                prop_assert!(seen.iter().copied().eq(0..lengths.len() as u32));
                let quick = dispatch(&lengths, &pipelines, DispatchSettings { nodes: 0, ..settings });
                prop_assert!(quick.is_ok_and(|quick| quick.bound <= best * (1.0 + 1e-9)));
            }
            Err(DispatchError::TooLong { sequence, max_len, .. }) => prop_assert!(lengths[sequence as usize] > max_len),
            Err(error) => prop_assert!(false, "{error}"),
        }
    }

    /// Hydraulis Eq. 2 is a lower bound for Eq. 1.
    #[test]
    fn no_packing_is_below_its_pipelines_bound(lengths in prop::collection::vec(100_u64..5000, 1..40), scheme in schemes()) {
        if let Ok(packing) = pack(&lengths, &scheme, PackingSettings::default()) {
            prop_assert!(packing.seconds >= pipeline_seconds(&lengths, &scheme) * (1.0 - 1e-12));
        }
    }

    #[test]
    fn relaxed_strategies_match_the_plain_table(
        lengths in prop::collection::btree_map(1_u64..60, 1_u32..20, 1..6), pool in prop::collection::vec(schemes(), 1..4), devices in 1_u32..5,
    ) {
        let lengths: Vec<(u64, f64)> = lengths.into_iter().map(|(hundreds, count)| (100 * hundreds, f64::from(count))).collect();
        let settings = ProposalSettings { length_step: 100, device_step: 0.25 };
        if let Ok(proposal) = propose(&lengths, devices, &pool, settings) {
            let expected = table(&lengths, devices, &pool, 0.25);
            for relaxed in &proposal.relaxed {
                let position = lengths.iter().position(|(tokens, _)| *tokens == relaxed.max_length);
                let expected = position.map(|index| expected[index]);
                prop_assert!(expected.is_some_and(|expected| (relaxed.seconds / expected - 1.0).abs() < 1e-5), "{expected:?} {relaxed:?}");
                let used: f64 = relaxed.copies.iter().zip(&pool).map(|(copies, scheme)| copies * f64::from(scheme.devices())).sum();
                prop_assert!(used <= f64::from(devices) + 1e-6);
            }
            prop_assert!(!proposal.strategies.is_empty());
            let max_length = lengths.last().map_or(0, |entry| entry.0);
            prop_assert!(proposal.strategies.iter().any(|strategy| strategy.max_len >= max_length));
            for strategy in &proposal.strategies {
                prop_assert!(strategy.devices <= devices && strategy.max_len >= strategy.proposed_for.1, "{strategy:?}");
            }
        }
    }
}

fn legal(lengths: &[u64], scheme: &SchemeCost, packing: &Packing) -> Result<(), TestCaseError> {
    let mut seen: Vec<u32> = packing.microbatches.concat();
    seen.sort_unstable();
    prop_assert!(seen.iter().copied().eq(0..lengths.len() as u32));
    let mut slowest = 0.0_f64;
    for microbatch in &packing.microbatches {
        let tokens = || microbatch.iter().map(|&index| lengths[index as usize]);
        prop_assert!(tokens().sum::<u64>() <= scheme.max_len);
        slowest = slowest.max(tokens().map(|tokens| scheme.work(tokens)).sum::<f64>() + scheme.c);
    }
    prop_assert!((slowest / packing.slowest - 1.0).abs() < 1e-9);
    Ok(())
}

/// 128 sequences: the gap does not exceed 2 % for all seeds and numbers of stages.
#[test]
fn packings_for_many_sequences_are_near_their_bound() {
    for seed in 0..8 {
        for pp in [1, 2, 4, 8] {
            let scheme = SchemeCost { pp, ..SCHEME };
            let lengths = long_tailed(128, seed, 16_384);
            let packing = pack(&lengths, &scheme, PackingSettings::default()).unwrap();
            legal(&lengths, &scheme, &packing).unwrap();
            assert!(packing.gap <= 0.02, "seed {seed} pp {pp}: {} {:?}", packing.gap, packing.range);
        }
    }
}

/// Two pipelines for long and three for short sequences, 12 sequences. Compares the greedy search
/// plus exchanges to branch and bound.
#[test]
fn greedy_results_are_within_two_percent() {
    let long = SchemeCost { tp: 4, a: 1e-10, b: 4e-6, ..SCHEME };
    let short = SchemeCost { max_len: 4096, pp: 2, ..SCHEME };
    let pipelines = [long, long, short, short, short];
    for seed in 0..20 {
        let lengths = long_tailed(12, seed, 16_384);
        let greedy =
            dispatch(&lengths, &pipelines, DispatchSettings { nodes: 0, ..DispatchSettings::default() }).unwrap();
        let exact = DispatchSettings { gap: 0.0, nodes: 50_000_000, ..DispatchSettings::default() };
        let exact = dispatch(&lengths, &pipelines, exact).unwrap();
        assert_eq!(exact.optimality, Optimality::Optimal);
        assert!(greedy.seconds <= 1.02 * exact.seconds, "seed {seed}: {} {}", greedy.seconds, exact.seconds);
    }
}

/// 16,384 sequences in two pipelines: one exchange step evaluates about 8,192 x 8,192 pairs, so the
/// limit must stop it.
#[test]
fn moves_and_exchanges_end_in_time() {
    let pipelines = [SCHEME, SchemeCost { a: 1.1 * SCHEME.a, ..SCHEME }];
    let settings = DispatchSettings { trials: 1, nodes: 0, ..DispatchSettings::default() };
    let looks = |count| dispatch(&long_tailed(count, 1, 16_384), &pipelines, settings).unwrap().looks;
    let (few, many) = (looks(64), looks(16_384));
    assert!(few > 0 && few < 1_000_000, "{few}");
    assert!((50_000_000..50_100_000).contains(&many), "{many}");
}

#[test]
fn invalid_inputs_are_rejected() {
    let nothing = SchemeCost { max_len: 0, ..SCHEME };
    let settings = PackingSettings::default();
    let too_long = PackingError::TooLong { sequence: 1, tokens: 20_000, max_len: 16_384 };
    assert_eq!(pack(&[5, 20_000], &SCHEME, settings), Err(too_long));
    assert_eq!(pack(&[], &SCHEME, settings), Err(PackingError::Empty));
    assert_eq!(pack(&[0], &SCHEME, settings), Err(PackingError::NoTokens { sequence: 0 }));
    let wrong = SchemeCost { a: -1.0, pp: 0, ..SCHEME };
    assert_eq!(pack(&[1], &wrong, settings), Err(PackingError::Scheme { fields: vec!["pp", "a"] }));
    let settings = DispatchSettings::default();
    assert_eq!(dispatch(&[1], &[], settings), Err(DispatchError::NoPipelines));
    let too_long = DispatchError::TooLong { sequence: 0, tokens: 1, max_len: 0 };
    assert_eq!(dispatch(&[1], &[nothing], settings), Err(too_long));
    let settings = ProposalSettings::default();
    assert_eq!(propose(&[(1, 1.0)], 8, &[nothing], settings), Err(ProposalError::NoCapacity));
    assert_eq!(propose(&[], 8, &[SCHEME], settings), Err(ProposalError::Empty));
    assert_eq!(
        propose(&[(1, 1.0)], 3, &[SCHEME], settings),
        Err(ProposalError::TooFewDevices { smallest: 4, devices: 3 })
    );
    let too_long = ProposalError::TooLong { tokens: 20_000, max_len: 16_384, devices: 8 };
    assert_eq!(propose(&[(20_000, 1.0)], 8, &[SCHEME], settings), Err(too_long));
}

/// One long sequence and equal short ones: the long sequence is in a separate microbatch, and the
/// short sequences fill the others.
#[test]
fn equal_lengths_and_a_single_giant_are_packed_exactly() {
    let scheme = SchemeCost { util_len: 0, ..SCHEME };
    let equal = pack(&[4096; 16], &scheme, PackingSettings { gap: 0.0, ..PackingSettings::default() }).unwrap();
    assert_eq!(equal.optimality, Optimality::Optimal);
    let mut lengths = vec![1000; 20];
    lengths.push(16_384);
    let giant = pack(&lengths, &scheme, PackingSettings::default()).unwrap();
    assert!(giant.microbatches.contains(&vec![20]), "{:?}", giant.microbatches);
}

/// 64 sequences of 1,000 tokens on four pipelines with b = 1 ms, c = 1 s, MaxLen = 4,000 and one stage:
/// 16 s of work and four constants each. Counted once per pipeline, the constant gives 17 s.
#[test]
fn full_microbatches_count_for_the_bound_of_a_dispatch() {
    let scheme = SchemeCost { a: 0.0, b: 1e-3, c: 1.0, pp: 1, max_len: 4000, util_len: 0, ..SCHEME };
    let found =
        dispatch(&[1000; 64], &[scheme; 4], DispatchSettings { nodes: 0, ..DispatchSettings::default() }).unwrap();
    assert!((found.seconds - 20.0).abs() < 1e-9 && (found.bound - 20.0).abs() < 1e-9, "{found:?}");
    assert_eq!(found.optimality, Optimality::Optimal);
}

/// Lengths, capacity and the smallest number of bins. 6 + 6 exceeds 10; three of 4 exceed 10; 9 leaves
/// no room for 2; 7 leaves room for only one of the 3s.
#[test]
fn the_fewest_bins_follow_from_lengths() {
    for (mut lengths, capacity, fewest) in [
        (vec![6; 5], 10, 5),
        (vec![4; 5], 10, 3),
        (vec![9, 2, 2, 2], 10, 2),
        (vec![7, 7, 3, 3, 3], 10, 3),
        (vec![10, 10, 1], 10, 3),
        (vec![1], 10, 1),
    ] {
        lengths.sort_unstable_by(|a, b| b.cmp(a));
        let work = lengths.iter().map(|&tokens| tokens as f64).collect();
        let items = Items { tokens: lengths, work, capacity };
        assert_eq!(items.fewest_bins(), fewest, "{items:?}");
    }
}

/// The result is the candidate with the minimum time, and candidates that cannot process a sequence
/// return the error.
#[test]
fn the_fastest_strategy_that_fits_the_batch_is_selected() {
    let long = SchemeCost { tp: 4, a: 1e-10, b: 8e-6, ..SCHEME };
    let short = SchemeCost { max_len: 4096, pp: 2, ..SCHEME };
    let strategies = vec![vec![short; 8], vec![long; 1], vec![long, short, short, short, short]];
    let mut lengths = long_tailed(60, 4, 4000);
    let settings = (DispatchSettings::default(), PackingSettings::default());
    let selection = choose(&lengths, &strategies, settings.0, settings.1).unwrap();
    assert_eq!(selection.strategy, 0);
    lengths.push(16_000);
    let selection = choose(&lengths, &strategies, settings.0, settings.1).unwrap();
    assert_eq!(selection.strategy, 2);
    assert!(matches!(
        selection.candidates[0],
        CandidateResult::Impossible(DispatchError::TooLong { sequence: 60, .. })
    ));
    let slowest = selection.assignment.pipeline_seconds().fold(0.0, f64::max);
    assert!((selection.assignment.seconds - slowest).abs() < 1e-12);
    assert!(selection.assignment.seconds >= selection.assignment.dispatch.bound);
}

/// Up to 64K tokens the steps are those in the paper. Above, the limit is 512 steps.
#[test]
fn long_sequences_use_longer_steps() {
    let step = |max_length| ProposalSettings::up_to(max_length).length_step;
    assert_eq!([0, 1, 65_536, 65_537, 131_072, 1 << 20].map(step), [128, 128, 128, 256, 256, 2048]);
    for max_length in [65_537_u64, 262_144, 1 << 20] {
        assert!(max_length.div_ceil(step(max_length)) <= 512, "{max_length}");
    }
}

/// Hydraulis Fig. 9: four gradient slices and six optimizer slices have twelve common slices.
#[test]
fn mutual_slices_are_common_multiples() {
    let scheme = SchemeCost { tp: 2, pp: 1, ..SCHEME };
    let exchanged = exchange(&[scheme, scheme], 1.0, 6);
    assert_eq!((exchanged.pull_slices, exchanged.push_slices), (6, 12));
}

/// An owner sends to each other device the part of its slice that the device needs, for the
/// parameters in the device's stage.
#[test]
fn owners_send_required_slices() {
    let scheme = |tp, pp, cp| SchemeCost { tp, pp, cp, ..SCHEME };
    let pipelines = [scheme(2, 2, 1), scheme(2, 1, 1), scheme(1, 1, 2), scheme(3, 1, 1)];
    for n in [11, 13] {
        let exchanged = exchange(&pipelines, 12.0, n);
        let mut sent = vec![0.0; n as usize];
        let mut device = 0;
        for scheme in pipelines {
            for _ in 0..scheme.pp * scheme.cp {
                for rank in 0..scheme.tp {
                    let needed = [rank, rank + 1].map(|end| f64::from(end) / f64::from(scheme.tp));
                    for owner in (0..n).filter(|&owner| owner != device) {
                        let owned = [owner, owner + 1].map(|end| f64::from(end) / f64::from(n));
                        let both = (needed[1].min(owned[1]) - needed[0].max(owned[0])).max(0.0);
                        sent[owner as usize] += 12.0 / f64::from(scheme.pp) * both;
                    }
                    device += 1;
                }
            }
        }
        assert_eq!(exchanged.devices.len(), n.max(device) as usize);
        for (owner, (found, sent)) in exchanged.devices.iter().zip(sent).enumerate() {
            assert!((found.pull_send - sent).abs() < 1e-9, "{owner}: {} {sent}", found.pull_send);
        }
    }
}

/// <1,1,1> x 4 is equal to ZeRO-1: a device receives the missing 3/4 and sends a quarter to three
/// others. After the reduce-scatter of 3/4, the gradients are on their owners.
#[test]
fn plain_data_parallelism_is_an_all_gather_and_a_reduce_scatter() {
    let scheme = SchemeCost { tp: 1, pp: 1, ..SCHEME };
    for volumes in exchange(&[scheme; 4], 8.0, 4).devices {
        let expected =
            Volumes { pull_receive: 6.0, pull_send: 6.0, reduce_scatter: 6.0, push_send: 0.0, push_receive: 0.0 };
        assert_eq!(volumes, expected);
    }
}

/// Bytes received are equal to bytes sent, no device receives more than the model size, and all
/// gradients arrive at the N owners (W / N per owner).
#[test]
fn exchanges_between_mixed_strategies_balance() {
    let scheme = |tp, pp, cp| SchemeCost { tp, pp, cp, ..SCHEME };
    for pipelines in [vec![scheme(2, 2, 1), scheme(1, 1, 2), scheme(1, 2, 1)], vec![scheme(4, 1, 1), scheme(1, 4, 1)]] {
        let exchanged = exchange(&pipelines, 100.0, 9);
        let sum = |part: fn(&Volumes) -> f64| exchanged.devices.iter().map(part).sum::<f64>();
        assert!((sum(|volumes| volumes.pull_receive) - sum(|volumes| volumes.pull_send)).abs() < 1e-9);
        assert!((sum(|volumes| volumes.push_receive) - sum(|volumes| volumes.push_send)).abs() < 1e-9);
        for volumes in &exchanged.devices {
            assert!(volumes.pull_receive <= 100.0 + 1e-9 && volumes.push_receive <= 100.0 / 9.0 + 1e-9, "{volumes:?}");
        }
        // The ninth device has no pipeline, so it receives all its gradients from other devices.
        assert!((exchanged.devices[8].push_receive - 100.0 / 9.0).abs() < 1e-9);
    }
}

/// TP 2 to TP 1 on two devices: a device has half of the parameters and receives the other half. If
/// nothing changes, no bytes move.
#[test]
fn switching_moves_only_missing_parameters() {
    let scheme = |tp| SchemeCost { tp, pp: 1, ..SCHEME };
    assert_eq!(switch_bytes(&[scheme(2)], &[scheme(1), scheme(1)], 10.0, 2), [5.0, 5.0]);
    assert_eq!(switch_bytes(&[scheme(2)], &[scheme(2)], 10.0, 2), [0.0, 0.0]);
}

/// Hydraulis App. B.2: TP 16 at 19.5 TFLOP/s and 200 GB/s needs 1560 tokens. With 780 tokens,
/// half of the transfer is exposed.
#[test]
fn enough_tokens_hide_the_transfer() {
    let scheme = SchemeCost { tp: 16, pp: 1, ..SCHEME };
    let rate = LinkRate { flops: 19.5e12, bytes: 2e11 };
    assert!(exposed_seconds(2e11, &scheme, 1560.0, rate).abs() < 1e-12);
    assert!((exposed_seconds(2e11, &scheme, 780.0, rate) - 0.5).abs() < 1e-12);
}
