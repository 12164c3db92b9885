//! Pipelines with different schemes, in Hydraulis notation.

use api::planner::outcome::{IterationStrategy, PipelineSummary};
use leptos::prelude::*;

use super::range;
use crate::format;

/// Text above the table.
fn caption(strategy: &IterationStrategy) -> String {
    let idle = match strategy.idle_devices {
        0 => String::new(),
        1 => "; one device has no pipeline".to_owned(),
        devices => format!("; {devices} devices have no pipeline"),
    };
    let moved = (strategy.pull_gib > 0.0 || strategy.push_gib > 0.0).then(|| {
        let (pull, push, exposed) = (format::gib(strategy.pull_gib), format::gib(strategy.push_gib), format::seconds(strategy.exposed_s));
        format!("; the busiest device pulls {pull} of parameters and pushes {push} of gradients, {exposed} of it not covered by computation")
    });
    let switched = (strategy.switch_s > 0.0).then(|| {
        format!(
            "; switches between strategies move {} and take {}",
            format::gib(strategy.switch_gib),
            format::seconds(strategy.switch_s)
        )
    });
    format!(
        "{}: estimated {}, simulated {}{idle}{}{}.",
        strategy.label,
        format::seconds(strategy.estimated_s),
        format::seconds(strategy.propagation_s),
        moved.unwrap_or_default(),
        switched.unwrap_or_default()
    )
}

pub(super) fn show(strategy: &IterationStrategy) -> impl IntoView + use<> {
    let max_length = strategy.pipelines.iter().map(|pipeline| pipeline.longest).max().unwrap_or(1);
    let slowest = strategy.pipelines.iter().map(|pipeline| pipeline.simulated_s).fold(0.0, f64::max);
    let has_phases = strategy.pipelines.iter().any(|pipeline| pipeline.phase > 0);
    let rows = strategy.pipelines.iter().enumerate();
    let rows = rows.map(|(number, pipeline)| line(number, pipeline, (max_length, slowest), has_phases)).collect_view();
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
        <p class="hint" data-testid="assignment-caption">{caption(strategy)}</p>
        <div class="table-scroll" role="region" aria-label="Pipelines of the iteration" tabindex="0">
            <table class="figures assignment" data-testid="assignment-table">
                <thead><tr><th scope="col">"Pipeline"</th>{phase}{headings}</tr></thead>
                <tbody>{rows}</tbody>
            </table>
        </div>
    }
}

fn line(
    number: usize,
    pipeline: &PipelineSummary,
    (max_length, slowest): (u32, f64),
    has_phases: bool,
) -> impl IntoView + use<> {
    let tokens = |tokens: u32| if pipeline.sequences == 0 { "–".to_owned() } else { format::count(tokens.into()) };
    let last = pipeline.first_device + pipeline.devices.max(1) - 1;
    let devices = if pipeline.devices == 1 {
        pipeline.first_device.to_string()
    } else {
        format!("{} – {last}", pipeline.first_device)
    };
    let share = if slowest > 0.0 { 100.0 * pipeline.simulated_s / slowest } else { 0.0 };
    view! {
        <tr>
            <th scope="row">{number.to_string()}</th>
            {has_phases.then(|| view! { <td>{pipeline.phase}</td> })}
            <td class="notation">{pipeline.scheme.clone()}</td>
            <td>{devices}</td>
            <td>{pipeline.microbatches}</td>
            <td>{format::count(pipeline.sequences.into())}</td>
            <td>{format::count(pipeline.tokens)}</td>
            <td>{tokens(pipeline.shortest)}</td>
            <td>{tokens(pipeline.median)}</td>
            <td>{tokens(pipeline.longest)}</td>
            <td class="lengths">{(pipeline.sequences > 0).then(|| range(pipeline.shortest, Some(pipeline.median), pipeline.longest, max_length))}</td>
            <td>{format::seconds(pipeline.estimated_s)}</td>
            <td class="meter"><i style:width=format!("{share:.1}%") aria-hidden="true"></i><span>{format::seconds(pipeline.simulated_s)}</span></td>
        </tr>
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn caption_describes_only_actual_changes() {
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
        let caption_text = |strategy: &IterationStrategy| caption(strategy).replace('\u{202f}', " ");
        assert_eq!(caption_text(&still), "2x<4,1,1>: estimated 1.00 s, simulated 1.10 s.");
        let moving = IterationStrategy { pull_gib: 2.0, push_gib: 4.0, exposed_s: 0.5, idle_devices: 4, ..still };
        assert_eq!(
            caption_text(&moving),
            "2x<4,1,1>: estimated 1.00 s, simulated 1.10 s; 4 devices have no pipeline; the busiest device pulls 2.00 GiB of parameters and pushes 4.00 GiB of gradients, 500 ms of it not covered by computation."
        );
    }
}
