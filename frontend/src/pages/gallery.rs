//! Start page: new scenario, prepared scenarios by topic, recent scenarios, and all published
//! setups.

mod all_scenarios;
mod check_configuration;
mod headline;
mod new_scenario;
pub(crate) mod scenario_line;
pub(crate) mod summary;

use api::front_page::{FrontPage, Tile, Topic};
use api::path;
use api::scenario::{ScenarioLine, ScenarioList};
use leptos::prelude::*;
use leptos::task::spawn_local;

use crate::client::{self, RequestError};
use crate::format;
use crate::notice::ErrorNotice;
use crate::recent::OpenedLast;
use all_scenarios::AllScenarios;
use check_configuration::CheckConfiguration;
use headline::HeadlineMetrics;
use new_scenario::NewScenario;

/// Number of stored scenarios on this page. The scenarios page lists all.
const RECENT: usize = 8;
/// Number of topic placeholders. They reserve space until the topics are loaded.
const TOPICS: usize = 4;
const TILES: usize = 3;

#[component]
pub(crate) fn GalleryPage() -> impl IntoView {
    document().set_title("Planscope");
    let front = RwSignal::new(None::<Result<FrontPage, RequestError>>);
    let recent = RwSignal::new(Vec::<ScenarioLine>::new());
    let fetch = move || {
        front.set(None);
        spawn_local(async move { front.set(Some(client::get(path::FRONT_PAGE).await)) });
        spawn_local(async move {
            // Ignore a failed request: the gallery request reports the same failure. Pinned
            // scenarios come first.
            if let Ok(list) = client::get::<ScenarioList>(&format!("{}?limit={RECENT}", path::SCENARIOS)).await {
                recent.set(list.scenarios);
            }
        });
    };
    fetch();
    let topics = move || match front.get() {
        None => (0..TOPICS).map(|_| view! { <TopicSkeleton /> }).collect_view().into_any(),
        Some(Err(error)) => view! { <ErrorNotice error=error on_retry=move |()| fetch() /> }.into_any(),
        Some(Ok(page)) => {
            page.topics.into_iter().map(|topic| view! { <TopicRow topic=topic /> }).collect_view().into_any()
        }
    };
    let presets = Signal::derive(move || {
        front.with(|front| match front {
            Some(Ok(page)) => (page.models.clone(), page.clusters.clone()),
            _ => (Vec::new(), Vec::new()),
        })
    });
    let ready_scenarios = Signal::derive(move || {
        front.with(|front| match front {
            Some(Ok(page)) => Some(page.ready_scenarios),
            _ => None,
        })
    });
    view! {
        <main id="main" class="page gallery" tabindex="-1">
            <h1>"Step time and memory of a training job, and a faster plan"</h1>
            <p class="lead">
                "Paste a configuration, or pick a model, a cluster and sample lengths. Planscope simulates static, interleaved and dynamic pipeline schedules and explains their difference. No GPU is needed. "
                <a href="/accuracy">"Measured accuracy"</a>
            </p>
            <CheckConfiguration />
            <NewScenario presets=presets />
            <h2 id="ready">"Ready scenarios"</h2>
            <p class="hint topics-hint">"Upper strips: baseline, which is 1F1B or the slowest of the selected plans. Lower strips: fastest plan, on the same time axis. Click one to see and change it."</p>
            {headline::legend()}
            <div class="topics" aria-labelledby="ready" role="group">{topics}</div>
            <AllScenarios count=ready_scenarios />
            <OpenedLast heading="Opened last in this browser" />
            <Show when=move || !recent.with(Vec::is_empty)>
                <h2>"Pinned and saved scenarios"</h2>
                <ul class="recent" data-testid="last-saved">
                    {move || recent.get().into_iter().map(|line| view! { <RecentLine line=line /> }).collect_view()}
                </ul>
                <p><a href="/scenarios">"All scenarios"</a>" · "<a href="/plans">"All plans"</a></p>
            </Show>
        </main>
    }
}

#[component]
fn TopicSkeleton() -> impl IntoView {
    let tile = |_| view! { <div class="skeleton tile-skeleton" aria-hidden="true"></div> };
    view! {
        <section class="topic" aria-hidden="true">
            <div class="topic-text"><span class="skeleton topic-skeleton"></span></div>
            <div class="tiles">{(0..TILES).map(tile).collect_view()}</div>
        </section>
    }
}

/// A topic and its scenarios.
#[component]
fn TopicRow(topic: Topic) -> impl IntoView {
    let Topic { title, text, tiles } = topic;
    view! {
        <section class="topic">
            <div class="topic-text">
                <h3>{title}</h3>
                <p class="summary">{text}</p>
            </div>
            <div class="tiles">{tiles.into_iter().map(|tile| view! { <ScenarioTile tile=tile /> }).collect_view()}</div>
        </section>
    }
}

#[component]
fn ScenarioTile(tile: Tile) -> impl IntoView {
    let Tile { slug, title, summary, devices, is_synthetic, free_layout, headline } = tile;
    let href = format!("/new?ready={slug}{}", if free_layout { "&layout=free" } else { "" });
    let synthetic = is_synthetic.then_some(" · synthetic lengths");
    view! {
        <div class="tile-place">
            <a class="ready tile" href=href title=summary data-testid=format!("gallery-{slug}")>
                {headline.clone().map(|headline| headline::strips(&headline))}
                <span class="tile-title"><b>{title.clone()}</b>{headline.as_ref().and_then(headline::gain).map(|(gain, baseline)| view! { <span class="gain">{gain}<small>{baseline}</small></span> })}</span>
                {headline.map(|headline| view! { <HeadlineMetrics headline=headline /> })}
                <span class="muted">{devices}{synthetic}</span>
            </a>
        </div>
    }
}

#[component]
fn RecentLine(line: ScenarioLine) -> impl IntoView {
    let best = line.best.map(|best| format!("{}, {}", format::seconds(best.iteration_s), best.planner));
    view! {
        <li>
            <span>{line.pinned.then_some("★ ")}<a href=path::share(&line.short)>{line.title}</a></span>
            <span class="muted">{line.model}" · "{format::cluster(&line.cluster)}</span>
            <span>{best}</span>
            <span class="muted">{format::moment(&line.created_at)}</span>
        </li>
    }
}
