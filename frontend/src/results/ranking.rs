//! Rows of the ranking table, built from an outcome.

use api::job::StoredOutcome;
use api::planner::certainty::{self, Interval};
use api::planner::outcome::{
    Layout, Metrics, NearestMiss, PlanOutcome, Planned, PlannerResult, StageSummary, overrides,
};
use api::planner::scenario::{PlannerKind, Scenario};

use crate::format;

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Row {
    pub(crate) planner: PlannerKind,
    pub(crate) title: String,
    /// Figures, or the constraint that no layout satisfies.
    pub(crate) metrics: Result<RowMetrics, String>,
}

/// Figures for a feasible row.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct RowMetrics {
    /// Parallel degrees as text.
    pub(crate) layout: String,
    pub(crate) layers: Layers,
    /// Planner of the plan, if it is the plan of another planner.
    pub(crate) source: Option<String>,
    /// Settings that the planner chose, if the scenario leaves settings free.
    pub(crate) settings: Option<String>,
    /// The fastest plan and the probability that it is faster, if the order is uncertain.
    pub(crate) unclear: Option<String>,
    /// Values that differ from those that the scenario fixes.
    pub(crate) overrides: Option<String>,
    /// Metrics in the order of [`COLUMNS`].
    pub(crate) cells: Vec<Cell>,
}

/// Layer counts per stage.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Layers {
    /// Compact form for a cell: "8 × 4", "20·21·20·19", "0–8 (32 stages)".
    pub(crate) short: String,
    /// One line per stage.
    pub(crate) full: String,
}

impl Layers {
    /// Builds the text from the stages of a plan. The short form separates modules: "24·8·0·0 |
    /// 0·10·16·14".
    pub(crate) fn from_stages(stages: &[StageSummary]) -> Self {
        let mut modules: Vec<&str> = Vec::new();
        let mut counts: Vec<Vec<u32>> = Vec::new();
        for (index, stage) in stages.iter().enumerate() {
            for (module, layers) in stage.layers.split(", ").filter_map(module_layers) {
                let at = modules.iter().position(|known| *known == module).unwrap_or_else(|| {
                    modules.push(module);
                    counts.push(vec![0; stages.len()]);
                    modules.len() - 1
                });
                counts[at][index] += layers;
            }
        }
        let short = counts.iter().map(|counts| short_counts(counts)).collect::<Vec<_>>().join(" | ");
        let line = |stage: &StageSummary| format!("stage {} (rank {}): {}", stage.stage, stage.rank, stage.layers);
        let mut full = stages.iter().map(line).collect::<Vec<_>>().join("\n");
        if modules.len() > 1 {
            full = format!("{}\n{full}", modules.join(" | "));
        }
        Self { short: if short.is_empty() { "–".to_owned() } else { short }, full }
    }
}

/// Parses module name and layer count from "ViT 5B 0-15".
fn module_layers(text: &str) -> Option<(&str, u32)> {
    let (module, range) = text.rsplit_once(' ')?;
    let (first, last) = range.split_once('-')?;
    let (first, last) = (first.parse::<u32>().ok()?, last.parse::<u32>().ok()?);
    Some((module, (last + 1).saturating_sub(first)))
}

/// Maximum stage count for an explicit list.
const LISTED_STAGES: usize = 8;

fn short_counts(counts: &[u32]) -> String {
    let (Some(lower), Some(upper)) = (counts.iter().min(), counts.iter().max()) else { return String::new() };
    match counts {
        [single] => single.to_string(),
        _ if lower == upper => format!("{upper} × {}", counts.len()),
        _ if counts.len() <= LISTED_STAGES => counts.iter().map(u32::to_string).collect::<Vec<_>>().join("·"),
        _ => format!("{lower}–{upper} ({} stages)", counts.len()),
    }
}

/// A metric as number and text.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Cell {
    /// Metric name in the API.
    pub(crate) metric: &'static str,
    pub(crate) value: Option<f64>,
    pub(crate) text: String,
    /// Interval or risk, below the text.
    pub(crate) uncertainty: Option<String>,
    /// True if the plan is at risk of running out of memory, by the limit of the check page.
    pub(crate) is_at_risk: bool,
}

/// Columns: metric, heading, explanation.
pub(crate) const COLUMNS: [(&str, &str, &str); 10] = [
    ("iteration_s", "Step time", "Mean time of a step (iteration), over all iterations"),
    ("peak_memory_gib", "Peak memory", "Largest memory of any rank in any iteration, the memory reserve not counted"),
    ("speedup", "Speed-up", "Against the chosen baseline"),
    ("mfu", "MFU", "Model FLOP utilisation: model operations over the data-sheet peak"),
    ("tokens_per_s_per_device", "Tokens/s/GPU", "Backbone tokens per second and device, padding not counted"),
    ("tflops_per_device", "TFLOP/s", "Model operations per second and device"),
    ("bubble", "Bubble", "Idle share of all ranks and replicas, over all iterations"),
    (
        "exposed_communication",
        "Exposed comm.",
        "Share of ranks × time in which computation waits for communication, over all iterations: in actions and for gradient synchronisation",
    ),
    (
        "gap",
        "Gap to bound",
        "Distance from the plan's lower bound with this layout and these microbatches, the largest of all replicas, over all iterations",
    ),
    ("planning_ms", "Planning", "Wall time of the planner, measured on the server that computed it"),
];

/// Suffix for a preliminary plan without search. It is sent while the user waits.
const SKETCH: &str = " · sketch; the search follows";

/// Returns the baseline: the chosen planner if it has a plan, otherwise 1F1B, otherwise the
/// slowest.
pub(crate) fn baseline_planner(results: &[PlannerResult], selected: Option<PlannerKind>) -> Option<PlannerKind> {
    let planned: Vec<_> =
        results.iter().filter_map(|result| Some((result.planner, metrics(result)?.iteration_s))).collect();
    let has = |kind: PlannerKind| planned.iter().any(|(planner, _)| *planner == kind);
    selected
        .filter(|&kind| has(kind))
        .or(Some(PlannerKind::OneFOneB).filter(|&kind| has(kind)))
        .or_else(|| planned.iter().max_by(|a, b| a.1.total_cmp(&b.1)).map(|(planner, _)| *planner))
}

/// Returns the planner for the explanation: the chosen planner if it ran, otherwise the fastest,
/// otherwise the closest infeasible.
pub(crate) fn selected_planner(results: &[PlannerResult], selected: Option<PlannerKind>) -> Option<PlannerKind> {
    let ran = |kind: &PlannerKind| results.iter().any(|result| result.planner == *kind);
    let fastest = || results.iter().find(|result| metrics(result).is_some()).map(|result| result.planner);
    let closest = || nearest_miss(results).map(|(planner, _)| planner);
    selected.filter(ran).or_else(fastest).or_else(closest).or_else(|| results.first().map(|result| result.planner))
}

/// Returns the infeasible planner with the lowest memory requirement, and its layout. For equal
/// requirements, the first.
pub(super) fn nearest_miss(results: &[PlannerResult]) -> Option<(PlannerKind, &NearestMiss)> {
    let misses = results.iter().filter_map(|result| match &result.answer {
        PlanOutcome::Infeasible { search, .. } => Some((result.planner, search.nearest.as_deref()?)),
        PlanOutcome::Planned(_) => None,
    });
    misses.min_by(|a, b| a.1.needs_gib.total_cmp(&b.1.needs_gib))
}

fn metrics(result: &PlannerResult) -> Option<&Metrics> {
    match &result.answer {
        PlanOutcome::Planned(planned) => Some(&planned.metrics),
        PlanOutcome::Infeasible { .. } => None,
    }
}

/// Planner name short enough for a sentence.
pub(crate) const fn short_title(planner: PlannerKind) -> &'static str {
    planner.short_title()
}

/// Formats parallel degrees: "TP 4 · PP 4 · DP 2 · VPP 2 · mb 1".
pub(crate) fn degrees(layout: &Layout) -> String {
    let Layout { tensor, pipeline, data, chunks, microbatch, .. } = layout;
    let chunks = if *chunks > 1 { format!(" · VPP {chunks}") } else { String::new() };
    format!("TP {tensor} · PP {pipeline} · DP {data}{chunks} · mb {microbatch}")
}

/// Formats the parallel degrees of a plan. A plan with context-parallel groups has no fixed number of sequences per rank.
pub(crate) fn plan_degrees(planned: &Planned) -> String {
    let text = degrees(&planned.layout);
    let has_groups = planned.iterations.iter().any(|iteration| iteration.groups.is_some());
    match text.rsplit_once(" · mb ") {
        Some((without_microbatch, _)) if has_groups => without_microbatch.to_owned(),
        _ => text,
    }
}

/// Names the planner of the plan, if it is the plan of another planner.
pub(crate) fn source_text(planned: &Planned) -> Option<String> {
    planned.source.map(|planner| format!("Planner: {}", planner.title_with(planned.layout.pipeline)))
}

/// Names the values of the plan that differ from those that the scenario fixes.
fn overrides_text(scenario: &Scenario, planner: PlannerKind, planned: &Planned) -> Option<String> {
    let overrides = overrides(scenario, planner, planned);
    (!overrides.is_empty()).then(|| format!("Not as fixed: {}", overrides.join("; ")))
}

/// Formats the settings of the plan, if the scenario leaves settings free.
pub(crate) fn settings_text(planned: &Planned) -> Option<String> {
    planned.settings.as_ref().map(|settings| format::nonbreaking_units(&settings.to_string()))
}

/// Probability from which the order of two plans counts as certain.
const CERTAIN: f64 = 0.8;
/// Smallest risk of running out of memory that is shown.
const SHOWN_RISK: f64 = 0.01;

/// Names the fastest plan and the probability that it is faster than `planned`, if that is below
/// [`CERTAIN`]. Plans of equal time are the same plan.
fn unclear_text(fastest: Option<(&str, &Planned)>, planned: &Planned) -> Option<String> {
    let (title, fastest) = fastest?;
    let probability = certainty::probability_faster(fastest, planned);
    let differs = planned.metrics.iteration_s > fastest.metrics.iteration_s * (1.0 + 1e-9);
    (differs && probability < CERTAIN).then(|| {
        format!("No clear difference: {title} is faster with a probability of {}", format::percent(probability))
    })
}

/// Returns the probability that a plan runs out of memory.
fn out_of_memory(scenario: &Scenario, planned: &Planned) -> f64 {
    certainty::peak_memory(scenario, planned).probability_out_of_memory
}

/// Returns the uncertainty of a metric of a plan.
fn uncertainty(metric: &str, scenario: &Scenario, planned: &Planned) -> Option<String> {
    match metric {
        "iteration_s" => {
            let Interval { low, high } = certainty::step_time(scenario, planned);
            Some(format!("{} to {}", format::seconds(low), format::seconds(high)))
        }
        "peak_memory_gib" => {
            let risk = out_of_memory(scenario, planned);
            let text = format::probability(risk);
            let text = if risk > certainty::RISK { format!("! At risk: {text}") } else { format!("{text} risk") };
            (risk >= SHOWN_RISK).then_some(text)
        }
        _ => None,
    }
}

/// Returns the rows in the order of the results. `scenario` is the scenario of the results, for
/// intervals.
pub(crate) fn rows(stored: &StoredOutcome, baseline: Option<PlannerKind>, scenario: Option<&Scenario>) -> Vec<Row> {
    let results = &stored.outcome.results;
    let fastest = results.iter().find_map(|result| match &result.answer {
        PlanOutcome::Planned(planned) => Some((result.planner.short_title(), &**planned)),
        PlanOutcome::Infeasible { .. } => None,
    });
    let reference = results.iter().find(|result| Some(result.planner) == baseline).and_then(metrics);
    let row = |result: &PlannerResult| Row {
        planner: result.planner,
        title: result.title.clone(),
        metrics: match &result.answer {
            PlanOutcome::Planned(planned) => {
                let planning =
                    stored.planning_ms.iter().find(|time| time.planner == result.planner).map(|time| time.ms);
                let is_sketch = stored.is_sketch && result.planner.searches_rankings();
                let layout = plan_degrees(planned) + if is_sketch { SKETCH } else { "" };
                Ok(RowMetrics {
                    layout,
                    layers: Layers::from_stages(&planned.stages),
                    source: source_text(planned),
                    settings: settings_text(planned),
                    unclear: unclear_text(fastest, planned),
                    overrides: scenario.and_then(|scenario| overrides_text(scenario, result.planner, planned)),
                    cells: cells(planned, reference, planning, scenario),
                })
            }
            PlanOutcome::Infeasible { binding, .. } => {
                // The limit is less than the memory of the device minus the reserve.
                let risk = scenario.and_then(|scenario| scenario.max_memory_risk);
                let risk = risk.filter(|_| binding.contains("GiB available"));
                let limit = risk.map(|risk| format!(". Limit: {}", format::max_risk(risk)));
                Err(format::gib_in(binding) + &limit.unwrap_or_default())
            }
        },
    };
    results.iter().map(row).collect()
}

/// A metric and its formatter.
type FormattedMetric = (Option<f64>, fn(f64) -> String);

fn cells(
    planned: &Planned,
    reference: Option<&Metrics>,
    planning_ms: Option<f64>,
    scenario: Option<&Scenario>,
) -> Vec<Cell> {
    let metrics = &planned.metrics;
    let speedup = reference.map(|reference| reference.iteration_s / metrics.iteration_s);
    let value = |metric: &str| -> FormattedMetric {
        match metric {
            "iteration_s" => (Some(metrics.iteration_s), format::seconds),
            "peak_memory_gib" => (Some(metrics.peak_memory_gib), format::gib),
            "speedup" => (speedup, format::speedup),
            "mfu" => (Some(metrics.mfu), format::percent),
            "tokens_per_s_per_device" => (metrics.tokens_per_s_per_device, format::three_digits),
            "tflops_per_device" => (Some(metrics.tflops_per_device), format::three_digits),
            "bubble" => (Some(metrics.bubble), format::percent),
            "exposed_communication" => (Some(metrics.exposed_communication), format::percent),
            "gap" => (Some(metrics.gap), format::percent),
            "planning_ms" => (planning_ms, |ms| format::seconds(ms / 1e3)),
            _ => (None, format::three_digits),
        }
    };
    let text = |(value, show): FormattedMetric| value.map_or_else(|| "–".to_owned(), show);
    COLUMNS
        .iter()
        .map(|column| (column, value(column.0)))
        .map(|(column, formatted)| Cell {
            metric: column.0,
            value: formatted.0,
            text: text(formatted),
            uncertainty: scenario.and_then(|scenario| uncertainty(column.0, scenario, planned)),
            is_at_risk: column.0 == "peak_memory_gib"
                && scenario.is_some_and(|scenario| out_of_memory(scenario, planned) > certainty::RISK),
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use api::planner::outcome::{Outcome, Provenance, Search, SolverStatus, WorkloadSummary};

    use super::*;

    fn planned(planner: PlannerKind, iteration_s: f64) -> PlannerResult {
        let metrics = Metrics {
            iteration_s,
            tokens_per_s: 1.0,
            tokens_per_s_per_device: Some(0.25),
            tflops_per_device: 120.0,
            mfu: 0.382,
            bubble: 0.079,
            exposed_communication: 0.01,
            peak_memory_gib: 71.3,
            memory_limit_gib: 76.0,
            host_memory_gib: 0.0,
            lower_bound_s: iteration_s,
            gap: 0.0,
        };
        let provenance =
            Provenance { algorithm: String::new(), seed: 0, status: SolverStatus::Optimal, search: Search::default() };
        let layout = Layout { tensor: 4, pipeline: 4, data: 2, chunks: 2, microbatch: 1, group: None };
        let plan = Planned {
            layout,
            stages: vec![],
            ranks: vec![],
            metrics,
            iterations: vec![],
            provenance,
            decisions: vec![],
            placement: None,
            settings: None,
            source: None,
            gains: vec![],
            all_layouts_bound_s: None,
        };
        PlannerResult { planner, title: planner.title().to_owned(), answer: PlanOutcome::Planned(Box::new(plan)) }
    }

    fn infeasible(planner: PlannerKind) -> PlannerResult {
        let infeasible = PlanOutcome::Infeasible { binding: "rank 3 needs 91.2 GiB".into(), search: Search::default() };
        PlannerResult { planner, title: planner.title().to_owned(), answer: infeasible }
    }

    /// Every column has the value of its heading.
    #[test]
    fn cells_have_the_values_of_their_columns() {
        let PlanOutcome::Planned(plan) = planned(PlannerKind::OneFOneB, 2.0).answer else { panic!("a plan") };
        let reference = Metrics { iteration_s: 3.0, ..plan.metrics };
        let cells = cells(&plan, Some(&reference), Some(410.0), None);
        let texts: Vec<(&str, String)> =
            cells.iter().map(|cell| (cell.metric, cell.text.replace('\u{202f}', " "))).collect();
        let expected = [
            ("iteration_s", "2.00 s"),
            ("peak_memory_gib", "71.3 GiB"),
            ("speedup", "1.50×"),
            ("mfu", "38.2 %"),
            ("tokens_per_s_per_device", "0.250"),
            ("tflops_per_device", "120"),
            ("bubble", "7.90 %"),
            ("exposed_communication", "1.00 %"),
            ("gap", "0 %"),
            ("planning_ms", "410 ms"),
        ];
        assert_eq!(texts, expected.map(|(metric, text)| (metric, text.to_owned())));
    }

    #[test]
    fn baseline_is_selected_plan_then_1f1b_then_slowest() {
        use PlannerKind::{Gpipe, Interleaved, OneFOneB, WaitFreeCyclic};
        let results = [planned(WaitFreeCyclic, 1.0), planned(Interleaved, 2.0), planned(OneFOneB, 1.5)];
        assert_eq!(baseline_planner(&results, Some(Interleaved)), Some(Interleaved));
        assert_eq!(baseline_planner(&results, Some(Gpipe)), Some(OneFOneB));
        assert_eq!(baseline_planner(&results, None), Some(OneFOneB));
        assert_eq!(baseline_planner(&results[..2], None), Some(Interleaved));
        assert_eq!(baseline_planner(&[infeasible(OneFOneB)], Some(OneFOneB)), None);
        assert_eq!(selected_planner(&results, Some(Gpipe)), Some(WaitFreeCyclic));
        assert_eq!(selected_planner(&[], Some(Gpipe)), None);
    }

    fn missed(planner: PlannerKind, needs_gib: f64) -> PlannerResult {
        let layout = Layout { tensor: 8, pipeline: 2, data: 1, chunks: 1, microbatch: 1, group: None };
        let nearest = NearestMiss { layout, rank: 0, needs_gib, limit_gib: 76.0, ranks: Vec::new() };
        let search = Search { nearest: Some(Box::new(nearest)), ..Search::default() };
        let infeasible = PlanOutcome::Infeasible { binding: String::new(), search };
        PlannerResult { planner, title: planner.title().to_owned(), answer: infeasible }
    }

    /// Llama 70B on 16 A100: 1F1B needs 119.7 GiB, wait-free cyclic 113.3 GiB.
    #[test]
    fn without_plans_the_closest_layout_is_selected() {
        use PlannerKind::{Gpipe, Interleaved, OneFOneB, WaitFreeCyclic};
        let results =
            [infeasible(Gpipe), missed(OneFOneB, 119.7), missed(WaitFreeCyclic, 113.3), missed(Interleaved, 113.3)];
        let (nearest, miss) = nearest_miss(&results).expect("a miss");
        assert_eq!((nearest, miss.needs_gib.to_string().as_str()), (WaitFreeCyclic, "113.3"));
        assert_eq!(selected_planner(&results, None), Some(WaitFreeCyclic));
        assert_eq!(selected_planner(&results, Some(OneFOneB)), Some(OneFOneB), "a choice is kept");
        let planned = [planned(Interleaved, 2.0), missed(WaitFreeCyclic, 113.3)];
        assert_eq!(selected_planner(&planned, None), Some(Interleaved));
        assert_eq!(selected_planner(&[infeasible(Gpipe)], None), Some(Gpipe));
    }

    #[test]
    fn rows_contain_raw_values_and_text_or_the_binding_constraint() {
        use PlannerKind::{Gpipe, Interleaved, OneFOneB};
        let histogram = api::planner::outcome::HistogramColumns {
            edges: vec![0.0, 1.0],
            counts: vec![1],
            mean: 0.0,
            median: 0.0,
            p99: 0.0,
            max: 0.0,
        };
        let stored = StoredOutcome {
            outcome: Outcome {
                engine: String::new(),
                scenario: String::new(),
                batches: vec![],
                workload: WorkloadSummary {
                    sample_tokens: histogram,
                    sample_images: None,
                    sample_audio_clips: None,
                    sample_video_s: None,
                    notes: Vec::new(),
                },
                results: vec![planned(Interleaved, 16.2), planned(OneFOneB, 26.1), infeasible(Gpipe)],
            },
            planning_ms: vec![api::job::PlanningTime { planner: Interleaved, ms: 410.0, batches: vec![] }],
            created_at: String::new(),
            current_engine: String::new(),
            is_sketch: false,
        };
        let rows = rows(&stored, Some(OneFOneB), None);
        let metrics = rows[0].metrics.as_ref().expect("a plan");
        assert_eq!(metrics.layout, "TP 4 · PP 4 · DP 2 · VPP 2 · mb 1");
        assert_eq!(metrics.cells[2].value, Some(26.1 / 16.2));
        assert_eq!(metrics.cells[2].text, "1.61×");
        assert_eq!(metrics.cells[4].value, Some(0.25));
        assert_eq!(metrics.cells[9].text.replace('\u{202f}', " "), "410 ms");
        assert_eq!(rows[1].metrics.as_ref().expect("a plan").cells[9].value, None);
        assert_eq!(rows[2].metrics, Err("rank 3 needs 91.2\u{202f}GiB".to_owned()));
        let outcome =
            Outcome { results: vec![planned(PlannerKind::PipeWeaver, 1.0), planned(OneFOneB, 2.0)], ..stored.outcome };
        let sketch_rows = super::rows(&StoredOutcome { outcome, is_sketch: true, ..stored }, None, None);
        let is_sketch = |row: &Row| row.metrics.as_ref().is_ok_and(|row_metrics| row_metrics.layout.ends_with(SKETCH));
        assert_eq!(sketch_rows.iter().map(is_sketch).collect::<Vec<_>>(), [true, false]);
    }

    /// A difference of 1 % between two schedules of one layout is not clear, a factor of two is.
    #[test]
    fn close_plans_have_no_clear_difference() {
        use PlannerKind::{Interleaved, OneFOneB};
        let plan = |iteration_s| match planned(OneFOneB, iteration_s).answer {
            PlanOutcome::Planned(planned) => planned,
            PlanOutcome::Infeasible { .. } => unreachable!("a plan"),
        };
        let fastest = plan(1.0);
        let text = |iteration_s| unclear_text(Some((Interleaved.short_title(), &fastest)), &plan(iteration_s));
        assert_eq!(text(1.0), None, "the same plan");
        assert!(text(1.0001).is_some_and(|text| text.starts_with("No clear difference: ")), "{:?}", text(1.0001));
        assert_eq!(text(2.0), None);
    }

    #[test]
    fn table_abbreviates_stage_layers() {
        let stages = |layers: &[&str]| -> Vec<StageSummary> {
            let stage = |(stage, layers): (usize, &&str)| {
                let json = serde_json::json!({"stage": stage, "rank": stage, "layers": layers, "forward_ms": 0.0, "backward_ms": 0.0});
                serde_json::from_value(json).unwrap()
            };
            layers.iter().enumerate().map(stage).collect()
        };
        let short = |layers: &[&str]| Layers::from_stages(&stages(layers)).short;
        assert_eq!(short(&["LM 0-7", "LM 8-15"]), "8 × 2");
        assert_eq!(short(&["LM 0-19", "LM 20-40", "LM 41-59"]), "20·21·19");
        assert_eq!(short(&["ViT 5B 0-15", "ViT 5B 16-23, LM 0-3", "LM 4-11"]), "16·8·0 | 0·4·8");
        assert_eq!(short(&["LM 0-79"]), "80");
        assert_eq!(short(&[]), "–");
        let many: Vec<String> = (0..9).map(|stage| format!("LM {}-{}", 2 * stage, 2 * stage + stage % 2)).collect();
        assert_eq!(short(&many.iter().map(String::as_str).collect::<Vec<_>>()), "1–2 (9 stages)");
        let full = Layers::from_stages(&stages(&["ViT 5B 0-15", "LM 0-3"])).full;
        assert_eq!(full, "ViT 5B | LM\nstage 0 (rank 0): ViT 5B 0-15\nstage 1 (rank 1): LM 0-3");
    }
}
