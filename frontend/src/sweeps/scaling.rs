//! Scaling card on the explore page: creates a study around the current value with one click and
//! draws it.

use api::path;
use api::sweep::{LabelledAxis, Metric, Picture, ScenarioSweeps, StoredSweep, SuggestedSweep};
use leptos::html;
use leptos::prelude::*;
use leptos::task::spawn_local;

use super::form::SweepForm;
use super::{Progress, begin, curves, follow, page, reasons};
use crate::accuracy_link::AccuracyLink;
use crate::charts::{Curve, CurveChart};
use crate::client::{self, Body, RequestError};
use crate::explore::use_explore;
use crate::notice::ErrorNotice;

/// Maximum number of listed reasons. The chart shows missing points.
const MAX_REASONS: usize = 4;

/// Study results.
#[derive(Debug, Clone, PartialEq)]
struct Drawn {
    axis: LabelledAxis,
    throughput: Picture,
    time: Picture,
}

async fn draw(sweep: &StoredSweep) -> Result<Option<Drawn>, RequestError> {
    let Some(axis) = sweep.axes.first().cloned() else { return Ok(None) };
    let url = |metric: Metric| path::sweep_picture(&sweep.id, &format!("x=0&metric={}", metric.id()));
    let throughput = client::get(&url(Metric::TokensPerSPerDevice)).await?;
    let time = client::get(&url(Metric::IterationS)).await?;
    Ok(Some(Drawn { axis, throughput, time }))
}

/// State of the current study.
#[derive(Clone, Copy)]
struct Studied {
    /// Name of the study. Its button appears pressed.
    name: RwSignal<Option<String>>,
    sweep: RwSignal<Option<StoredSweep>>,
    drawn: RwSignal<Option<Drawn>>,
    last_error: RwSignal<Option<RequestError>>,
    is_silent: RwSignal<bool>,
    is_switching: RwSignal<bool>,
    /// Study number. Results of older studies are discarded.
    number: StoredValue<u64>,
}

impl Studied {
    fn new() -> Self {
        Self {
            name: RwSignal::new(None),
            sweep: RwSignal::new(None),
            drawn: RwSignal::new(None),
            last_error: RwSignal::new(None),
            is_silent: RwSignal::new(false),
            is_switching: RwSignal::new(false),
            number: StoredValue::new(0),
        }
    }

    fn clear(self) {
        self.number.try_update_value(|number| *number += 1);
        self.name.set(None);
        self.sweep.set(None);
        self.drawn.set(None);
        self.last_error.set(None);
        self.is_silent.set(false);
        self.is_switching.set(false);
    }

    fn start(self, name: &str, sweep: &serde_json::Value) {
        self.clear();
        self.name.set(Some(name.to_owned()));
        self.work(sweep.to_string());
    }

    /// Stores and starts the study, then draws each update.
    fn work(self, sweep: String) {
        let number = self.number.get_value();
        spawn_local(async move {
            let is_current = move || self.number.try_get_value() == Some(number);
            let worked = async {
                let begun = begin(sweep).await?;
                follow(begun, self.is_silent, move |seen| {
                    if is_current() {
                        self.sweep.set(Some(seen.clone()));
                        let seen = seen.clone();
                        spawn_local(async move {
                            if let Ok(Some(drawn)) = draw(&seen).await
                                && is_current()
                            {
                                self.drawn.set(Some(drawn));
                            }
                        });
                    }
                    is_current()
                })
                .await
            };
            if let Err(error) = worked.await
                && is_current()
            {
                self.is_switching.set(false);
                self.last_error.set(Some(error));
            }
        });
    }

    fn switch(self, is_on: bool) {
        let Some(sweep) = self.sweep.get_untracked() else { return };
        if is_on {
            return self.work(sweep.sweep.to_string());
        }
        spawn_local(async move {
            let ended = client::send::<StoredSweep>("POST", &path::sweep_cancel(&sweep.id), Body::Empty).await;
            if let Err(error) = ended {
                self.is_switching.try_set(false);
                self.last_error.try_set(Some(error));
            }
        });
    }
}

#[component]
pub(crate) fn ScalingCard() -> impl IntoView {
    let explore = use_explore();
    let scenario = Memo::new(move |_| explore.stored_scenario_id());
    let offered = RwSignal::new(None::<Result<ScenarioSweeps, RequestError>>);
    let studied = Studied::new();
    let open = RwSignal::new(false);
    let requested_id = StoredValue::new(None::<String>);
    let ask = move || {
        let Some(id) = scenario.get().filter(|_| open.get()) else { return };
        if requested_id.get_value().as_ref() == Some(&id) {
            return;
        }
        requested_id.set_value(Some(id.clone()));
        studied.clear();
        offered.set(None);
        spawn_local(async move {
            let found = client::get::<ScenarioSweeps>(&path::scenario_sweeps(&id)).await;
            if requested_id.try_get_value().flatten() == Some(id) {
                offered.set(Some(found));
            }
        });
    };
    Effect::new(move |_| ask());
    let details = NodeRef::<html::Details>::new();
    let toggled = move |_| open.set(details.get_untracked().is_some_and(|details| details.open()));
    let buttons = move || {
        offered.get().map(|offered| match offered {
            Err(error) => view! { <ErrorNotice error=error /> }.into_any(),
            Ok(offered) => view! { <Offered offered=offered studied=studied scenario=scenario /> }.into_any(),
        })
    };
    view! {
        <section class="card request-card" data-testid="card-scaling">
            <details node_ref=details on:toggle=toggled>
                <summary><h2>"Scaling"</h2></summary>
                <p class="hint">"Plans this scenario with all its planners for a quarter to four times the value of one field. Runs at low priority and is stored as a sweep."</p>
                {buttons}
                <AnalysisView studied=studied />
            </details>
        </section>
    }
}

#[component]
fn Offered(offered: ScenarioSweeps, studied: Studied, scenario: Memo<Option<String>>) -> impl IntoView {
    let ScenarioSweeps { fields, studies } = offered;
    let button = |analysis: SuggestedSweep| {
        let (name, title) = (analysis.title.clone(), analysis.title.clone());
        let pressed = move || studied.name.with(|current| current.as_ref() == Some(&title)).to_string();
        let press = move |_| studied.start(&analysis.title, &analysis.sweep);
        view! { <button class="chip" aria-pressed=pressed on:click=press>{name}</button> }
    };
    view! {
        <div class="chips" role="group" aria-label="Scaling studies">{studies.into_iter().map(button).collect_view()}</div>
        <SweepForm fields=fields scenario=scenario />
    }
}

#[component]
fn AnalysisView(studied: Studied) -> impl IntoView {
    let sweep = Signal::derive(move || studied.sweep.get());
    let error_notice = move || studied.last_error.get().map(|error| view! { <ErrorNotice error=error /> });
    let has_sweep = Memo::new(move |_| sweep.with(Option::is_some));
    let has_drawn = Memo::new(move |_| studied.drawn.with(Option::is_some));
    let over = Signal::derive(move || {
        studied.drawn.with(|drawn| drawn.as_ref().map(|drawn| drawn.axis.title.clone()).unwrap_or_default())
    });
    let lines = move |picture: fn(&Drawn) -> &Picture| {
        Signal::derive(move || {
            studied
                .drawn
                .with(|drawn| drawn.as_ref().map(|drawn| curves(picture(drawn), &drawn.axis)).unwrap_or_default())
        })
    };
    let (throughput, time): (Signal<Vec<Curve>>, Signal<Vec<Curve>>) =
        (lines(|drawn| &drawn.throughput), lines(|drawn| &drawn.time));
    let missing = move || {
        studied.drawn.with(|drawn| {
            let all = drawn.as_ref().map(|drawn| reasons(&drawn.time, &drawn.axis)).unwrap_or_default();
            let more = all.len().saturating_sub(MAX_REASONS);
            let lines = all.into_iter().take(MAX_REASONS).map(|line| view! { <li>{line}</li> }).collect_view();
            let more = (more > 0).then(|| view! { <li>{format!("and {more} more on the page of the sweep")}</li> });
            view! { <ul class="reasons">{lines}{more}</ul> }
        })
    };
    let link = move || sweep.with(|sweep| sweep.as_ref().map(|sweep| page(&sweep.id)).unwrap_or_default());
    let label = move |quantity: &'static str| {
        Signal::derive(move || format!("{quantity} over {}, a line per planner", over.get()))
    };
    view! {
        {error_notice}
        <Show when=move || has_sweep.get()>
            <Progress
                sweep=Signal::derive(move || studied.sweep.get().unwrap_or_else(nothing))
                is_silent=studied.is_silent
                is_switching=studied.is_switching
                on_switch=Callback::new(move |is_on| studied.switch(is_on))
            />
            <p><a href=link data-testid="scaling-sweep">"Details of this sweep: table, map, time against memory, downloads"</a></p>
        </Show>
        <Show when=move || has_drawn.get()>
            <AccuracyLink subject="Times" />
            <h3>"Throughput"</h3>
            <CurveChart curves=throughput over=over up="tokens/s/GPU" label=label("Tokens per second and GPU") test_id="scaling-throughput" />
            <h3>"Step time"</h3>
            <CurveChart curves=time over=over label=label("Step time") test_id="scaling-time" />
            {missing}
        </Show>
    }
}

/// Placeholder before the first study. It is never displayed.
fn nothing() -> StoredSweep {
    StoredSweep {
        id: String::new(),
        title: String::new(),
        note: None,
        tags: Vec::new(),
        pinned: false,
        sweep: serde_json::Value::Null,
        axes: Vec::new(),
        planners: Vec::new(),
        progress: api::sweep::SweepProgress {
            state: api::sweep::SweepState::Idle,
            points: 0,
            done: 0,
            without_plan: 0,
            points_per_s: None,
        },
        engine: String::new(),
        current_engine: String::new(),
        created_at: String::new(),
    }
}
