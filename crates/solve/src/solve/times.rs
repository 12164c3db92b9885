//! Resolution of times that a solver counts in integer nanoseconds.

/// Shortest time in seconds that does not round to 0 ns.
const SHORTEST_S: f64 = 0.5e-9;

/// Returns why a time in seconds cannot be counted, or `None` if it can.
pub(super) fn time_error(seconds: f64) -> Option<String> {
    if !(seconds.is_finite() && seconds >= 0.0) {
        Some(format!("{seconds} is not a time of 0 s or more"))
    } else if seconds > 0.0 && seconds < SHORTEST_S {
        Some(format!("{seconds:e} s is below 0.5 ns and rounds to 0: multiply all times by the same factor"))
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_below_half_a_nanosecond_are_errors() {
        assert_eq!([0.0, 0.5e-9, 3.0].map(time_error), [None, None, None]);
        assert!(time_error(4.9e-10).unwrap().starts_with("4.9e-10 s is below 0.5 ns"));
        assert!(time_error(-1.0).unwrap().starts_with("-1 is not a time"));
        assert!(time_error(f64::NAN).unwrap().starts_with("NaN is not a time"));
    }
}
