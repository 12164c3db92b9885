//! Export menu of the explore page: files and a self-contained link.

use std::sync::Arc;

use api::planner::scenario::PlannerKind;
use api::planner::timeline::Timeline;
use api::{contained, path};
use leptos::html;
use leptos::prelude::*;
use leptos::task::spawn_local;
use wasm_bindgen::JsCast;

use crate::explore::use_explore;
use crate::gantt::observers::theme;
use crate::gantt::picture;
use crate::{clipboard, download};

/// Export menu: files of the current outcome, and the self-contained link.
#[component]
pub(crate) fn ExportMenu() -> impl IntoView {
    let explore = use_explore();
    let menu = NodeRef::<html::Details>::new();
    let message = RwSignal::new(None::<String>);
    // Link for manual copying if the clipboard is unavailable.
    let by_hand = RwSignal::new(None::<String>);
    let close = move |()| {
        if let Some(menu) = menu.get_untracked() {
            menu.set_open(false);
        }
    };
    let on_key = move |event: web_sys::KeyboardEvent| {
        if event.key() == "Escape" {
            close(());
        }
    };
    let left = move |event: web_sys::FocusEvent| {
        let to = event.related_target().and_then(|target| target.dyn_into::<web_sys::Node>().ok());
        if to.is_some_and(|to| menu.get_untracked().is_some_and(|menu| !menu.contains(Some(&to)))) {
            close(());
        }
    };
    let plans = move || {
        let id = explore.stored_scenario_id()?;
        let content = explore.displayed.get();
        let iteration = content.iteration;
        let lines = content.timelines.into_iter().map(|(planner, timeline)| {
            view! { <PlanFiles id=id.clone() planner=planner iteration=iteration timeline=timeline message=message /> }
        });
        let lines = lines.collect_view();
        Some(view! {
            <p class="menu-heading">{format!("Plans, iteration {iteration}")}</p>
            {lines}
            <p class="menu-heading">"All plans"</p>
            <ul>
                <li><a href=path::outcome(&id) download="outcome.json">"Outcome"<small>"JSON"</small></a></li>
                <li><a href=path::outcome_csv(&id) download="ranking.csv" data-testid="export-ranking">"Ranking"<small>"CSV"</small></a></li>
            </ul>
        })
    };
    let save_scenario = move |_| {
        let scenario = explore.scenario.get_untracked();
        let text = serde_json::to_string_pretty(&scenario).unwrap_or_default();
        if download::text("scenario.json", &text).is_err() {
            message.set(Some("The browser refuses to save a file.".to_owned()));
        }
        close(());
    };
    let copy_contained = move |_| {
        let scenario = explore.scenario.with_untracked(ToString::to_string);
        match contained::write(&scenario) {
            Err(error) => message.set(Some(format!("No self-contained link: {error}."))),
            Ok(link) => {
                let url = format!("{}/c/#{link}", window().location().origin().unwrap_or_default());
                spawn_local(async move {
                    let done = clipboard::copy(&url).await;
                    let said = if done {
                        "Self-contained link copied."
                    } else {
                        "The browser refuses to copy; copy the link from the field below."
                    };
                    message.try_set(Some(said.to_owned()));
                    by_hand.try_set((!done).then(|| url.clone()));
                    explore.contained_link.try_set(Some(url));
                });
            }
        }
    };
    view! {
        <details class="menu" node_ref=menu on:keydown=on_key on:focusout=left data-testid="export">
            <summary class="button">"Export"</summary>
            <div class="menu-body">
                {move || plans().map_or_else(|| view! { <p class="hint">"No plan yet."</p> }.into_any(), IntoAny::into_any)}
                <p class="menu-heading">"Scenario"</p>
                <ul>
                    <li><button data-testid="export-scenario" on:click=save_scenario>"Scenario"<small>"JSON for \u{201c}Open file\u{201d}"</small></button></li>
                    <li>
                        <button data-testid="copy-contained" data-url=move || explore.contained_link.get() on:click=copy_contained>
                            "Copy self-contained link"<small>"contains the whole scenario"</small>
                        </button>
                    </li>
                </ul>
                <p class="hint" role="status" data-testid="export-status">{move || message.get()}</p>
                {move || by_hand.get().map(|url| view! { <input readonly=true prop:value=url aria-label="Self-contained link" /> })}
            </div>
        </details>
    }
}

/// Export files of one plan.
#[component]
fn PlanFiles(
    id: String,
    planner: PlannerKind,
    iteration: u32,
    timeline: Arc<Timeline>,
    message: RwSignal<Option<String>>,
) -> impl IntoView {
    let explore = use_explore();
    let name = format!("planscope-{}-{}-{iteration}", &id[..10.min(id.len())], planner.id());
    let report_result = move |done: bool| {
        if !done {
            message.set(Some("The browser refuses to save a file.".to_owned()));
        }
    };
    let svg = {
        let (name, timeline) = (name.clone(), Arc::clone(&timeline));
        move |_| {
            let title = explore.scenario.with_untracked(|scenario| crate::pointer::text(scenario, "/title"));
            let title = format!(
                "{}, {}, iteration {iteration}",
                title.unwrap_or_else(|| "Untitled scenario".to_owned()),
                planner.title()
            );
            let picture = picture::svg(&timeline, explore.window.get_untracked(), &title, theme());
            report_result(download::text(&format!("{name}.svg"), &picture).is_ok());
        }
    };
    let png = {
        let name = name.clone();
        move |_| {
            report_result(
                chart_png(planner).and_then(|url| download::address(&format!("{name}.png"), &url).ok()).is_some(),
            );
        }
    };
    // Ranks in context-parallel groups have no pipeline transfers.
    let is_pipeline = !timeline.is_grouped();
    let pipeline = is_pipeline.then(|| {
        view! {
            <a href=path::schedule_csv(&id, planner.id(), iteration) download=format!("{name}.csv")>"torch CSV"</a>
            <a href=path::execution_plan_file(&id, planner.id(), iteration, "json", None) download="">"execution plan"</a>
        }
    });
    let megatron = matches!(planner, PlannerKind::OneFOneB | PlannerKind::Interleaved).then(|| {
        view! { <a href=path::megatron_arguments(&id, planner.id()) download="" data-testid=format!("megatron-{}", planner.id())>"Megatron-LM arguments"</a> }
    });
    // Schedules of torch.distributed.pipelining. The server refuses models that torchtitan does not train.
    let has_torch_schedule = matches!(
        planner,
        PlannerKind::Gpipe
            | PlannerKind::OneFOneB
            | PlannerKind::Interleaved
            | PlannerKind::LoopedBfs
            | PlannerKind::InterleavedZeroBubble
            | PlannerKind::Zbv
    );
    let torchtitan = has_torch_schedule.then(|| {
        view! { <a href=path::torchtitan_job(&id, planner.id()) download="" data-testid=format!("torchtitan-{}", planner.id())>"torchtitan job"</a> }
    });
    let no_job = (!is_pipeline).then(|| {
        view! { <p class="hint">"The plan assigns samples to context-parallel groups: Megatron-LM, torchtitan and torch schedules have no such job."</p> }
    });
    view! {
        <div class="menu-plan" role="group" aria-label=planner.title() data-testid=format!("export-{}", planner.id())>
            <span class="menu-plan-name"><span class="pill" data-planner-colour=planner.id()></span>{planner.title()}</span>
            {pipeline}
            <a href=path::timeline_trace(&id, planner.id(), iteration) download=format!("{name}.trace.json")>"Perfetto trace"</a>
            {megatron}
            {torchtitan}
            <button on:click=svg>"SVG"</button>
            <button on:click=png>"PNG"</button>
            {no_job}
        </div>
    }
}

/// Renders the chart of a planner on the page background and returns a PNG data URL.
fn chart_png(planner: PlannerKind) -> Option<String> {
    let selector = format!("canvas[data-testid=\"gantt-{}\"]", planner.id());
    let chart: web_sys::HtmlCanvasElement = document().query_selector(&selector).ok()??.dyn_into().ok()?;
    let picture: web_sys::HtmlCanvasElement = document().create_element("canvas").ok()?.dyn_into().ok()?;
    picture.set_width(chart.width());
    picture.set_height(chart.height());
    let context: web_sys::CanvasRenderingContext2d = picture.get_context("2d").ok()??.dyn_into().ok()?;
    let paper = match theme() {
        crate::gantt::Theme::Light => "#ffffff",
        crate::gantt::Theme::Dark => "#191d22",
    };
    context.set_fill_style_str(paper);
    context.fill_rect(0.0, 0.0, chart.width().into(), chart.height().into());
    context.draw_image_with_html_canvas_element(&chart, 0.0, 0.0).ok()?;
    picture.to_data_url_with_type("image/png").ok()
}
