//! Single changes, each simulated, with the lines of the user's file.

use std::sync::Arc;

use api::check::{CheckChanges, Edit, EditAction, RISK, Verdict};
use api::planner::certainty::memory_certainty;
use api::planner::fit::{Change, ChangeKind};
use leptos::prelude::*;
use leptos::task::spawn_local;
use serde_json::Value;

use crate::check::{Checked, Loaded, use_check};
use crate::notice::ErrorNotice;
use crate::results::{change_lines, degrees};
use crate::{clipboard, download, format, pointer};

/// Panel of the changes.
#[component]
pub(super) fn ChangesPanel(checked: Arc<Checked>) -> impl IntoView {
    let state = use_check();
    let does_not_fit = checked.check.verdict == Verdict::DoesNotFit;
    let heading = match checked.check.verdict {
        Verdict::DoesNotFit => "Make it fit",
        Verdict::AtRisk => "Remove the risk or save time",
        Verdict::Fits | Verdict::DoesNotStart => "Change this first",
    };
    let document = StoredValue::new(serde_json::to_value(&checked.check.scenario).unwrap_or_default());
    let content = move || {
        match state.changes.get() {
        Loaded::Absent => ().into_any(),
        Loaded::Waiting => view! {
            <p class="progress" role="status"><progress aria-label="Simulating changes"></progress>"Simulating changes…"</p>
        }
        .into_any(),
        Loaded::Failed(error) => view! { <ErrorNotice error=error /> }.into_any(),
        Loaded::Here(changes) => {
            view! { <List changes=changes does_not_fit=does_not_fit document=document.get_value() /> }.into_any()
        }
    }
    };
    view! {
        <section class="card check-changes" data-testid="check-changes">
            <header class="card-title">
                <h2>{heading}</h2>
                <span class="muted">"each alone, simulated"</span>
            </header>
            {content}
        </section>
    }
}

#[component]
fn List(changes: Arc<CheckChanges>, does_not_fit: bool, document: Value) -> impl IntoView {
    let fit = &changes.fit;
    let simulated = format::count(fit.simulated.into());
    let note = match (fit.changes.is_empty(), does_not_fit) {
        (true, true) => format!("None of {simulated} changes makes it fit."),
        (true, false) => format!("None of {simulated} changes saves time."),
        (false, _) => format!("{simulated} changes simulated; {} do not fit.", fit.rejected),
    };
    let partial = fit.is_partial.then_some(" The time limit was reached before all were simulated.");
    // Hardware is listed last. It is a comparison and no change of the job, so it has no numbers.
    let all = fit.changes.iter().zip(&changes.edits).enumerate();
    let (hardware, of_job): (Vec<_>, Vec<_>) = all.partition(|(_, (change, _))| is_hardware(change));
    let note = if of_job.is_empty() && !hardware.is_empty() {
        let aim = if does_not_fit { "makes it fit" } else { "saves time" };
        format!("{simulated} changes simulated. No change of the job {aim}.")
    } else {
        note
    };
    let longest = of_job.iter().filter_map(|(_, (change, _))| change.difference_s).fold(0.0, f64::min);
    let row = |(index, (change, edits)): (usize, (&Change, &Vec<Edit>))| {
        view! { <Row number=index + 1 change=change edits=edits.clone() document=&document longest_s=longest peak_gib=fit.base.peak_gib /> }
    };
    let has_hardware = !hardware.is_empty();
    let (rows, hardware) = (of_job.into_iter().map(row).collect_view(), hardware.into_iter().map(row).collect_view());
    let rate = fit.base.tokens_per_s_per_device.map(|rate| format!("now {}", rate_text(rate)));
    view! {
        <Together changes=Arc::clone(&changes) document=&document />
        <ol class="check-list">{rows}</ol>
        <p class="hint">{note}{partial}</p>
        {has_hardware.then(|| view! {
            <h3 class="check-comparison">"Other hardware, for comparison"<small>{rate}</small></h3>
            <ul class="check-list" data-testid="check-hardware">{hardware}</ul>
        })}
    }
}

/// True for a change of the devices or links.
fn is_hardware(change: &Change) -> bool {
    change.kind == ChangeKind::Cluster
}

fn rate_text(rate: f64) -> String {
    format!("{} tokens/s/GPU", format::three_digits(rate))
}

/// Names the probability of running out of memory, if it is a risk on the device of the scenario.
fn risk_text(peak_gib: Option<f64>, document: &Value) -> Option<String> {
    let device_gib = pointer::get(document, "/cluster/device/memory_gib").and_then(Value::as_f64)?;
    let risk = memory_certainty(peak_gib?, device_gib).probability_out_of_memory;
    (risk > RISK).then(|| format!(" · {} probability of running out of memory", format::probability(risk)))
}

/// The best combination of changes.
#[component]
fn Together<'a>(changes: Arc<CheckChanges>, document: &'a Value) -> impl IntoView + use<> {
    let combination = changes.fit.combination.clone()?;
    let indices = combination.changes.iter().map(|&index| index as usize);
    let edits = changes.combination_edits.clone();
    let numbers: Vec<String> = indices.map(|index| (index + 1).to_string()).collect();
    let seconds = combination.result.iteration_s.map(format::seconds).unwrap_or_default();
    let difference = combination.difference_s.map(format::seconds_difference);
    let peak = combination.result.peak_gib.map(format::gib).unwrap_or_default();
    let risk =
        risk_text(combination.result.peak_gib, document).map(|risk| view! { <span class="slower">{risk}</span> });
    Some(view! {
        <div class="check-together" data-testid="check-together">
            <b>{format!("Changes {} together: {seconds}", numbers.join(", "))}</b>
            <span class="faster">{difference}</span>
            <span class="muted">{peak}{risk}</span>
            {(!edits.is_empty()).then(|| view! { <Buttons edits=edits /> })}
        </div>
    })
}

/// Describes a change: the found degrees of a free layout, or the fields in the words of the form.
fn title(change: &Change, document: &Value) -> String {
    let is_layout = change.fields.iter().any(|field| field.pointer == "/layout");
    if let (true, Some(layout)) = (is_layout, change.result.layout) {
        return degrees(&layout);
    }
    let lines = change_lines(change, document);
    if lines.is_empty() { format::capitalised(&change.title) } else { lines.join(", ") }
}

#[component]
fn Row<'a>(
    number: usize,
    change: &'a Change,
    edits: Vec<Edit>,
    document: &'a Value,
    /// Largest saving of all changes, negative.
    longest_s: f64,
    /// Peak of the configuration itself.
    peak_gib: Option<f64>,
) -> impl IntoView + use<> {
    let title = title(change, document);
    let seconds = change.result.iteration_s.unwrap_or(f64::NAN);
    let main = change.difference_s.map_or_else(|| format::seconds(seconds), format::seconds_difference);
    let is_hardware = is_hardware(change);
    let share = change
        .difference_s
        .filter(|difference| longest_s < 0.0 && *difference < 0.0 && !is_hardware)
        .map(|difference| 100.0 * difference / longest_s);
    let memory = change.result.peak_gib.map(|peak| {
        let difference = peak_gib.map(|before| peak - before).filter(|difference| difference.abs() >= 0.05);
        let difference = difference.map(|difference| {
            format!("{}{} → ", if difference < 0.0 { "−" } else { "+" }, format::gib(difference.abs()))
        });
        format!("{}{}", difference.unwrap_or_default(), format::gib(peak))
    });
    let confidence = change.probability_faster.map(|probability| {
        view! { <span title="Probability that a run with this change is faster, from errors on published measurements">{format!("{} likely faster · ", format::probability(probability))}</span> }
    });
    let risk = risk_text(change.result.peak_gib, document).map(|risk| view! { <span class="slower">{risk}</span> });
    let rate = change.result.tokens_per_s_per_device.filter(|_| is_hardware);
    let rate = rate.map(|rate| view! { <b>{rate_text(rate)}</b>" · " });
    let has_edits = !edits.is_empty();
    let state = use_check();
    // The text area shows the first file.
    let names = |file: u32| state.name(file).filter(|_| file > 0);
    let code = edits.iter().map(|edit| {
        let (sign, class) = match edit.action {
            EditAction::Replace => ("", ""),
            EditAction::Add => ("+", "added"),
            EditAction::Remove => ("−", "removed"),
        };
        let file = names(edit.file).map(|name| format!("{name} ")).unwrap_or_default();
        let replaced = edit.replaced.as_ref().map(|old| format!(" (instead of {old})"));
        view! { <span class=class><i>{format!("{file}{}{sign}", edit.line)}</i>{edit.setting.clone()}<small>{replaced}</small></span> }
    });
    let code = code.collect_view();
    view! {
        <li>
            <span class="number">{(!is_hardware).then_some(number)}</span>
            <b>{title}</b>
            <span class="seconds" class:faster=change.difference_s.is_some_and(|difference| difference < 0.0)>{main}</span>
            <span class="muted memory">{rate}{confidence}{change.difference_s.map(|_| format!("{} · ", format::seconds(seconds)))}{memory}{risk}</span>
            {share.map(|share| view! { <span class="saving"><i style:width=format!("{share:.0}%")></i></span> })}
            {has_edits.then(|| view! { <div class="code"><code>{code}</code><Buttons edits=edits /></div> })}
        </li>
    }
}

/// Buttons that apply edits, copy the settings, and save the edited file.
#[component]
fn Buttons(edits: Vec<Edit>) -> impl IntoView {
    let state = use_check();
    let copied = RwSignal::new(false);
    let settings = edits.iter().map(|edit| edit.setting.as_str()).collect::<Vec<_>>().join("\n");
    let edits = StoredValue::new(edits);
    let settings = StoredValue::new(settings);
    let copy = move |_| {
        spawn_local(async move {
            let is_copied = clipboard::copy(&settings.get_value()).await;
            copied.try_set(is_copied);
        });
    };
    let save = move |_| {
        let Some(files) = edits.with_value(|edits| state.edited(edits)) else { return };
        for (index, file) in (0..).zip(files) {
            let is_changed = edits.with_value(|edits| edits.iter().any(|edit| edit.file == index));
            if let Some(name) = state.name(index).filter(|_| is_changed) {
                // If the browser refuses the download, the lines are still on the page.
                drop(download::text(&download::file_name(&name, "configuration.txt"), &file));
            }
        }
    };
    let outdated = move || state.is_outdated();
    view! {
        <span class="check-buttons">
            <button disabled=outdated on:click=move |_| edits.with_value(|edits| state.apply(edits))>"Apply"</button>
            <button class="quiet" on:click=copy>{move || if copied.get() { "Copied" } else { "Copy" }}</button>
            <button class="quiet" disabled=outdated on:click=save>"Save file"</button>
        </span>
    }
}
