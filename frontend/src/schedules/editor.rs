//! Input form on the left: sizes, times, memory, schedules, custom tables.

use api::planner::schedule::ScheduleKind;
use leptos::prelude::*;

use super::import::OpenTable;
use super::times::TimesFields;
use super::{explain, input, use_schedules};
use crate::charts::Stroke;
use crate::editor::field::{FieldError, NumberField};
use crate::editor::slider::Slider;
use crate::form::use_form;
use crate::gantt::observers::theme_version;

#[component]
pub(crate) fn RequestEditor() -> impl IntoView {
    let schedules = use_schedules();
    view! {
        <div class="editor-tools">
            <button class="quiet" on:click=move |_| schedules.undo() disabled=move || !schedules.undoable.get().0 title="Undo the last edit (Ctrl+Z)">
                "Undo"
            </button>
            <button class="quiet" on:click=move |_| schedules.redo() disabled=move || !schedules.undoable.get().1 title="Redo (Ctrl+Shift+Z)">
                "Redo"
            </button>
            <span class="grow"></span>
            <button class="quiet" on:click=move |_| schedules.start_afresh() title="Start with the default sizes and times; this can be undone">
                "New"
            </button>
        </div>
        <OtherErrors />
        <section class="editor-section">
            <h3>"Sizes"</h3>
            <NumberField pointer="/ranks" label="Ranks" unit="p" min=1.0 max=1024.0 slider=Slider::Linear(1.0, 32.0) />
            <NumberField pointer="/microbatches" label="Microbatches" unit="m" min=1.0 max=1e6 slider=Slider::Linear(1.0, 64.0) />
            <NumberField pointer="/chunks" label="Chunks per rank" unit="VPP" min=1.0 max=64.0 placeholder="default" />
            <NumberField pointer="/group" label="Group" unit="g" min=1.0 max=1e6 placeholder="ranks" />
        </section>
        <section class="editor-section">
            <h3>"Times"<small>"in time units"</small></h3>
            <TimesFields />
            <NumberField pointer="/times/communication" label="Send between ranks" unit="" min=0.0 max=1e9 step=0.05 />
            <NumberField pointer="/times/overlapped" label="Overlapped F and B" unit="F&B" min=0.0 max=1e9 step=0.25 placeholder="the sum" />
        </section>
        <section class="editor-section">
            <h3>"Memory"<small>"in activations"</small></h3>
            <NumberField pointer="/memory_cap" label="Cap per rank" unit="" min=0.0 max=1e12 step=0.5 placeholder="none" />
            <NumberField pointer="/activations/forward" label="Activations per forward" unit="" min=0.0 max=1e9 step=0.25 placeholder="1" />
            <NumberField pointer="/activations/weight_grad" label="Stored for W" unit="" min=0.0 max=1e9 step=0.25 placeholder="all" />
        </section>
        <section class="editor-section">
            <h3>"Your tables"<small>"torch action grammar"</small></h3>
            <OpenTable />
        </section>
        <KindsSection />
    }
}

/// Errors that belong to no field on the page.
#[component]
fn OtherErrors() -> impl IntoView {
    let form = use_form();
    move || {
        let errors = form.fields.with(|fields| {
            form.errors
                .with(|errors| errors.homeless(&["/times/forward", "/times/input_grad", "/times/weight_grad"], fields))
        });
        let line = |(pointer, detail): (String, String)| {
            let label = pointer.trim_start_matches('/').replace('/', " › ");
            view! {
                <p class="field-error" role="alert" data-error-for=pointer>
                    {(!label.is_empty()).then(|| view! { <b>{label}</b>": " })}
                    {detail}
                </p>
            }
        };
        errors.into_iter().map(line).collect_view()
    }
}

/// Selection of the schedule kinds.
#[component]
fn KindsSection() -> impl IntoView {
    let schedules = use_schedules();
    let selected_kinds = Memo::new(move |_| schedules.request.with(input::kinds));
    let choose = move |kinds: &[ScheduleKind]| {
        let kinds = kinds.to_vec();
        schedules.edit("/kinds", |json| input::set_kinds(json, |kind| kinds.contains(&kind)));
    };
    let toggle = move |kind: ScheduleKind, on: bool| {
        let mut kinds = selected_kinds.get_untracked();
        kinds.retain(|other| *other != kind);
        if on {
            kinds.push(kind);
        }
        choose(&kinds);
    };
    let row = move |kind: ScheduleKind| {
        let help = format!("kind-{}", kind.id());
        view! {
            <li>
                <label class="check" title=kind.source()>
                    <input
                        type="checkbox"
                        value=kind.id()
                        data-pointer=format!("/kinds/{}", kind.id())
                        aria-describedby=help.clone()
                        prop:checked=move || selected_kinds.with(|kinds| kinds.contains(&kind))
                        on:change=move |event| toggle(kind, event_target_checked(&event))
                    />
                    <SchedulePill kind=Some(kind) number=0 />
                    <span>{kind.title()}</span>
                </label>
                <p class="kind-line" id=help>{explain::line(kind)}<small>{kind.source()}</small></p>
            </li>
        }
    };
    view! {
        <section class="editor-section">
            <h3>"Schedules"</h3>
            <p class="actions">
                <button class="quiet" on:click=move |_| choose(&ScheduleKind::ALL)>"All"</button>
                <button class="quiet" on:click=move |_| choose(&input::FIRST_KINDS)>"First four"</button>
                <button class="quiet" on:click=move |_| choose(&[])>"None"</button>
            </p>
            <fieldset class="plain" data-pointer="/kinds">
                <legend class="visually-hidden">"Schedules to make"</legend>
                <ul class="kinds">{ScheduleKind::ALL.map(row).collect_view()}</ul>
            </fieldset>
            <FieldError pointer="/kinds".to_owned() />
        </section>
    }
}

/// Colour and dash symbol of a schedule, identical to its line in the memory chart.
#[component]
pub(super) fn SchedulePill(
    kind: Option<ScheduleKind>,
    /// Table index for custom tables.
    number: usize,
) -> impl IntoView {
    let version = theme_version();
    let style = move || {
        version.track();
        format!("--planner:{}", stroke(kind, number).colour())
    };
    view! { <span class="pill" data-dash=stroke(kind, number).strokes style=style></span> }
}

/// Colour and dash pattern of a schedule.
pub(super) fn stroke(kind: Option<ScheduleKind>, number: usize) -> Stroke {
    kind.map_or_else(|| Stroke::for_table(number), Stroke::for_schedule)
}
