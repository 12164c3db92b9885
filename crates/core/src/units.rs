//! Quantities with units.
//!
//! Cost formulas use `f64` newtypes. Schedules and timelines use the integer type [`Nanos`], so
//! that sums are exact and identical on all platforms. Values in files and network messages include
//! the unit in the field name (`memory_gib`) and are converted to these types on input.

use std::iter::Sum;
use std::ops::{Add, AddAssign, Div, Mul, Sub};

use serde::{Deserialize, Serialize};

/// Duration in cost formulas, in seconds.
#[derive(Debug, Clone, Copy, PartialEq, PartialOrd, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Seconds(f64);

impl Seconds {
    /// Zero seconds.
    pub const ZERO: Self = Self(0.0);

    /// Converts from seconds.
    pub const fn from_secs(seconds: f64) -> Self {
        Self(seconds)
    }

    /// Converts from microseconds.
    pub fn from_micros(micros: f64) -> Self {
        Self(micros * 1e-6)
    }

    /// Returns the value in seconds.
    pub const fn secs(self) -> f64 {
        self.0
    }

    /// Returns the longer duration.
    #[must_use]
    pub fn max(self, other: Self) -> Self {
        Self(self.0.max(other.0))
    }

    /// Rounds to nanoseconds. Negative and non-finite values become zero.
    pub fn to_nanos(self) -> Nanos {
        Nanos((self.0 * 1e9 + 0.5) as u64)
    }
}

/// A time or duration in schedules and timelines, in nanoseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Nanos(u64);

impl Nanos {
    /// Zero nanoseconds.
    pub const ZERO: Self = Self(0);

    /// Converts from nanoseconds.
    pub const fn new(nanos: u64) -> Self {
        Self(nanos)
    }

    /// Returns the value in nanoseconds.
    pub const fn get(self) -> u64 {
        self.0
    }

    /// Returns the value in seconds.
    pub fn secs(self) -> f64 {
        self.0 as f64 * 1e-9
    }

    /// Returns the difference, at least zero.
    #[must_use]
    pub const fn saturating_sub(self, other: Self) -> Self {
        Self(self.0.saturating_sub(other.0))
    }
}

/// Saturates at 584 years. Planners reject plans that take months.
impl Add for Nanos {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }
}

impl AddAssign for Nanos {
    fn add_assign(&mut self, other: Self) {
        *self = *self + other;
    }
}

impl Sub for Nanos {
    type Output = Self;
    fn sub(self, other: Self) -> Self {
        Self(self.0 - other.0)
    }
}

impl Sum for Nanos {
    fn sum<I: Iterator<Item = Self>>(values: I) -> Self {
        values.fold(Self::ZERO, Add::add)
    }
}

/// A number of bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Bytes(u64);

impl Bytes {
    /// Zero bytes.
    pub const ZERO: Self = Self(0);

    /// Converts from bytes.
    pub const fn new(bytes: u64) -> Self {
        Self(bytes)
    }

    /// Converts from gibibytes (2^30 bytes).
    pub fn from_gib(gib: f64) -> Self {
        Self((gib * 1_073_741_824.0) as u64)
    }

    /// Converts a formula result. Negative and non-finite values become zero.
    pub fn from_f64(bytes: f64) -> Self {
        Self((bytes + 0.5) as u64)
    }

    /// Returns the value in bytes.
    pub const fn get(self) -> u64 {
        self.0
    }

    /// Returns the value in gibibytes (2^30 bytes).
    pub fn gib(self) -> f64 {
        self.0 as f64 / 1_073_741_824.0
    }

    /// Returns the difference, at least zero.
    #[must_use]
    pub const fn saturating_sub(self, other: Self) -> Self {
        Self(self.0.saturating_sub(other.0))
    }
}

/// Saturates at a value that no device can hold.
impl Add for Bytes {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }
}

impl AddAssign for Bytes {
    fn add_assign(&mut self, other: Self) {
        *self = *self + other;
    }
}

impl Sum for Bytes {
    fn sum<I: Iterator<Item = Self>>(values: I) -> Self {
        values.fold(Self::ZERO, Add::add)
    }
}

/// A number of floating-point operations. A multiply-add counts as two.
#[derive(Debug, Clone, Copy, PartialEq, PartialOrd, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Flops(f64);

impl Flops {
    /// Zero operations.
    pub const ZERO: Self = Self(0.0);

    /// Converts from an operation count.
    pub const fn new(flops: f64) -> Self {
        Self(flops)
    }

    /// Returns the operation count.
    pub const fn get(self) -> f64 {
        self.0
    }
}

/// A compute rate.
#[derive(Debug, Clone, Copy, PartialEq, PartialOrd, Serialize, Deserialize)]
#[serde(transparent)]
pub struct FlopsPerSecond(f64);

impl FlopsPerSecond {
    /// Converts from TFLOP/s (10^12 per second).
    pub fn from_tera(tera: f64) -> Self {
        Self(tera * 1e12)
    }

    /// Returns operations per second.
    pub const fn get(self) -> f64 {
        self.0
    }
}

/// A data rate per direction.
#[derive(Debug, Clone, Copy, PartialEq, PartialOrd, Serialize, Deserialize)]
#[serde(transparent)]
pub struct BytesPerSecond(f64);

impl BytesPerSecond {
    /// Converts from GB/s (10^9 bytes per second).
    pub fn from_giga(giga: f64) -> Self {
        Self(giga * 1e9)
    }

    /// Returns bytes per second.
    pub const fn get(self) -> f64 {
        self.0
    }

    /// Returns the transfer time for `bytes`.
    pub fn time_for(self, bytes: f64) -> Seconds {
        Seconds(bytes / self.0)
    }
}

macro_rules! additive {
    ($($unit:ident),*) => {$(
        impl Add for $unit {
            type Output = Self;
            fn add(self, other: Self) -> Self {
                Self(self.0 + other.0)
            }
        }
        impl AddAssign for $unit {
            fn add_assign(&mut self, other: Self) {
                self.0 += other.0;
            }
        }
        impl Sub for $unit {
            type Output = Self;
            fn sub(self, other: Self) -> Self {
                Self(self.0 - other.0)
            }
        }
        impl Mul<f64> for $unit {
            type Output = Self;
            fn mul(self, factor: f64) -> Self {
                Self(self.0 * factor)
            }
        }
        impl Div<f64> for $unit {
            type Output = Self;
            fn div(self, divisor: f64) -> Self {
                Self(self.0 / divisor)
            }
        }
        impl Sum for $unit {
            fn sum<I: Iterator<Item = Self>>(values: I) -> Self {
                Self(values.map(|value| value.0).sum())
            }
        }
    )*};
}

additive!(Seconds, Flops);

impl Div<FlopsPerSecond> for Flops {
    type Output = Seconds;
    fn div(self, rate: FlopsPerSecond) -> Seconds {
        Seconds(self.0 / rate.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seconds_round_to_the_nearest_nanosecond_and_never_wrap() {
        assert_eq!(Seconds::from_secs(1.499_999_999_6).to_nanos(), Nanos::new(1_500_000_000));
        assert_eq!(Seconds::from_secs(-1.0).to_nanos(), Nanos::ZERO);
        assert_eq!(Seconds::from_secs(f64::NAN).to_nanos(), Nanos::ZERO);
    }

    #[test]
    fn gibibytes_are_binary_and_gigabytes_per_second_decimal() {
        assert_eq!(Bytes::from_gib(80.0).get(), 85_899_345_920);
        assert!((BytesPerSecond::from_giga(2.0).time_for(1e9).secs() - 0.5).abs() < 1e-15);
    }
}
