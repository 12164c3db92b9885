//! The start page: a dozen example scenarios grouped by question.
//!
//! `write_headlines` below computes the results, which are embedded as `headlines.json`. A result
//! is shown only for the exact scenario it was computed for.

use std::collections::BTreeMap;

use api::front_page::{FrontPage, Headline, NamedOption, Tile, Topic};
use api::gallery::GalleryEntry;
use planner::scenario::validate::NoDatasets;
use planner::scenario::{FieldError, ValidScenario};
use serde::{Deserialize, Serialize};

/// Results by slug.
const HEADLINES: &str = include_str!("headlines.json");

/// Title, sentence and slugs per question.
const TOPICS: [(&str, &str, [&str; 3]); 4] = [
    (
        "Choose a pipeline schedule",
        "1F1B, interleaved or dynamic: step time and memory for your stages.",
        ["gpt-3-175b-uniform", "llama-2-7b-long-documents", "pipeweaver-t2v-s"],
    ),
    (
        "Balance sequence lengths",
        "Sequences differ in length: assign, pack and split them so that no rank waits.",
        ["source-files-strategies", "hydraulis-13b-32-common-crawl", "hydraulis-7b-16-github"],
    ),
    (
        "Long sequences",
        "Context parallelism of one degree for all sequences, or of the degree that each sequence needs.",
        ["source-files-groups", "dhp-qwen3-vl-8b-open-vid", "dhp-internvl3-8b-msr-vtt"],
    ),
    (
        "Images, video and sound",
        "Encoder and backbone need different time for every batch: where to place them, and in which order to run them.",
        ["vlm-s-image-heavy", "dflop-mixed-qwen2-5-7b", "heterogeneous-omni-7b-32k"],
    ),
];

/// A headline and the corresponding scenario.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Shipped {
    /// Identifier of the scenario.
    scenario: String,
    headline: Headline,
}

/// Builds the start page.
///
/// # Errors
/// Returns the invalid fields of an example scenario.
pub(crate) fn front_page() -> Result<FrontPage, Vec<FieldError>> {
    let entries = super::entries()?;
    // A test checks this file. If parsing fails, no results are shown.
    let shipped: BTreeMap<String, Shipped> = serde_json::from_str(HEADLINES).unwrap_or_default();
    let tile = |slug: &str| {
        let entry = entries.iter().find(|entry| entry.slug == slug)?;
        Some(build_tile(entry.clone(), shipped.get(slug)))
    };
    let topics = TOPICS.into_iter().map(|(title, text, slugs)| {
        let tiles = slugs.into_iter().filter_map(tile).collect::<Result<Vec<_>, _>>()?;
        Ok::<_, Vec<FieldError>>(Topic { title: title.to_owned(), text: text.to_owned(), tiles })
    });
    let models = planner::model::presets::models().into_iter();
    let models = models.map(|preset| NamedOption { id: preset.id.to_owned(), name: preset.model.name });
    let clusters = planner::cluster::presets::clusters().into_iter();
    let clusters = clusters.map(|preset| NamedOption { id: preset.id.to_owned(), name: preset.cluster.name });
    Ok(FrontPage {
        topics: topics.collect::<Result<_, Vec<FieldError>>>()?,
        models: models.collect(),
        clusters: clusters.collect(),
        ready_scenarios: entries.len() as u32,
    })
}

fn build_tile(entry: GalleryEntry, shipped: Option<&Shipped>) -> Result<Tile, Vec<FieldError>> {
    let free_layout = has_free_layout(&entry);
    let GalleryEntry { slug, title, summary, scenario, is_synthetic, .. } = opened(entry);
    let cluster = &scenario.cluster;
    let devices = format!("{} × {}", cluster.devices(), cluster.name);
    let id = ValidScenario::new(scenario, &NoDatasets)?.id().to_string();
    let headline = shipped.filter(|shipped| shipped.scenario == id).map(|shipped| shipped.headline.clone());
    Ok(Tile { slug, title, summary, devices, is_synthetic, free_layout, headline })
}

/// True if the entry opens with a free layout. Setups from papers use the paper's layout.
const fn has_free_layout(entry: &GalleryEntry) -> bool {
    entry.paper.is_none()
}

/// Returns the entry as opened from the tile.
fn opened(mut entry: GalleryEntry) -> GalleryEntry {
    if has_free_layout(&entry) {
        entry.scenario.free_layout();
    }
    entry
}

#[cfg(test)]
mod tests {
    use api::front_page::HeadlinePlan;
    use planner::certainty;
    use planner::engine::{Unobserved, plan};
    use planner::outcome::{ENGINE, PlanOutcome, Planned, PlannerResult};
    use planner::scenario::PlannerKind;
    use planner::timeline::Timeline;
    use planner::timeline::levels::Level;

    use super::*;

    /// Number of intervals in a strip, for the longer of two plans.
    const STRETCHES: u64 = 96;
    const MAX_RANKS: usize = 4;
    /// Environment variable for updating `headlines.json`.
    const WRITE: &str = "PLANSCOPE_WRITE_HEADLINES";

    fn slugs() -> impl Iterator<Item = &'static str> {
        TOPICS.into_iter().flat_map(|topic| topic.2)
    }

    fn strip(timeline: &Timeline, max_ns: u64) -> Vec<String> {
        let stretches = (STRETCHES * timeline.makespan_ns).div_ceil(max_ns.max(1)).max(1);
        let level = Level::new(timeline, &timeline.kind, stretches as u32);
        let sign = |cell: usize| if level.busy[cell] >= 96 { char::from(b'0' + level.ink[cell]) } else { '.' };
        let lane = |rank: usize| level.lane(2 * rank).map(sign).collect::<String>();
        let end = |rank: usize| lane(rank).trim_end_matches('.').len();
        drawn_ranks(timeline.ranks as usize, end).into_iter().map(lane).collect()
    }

    /// Returns ranks in equal distances, with the rank that ends last.
    fn drawn_ranks(ranks: usize, end: impl Fn(usize) -> usize) -> Vec<usize> {
        let count = ranks.min(MAX_RANKS);
        let mut drawn: Vec<usize> =
            (0..count).map(|index| index * (ranks - 1) / count.saturating_sub(1).max(1)).collect();
        let last = (0..ranks).max_by_key(|&rank| (end(rank), std::cmp::Reverse(rank)));
        if let Some(last) = last
            && drawn.iter().all(|&rank| end(rank) < end(last))
            && let Some(nearest) = drawn.iter_mut().min_by_key(|rank| rank.abs_diff(last))
        {
            *nearest = last;
        }
        drawn
    }

    /// The bars of a tile are as long as its plans.
    #[test]
    fn a_tile_shows_the_rank_that_ends_last() {
        assert_eq!(drawn_ranks(4, |_| 9), [0, 1, 2, 3]);
        assert_eq!(drawn_ranks(32, |_| 9), [0, 10, 20, 31]);
        assert_eq!(drawn_ranks(32, |rank| if rank == 12 { 9 } else { 3 }), [0, 12, 20, 31]);
        assert_eq!(drawn_ranks(1, |_| 9), [0]);
    }

    fn computed(entry: GalleryEntry) -> Shipped {
        let scenario = ValidScenario::new(opened(entry).scenario, &NoDatasets).unwrap();
        let planning = plan(&scenario, &mut Unobserved).unwrap();
        let planned: Vec<(&PlannerResult, &Planned)> = planning
            .outcome
            .results
            .iter()
            .filter_map(|result| match &result.answer {
                PlanOutcome::Planned(planned) => Some((result, &**planned)),
                PlanOutcome::Infeasible { .. } => None,
            })
            .collect();
        let timeline = |planner: PlannerKind| {
            let first =
                planning.timelines.iter().find(|timeline| timeline.planner == planner && timeline.iteration == 0);
            &first.unwrap().timeline
        };
        let best = planned[0];
        let one_f_one_b = planned.iter().find(|(result, _)| result.planner == PlannerKind::OneFOneB);
        let baseline = *one_f_one_b.unwrap_or(&planned[planned.len() - 1]);
        let baseline = Some(baseline).filter(|baseline| baseline.0.planner != best.0.planner);
        let drawn = [Some(best), baseline].into_iter().flatten();
        let max_ns = drawn.map(|(result, _)| timeline(result.planner).makespan_ns).max().unwrap();
        let headline = |(result, planned): (&PlannerResult, &Planned)| HeadlinePlan {
            planner: result.planner.short_title().to_owned(),
            iteration_s: planned.metrics.iteration_s,
            mfu: planned.metrics.mfu,
            strip: strip(timeline(result.planner), max_ns),
        };
        let memory = certainty::peak_memory(scenario.scenario(), best.1);
        let is_at_risk = memory.probability_out_of_memory > certainty::RISK;
        let (best, baseline) = (headline(best), baseline.map(headline));
        let gain = baseline.as_ref().map(|baseline| baseline.iteration_s / best.iteration_s);
        let engine = ENGINE.to_owned();
        Shipped { scenario: scenario.id().to_string(), headline: Headline { engine, best, baseline, gain, is_at_risk } }
    }

    fn entry(slug: &str) -> GalleryEntry {
        crate::gallery::entries().unwrap().into_iter().find(|entry| entry.slug == slug).unwrap()
    }

    #[test]
    fn tiles_match_their_scenario_and_engine() {
        let page = front_page().unwrap();
        let tiles: Vec<&Tile> = page.topics.iter().flat_map(|topic| &topic.tiles).collect();
        assert_eq!(tiles.len(), 12);
        for tile in tiles {
            let headline = tile.headline.as_ref().unwrap_or_else(|| {
                panic!(
                    "{}: write headlines.json: {WRITE}=1 cargo test -p planscope-server --lib shipped_figures",
                    tile.slug
                )
            });
            assert_eq!(headline.engine, ENGINE, "{}", tile.slug);
        }
        assert!(page.ready_scenarios > 100);
    }

    /// Replans the scenarios without slow planners. If [`WRITE`] is set, runs all planners and
    /// writes `headlines.json`.
    #[test]
    fn shipped_values_match_the_planners() {
        const SLOW: [&str; 2] = ["pipeweaver-t2v-s", "vlm-s-image-heavy"];
        let writes = std::env::var_os(WRITE).is_some();
        let planned: BTreeMap<&str, Shipped> =
            slugs().filter(|slug| writes || !SLOW.contains(slug)).map(|slug| (slug, computed(entry(slug)))).collect();
        let file = concat!(env!("CARGO_MANIFEST_DIR"), "/src/gallery/headlines.json");
        if writes {
            std::fs::write(file, serde_json::to_string_pretty(&planned).unwrap() + "\n").unwrap();
        }
        let shipped: BTreeMap<String, Shipped> = serde_json::from_slice(&std::fs::read(file).unwrap()).unwrap();
        for (slug, planned) in planned {
            assert_eq!(shipped[slug], planned, "{slug}: {WRITE}=1 writes the figures anew");
        }
    }

    #[test]
    fn values_for_another_scenario_are_hidden() {
        let slug = "gpt-3-175b-uniform";
        let shipped: BTreeMap<String, Shipped> = serde_json::from_str(HEADLINES).unwrap();
        let mut changed = entry(slug);
        changed.scenario.seed += 1;
        assert_eq!(build_tile(changed, shipped.get(slug)).unwrap().headline, None);
    }
}
