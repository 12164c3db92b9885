//! Output file of a shard: a heading line, then the rows in point order.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{PointRow, Shard, Sweep};
use planscope_plan::outcome::ENGINE;

/// Format name for these files.
pub const SHEET_SCHEMA: &str = "sweep-points/1";

/// The first line. It is sufficient to resume or merge the file.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct Heading {
    /// Format name, "sweep-points/1".
    pub schema: String,
    /// Sweep identifier.
    pub sweep: String,
    /// Shard, for example "2/8".
    pub shard: String,
    /// Points in the sweep.
    pub points: u32,
    /// Engine version for the rows.
    pub engine: String,
    /// Sweep definition.
    pub definition: Value,
}

impl Heading {
    /// Builds the heading of a shard for this engine.
    pub fn new(sweep: &Sweep, shard: Shard) -> Self {
        Self {
            schema: SHEET_SCHEMA.to_owned(),
            sweep: sweep.id().to_string(),
            shard: shard.to_string(),
            points: sweep.points(),
            engine: ENGINE.to_owned(),
            definition: serde_json::to_value(sweep).expect("a sweep has only text keys"),
        }
    }

    /// Formats the heading without a line break.
    pub fn line(&self) -> String {
        serde_json::to_string(self).expect("a heading has only text keys")
    }
}

/// A file with a parsed heading. Parses rows and rejects those from other sweeps or shards.
#[derive(Debug, Clone)]
pub struct Sheet {
    /// First line.
    pub heading: Heading,
    /// The sweep, verified against its identifier.
    pub sweep: Sweep,
    /// Shard that contains the allowed points.
    pub shard: Shard,
}

impl Sheet {
    /// Parses the first line.
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

    /// Parses the row for a point.
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

/// Error for a rejected line.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SheetError {
    /// The first line is not a heading.
    #[error("no heading of a file of points: {0}")]
    NoHeading(String),
    /// The line is from another sweep.
    #[error("belongs to the sweep {found}, not to {wanted}")]
    OtherSweep {
        /// Sweep identifier in the line.
        found: String,
        /// Expected sweep identifier.
        wanted: String,
    },
    /// The line is from another engine.
    #[error("was made by {found}, not by {wanted}")]
    OtherEngine {
        /// Engine in the line.
        found: String,
        /// Expected engine.
        wanted: String,
    },
    /// The line is not a row in the sweep.
    #[error("no row of this sweep: {0}")]
    NoRow(String),
}
