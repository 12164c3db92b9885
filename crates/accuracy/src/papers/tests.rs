use std::path::{Path, PathBuf};

use api::papers::{DifferenceUnit, Papers};
use planner::scenario::validate::NoDatasets;
use planner::scenario::{PlannerKind, Scenario, ValidScenario, parse};
use planner::training::LayoutRequest;

use super::published::PlanReference;
use super::quantity::Quantity;
use super::*;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().and_then(Path::parent).unwrap().to_owned()
}

fn papers() -> Vec<PublishedPaper> {
    let folder = std::fs::read_dir(root().join("examples/published")).unwrap();
    let mut paths: Vec<PathBuf> = folder.map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    paths.iter().map(|path| PublishedPaper::read(path).unwrap()).collect()
}

/// Detects a figure with an unrequested planner early. Otherwise the error appears only after all
/// scenarios are planned.
#[test]
fn figure_inputs_exist_in_their_scenarios() {
    for paper in papers() {
        for (set, plan) in paper.sets.iter().flat_map(|set| {
            set.figures.iter().flat_map(|figure| figure.quantity.plans()).map(move |plan| (&set.id, plan))
        }) {
            let path = root().join(format!("examples/{}.json", plan.scenario));
            let text = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
            let valid = ValidScenario::new(parse(&text).unwrap(), &NoDatasets).unwrap();
            assert!(valid.scenario().planners.contains(&plan.planner), "{set}: {plan:?}");
        }
    }
}

/// A gain is meaningful only for the same batches on the same devices, and for a planner that
/// chooses degrees only if the scenario leaves them free.
#[test]
fn gains_compare_the_same_batches() {
    let read = |plan: &PlanReference| {
        let text = std::fs::read_to_string(root().join(format!("examples/{}.json", plan.scenario))).unwrap();
        ValidScenario::new(parse(&text).unwrap(), &NoDatasets).unwrap().scenario().clone()
    };
    for paper in papers() {
        for figure in paper.sets.iter().flat_map(|set| &set.figures) {
            let Quantity::Gain { plan, over, .. } = &figure.quantity else { continue };
            let (current, other) = (read(plan), read(over));
            let batches = |scenario: &Scenario| {
                (
                    scenario.model.clone(),
                    scenario.cluster.clone(),
                    scenario.workload.clone(),
                    scenario.seed,
                    scenario.iterations,
                )
            };
            assert_eq!(batches(&current), batches(&other), "{}", figure.label);
            let is_free = current.layout == LayoutRequest::default();
            assert!(
                is_free || !matches!(plan.planner, PlannerKind::Dflop | PlannerKind::DflopLayout),
                "{}",
                figure.label
            );
        }
    }
}

/// docs/papers.json and docs/papers.md contain the published figures in file order. After a change,
/// the plans must be generated again.
#[test]
fn committed_results_match_the_published_values() {
    let committed = std::fs::read_to_string(root().join("docs/papers.json")).unwrap();
    let committed: Papers = serde_json::from_str(&committed).unwrap();
    let page = std::fs::read_to_string(root().join("docs/papers.md")).unwrap();
    for (paper, ours) in papers().iter().zip(&committed.papers) {
        assert_eq!(paper.id, ours.id);
        assert_eq!(fill(&page, ours).unwrap(), page, "the tables are those of papers.json");
        assert_eq!(paper.sets.len(), ours.sets.len());
        for (set, ours) in paper.sets.iter().zip(&ours.sets) {
            let published = set.figures.iter().map(|figure| (figure.label.clone(), figure.published.map(Into::into)));
            let our_values = ours.figures.iter().map(|figure| (figure.label.clone(), figure.published));
            assert_eq!(published.collect::<Vec<_>>(), our_values.collect::<Vec<_>>(), "{}", set.id);
        }
    }
    assert_eq!(papers().len(), committed.papers.len());
}

/// Plans the smallest setup. The gains of two plans relative to each other are reciprocal.
#[test]
fn a_small_paper_is_compared() {
    let plan_json = |planner: &str| serde_json::json!({"scenario": "pipeweaver/vlm-7b-static", "planner": planner});
    let gain =
        |plan: &str, over: &str| serde_json::json!({"of": "gain", "plan": plan_json(plan), "over": plan_json(over)});
    let paper: PublishedPaper = serde_json::from_value(serde_json::json!({
        "id": "p", "title": "P", "source": "S", "sets": [{
            "id": "s", "place": "Table 1", "title": "T",
            "figures": [
                {"label": "a", "unit": "%", "published": [0, 1], "quantity": gain("pipeweaver", "1f1b")},
                {"label": "b", "unit": "%", "quantity": gain("1f1b", "pipeweaver")},
                {"label": "c", "unit": "s", "published": 1.0, "quantity": {"of": "time", "plan": plan_json("1f1b")}},
                {"label": "d", "unit": "%", "quantity": {
                    "of": "gain_over_best", "plan": plan_json("pipeweaver"), "among": ["1f1b", "gpipe"],
                }},
                {"label": "e", "quantity": {"of": "time_ratio", "plan": plan_json("1f1b"), "over": plan_json("pipeweaver")}},
                {"label": "f", "unit": "ms", "quantity": {"of": "planning_time", "plan": plan_json("pipeweaver")}},
            ],
            "choices": [{"label": "g", "published": "TP 2", "plan": plan_json("1f1b")}],
        }],
    }))
    .unwrap();
    let seeds = Seeds { count: 3, threads: 2 };
    let compared = compare(&root().join("examples"), &paper, seeds, &|_| ()).unwrap();
    let set = &compared.sets[0];
    let value = |figure: usize| set.figures[figure].ours.unwrap();
    // (1 + a)(1 + b) = 1, within the four stored digits.
    assert!(((1.0 + value(0) / 100.0) * (1.0 + value(1) / 100.0) - 1.0).abs() < 1e-4, "{set:?}");
    assert_eq!(set.plans.len(), 2, "each plan once");
    // GPipe is not in the scenario. It is planned, and slower than 1F1B or as fast.
    assert_eq!(set.figures[3].opponent, Some(PlannerKind::OneFOneB));
    assert!((value(3) - value(0)).abs() < 1e-9 && (value(4) - 1.0 - value(0) / 100.0).abs() < 1e-3, "{set:?}");
    let spread = set.figures[0].spread.unwrap();
    assert_eq!((spread.seeds, spread.without_value), (3, 0));
    assert!(spread.min <= value(0) && value(0) <= spread.max && (spread.min..=spread.max).contains(&spread.own));
    assert!(set.figures[5].is_wall_time && set.figures[5].spread.is_none() && value(5) > 0.0);
    assert_eq!(set.choices[0].ours, "TP 2, PP 4, DP 1, VPP 1");
    let time = set.plans.iter().find(|plan| plan.planner.id() == "1f1b").unwrap();
    assert_eq!(time.iteration_s.to_bits(), value(2).to_bits());
    let parts = time.time;
    let sum = parts.compute_s + parts.recompute_s + parts.exposed_s + parts.sync_s + parts.optimizer_s + parts.bubble_s;
    assert!((sum / time.iteration_s - 1.0).abs() < 1e-3, "{sum} of {}", time.iteration_s);
    let difference = set.figures[2].difference.unwrap();
    assert!(
        difference.of == DifferenceUnit::PerCent && (difference.value / (100.0 * (value(2) - 1.0)) - 1.0).abs() < 1e-3
    );
    let page = fill("before\n<!-- figures: p/s -->\nold\n<!-- end -->\nbehind\n", &compared).unwrap();
    assert!(
        page.starts_with("before\n") && page.ends_with("<!-- end -->\nbehind\n") && !page.contains("old"),
        "{page}"
    );
    assert!(page.contains("| f | not given |") && page.contains(" | one seed |  |  |"), "{page}");
    assert!(page.contains("| g | TP 2 | TP 2, PP 4, DP 1, VPP 1 |"), "{page}");
    assert!(page.contains("| c | 1.000 s |") && fill("no markers", &compared).is_err());
}

#[test]
fn rounds_to_four_digits() {
    for (value, expected) in [(12.3456, 12.35), (0.000_123_456, 0.000_123_5), (-98_765.0, -98_770.0), (0.0, 0.0)] {
        assert!((four_digits(value) - expected).abs() < 1e-12 * value.abs().max(1.0), "{value}");
    }
}
