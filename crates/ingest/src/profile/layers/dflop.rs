//! DFLOP profiler (prof_engine.py): a data frame per module with times (`thr_...csv`) or memory
//! (`mem_...csv`).
//!
//! Language model files have `seq_len`; vision encoder files have only `batch_size`. A second file
//! with the suffix `_skip_attn` is measured without attention.

use super::super::cells::Cells;
use super::super::table::{Row, Table};
use super::super::{Hints, ProfileError, refused::Rejection};
use super::{Footprint, Format, Ledger, MEBIBYTE, Part, Purpose, Shape, Timing, bytes, seconds};

/// Memory columns.
const MEMORY: [(&str, Purpose); 3] =
    [("model_mem", Purpose::State), ("model_state_peak", Purpose::PeakState), ("fwd_peak", Purpose::Peak)];

pub(super) fn read(table: &mut Table<'_>, hints: &Hints, ledger: &mut Ledger) -> Result<(), ProfileError> {
    let format = ledger.profile.format.name();
    table.require(format, &["num_layers", "tp_size"])?;
    let columns = Columns { tokens: table.has("seq_len"), batch: table.has("batch_size") };
    if !(columns.tokens || columns.batch) {
        return Err(ProfileError::MissingColumn { format, column: "seq_len or batch_size".to_owned() });
    }
    if ledger.profile.format == Format::DflopTimes {
        times(table, columns, hints, ledger)
    } else {
        memory(table, columns, ledger)
    }
}

/// Shape columns present in the file.
#[derive(Debug, Clone, Copy)]
struct Columns {
    tokens: bool,
    batch: bool,
}

fn times(table: &mut Table<'_>, columns: Columns, hints: &Hints, ledger: &mut Ledger) -> Result<(), ProfileError> {
    ledger.assume("times are in milliseconds");
    let with_attention = !hints.name.contains("skip_attn");
    if !with_attention {
        ledger.assume("measured without attention, by the file's name");
    }
    while let Some(row) = table.next_row()? {
        let timing = shape(&row, columns).and_then(|shape| {
            let time = |column: &str| row.positive(column).and_then(|time| seconds(time, row.describe(column)));
            let [forward, backward] = [time("fwd_times")?, time("bwd_times")?];
            Ok(Timing { shape, forward_s: Some(forward), backward_s: Some(backward), with_attention })
        });
        ledger.timing(timing)?;
    }
    Ok(())
}

fn memory(table: &mut Table<'_>, columns: Columns, ledger: &mut Ledger) -> Result<(), ProfileError> {
    let mut values: Vec<(Result<Shape, Rejection>, Purpose, f64, String)> = Vec::new();
    let mut max_value = 0.0_f64;
    while let Some(row) = table.next_row()? {
        for (column, purpose) in MEMORY {
            if row.optional(column).is_ok_and(|cell| cell.is_none()) {
                continue;
            }
            let read = shape(&row, columns).and_then(|shape| Ok((shape, row.positive(column)?)));
            match read {
                Ok((shape, value)) => {
                    max_value = max_value.max(value);
                    values.push((Ok(shape), purpose, value, row.describe(column)));
                }
                Err(rejection) => values.push((Err(rejection), purpose, 0.0, String::new())),
            }
            if values.len() > super::MAX_VALUES {
                return Err(ProfileError::TooManyValues);
            }
        }
    }
    // Ten million MiB or a thousand GiB exceed device memory. Ten megabytes or one GiB are too
    // small for a model.
    let (unit, name) = match max_value {
        1e7.. => (1.0, "bytes"),
        1e3.. => (MEBIBYTE, "MiB"),
        _ => (1024.0 * MEBIBYTE, "GiB"),
    };
    ledger.assume(format!("memory is in {name}, since the largest value is {max_value}"));
    for (shape, purpose, value, location) in values {
        let footprint = shape.and_then(|shape| {
            let bytes = bytes(value, unit, location)?;
            Ok(Footprint { shape, purpose, bytes, rank: None, layout: None })
        });
        ledger.footprint(footprint)?;
    }
    Ok(())
}

fn shape(row: &Row<'_>, columns: Columns) -> Result<Shape, Rejection> {
    let part = if columns.tokens { Part::Language } else { Part::Vision };
    let read_optional = |there: bool, column: &str| if there { row.devices(column).map(Some) } else { Ok(None) };
    Ok(Shape {
        part,
        batch: read_optional(columns.batch, "batch_size")?,
        tokens: read_optional(columns.tokens, "seq_len")?,
        decoder_tokens: None,
        layers: Some(row.devices("num_layers")?),
        tensor_parallel: Some(row.devices("tp_size")?),
    })
}
