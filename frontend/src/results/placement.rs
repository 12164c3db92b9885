//! Module placement on devices and the transfers between modules, for plans with different layouts
//! per module.

use api::planner::outcome::{Boundary, ModulePlacement, PlacedModules};
use api::planner::stage_graph::BoundaryKind;
use leptos::prelude::*;

use super::ranking;
use crate::explore::use_explore;
use crate::format;

/// Maximum number of replicas with separate bars. More replicas are drawn as a single bar.
const MAX_COPIES: u32 = 64;

/// Formats parallel degrees. Degrees equal to 1 are omitted, except DP.
fn degrees(layout: &PlacedModules) -> String {
    let all = [
        ("TP", layout.tensor),
        ("CP", layout.context),
        ("PP", layout.pipeline),
        ("EP", layout.expert),
        ("DP", layout.data),
    ];
    let named: Vec<String> = all
        .iter()
        .filter(|(name, degree)| *degree > 1 || *name == "DP")
        .map(|(name, degree)| format!("{name} {degree}"))
        .collect();
    named.join(" · ")
}

const fn kind_text(kind: BoundaryKind) -> &'static str {
    match kind {
        BoundaryKind::Equal => "nothing travels: equal layouts on the same devices",
        BoundaryKind::FanIn => "gathered from several copies",
        BoundaryKind::FanOut => "each copy takes its part",
        BoundaryKind::Aligned => "cut anew for the other layout",
        BoundaryKind::Apart => "from leader to leader, then to all devices of the stage",
    }
}

/// Formats mebibytes. Values from 1,024 MiB are given in GiB.
fn mebibytes(mib: f64) -> String {
    if mib >= 1024.0 { format::gib(mib / 1024.0) } else { format!("{}\u{202f}MiB", format::three_digits(mib)) }
}

/// Placement from the selected planner, if its plan contains one.
#[component]
pub(super) fn PlacementCard() -> impl IntoView {
    let explore = use_explore();
    let selected = Memo::new(move |_| ranking::selected_planner(&explore.results(), explore.view.get().planner));
    let placement = Memo::new(move |_| explore.planned(selected.get()?)?.placement.clone());
    let content = move || placement.get().map(|placement| show(&placement));
    view! {
        <Show when=move || placement.with(Option::is_some)>
            <section class="card" data-testid="card-placement">
                <header class="card-title">
                    <h2>"Modules and devices"</h2>
                    <span class="muted">{move || selected.get().map(ranking::short_title)}</span>
                </header>
                {content}
            </section>
        </Show>
    }
}

/// Layouts as bars over devices. Boundaries appear as arrows and in a table.
pub(super) fn show(placement: &ModulePlacement) -> impl IntoView + use<> {
    let devices = placement.layouts.iter().map(|layout| layout.first_device + layout.devices).max().unwrap_or(1);
    let rows = placement
        .layouts
        .iter()
        .enumerate()
        .map(|(row_index, placed_modules)| row(row_index, placed_modules, devices))
        .collect_view();
    let last = (devices.max(1) - 1).to_string();
    let boundaries = (!placement.boundaries.is_empty()).then(|| table(&placement.boundaries));
    let arrows = placement
        .boundaries
        .iter()
        .filter_map(|boundary| Some((boundary, boundary_rows(&placement.layouts, boundary)?)))
        .enumerate()
        .map(|(index, (crossing, ends))| arrow(index, crossing, ends))
        .collect_view();
    view! {
        <div class="placement" data-testid="placement">
            {rows}
            {arrows}
            <p class="placement-axis" aria-hidden="true"><span>"device 0"</span><span>{last}</span></p>
        </div>
        {boundaries}
    }
}

/// Rows at both sides of a boundary. Returns `None` if the modules share a row or no data moves.
fn boundary_rows(layouts: &[PlacedModules], boundary: &Boundary) -> Option<(usize, usize)> {
    let row = |name: &str| layouts.iter().position(|layout| layout.modules.iter().any(|module| module == name));
    let (from, to) = (row(&boundary.from)?, row(&boundary.to)?);
    (from != to && boundary.kind != BoundaryKind::Equal).then_some((from, to))
}

/// Arrow between two rows, labelled with the data per tensor in forward and backward direction.
fn arrow(index: usize, boundary: &Boundary, (from, to): (usize, usize)) -> impl IntoView + use<> {
    let (forward, backward) = (mebibytes(boundary.forward_mib), mebibytes(boundary.backward_mib));
    let label = format!("From {} to {}: {forward} a tensor forward, {backward} backward", boundary.from, boundary.to);
    let (forward_way, backward_way) = if from < to { ("↓", "↑") } else { ("↑", "↓") };
    view! {
        <div
            class="placement-arrow"
            role="img"
            aria-label=label
            style:grid-row=format!("{} / {}", from.min(to) + 1, from.max(to) + 2)
            style:grid-column=(index + 2).to_string()
        >
            <span>{format!("{forward_way} {forward}")}</span>
            {(boundary.backward_mib > 0.0).then(|| view! { <span>{format!("{backward_way} {backward}")}</span> })}
        </div>
    }
}

/// Bars for all replicas in a layout.
fn row(index: usize, layout: &PlacedModules, devices: u32) -> impl IntoView + use<> {
    let names = layout.modules.join(", ");
    let degrees_text = degrees(layout);
    let last = layout.first_device + layout.devices.max(1) - 1;
    let shared = if layout.colocated { ", shared with other modules" } else { "" };
    let label = format!("{names}: {degrees_text}, devices {} to {last}{shared}", layout.first_device);
    let share = |count: u32| 100.0 * f64::from(count) / f64::from(devices.max(1));
    let copies = if layout.data <= MAX_COPIES { layout.data.max(1) } else { 1 };
    let width = share(layout.devices) / f64::from(copies);
    let from = share(layout.first_device);
    let bar = |copy: u32| {
        let left = width.mul_add(f64::from(copy), from);
        view! { <i style:left=format!("{left:.3}%") style:width=format!("{width:.3}%")></i> }
    };
    view! {
        <div class="placement-row" data-place=(index % 4).to_string() style:grid-row=(index + 1).to_string()>
            <p><b>{names}</b>" "<span class="muted">{degrees_text}{shared}</span></p>
            <div class="placement-bars" role="img" aria-label=label>{(0..copies).map(bar).collect_view()}</div>
        </div>
    }
}

fn table(boundaries: &[Boundary]) -> impl IntoView + use<> {
    let headings = ["From", "To", "What", "k", "Tensors", "Forward", "Time", "Backward", "Time"]
        .map(|text| view! { <th scope="col">{text}</th> });
    let line = |boundary: &Boundary| {
        view! {
            <tr>
                <th scope="row">{boundary.from.clone()}</th>
                <td class="notation">{boundary.to.clone()}</td>
                <td class="notation">{kind_text(boundary.kind)}</td>
                <td>{boundary.fan}</td>
                <td>{format::count(boundary.tensors.into())}</td>
                <td>{mebibytes(boundary.forward_mib)}</td>
                <td>{format::seconds(boundary.forward_ms / 1e3)}</td>
                <td>{mebibytes(boundary.backward_mib)}</td>
                <td>{format::seconds(boundary.backward_ms / 1e3)}</td>
            </tr>
        }
    };
    view! {
        <p class="hint">"What a receiving device gets of one tensor, and how long that takes; means over the first iteration."</p>
        <div class="table-scroll" role="region" aria-label="What travels between modules" tabindex="0">
            <table class="figures assignment" data-testid="boundaries">
                <thead><tr>{headings}</tr></thead>
                <tbody>{boundaries.iter().map(line).collect_view()}</tbody>
            </table>
        </div>
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn degrees_equal_to_1_are_omitted_except_copies() {
        let layout = PlacedModules {
            modules: vec!["ViT".into()],
            tensor: 4,
            context: 1,
            pipeline: 2,
            data: 1,
            expert: 1,
            first_device: 0,
            devices: 8,
            colocated: false,
        };
        assert_eq!(degrees(&layout), "TP 4 · PP 2 · DP 1");
        let boundary = |to: &str, kind| Boundary {
            from: "ViT".into(),
            to: to.into(),
            kind,
            fan: 1,
            tensors: 1,
            forward_mib: 1.0,
            forward_ms: 1.0,
            backward_mib: 1.0,
            backward_ms: 1.0,
        };
        let backbone = PlacedModules { modules: vec!["LLM".into(), "head".into()], ..layout.clone() };
        let rows = [layout, backbone];
        assert_eq!(boundary_rows(&rows, &boundary("head", BoundaryKind::Apart)), Some((0, 1)));
        assert_eq!(boundary_rows(&rows, &boundary("head", BoundaryKind::Equal)), None, "nothing travels");
        assert_eq!(boundary_rows(&rows, &boundary("ViT", BoundaryKind::FanIn)), None, "within one row");
        assert_eq!(mebibytes(2048.0).replace('\u{202f}', " "), "2.00 GiB");
        assert_eq!(mebibytes(12.0).replace('\u{202f}', " "), "12.0 MiB");
    }
}
