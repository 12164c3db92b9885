//! Derivative-free minimization in a box (Nelder and Mead, 1965).

/// A parameter with start value and bounds.
#[derive(Debug, Clone, Copy)]
pub(super) struct Parameter {
    pub start: f64,
    pub low: f64,
    pub high: f64,
}

/// Returns the best point after at most `evaluations`. Points outside the box are projected to its
/// surface.
pub(super) fn minimise(parameters: &[Parameter], evaluations: usize, cost: impl Fn(&[f64]) -> f64) -> Vec<f64> {
    let dimensions = parameters.len();
    let inside = |point: &mut Vec<f64>| {
        for (value, parameter) in point.iter_mut().zip(parameters) {
            *value = value.clamp(parameter.low, parameter.high);
        }
    };
    let start: Vec<f64> = parameters.iter().map(|parameter| parameter.start).collect();
    let mut best = (cost(&start), start);
    let mut left = evaluations;
    // A simplex can collapse at the box surface. Restart around the best point with a smaller
    // simplex.
    for scale in [0.25, 0.1, 0.03] {
        let mut simplex = vec![best.clone()];
        for (dimension, parameter) in parameters.iter().enumerate() {
            let mut point = best.1.clone();
            let step = scale * (parameter.high - parameter.low);
            point[dimension] += if point[dimension] + step > parameter.high { -step } else { step };
            inside(&mut point);
            simplex.push((cost(&point), point));
        }
        let rounds = left / 3;
        for _ in 0..rounds / 2 {
            simplex.sort_by(|a, b| a.0.total_cmp(&b.0));
            let worst = simplex[dimensions].clone();
            if worst.0 - simplex[0].0 < 1e-10 {
                break;
            }
            let centre: Vec<f64> = (0..dimensions)
                .map(|at| simplex[..dimensions].iter().map(|point| point.1[at]).sum::<f64>() / dimensions as f64)
                .collect();
            let along = |factor: f64| {
                let mut point: Vec<f64> =
                    centre.iter().zip(&worst.1).map(|(centre, worst)| centre + factor * (worst - centre)).collect();
                inside(&mut point);
                (cost(&point), point)
            };
            let reflected = along(-1.0);
            if reflected.0 < simplex[0].0 {
                let expanded = along(-2.0);
                simplex[dimensions] = if expanded.0 < reflected.0 { expanded } else { reflected };
            } else if reflected.0 < simplex[dimensions - 1].0 {
                simplex[dimensions] = reflected;
            } else {
                let contracted = along(if reflected.0 < worst.0 { -0.5 } else { 0.5 });
                if contracted.0 < worst.0.min(reflected.0) {
                    simplex[dimensions] = contracted;
                } else {
                    shrink(&mut simplex, &cost);
                }
            }
        }
        simplex.sort_by(|a, b| a.0.total_cmp(&b.0));
        best = simplex.swap_remove(0);
        left = left.saturating_sub(rounds);
    }
    best.1
}

/// Moves all points halfway to the best point.
fn shrink(simplex: &mut [(f64, Vec<f64>)], cost: &impl Fn(&[f64]) -> f64) {
    let best = simplex[0].1.clone();
    for point in &mut simplex[1..] {
        for (value, best) in point.1.iter_mut().zip(&best) {
            *value = f64::midpoint(*value, *best);
        }
        point.0 = cost(&point.1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn minimiser_follows_the_rosenbrock_valley() {
        let parameter = Parameter { start: -1.0, low: -2.0, high: 2.0 };
        let valley = |p: &[f64]| (1.0 - p[0]) * (1.0 - p[0]) + 100.0 * (p[1] - p[0] * p[0]) * (p[1] - p[0] * p[0]);
        let best = minimise(&[parameter, parameter], 3000, valley);
        assert!((best[0] - 1.0).abs() < 1e-3 && (best[1] - 1.0).abs() < 1e-3, "{best:?}");
    }

    #[test]
    fn a_minimum_outside_the_box_is_met_on_its_surface() {
        let parameter = Parameter { start: 0.5, low: 0.0, high: 1.0 };
        let best = minimise(&[parameter], 300, |p: &[f64]| (p[0] - 3.0) * (p[0] - 3.0));
        assert!((best[0] - 1.0).abs() < 1e-6, "{best:?}");
    }
}
