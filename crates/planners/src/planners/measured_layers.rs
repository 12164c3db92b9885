//! Decision text about layer times from a sequence length profile.

use planscope_cost::cost::overrides::{AtDegrees, TimedLayers, timed_layers};
use planscope_plan::scenario::Scenario;

/// Limit on listed degrees, worst fit first.
const MAX_NAMED: usize = 12;

/// Lists timed degrees, the fit error of T(l), and the source of the remaining times. `None` if no
/// degree is timed.
pub(crate) fn summary(scenario: &Scenario, degrees: &[AtDegrees]) -> Option<String> {
    let module = scenario.model.backbone()?;
    let mut degrees = degrees.to_vec();
    degrees.sort_unstable();
    degrees.dedup();
    let all = timed_layers(&scenario.training, module);
    let covers = |timed: &TimedLayers, degrees: &AtDegrees| {
        timed.at.is_none_or(|at| {
            let exchange = at
                .exchange
                .is_none_or(|timed_exchange| degrees.context == 1 || Some(timed_exchange) == degrees.exchange);
            (at.tensor, at.context) == (degrees.tensor, degrees.context) && exchange
        })
    };
    // Later entries override earlier ones.
    let timing = |degrees: &AtDegrees| all.iter().rev().find(|timed| covers(timed, degrees));
    let mut timed: Vec<(AtDegrees, &TimedLayers)> =
        degrees.iter().filter_map(|degrees| Some((*degrees, timing(degrees)?))).collect();
    if timed.is_empty() {
        return None;
    }
    let count = timed.len();
    timed.sort_by(|a, b| b.1.fit.mean.total_cmp(&a.1.fit.mean).then(a.0.cmp(&b.0)));
    let named = timed.iter().take(MAX_NAMED).map(|(degrees, timed)| {
        let (mean, max_error) = (timed.fit.mean * 100.0, timed.fit.max_error * 100.0);
        let (tensor, context, timings) = (degrees.tensor, degrees.context, timed.timings);
        format!("TP {tensor} CP {context} {mean:.1} % ({timings} timings, at most {max_error:.1} %)")
    });
    let named = named.collect::<Vec<_>>().join(", ");
    let more = if count > MAX_NAMED { format!(", {} others less", count - MAX_NAMED) } else { String::new() };
    let overrides = &scenario.training.overrides;
    let mut scale =
        overrides.iter().rev().filter(|given| given.at.is_none() && given.is_for(module) && given.is_layer());
    let others = match (degrees.len() - count, scale.find_map(|given| given.scale)) {
        (0, _) => String::new(),
        (others, Some(scale)) => format!("; at the others ({others}) the operator graph's times x {scale:.3}"),
        (others, None) => format!("; at the others ({others}) the operator graph's times"),
    };
    Some(format!(
        "Layers take T(l) as a profile timed it at {count} of {} pairs of TP and CP, mean error of the fit: {named}{more}{others}.",
        degrees.len()
    ))
}
