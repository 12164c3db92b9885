//! Vidur collective profile: times in milliseconds by message size and group size.
//!
//! `size` is in bytes: 64 MiB among 8 A100 take 0.675 ms here and 0.580 ms in vTrain's table, whose
//! header contains the unit. If `size` counted 16-bit elements, the message would be twice as large
//! and take 1.162 ms there. The profiler code confirms this
//! (vidur/profiling/collectives/collectives_wrapper.py). The size is the buffer per device before
//! an all-gather, and after a reduce-scatter.

use planner::calibration::Sample;
use planner::cost::kernel::{Collective, Kernel, Operation};

use super::ProfileError;
use super::cells::Cells;
use super::ledger::Ledger;
use super::refused::Rejection;
use super::table::{Row, Table};

const MILLISECOND: f64 = 1e-3;

pub(super) fn read(table: &mut Table<'_>, ledger: &mut Ledger) -> Result<(), ProfileError> {
    table.require(ledger.format(), &["collective", "num_workers", "size", "devices_per_node"])?;
    if !table.header().iter().any(|name| name.starts_with("time_stats.") && name.ends_with(".median")) {
        let column = "time_stats.<collective>.median".to_owned();
        return Err(ProfileError::MissingColumn { format: ledger.format(), column });
    }
    ledger.assume("times are the medians, in milliseconds");
    ledger.assume("sizes are read as bytes, which is consistent with other published timings");
    while let Some(row) = table.next_row()? {
        let column = row.text("collective").map(|name| format!("time_stats.{}.median", name.to_lowercase()));
        let location = || row.describe(column.as_deref().unwrap_or("collective"));
        let value = match &column {
            Ok(column) => sample(&row, column),
            Err(rejection) => Err(rejection.clone()),
        };
        ledger.take(location, value)?;
    }
    Ok(())
}

fn sample(row: &Row<'_>, column: &str) -> Result<Sample, Rejection> {
    let ranks = row.devices("num_workers")?;
    let size = row.size("size")?;
    let (operation, bytes) = match row.text("collective")?.to_lowercase().as_str() {
        "all_reduce" => (Operation::AllReduce, size),
        "send_recv" => (Operation::SendReceive, size),
        "all_gather" => (Operation::AllGather, size * f64::from(ranks)),
        "reduce_scatter" => (Operation::ReduceScatter, size * f64::from(ranks)),
        _ => return Err(Rejection::new("a collective that training plans do not hold", row.describe("collective"))),
    };
    let ranks_per_node = row.devices("devices_per_node")?;
    let time = row.time(column, MILLISECOND)?;
    Ok(Sample { kernel: Kernel::Collective(Collective { operation, bytes, ranks, ranks_per_node }), time })
}
