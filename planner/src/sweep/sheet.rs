//! The file that a shard writes: a line that says of what, then a row for every point in their order.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{PointRow, Shard, Sweep};
use crate::outcome::ENGINE;

/// Name of the format of these files.
pub const SHEET_SCHEMA: &str = "sweep-points/1";

/// The first line: enough to go on with, or to gather, the file by itself.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct Heading {
    /// Format, "sweep-points/1".
    pub schema: String,
    /// Identifier of the sweep.
    pub sweep: String,
    /// Which share of the points, "2/8".
    pub shard: String,
    /// Points of the whole sweep.
    pub points: u32,
    /// Version of the engine that made the rows.
    pub engine: String,
    /// The sweep itself.
    pub definition: Value,
}

impl Heading {
    /// That of a shard planned by this engine.
    pub fn of(sweep: &Sweep, shard: Shard) -> Self {
        Self {
            schema: SHEET_SCHEMA.to_owned(),
            sweep: sweep.id().to_string(),
            shard: shard.to_string(),
            points: sweep.points(),
            engine: ENGINE.to_owned(),
            definition: serde_json::to_value(sweep).expect("a sweep has only text keys"),
        }
    }

    /// The heading as its line, without the end of it.
    pub fn line(&self) -> String {
        serde_json::to_string(self).expect("a heading has only text keys")
    }
}

/// A file whose heading was read: takes its rows one by one and refuses what does not belong.
#[derive(Debug, Clone)]
pub struct Sheet {
    /// What stands in the first line.
    pub heading: Heading,
    /// The sweep, read and checked against its identifier.
    pub sweep: Sweep,
    /// Which points may stand in it.
    pub shard: Shard,
}

impl Sheet {
    /// Reads the first line.
    pub fn open(line: &str) -> Result<Self, SheetError> {
        let heading: Heading = serde_json::from_str(line).map_err(|error| SheetError::NoHeading(error.to_string()))?;
        if heading.schema != SHEET_SCHEMA {
            return Err(SheetError::NoHeading(format!("schema is {:?}, not {SHEET_SCHEMA:?}", heading.schema)));
        }
        let sweep = Sweep::parse(&heading.definition.to_string()).map_err(|errors| {
            SheetError::NoHeading(errors.first().map(|error| format!("definition{error}")).unwrap_or_default())
        })?;
        if sweep.id().as_str() != heading.sweep || sweep.points() != heading.points {
            return Err(SheetError::OtherSweep { found: heading.sweep, wanted: sweep.id().to_string() });
        }
        let shard = heading.shard.parse().map_err(|_| SheetError::NoHeading("shard is not I/N".to_owned()))?;
        Ok(Self { heading, sweep, shard })
    }

    /// Reads the row of a point.
    pub fn row(&self, line: &str) -> Result<PointRow, SheetError> {
        let row: PointRow = serde_json::from_str(line).map_err(|error| SheetError::NoRow(error.to_string()))?;
        let Some(coordinates) = self.sweep.coordinates(row.index) else {
            return Err(SheetError::NoRow(format!("point {} of {}", row.index, self.heading.points)));
        };
        if row.engine != self.heading.engine {
            return Err(SheetError::OtherEngine { found: row.engine, wanted: self.heading.engine.clone() });
        }
        if !self.shard.has(row.index) {
            return Err(SheetError::NoRow(format!("point {} is none of shard {}", row.index, self.shard)));
        }
        if row.coordinates != coordinates {
            let wanted = Value::from(coordinates);
            return Err(SheetError::NoRow(format!("point {} of this sweep is {wanted}", row.index)));
        }
        Ok(row)
    }
}

/// Why a line is refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SheetError {
    /// The first line is none.
    #[error("no heading of a file of points: {0}")]
    NoHeading(String),
    /// It belongs to another sweep.
    #[error("belongs to the sweep {found}, not to {wanted}")]
    OtherSweep {
        /// Sweep that it names.
        found: String,
        /// The sweep that is gathered.
        wanted: String,
    },
    /// Another engine made it.
    #[error("was made by {found}, not by {wanted}")]
    OtherEngine {
        /// Engine that it names.
        found: String,
        /// The engine of the others.
        wanted: String,
    },
    /// A later line is no row of the sweep.
    #[error("no row of this sweep: {0}")]
    NoRow(String),
}
