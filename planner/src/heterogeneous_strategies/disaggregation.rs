//! Parameters and gradients between the optimizer's layout and the strategy's (Hydraulis, section 5.2 and appendix B).

use std::collections::{BTreeMap, BTreeSet};

use super::scheme::SchemeCost;

/// What one device moves in an iteration, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Volumes {
    /// Pull: parameters received.
    pub pull_receive: f64,
    /// Pull: parameters sent.
    pub pull_send: f64,
    /// Push: gradients sent in the reduce-scatter over the replicas of the parameters.
    pub reduce_scatter: f64,
    /// Push: gradients sent to the optimizer's layout.
    pub push_send: f64,
    /// Push: gradients received from others.
    pub push_receive: f64,
}

/// The exchange of one strategy.
#[derive(Debug, Clone, PartialEq)]
pub struct Exchanged {
    /// LCM(N, TP_max): slices of a parameter when it is pulled.
    pub pull_slices: u64,
    /// LCM(N, D TP_max), D the sum over pipelines of CP: slices of a gradient when it is pushed.
    pub push_slices: u64,
    /// Of every device, pipeline after pipeline, stage after stage, CP rank after CP rank, TP rank after TP rank; devices
    /// without a pipeline last.
    pub devices: Vec<Volumes>,
}

/// Rates that overlap is judged with.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LinkRate {
    /// F: operations per second of a device in half precision.
    pub flops: f64,
    /// B: bytes per second of the slowest link.
    pub bytes: f64,
}

/// Counts what every device receives and sends when `model_bytes` of parameters, spread evenly over the stages of each pipeline, are pulled into
/// `pipelines` and their gradients pushed back; `devices` is N, or as many as the pipelines have where that is more.
///
/// The optimizer's layout cuts each parameter into N equal slices, one a device. A device of a pipeline needs the share 1/TP
/// of every parameter of its stage (W / TP in the paper) less what it keeps itself; who holds a slice sends it to every device that needs it (W/N M).
/// Gradients are first reduced and scattered over the D replicas, after which each device holds TP_max / TP pieces of
/// 1 / (D TP_max), and then move to their slice's owner. Whatever the strategy, no device receives more than W.
pub fn exchange(pipelines: &[SchemeCost], model_bytes: f64, devices: u32) -> Exchanged {
    let seats = seats(pipelines);
    let n = u64::from(devices).max(seats.len() as u64).max(1);
    let tp_max = pipelines.iter().map(|scheme| u64::from(scheme.tp)).max().unwrap_or(1);
    // Tensor parallel degrees that do not divide each other are cut to their common slices.
    let tp_common = pipelines.iter().fold(1, |common, scheme| lcm(common, u64::from(scheme.tp)));
    let replicas: u64 = pipelines.iter().map(|scheme| u64::from(scheme.cp)).sum::<u64>().max(1);
    let mut volumes = vec![Volumes::default(); n as usize];
    let owned = |device: u64| Span::part(device, n);
    pull_sends(&seats, model_bytes, &mut volumes);
    for seat in &seats {
        let stage = model_bytes / f64::from(seat.scheme.pp);
        let needed = Span::part(u64::from(seat.tp_rank), u64::from(seat.scheme.tp));
        let own = needed.overlap(owned(seat.device));
        volumes[seat.device as usize].pull_receive += stage * (needed.length() - own);
        let d = replicas as f64;
        volumes[seat.device as usize].reduce_scatter += stage * needed.length() * (d - 1.0) / d;
        // Of each of its common slices it keeps the piece of its place among the replicas.
        let slices = tp_common / u64::from(seat.scheme.tp);
        for slice in 0..slices {
            let common = u64::from(seat.tp_rank) * slices + slice;
            let piece = Span::part(common * replicas + seat.replica, tp_common * replicas);
            let (first, last) = ((piece.start * n as f64) as u64, (piece.end * n as f64).ceil() as u64);
            for owner in (first..last.min(n)).filter(|&owner| owner != seat.device) {
                let bytes = stage * piece.overlap(owned(owner));
                volumes[seat.device as usize].push_send += bytes;
                volumes[owner as usize].push_receive += bytes;
            }
        }
    }
    Exchanged { pull_slices: lcm(n, tp_max), push_slices: lcm(n, replicas * tp_max), devices: volumes }
}

/// Everyone whose slice a device needs sends it that part. Devices that need the same of as long stages are counted together: there
/// are as many as devices, and each asks a good part of them all.
fn pull_sends(seats: &[Seat<'_>], model_bytes: f64, volumes: &mut [Volumes]) {
    let n = volumes.len() as u64;
    let mut alike: BTreeMap<(u32, u32, u32), BTreeSet<u64>> = BTreeMap::new();
    for seat in seats {
        alike.entry((seat.scheme.tp, seat.tp_rank, seat.scheme.pp)).or_default().insert(seat.device);
    }
    for ((tp, tp_rank, pp), devices) in alike {
        let needed = Span::part(u64::from(tp_rank), u64::from(tp));
        let (first, last) = ((needed.start * n as f64) as u64, (needed.end * n as f64).ceil() as u64);
        for owner in first..last.min(n) {
            // None sends to itself.
            let others = devices.len() - usize::from(devices.contains(&owner));
            let bytes = model_bytes / f64::from(pp) * needed.overlap(Span::part(owner, n));
            volumes[owner as usize].pull_send += others as f64 * bytes;
        }
    }
}

/// Bytes that each device receives when parameters in use move from one strategy to another without the optimizer's layout, as HotSPa
/// switches; `devices` is the number of devices.
pub fn switch_bytes(from: &[SchemeCost], to: &[SchemeCost], model_bytes: f64, devices: u32) -> Vec<f64> {
    let mut had: Vec<Option<(Span, Span)>> = vec![None; devices as usize];
    for seat in seats(from) {
        if let Some(had) = had.get_mut(seat.device as usize) {
            *had = Some(seat.area());
        }
    }
    let mut received = vec![0.0; devices as usize];
    for seat in seats(to) {
        let (depth, width) = seat.area();
        let kept = had.get(seat.device as usize).copied().flatten();
        let kept = kept.map_or(0.0, |had| depth.overlap(had.0) * width.overlap(had.1));
        if let Some(received) = received.get_mut(seat.device as usize) {
            *received += model_bytes * (depth.length() * width.length() - kept);
        }
    }
    received
}

/// Seconds of moving `bytes` that computation does not cover when microbatches have `tokens` tokens.
///
/// A matrix product of t tokens covers the transfer of its parameters where t >= TP CP F / B (appendix B.2); with fewer tokens it covers the
/// share t / (TP CP F / B).
pub fn exposed_seconds(bytes: f64, scheme: &SchemeCost, tokens: f64, rate: LinkRate) -> f64 {
    let enough = f64::from(scheme.tp) * f64::from(scheme.cp) * rate.flops / rate.bytes;
    bytes / rate.bytes * (1.0 - tokens / enough).max(0.0)
}

/// A device's place in a pipeline.
struct Seat<'a> {
    device: u64,
    scheme: &'a SchemeCost,
    stage: u32,
    tp_rank: u32,
    /// Place among all replicas of its parameters.
    replica: u64,
}

impl Seat<'_> {
    /// The part of the model's depth and the part of every parameter that it computes with.
    fn area(&self) -> (Span, Span) {
        let depth = Span::part(u64::from(self.stage), u64::from(self.scheme.pp));
        (depth, Span::part(u64::from(self.tp_rank), u64::from(self.scheme.tp)))
    }
}

/// Devices in the order of pipelines.
fn seats(pipelines: &[SchemeCost]) -> Vec<Seat<'_>> {
    let mut seats = Vec::new();
    let mut replicas = 0;
    for scheme in pipelines {
        for stage in 0..scheme.pp {
            for cp_rank in 0..scheme.cp {
                for tp_rank in 0..scheme.tp {
                    let device = seats.len() as u64;
                    seats.push(Seat { device, scheme, stage, tp_rank, replica: replicas + u64::from(cp_rank) });
                }
            }
        }
        replicas += u64::from(scheme.cp);
    }
    seats
}

/// A part of something of length one.
#[derive(Debug, Clone, Copy)]
struct Span {
    start: f64,
    end: f64,
}

impl Span {
    fn part(place: u64, parts: u64) -> Self {
        Self { start: place as f64 / parts as f64, end: (place + 1) as f64 / parts as f64 }
    }

    fn length(self) -> f64 {
        self.end - self.start
    }

    fn overlap(self, other: Self) -> f64 {
        (self.end.min(other.end) - self.start.max(other.start)).max(0.0)
    }
}

fn lcm(a: u64, b: u64) -> u64 {
    let (mut x, mut y) = (a, b);
    while y > 0 {
        (x, y) = (y, x % y);
    }
    a / x.max(1) * b
}
