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
                <span class="muted">"each row alone, simulated"</span>
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
    device_risk_text(peak_gib?, device_gib)
}

/// Names the probability that a peak exceeds the memory of a device, if it is a risk.
pub(super) fn device_risk_text(peak_gib: f64, device_gib: f64) -> Option<String> {
    let risk = memory_certainty(peak_gib, device_gib).probability_out_of_memory;
    (risk > RISK).then(|| format!(" · {} probability of running out of memory", format::probability(risk)))
}

/// Names the fastest listed change or combination without risk, its time in s and its peak. `None` if there is none.
pub(super) fn fastest_without_risk(changes: &CheckChanges, device_gib: f64) -> Option<(f64, String)> {
    let of_job = changes.fit.changes.iter().enumerate().filter(|(_, change)| !is_hardware(change));
    let single = of_job.map(|(index, change)| (format!("change {} alone", index + 1), &change.result));
    let together = changes.fit.combination.iter().map(|combination| {
        let numbers: Vec<String> = combination.changes.iter().map(|index| (index + 1).to_string()).collect();
        (format!("changes {} together", numbers.join(", ")), &combination.result)
    });
    let figures = single.chain(together).filter_map(|(name, result)| {
        let (seconds, peak) = (result.iteration_s?, result.peak_gib?);
        let is_safe = memory_certainty(peak, device_gib).probability_out_of_memory <= RISK;
        is_safe.then(|| (seconds, format!("{name}, {}, peak {}", format::seconds(seconds), format::gib(peak))))
    });
    figures.min_by(|a, b| a.0.total_cmp(&b.0))
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

/// Describes a change in the words of the form. A free layout has the found degrees.
fn title(change: &Change, document: &Value) -> String {
    let is_free = change.fields.iter().any(|field| field.pointer == "/layout");
    let found = change.result.layout.filter(|_| is_free).map(|layout| degrees(&layout));
    let mut others = change.clone();
    // The degrees replace all lines of the layout.
    others.fields.retain(|field| found.is_none() || !field.pointer.starts_with("/layout"));
    let lines: Vec<String> = found.into_iter().chain(change_lines(&others, document)).collect();
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
            {(!has_edits && !is_hardware).then(|| view! { <span class="muted memory">"Planscope cannot write this change as lines of the file. Edit the file yourself."</span> })}
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
        let default_name = state.default_file_name();
        for (index, file) in (0..).zip(files) {
            let is_changed = edits.with_value(|edits| edits.iter().any(|edit| edit.file == index));
            if let Some(name) = state.name(index).filter(|_| is_changed) {
                // If the browser refuses the download, the lines are still on the page.
                drop(download::text(&download::file_name(&name, &default_name), &file));
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

#[cfg(test)]
mod tests {
    use api::planner::fit::{Combination, FieldChange, Fit, FitResult};
    use api::planner::outcome::Layout;
    use serde_json::json;

    use super::*;

    fn result(iteration_s: f64, peak_gib: f64) -> FitResult {
        FitResult {
            layout: Some(Layout { tensor: 1, pipeline: 1, data: 8, chunks: 1, microbatch: 2, group: None }),
            iteration_s: Some(iteration_s),
            tokens_per_s_per_device: None,
            peak_gib: Some(peak_gib),
            stage_layers: Vec::new(),
            binding: None,
        }
    }

    fn change(fields: &[(&str, Value)], result: FitResult) -> Change {
        let field = |(place, value): &(&str, Value)| FieldChange { pointer: (*place).to_owned(), value: value.clone() };
        Change {
            title: String::new(),
            kind: ChangeKind::Layout,
            fields: fields.iter().map(field).collect(),
            result,
            difference_s: None,
            probability_faster: None,
        }
    }

    /// A free layout alone does not save the memory: the offload belongs to the change.
    #[test]
    fn a_title_names_all_fields_of_a_change() {
        let fields = [("/layout", json!({})), ("/training/optimizer_offload", json!(1.0))];
        let text = title(&change(&fields, result(73.5, 68.6)), &json!({"layout": {"tensor": 8}}));
        assert_eq!(text.replace('\u{a0}', " "), "TP 1 · PP 1 · DP 8 · mb 2, Optimizer state on the host: 0 % → 100 %");
        let text = title(&change(&fields[..1], result(73.5, 68.6)), &json!({}));
        assert_eq!(text, "TP 1 · PP 1 · DP 8 · mb 2");
    }

    #[test]
    fn the_fastest_change_without_risk_is_named() {
        let changes = vec![change(&[], result(0.9, 79.0)), change(&[], result(1.05, 48.0))];
        let combination = Combination { changes: vec![0, 1], result: result(0.97, 49.5), difference_s: None };
        let fit = Fit {
            planner: api::planner::scenario::PlannerKind::OneFOneB,
            base: result(1.3, 70.0),
            ranks: Vec::new(),
            limit_gib: 76.0,
            changes,
            simulated: 2,
            rejected: 0,
            combination: Some(combination),
            is_partial: false,
        };
        let mut changes = CheckChanges { fit, edits: vec![Vec::new(); 2], combination_edits: Vec::new() };
        let text =
            |changes: &CheckChanges| fastest_without_risk(changes, 80.0).map(|(_, text)| text.replace('\u{202f}', " "));
        assert_eq!(text(&changes).as_deref(), Some("changes 1, 2 together, 970 ms, peak 49.5 GiB"));
        changes.fit.combination = None;
        assert_eq!(text(&changes).as_deref(), Some("change 2 alone, 1.05 s, peak 48.0 GiB"));
        changes.fit.changes.truncate(1);
        assert_eq!(text(&changes), None, "79 of 80 GiB are a risk");
    }
}
