//! Papers page: a card per paper. Each card links to a page with details.

pub(crate) mod paper;
mod set;

use api::papers::{Paper, Papers};
use api::path;
use leptos::prelude::*;
use leptos::task::spawn_local;
use leptos_router::NavigateOptions;
use leptos_router::hooks::use_navigate;

use crate::client::{self, RequestError};
use crate::format;
use crate::notice::ErrorNotice;

/// Response with all papers. It is fetched on demand.
type ResponseSignal = RwSignal<Option<Result<Papers, RequestError>>>;

fn fetch(response: ResponseSignal) {
    response.set(None);
    spawn_local(async move { response.set(Some(client::get(path::PAPERS).await)) });
}

/// Placeholder for missing papers: the request is pending, it failed, or this build contains no
/// papers.
fn nothing(response: ResponseSignal) -> AnyView {
    match response.get() {
        None => view! { <div class="skeleton results-skeleton" aria-hidden="true"></div> }.into_any(),
        Some(Err(error)) => view! { <ErrorNotice error=error on_retry=move |()| fetch(response) /> }.into_any(),
        Some(Ok(_)) => view! {
            <div class="empty">
                <p>"This server has no published figures."</p>
                <p><code>"cargo xtask papers"</code>" computes them. Build the server again to show them here."</p>
            </div>
        }
        .into_any(),
    }
}

/// Introduction: source and limits of the comparison.
const LEAD: &str = "Published results compared with the results of this engine for the same scenarios. Most papers do not publish their data and batch sizes; synthetic data replace them and are labelled. Values are means over several seeds. No parameter is fitted to the published results.";

#[component]
pub(crate) fn PapersPage() -> impl IntoView {
    document().set_title("Papers · Planscope");
    let response = RwSignal::new(None);
    fetch(response);
    let navigate = use_navigate();
    // Redirect old links: earlier versions showed all papers on this page, with an anchor per set.
    Effect::new(move |_| {
        let Some(Ok(papers)) = response.get() else { return };
        let hash = window().location().hash().unwrap_or_default();
        let anchor = hash.trim_start_matches('#');
        let owner =
            papers.papers.iter().find(|paper| anchor.strip_prefix(&paper.id).is_some_and(|set| set.starts_with('-')));
        if let Some(paper) = owner {
            let options = NavigateOptions { replace: true, ..NavigateOptions::default() };
            navigate(&format!("{}#{anchor}", path::paper_page(&paper.id)), options);
        }
    });
    let body = move || match response.get() {
        Some(Ok(Papers { engine, papers })) if !papers.is_empty() => {
            let cards = papers.iter().map(card).collect_view();
            view! {
                <ul class="paper-cards">{cards}</ul>
                <p class="hint">{format!("Planned by {engine}. ")}<a href="/accuracy">"Accuracy of the predictions"</a></p>
            }
            .into_any()
        }
        _ => nothing(response),
    };
    view! {
        <main id="main" class="page papers" tabindex="-1">
            <h1>"Papers"</h1>
            <p class="lead">{LEAD}</p>
            {body}
        </main>
    }
}

/// Maximum difference that a card counts as small, in percent or percentage points.
const NEAR: f64 = 10.0;

/// Order of the tables and figures of a paper: kind, then number.
pub(crate) fn place_order(place: &str) -> (&str, u32) {
    let at = place.find(|sign: char| sign.is_ascii_digit()).unwrap_or(place.len());
    let digits = place[at..].split(|sign: char| !sign.is_ascii_digit()).next().unwrap_or_default();
    (&place[..at], digits.parse().unwrap_or(0))
}

fn card(paper: &Paper) -> impl IntoView + use<> {
    let Paper { id, title, source, sets } = paper;
    let values = sets.iter().flat_map(|set| &set.figures);
    let compared: Vec<f64> = values.filter_map(|figure| figure.difference).map(|difference| difference.value).collect();
    let near = compared.iter().filter(|value| value.abs() <= NEAR).count();
    let mut set_ups: Vec<&str> = sets.iter().flat_map(|set| &set.plans).map(|plan| plan.scenario.as_str()).collect();
    set_ups.sort_unstable();
    set_ups.dedup();
    let mut places: Vec<&str> = sets.iter().map(|set| set.place.as_str()).collect();
    places.sort_by(|a, b| place_order(a).cmp(&place_order(b)));
    places.dedup();
    let parts = places.len() as u64;
    let places =
        places.into_iter().map(|location| view! { <span class="chip">{location.to_owned()}</span> }).collect_view();
    let scenarios = format::counted(set_ups.len() as u64, "scenario", "scenarios");
    let facts = format!("{} of the paper compared, {scenarios}", format::counted(parts, "part", "parts"));
    let compared = format!(
        "{near} of {} published values differ by at most {NEAR}\u{202f}%, shares by {NEAR} points",
        compared.len()
    );
    view! {
        <li>
            <a class="ready" href=path::paper_page(id) data-testid=format!("paper-card-{id}")>
                <b>{title.clone()}</b>
                <span class="summary">{source.clone()}</span>
                <span class="chips">{places}</span>
                <span class="muted">{facts}<br />{compared}</span>
            </a>
        </li>
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_sorted_by_kind_and_number() {
        let mut places = ["Table 10", "Figure 6", "Abstract", "Table 4", "Figure 4"];
        places.sort_by(|a, b| place_order(a).cmp(&place_order(b)));
        assert_eq!(places, ["Abstract", "Figure 4", "Figure 6", "Table 4", "Table 10"]);
    }
}
