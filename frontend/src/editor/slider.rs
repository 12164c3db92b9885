//! Mapping between slider positions and field values.

/// Slider positions per power of two.
const PER_OCTAVE: f64 = 16.0;
/// Maximum step count of a linear slider.
const MAX_STEPS: f64 = 256.0;
/// Range of a wide slider in powers of two, in each direction.
const OCTAVES: f64 = 3.0;

/// Scale of a slider. Positions are integers.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Slider {
    /// Linear scale with this range.
    Linear(f64, f64),
    /// Powers of two with this range of exponents.
    BinaryExponents(f64, f64),
    /// Linear scale from `low` with a fixed step size.
    Steps { low: f64, step: f64, count: f64 },
    /// Logarithmic scale from `low` to `high`, rounded to the step size.
    Factors { low: f64, high: f64, step: f64 },
}

impl Slider {
    /// Default scale of a field. A short range is covered completely. A wide range extends from 1/8
    /// to 8 times the value.
    pub(crate) fn around(value: Option<f64>, min: f64, max: f64, step: f64) -> Self {
        let count = ((max - min) / step).floor();
        if count <= MAX_STEPS {
            return Self::Steps { low: min, step, count };
        }
        let value = value.unwrap_or(min).max(step).clamp(min, max);
        let low = (value * (-OCTAVES).exp2()).max(step).max(min);
        Self::Factors { low, high: (low * (2.0 * OCTAVES).exp2()).min(max), step }
    }

    /// Minimum and maximum position.
    pub(crate) fn range(self) -> (f64, f64) {
        match self {
            Self::Linear(low, high) | Self::BinaryExponents(low, high) => (low, high),
            Self::Steps { count, .. } => (0.0, count),
            Self::Factors { low, high, .. } => (0.0, ((high / low).log2() * PER_OCTAVE).floor()),
        }
    }

    /// Value at a position, formatted as user input.
    pub(crate) fn typed(self, position: f64) -> String {
        match self {
            Self::Linear(..) => position.round().to_string(),
            Self::BinaryExponents(..) => position.round().exp2().to_string(),
            Self::Steps { low, step, .. } => written(low + position.round() * step, step),
            Self::Factors { low, step, .. } => {
                let value = low * (position.round() / PER_OCTAVE).exp2();
                written((value / step).round() * step, step)
            }
        }
    }

    /// Position of a value, clamped to the range.
    pub(crate) fn position(self, value: f64) -> f64 {
        let (lower, upper) = self.range();
        let position = match self {
            Self::Linear(..) => value,
            Self::BinaryExponents(..) => value.max(1.0).log2(),
            Self::Steps { low, step, .. } => ((value - low) / step).round(),
            Self::Factors { low, .. } => ((value.max(low) / low).log2() * PER_OCTAVE).round(),
        };
        position.clamp(lower, upper)
    }
}

/// Formats a multiple of `step` with the decimals of `step`.
fn written(value: f64, step: f64) -> String {
    let decimals = (0..6).find(|&decimals| (step * 10_f64.powi(decimals)).fract().abs() < 1e-9).unwrap_or(6);
    let text = format!("{value:.*}", decimals as usize);
    if decimals > 0 { text.trim_end_matches('0').trim_end_matches('.').to_owned() } else { text }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn value(slider: Slider, position: f64) -> f64 {
        slider.typed(position).parse().unwrap()
    }

    #[test]
    fn slider_position_matches_its_value() {
        let powers = Slider::BinaryExponents(9.0, 20.0);
        assert_eq!(powers.typed(13.0), "8192");
        assert!((powers.position(8192.0) - 13.0).abs() < 1e-12);
        assert!((powers.position(1.0) - 9.0).abs() < f64::EPSILON, "below the range");
        assert!((Slider::Linear(0.0, 64.0).position(99.0) - 64.0).abs() < f64::EPSILON, "above the range");
    }

    #[test]
    fn short_ranges_are_walked_by_steps() {
        let share = Slider::around(Some(0.5), 0.0, 1.0, 0.05);
        assert_eq!(share.range(), (0.0, 20.0));
        assert_eq!([0.0, 3.0, 10.0, 20.0].map(|position| share.typed(position)), ["0", "0.15", "0.5", "1"]);
        assert!((share.position(0.151) - 3.0).abs() < 1e-12);
        assert_eq!(Slider::around(None, 1.0, 256.0, 1.0).typed(7.0), "8");
    }

    /// The slider reproduces the current value within one step, so that it does not change values
    /// without user input.
    #[test]
    fn wide_ranges_are_walked_by_factors_around_the_value() {
        for (now, min, max, step) in [
            (96.0, 1.0, 1024.0, 1.0),
            (4096.0, 1.0, 131_072.0, 128.0),
            (989.4, 1.0, 100_000.0, 1.0),
            (0.3, 0.1, 3600.0, 0.1),
        ] {
            let slider = Slider::around(Some(now), min, max, step);
            let (_, upper) = slider.range();
            let at = slider.position(now);
            assert!((value(slider, at) - now).abs() <= step, "{now}: {slider:?}");
            for position in [0.0, at, upper] {
                let value = value(slider, position);
                assert!((min..=max).contains(&value), "{value} at {position} of {slider:?}");
            }
            assert!(value(slider, upper) > 2.0 * now, "{slider:?}");
        }
        let empty = Slider::around(None, 0.0, 1e9, 0.25);
        assert_eq!((empty.typed(0.0), empty.range()), ("0.25".to_owned(), (0.0, 96.0)));
    }
}
