//! Pipelines with different schemes, in Hydraulis notation.

use api::planner::outcome::{IterationStrategy, PipelineSummary};
use leptos::prelude::*;

use super::range;
use crate::format;

/// Text above the table.
fn caption(of: &IterationStrategy) -> String {
    let idle = match of.idle_devices {
        0 => String::new(),
        1 => "; one device has no pipeline".to_owned(),
        devices => format!("; {devices} devices have no pipeline"),
    };
    let moved = (of.pull_gib > 0.0 || of.push_gib > 0.0).then(|| {
        let (pull, push, exposed) = (format::gib(of.pull_gib), format::gib(of.push_gib), format::seconds(of.exposed_s));
        format!("; the busiest device pulls {pull} of parameters and pushes {push} of gradients, {exposed} of it not covered by computation")
    });
    let switched = (of.switch_s > 0.0).then(|| {
        format!(
            "; switches between strategies move {} and take {}",
            format::gib(of.switch_gib),
            format::seconds(of.switch_s)
        )
    });
    format!(
        "{}: estimated {}, simulated {}{idle}{}{}.",
        of.label,
        format::seconds(of.estimated_s),
        format::seconds(of.propagation_s),
        moved.unwrap_or_default(),
        switched.unwrap_or_default()
    )
}

pub(super) fn show(of: &IterationStrategy) -> impl IntoView + use<> {
    let most = of.pipelines.iter().map(|pipeline| pipeline.longest).max().unwrap_or(1);
    let slowest = of.pipelines.iter().map(|pipeline| pipeline.simulated_s).fold(0.0, f64::max);
    let has_phases = of.pipelines.iter().any(|pipeline| pipeline.phase > 0);
    let rows = of.pipelines.iter().enumerate();
    let rows = rows.map(|(number, pipeline)| line(number, pipeline, (most, slowest), has_phases)).collect_view();
    let phase = has_phases.then(|| view! { <th scope="col">"Phase"</th> });
    let headings = [
        "<TP,PP,CP>",
        "Devices",
        "Microbatches",
        "Sequences",
        "Tokens",
        "Shortest",
        "Median",
        "Longest",
        "Range",
        "Estimated",
        "Simulated",
    ]
    .map(|text| view! { <th scope="col">{text}</th> });
    view! {
        <p class="hint" data-testid="assignment-caption">{caption(of)}</p>
        <div class="table-scroll" role="region" aria-label="Pipelines of the iteration" tabindex="0">
            <table class="figures assignment" data-testid="assignment-table">
                <thead><tr><th scope="col">"Pipeline"</th>{phase}{headings}</tr></thead>
                <tbody>{rows}</tbody>
            </table>
        </div>
    }
}

fn line(number: usize, of: &PipelineSummary, (most, slowest): (u32, f64), has_phases: bool) -> impl IntoView + use<> {
    let tokens = |tokens: u32| if of.sequences == 0 { "–".to_owned() } else { format::count(tokens.into()) };
    let last = of.first_device + of.devices.max(1) - 1;
    let devices = if of.devices == 1 { of.first_device.to_string() } else { format!("{} – {last}", of.first_device) };
    let share = if slowest > 0.0 { 100.0 * of.simulated_s / slowest } else { 0.0 };
    view! {
        <tr>
            <th scope="row">{number.to_string()}</th>
            {has_phases.then(|| view! { <td>{of.phase}</td> })}
            <td class="notation">{of.scheme.clone()}</td>
            <td>{devices}</td>
            <td>{of.microbatches}</td>
            <td>{format::count(of.sequences.into())}</td>
            <td>{format::count(of.tokens)}</td>
            <td>{tokens(of.shortest)}</td>
            <td>{tokens(of.median)}</td>
            <td>{tokens(of.longest)}</td>
            <td class="lengths">{(of.sequences > 0).then(|| range(of.shortest, Some(of.median), of.longest, most))}</td>
            <td>{format::seconds(of.estimated_s)}</td>
            <td class="meter"><i style:width=format!("{share:.1}%") aria-hidden="true"></i><span>{format::seconds(of.simulated_s)}</span></td>
        </tr>
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_caption_tells_what_moves_only_where_something_does() {
        let still = IterationStrategy {
            label: "2x<4,1,1>".into(),
            number: 0,
            estimated_s: 1.0,
            propagation_s: 1.1,
            pull_gib: 0.0,
            push_gib: 0.0,
            exposed_s: 0.0,
            switch_s: 0.0,
            switch_gib: 0.0,
            idle_devices: 0,
            pipelines: Vec::new(),
        };
        let words = |of: &IterationStrategy| caption(of).replace('\u{202f}', " ");
        assert_eq!(words(&still), "2x<4,1,1>: estimated 1.00 s, simulated 1.10 s.");
        let moving = IterationStrategy { pull_gib: 2.0, push_gib: 4.0, exposed_s: 0.5, idle_devices: 4, ..still };
        assert_eq!(
            words(&moving),
            "2x<4,1,1>: estimated 1.00 s, simulated 1.10 s; 4 devices have no pipeline; the busiest device pulls 2.00 GiB of parameters and pushes 4.00 GiB of gradients, 500 ms of it not covered by computation."
        );
    }
}
