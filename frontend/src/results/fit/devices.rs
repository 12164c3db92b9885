//! Fewest devices of every device type that hold the scenario.

use api::planner::fit::{DeviceTable, FewestDevices};
use leptos::prelude::*;

use crate::format;
use crate::results::ranking;

/// Describes the table in a sentence.
pub(super) fn note(table: &DeviceTable) -> String {
    let partial = if table.is_partial {
        let (searched, types) = (table.rows.len(), table.types);
        format!(" The time limit of the server was reached: {searched} of {types} device types were searched.")
    } else {
        String::new()
    };
    format!(
        "1F1B with free layout, and ZeRO 3 or offload where needed; whole nodes up to 1,024, or a half, a quarter or less of one node.{partial}"
    )
}

fn row(row: &FewestDevices) -> impl IntoView + use<> {
    let FewestDevices { name, devices, nodes, settings, result, .. } = row;
    let cells = match (devices, result.iteration_s) {
        (Some(devices), Some(seconds)) => {
            let nodes = match nodes {
                None => "part of a node".to_owned(),
                Some(1) => "1 node".to_owned(),
                Some(nodes) => format!("{} nodes", format::count((*nodes).into())),
            };
            let layout = result.layout.as_ref().map(ranking::degrees);
            view! {
                <td data-value=devices.to_string()>
                    {format::count((*devices).into())}
                    <small class="below">{nodes}</small>
                </td>
                <td>{format::seconds(seconds)}</td>
                <td>{result.peak_gib.map(format::gib)}</td>
                <td class="fit-layout">
                    {layout}
                    {(!settings.is_empty()).then(|| view! { <small class="below">{settings.clone()}</small> })}
                </td>
            }
            .into_any()
        }
        _ => view! { <td colspan="4" class="label">"does not fit 1,024 nodes"</td> }.into_any(),
    };
    view! { <tr><th scope="row">{name.clone()}</th>{cells}</tr> }
}

pub(super) fn show(table: &DeviceTable) -> AnyView {
    if table.rows.is_empty() {
        return view! { <p class="hint">"The server's time limit was reached before a device type was searched. Try again later."</p> }.into_any();
    }
    let rows = table.rows.iter().map(row).collect_view();
    let headings =
        ["Device", "Devices", "Step time", "Peak memory", "Layout"].map(|text| view! { <th scope="col">{text}</th> });
    view! {
        <div class="table-scroll" role="region" aria-label="Fewest devices per device type" tabindex="0">
            <table class="figures" data-testid="fit-device-types">
                <thead><tr>{headings}</tr></thead>
                <tbody>{rows}</tbody>
            </table>
        </div>
    }
    .into_any()
}
