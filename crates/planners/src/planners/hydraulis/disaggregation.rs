//! Parameter and gradient exchange between the optimizer layout and the strategy layout: the
//! optimization-propagation disaggregation (Hydraulis Sec. 5.2).

use std::collections::BTreeMap;

use super::scheme::SchemeCost;

/// Bytes transferred by a device per iteration.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Volumes {
    /// Pull: parameters received.
    pub pull_receive: f64,
    /// Pull: parameters sent.
    pub pull_send: f64,
    /// Push: gradients sent in the reduce-scatter across the parameter replicas.
    pub reduce_scatter: f64,
    /// Push: gradients sent to the optimizer layout.
    pub push_send: f64,
    /// Push: gradients received from other devices.
    pub push_receive: f64,
}

/// Exchange for a strategy.
#[derive(Debug, Clone, PartialEq)]
pub struct Exchanged {
    /// Slices per parameter in the pull: LCM(N, TP_max).
    pub pull_slices: u64,
    /// Slices per gradient in the push: LCM(N, D TP_max), where D is the sum of CP over all
    /// pipelines.
    pub push_slices: u64,
    /// Bytes per device, in pipeline, stage, CP rank and TP rank order. Devices without a pipeline
    /// are last.
    pub devices: Vec<Volumes>,
}

/// Throughput values for the overlap estimate.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LinkRate {
    /// FLOP/s per device in half precision, F.
    pub flops: f64,
    /// Bandwidth of the bottleneck link in bytes per second, B.
    pub bytes: f64,
}

/// Computes the bytes that the devices receive and send when parameters (`model_bytes`, uniform
/// across stages) are pulled into `pipelines` and gradients are pushed back. N is the maximum of
/// `devices` and the total devices in the pipelines.
///
/// The optimizer layout splits each parameter into N equal slices, one per device. A pipeline
/// device needs 1 / TP of all parameters in the stage (W / TP in the paper), minus the part that it
/// already has. The owner sends a slice to all devices that need it (W / N M). Gradients are first
/// reduce-scattered across the D replicas. Then a device has TP_max / TP pieces of size 1 / (D
/// TP_max), and sends these to the slice owners. For any strategy, a device receives at most W
/// (Hydraulis App. B.1).
pub fn exchange(pipelines: &[SchemeCost], model_bytes: f64, devices: u32) -> Exchanged {
    let seats = seats(pipelines);
    let n = u64::from(devices).max(seats.len() as u64).max(1);
    let tp_max = pipelines.iter().map(|scheme| u64::from(scheme.tp)).max().unwrap_or(1);
    // If TP degrees do not divide each other, use their common slices.
    let tp_common = pipelines.iter().fold(1, |common, scheme| lcm(common, u64::from(scheme.tp)));
    let replicas: u64 = pipelines.iter().map(|scheme| u64::from(scheme.cp)).sum::<u64>().max(1);
    let mut volumes = vec![Volumes::default(); n as usize];
    let owned = |device: u64| Span::part(device, n);
    pull_sends(&seats, model_bytes, &mut volumes);
    for seat in &seats {
        let stage = model_bytes / f64::from(seat.scheme.pp);
        let needed = Span::part(u64::from(seat.tp_rank), u64::from(seat.scheme.tp));
        let local = needed.overlap(owned(seat.device));
        volumes[seat.device as usize].pull_receive += stage * (needed.length() - local);
        volumes[seat.device as usize].reduce_scatter += reduce_scatter(stage, needed, replicas);
        // After the reduce-scatter, a replica has a piece of each common slice, selected by the
        // replica index.
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

/// Returns the bytes that the busiest device of a pipeline sends in the reduce-scatter across `replicas`
/// replicas of its parameters. It is the value of [`exchange`] without the other devices.
pub fn largest_reduce_scatter(scheme: &SchemeCost, model_bytes: f64, replicas: u32) -> f64 {
    let stage = model_bytes / f64::from(scheme.pp);
    let parts = (0..scheme.tp).map(|tp_rank| Span::part(u64::from(tp_rank), u64::from(scheme.tp)));
    parts.map(|part| reduce_scatter(stage, part, u64::from(replicas))).fold(0.0, f64::max)
}

/// Returns the bytes that a device sends in the reduce-scatter of its part of a stage of `stage` bytes.
fn reduce_scatter(stage: f64, part: Span, replicas: u64) -> f64 {
    let d = replicas as f64;
    stage * part.length() * (d - 1.0) / d
}

/// Adds the bytes that slice owners send to the devices that need them. Devices that need the same
/// slice range with the same number of stages are grouped, because pairwise enumeration is
/// quadratic in the number of devices.
fn pull_sends(seats: &[DevicePosition<'_>], model_bytes: f64, volumes: &mut [Volumes]) {
    let n = volumes.len() as u64;
    // Devices are in ascending order, like the seats.
    let mut alike: BTreeMap<(u32, u32, u32), Vec<u64>> = BTreeMap::new();
    for seat in seats {
        alike.entry((seat.scheme.tp, seat.tp_rank, seat.scheme.pp)).or_default().push(seat.device);
    }
    for ((tp, tp_rank, pp), devices) in alike {
        let needed = Span::part(u64::from(tp_rank), u64::from(tp));
        let (first, last) = ((needed.start * n as f64) as u64, (needed.end * n as f64).ceil() as u64);
        for owner in first..last.min(n) {
            // A device does not send to itself.
            let others = devices.len() - usize::from(devices.binary_search(&owner).is_ok());
            let bytes = model_bytes / f64::from(pp) * needed.overlap(Span::part(owner, n));
            volumes[owner as usize].pull_send += others as f64 * bytes;
        }
    }
}

/// Returns the bytes received per device for a direct switch between strategies, without the
/// optimizer layout (as in HotSPa). `devices` is the number of devices.
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
        let previous = had.get(seat.device as usize).copied().flatten();
        let retained = previous.map_or(0.0, |had| depth.overlap(had.0) * width.overlap(had.1));
        if let Some(received) = received.get_mut(seat.device as usize) {
            *received += model_bytes * (depth.length() * width.length() - retained);
        }
    }
    received
}

/// Returns the exposed seconds for a transfer of `bytes`, overlapped with computation on
/// microbatches of `tokens` tokens.
///
/// A matrix product on t tokens hides the transfer of its parameters if `t >= TP CP F / B`
/// (Hydraulis App. B.2). With fewer tokens it hides the fraction `t / (TP CP F / B)`.
pub fn exposed_seconds(bytes: f64, scheme: &SchemeCost, tokens: f64, rate: LinkRate) -> f64 {
    let enough = f64::from(scheme.tp) * f64::from(scheme.cp) * rate.flops / rate.bytes;
    bytes / rate.bytes * (1.0 - tokens / enough).max(0.0)
}

/// Position of a device in a pipeline.
struct DevicePosition<'a> {
    device: u64,
    scheme: &'a SchemeCost,
    stage: u32,
    tp_rank: u32,
    /// Index among all replicas of its parameters.
    replica: u64,
}

impl DevicePosition<'_> {
    /// Returns the interval of the model depth and the interval of each parameter on this device.
    fn area(&self) -> (Span, Span) {
        let depth = Span::part(u64::from(self.stage), u64::from(self.scheme.pp));
        (depth, Span::part(u64::from(self.tp_rank), u64::from(self.scheme.tp)))
    }
}

/// Returns the devices in pipeline order.
fn seats(pipelines: &[SchemeCost]) -> Vec<DevicePosition<'_>> {
    let mut seats = Vec::new();
    let mut replicas = 0;
    for scheme in pipelines {
        for stage in 0..scheme.pp {
            for cp_rank in 0..scheme.cp {
                for tp_rank in 0..scheme.tp {
                    let device = seats.len() as u64;
                    seats.push(DevicePosition {
                        device,
                        scheme,
                        stage,
                        tp_rank,
                        replica: replicas + u64::from(cp_rank),
                    });
                }
            }
        }
        replicas += u64::from(scheme.cp);
    }
    seats
}

/// A part of the unit interval.
#[derive(Debug, Clone, Copy)]
struct Span {
    start: f64,
    end: f64,
}

impl Span {
    fn part(index: u64, parts: u64) -> Self {
        Self { start: index as f64 / parts as f64, end: (index + 1) as f64 / parts as f64 }
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
