//! Device time by sample and layer.

use std::collections::HashMap;

use api::planner::timeline::{SamplePart, SpanKind, StageLayers, Timeline};

use super::super::rank_devices::RankDevices;
use super::Counterpart;

/// Minimum matched fraction of an action's work. It is below 1 because sample parts are rounded to
/// 1e-6.
const COMPLETE: f64 = 0.999;

/// All actions with the same kind, stage and microbatch.
#[derive(Debug, Clone, Copy, Default)]
struct Cell {
    /// Action count. Above 1 if a rank group processes the work together.
    actions: u32,
    /// Total duration times devices per rank, in device-ns.
    device_ns: f64,
    /// Latest end in ns.
    end_ns: u64,
}

impl Cell {
    fn and(self, other: Self) -> Self {
        Self {
            actions: self.actions.max(other.actions),
            device_ns: self.device_ns + other.device_ns,
            end_ns: self.end_ns.max(other.end_ns),
        }
    }
}

/// Device time by sample and layer.
pub(super) struct Work<'a> {
    timeline: &'a Timeline,
    cells: HashMap<(u8, u32, u32), Cell>,
    /// Microbatch and part, by sample.
    samples: HashMap<u32, Vec<(u32, SamplePart)>>,
    /// Stage and layers, by module.
    stages: HashMap<u32, Vec<(u32, StageLayers)>>,
    /// Tokens per microbatch. Partial samples count proportionally.
    tokens: Vec<f64>,
}

impl<'a> Work<'a> {
    /// Returns `None` if the timeline lists no samples or layers.
    pub(super) fn from_timeline(timeline: &'a Timeline, devices: &RankDevices) -> Option<Self> {
        if timeline.contents.is_empty() || timeline.stage_layers.is_empty() {
            return None;
        }
        let mut cells: HashMap<(u8, u32, u32), Cell> = HashMap::with_capacity(timeline.len());
        for rank in 0..timeline.ranks as usize {
            let devices = devices.device_count(rank);
            for span in timeline.compute_lane(rank) {
                let cell =
                    cells.entry((timeline.kind[span], timeline.stage[span], timeline.microbatch[span])).or_default();
                cell.actions += 1;
                cell.device_ns += timeline.duration_ns[span] as f64 * devices;
                cell.end_ns = cell.end_ns.max(timeline.end_ns(span));
            }
        }
        let mut samples: HashMap<u32, Vec<(u32, SamplePart)>> = HashMap::new();
        for (microbatch, contents) in timeline.contents.iter().enumerate() {
            for part in &contents.samples {
                samples.entry(part.sample).or_default().push((microbatch as u32, *part));
            }
        }
        let mut stages: HashMap<u32, Vec<(u32, StageLayers)>> = HashMap::new();
        for (stage, layers) in timeline.stage_layers.iter().enumerate() {
            for layers in layers {
                stages.entry(layers.module).or_default().push((stage as u32, *layers));
            }
        }
        let tokens = timeline.contents.iter().map(|contents| contents.samples.iter().map(weight).sum()).collect();
        Some(Self { timeline, cells, samples, stages, tokens })
    }

    /// Total device time and latest end for a kind, stage and microbatch.
    ///
    /// Either timeline may split a backward into input and weight gradients. `share` is the
    /// backward fraction that the other timeline's action covers.
    fn cell(&self, kind: u8, stage: u32, microbatch: u32, share: f64) -> Option<(f64, u64)> {
        let gradient_cell = |kind: SpanKind| self.cells.get(&(kind as u8, stage, microbatch)).copied();
        if let Some(cell) = self.cells.get(&(kind, stage, microbatch)) {
            return Some((cell.device_ns, cell.end_ns));
        }
        match SpanKind::from_index(kind)? {
            SpanKind::Backward => {
                let (input, weight) = (gradient_cell(SpanKind::InputGrad), gradient_cell(SpanKind::WeightGrad));
                let cell = input.map_or(weight, |input| Some(weight.map_or(input, |weight| input.and(weight))))?;
                Some((cell.device_ns, cell.end_ns))
            }
            SpanKind::InputGrad | SpanKind::WeightGrad => {
                let cell = gradient_cell(SpanKind::Backward)?;
                Some((cell.device_ns * share, cell.end_ns))
            }
            _ => None,
        }
    }

    /// Backward fraction that an input or weight gradient covers, by device time; 1 for all other
    /// kinds.
    fn backward_share(&self, kind: u8, stage: u32, microbatch: u32) -> f64 {
        let device_ns =
            |kind: SpanKind| self.cells.get(&(kind as u8, stage, microbatch)).map_or(0.0, |cell| cell.device_ns);
        let (input, weight) = (device_ns(SpanKind::InputGrad), device_ns(SpanKind::WeightGrad));
        let part = match SpanKind::from_index(kind) {
            Some(SpanKind::InputGrad) => input,
            Some(SpanKind::WeightGrad) => weight,
            _ => return 1.0,
        };
        if input + weight > 0.0 { part / (input + weight) } else { 1.0 }
    }

    /// Looks up the work for an action from `own` in this timeline and returns the time per
    /// participating rank. Returns `None` if some work is missing. The duration is scaled to a rank
    /// with `devices` devices.
    pub(super) fn counterpart(&self, source: &Self, span: usize, devices: f64) -> Option<Counterpart> {
        let timeline = source.timeline;
        let (kind, stage, number) = (timeline.kind[span], timeline.stage[span], timeline.microbatch[span]);
        let contents = timeline.contents.get(number as usize)?;
        let layers = timeline.stage_layers.get(stage as usize)?;
        let share = source.backward_share(kind, stage, number);
        let is_same_module = |layers: &&StageLayers| contents.module.is_none_or(|module| module == layers.module);
        let (mut all, mut found) = (0.0, 0.0);
        let mut counterpart = Counterpart { duration_ns: 0.0, end_ns: 0.0 };
        for layers in layers.iter().filter(is_same_module) {
            for part in &contents.samples {
                all += weight(part) * f64::from(layers.end - layers.first);
                for (microbatch, there) in self.samples.get(&part.sample).into_iter().flatten() {
                    let shared = common((part.from_ppm, part.to_ppm), (there.from_ppm, there.to_ppm));
                    if shared > 0 {
                        let tokens = f64::from(part.tokens.max(1)) * f64::from(shared) / 1e6;
                        found += self.add(&mut counterpart, (kind, share), *microbatch, *layers, tokens);
                    }
                }
            }
        }
        let actions = source.cells.get(&(kind, stage, number)).map_or(1, |cell| cell.actions.max(1));
        counterpart.duration_ns /= f64::from(actions) * devices;
        (all > 0.0 && found >= COMPLETE * all).then_some(counterpart)
    }

    /// Adds the device time for `tokens` microbatch tokens in the given layers. Returns the matched
    /// work in tokens x layers.
    fn add(
        &self,
        sum: &mut Counterpart,
        (kind, share): (u8, f64),
        microbatch: u32,
        layers: StageLayers,
        tokens: f64,
    ) -> f64 {
        let module = self.timeline.contents[microbatch as usize].module;
        if module.is_some_and(|module| module != layers.module) {
            return 0.0;
        }
        let mut found = 0.0;
        for (stage, there) in self.stages.get(&layers.module).into_iter().flatten() {
            let shared = common((layers.first, layers.end), (there.first, there.end));
            if shared == 0 {
                continue;
            }
            let Some((device_ns, end_ns)) = self.cell(kind, *stage, microbatch, share) else { continue };
            let on_stage = self.timeline.stage_layers[*stage as usize].iter();
            let stage_layer_count: u32 =
                on_stage.filter(|on| module.is_none_or(|wanted| wanted == on.module)).map(|on| on.end - on.first).sum();
            let stage_work = self.tokens[microbatch as usize] * f64::from(stage_layer_count);
            let work = tokens * f64::from(shared);
            sum.duration_ns += device_ns * work / stage_work;
            sum.end_ns = sum.end_ns.max(end_ns as f64);
            found += work;
        }
        found
    }
}

/// Tokens in a partial sample.
fn weight(part: &SamplePart) -> f64 {
    f64::from(part.tokens.max(1)) * f64::from(part.to_ppm.saturating_sub(part.from_ppm)) / 1e6
}

/// Intersection length.
fn common(first: (u32, u32), other: (u32, u32)) -> u32 {
    first.1.min(other.1).saturating_sub(first.0.max(other.0))
}
