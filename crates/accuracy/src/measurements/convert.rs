//! Converts the output of `planscope measure` to compact tables, one file per kind of measurement.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::{Context, bail};
use serde_json::{Map, Value, json};

/// Format name of the input.
const FORMAT: &str = "planscope-measurements";
/// Significant digits of a time.
const DIGITS: i32 = 4;

type Row = Map<String, Value>;

/// Output files with their columns.
const FILES: [(&str, &str); 12] = [
    ("products", "product accumulate m k n time_us spread_pct"),
    (
        "attention",
        "backend causal backward heads kv_heads qk_dim tokens squared queries keys lengths time_us spread_pct",
    ),
    ("fp8", "op kind variant scales m k n rows width time_us spread_pct"),
    (
        "experts",
        "op function product routing batch m k n inputs outputs rows step tokens width experts top_k time_us spread_pct",
    ),
    ("optimizer", "op parameters tensors time_us device_us spread_pct"),
    ("pointwise", "op variant backward rows width bytes time_us spread_pct"),
    (
        "launch",
        "op call model tokens variant forward_us forward_device_us backward_us backward_device_us layer_device_us time_us \
         spread_pct",
    ),
    (
        "memory",
        "model hidden ffn heads kv_heads layers vocabulary batch tokens recompute optimizer parameters start_mib after_forward_mib \
         peak_allocated_mib peak_reserved_mib",
    ),
    ("sustained", "m k n operands burst_us first_window_us time_us sm_mhz watts celsius"),
    ("contention", "measured background time_us spread_pct"),
    (
        "validation",
        "op model hidden ffn heads kv_heads layers vocabulary batch tokens precision variant attention forward_us \
         forward_device_us backward_us backward_device_us layer_device_us optimizer_us time_us spread_pct parameters \
         peak_allocated_mib peak_reserved_mib",
    ),
    (
        "kinds",
        "op model part batch tokens variant kernels module forward_us forward_device_us backward_us backward_device_us \
         layer_device_us optimizer_us time_us spread_pct parameters start_mib after_forward_mib peak_allocated_mib \
         peak_reserved_mib",
    ),
];

/// Writes the tables and `header.json` of a profile into a folder. Sections that the profile does not
/// measure keep their tables.
///
/// # Errors
/// The profile is unreadable or of another format, contains rows without a table, or the folder is not writable.
pub fn convert(profile: &Path, folder: &Path) -> anyhow::Result<()> {
    let text = std::fs::read_to_string(profile).with_context(|| format!("cannot read {}", profile.display()))?;
    let document: Value = serde_json::from_str(&text).with_context(|| profile.display().to_string())?;
    if document["format"] != FORMAT {
        bail!("{} is no output of planscope measure", profile.display());
    }
    std::fs::create_dir_all(folder).with_context(|| format!("cannot create {}", folder.display()))?;
    let sections = document["sections"].as_array().context("sections is no list")?;
    let mut tables: BTreeMap<&str, Vec<Row>> = BTreeMap::new();
    for section in sections {
        let name = section["name"].as_str().unwrap_or_default();
        for row in section["results"].as_array().into_iter().flatten().filter_map(Value::as_object) {
            for row in split(row) {
                tables.entry(table(name, &row)?).or_default().push(derived(row));
            }
        }
    }
    for (name, columns) in FILES {
        let Some(rows) = tables.remove(name) else { continue };
        let columns: Vec<&str> = columns.split_whitespace().collect();
        let path = folder.join(name).with_extension("csv");
        let mut writer = csv::Writer::from_path(&path).with_context(|| format!("cannot write {}", path.display()))?;
        writer.write_record(&columns)?;
        for row in rows {
            writer.write_record(columns.iter().map(|column| cell(column, row.get(*column))))?;
        }
        writer.flush()?;
    }
    let path = folder.join("header.json");
    let previous = std::fs::read_to_string(&path).ok().and_then(|text| serde_json::from_str(&text).ok());
    let header = serde_json::to_string_pretty(&header(&document, sections, previous.unwrap_or(Value::Null)))? + "\n";
    std::fs::write(&path, header).with_context(|| format!("cannot write {}", path.display()))
}

/// Returns the table of a row.
fn table<'n>(section: &'n str, row: &Row) -> anyhow::Result<&'n str> {
    let name = match (section, row.get("op").and_then(Value::as_str).unwrap_or_default()) {
        ("compiled", "layer" | "training_step") => "validation",
        ("compiled", "layer_launch") => "launch",
        ("compiled", "flex") => "attention",
        ("compiled", "cast_fp8") => "fp8",
        ("compiled", _) => "pointwise",
        (section, _) => section,
    };
    let known = FILES.iter().any(|(file, _)| *file == name);
    if known { Ok(name) } else { bail!("there is no table for section {section}") }
}

/// Splits a compiled operator with both directions into two rows.
fn split(row: &Row) -> Vec<Row> {
    let Some(backward) =
        row.get("backward_us").filter(|_| row.get("layer_us").is_none() && !row.contains_key("optimizer_us"))
    else {
        return vec![row.clone()];
    };
    let mut forward = row.clone();
    if row["op"] == "flex" {
        // The program measures four sequences with 128 wide heads.
        let length = row["tokens"].as_f64().unwrap_or_default();
        for (name, value) in
            [("tokens", 4.0 * length), ("squared", 4.0 * length * length), ("queries", length), ("keys", length)]
        {
            forward.insert(name.to_owned(), json!(value as u64));
        }
        forward.insert("kv_heads".to_owned(), row["heads"].clone());
        forward.insert("backend".to_owned(), json!("flex_compiled"));
    }
    forward.insert("backward".to_owned(), json!(false));
    let mut second = forward.clone();
    second.insert("backward".to_owned(), json!(true));
    second.insert("time_us".to_owned(), backward.clone());
    second.remove("p10_us");
    vec![forward, second]
}

/// Adds the columns that a row does not have: the spread of repeated measurements, memory in MiB, and means of samples.
fn derived(mut row: Row) -> Row {
    let number = |row: &Row, name: &str| row.get(name).and_then(Value::as_f64);
    if let (Some(low), Some(high), Some(time)) =
        (number(&row, "p10_us"), number(&row, "p90_us"), number(&row, "time_us"))
    {
        row.insert("spread_pct".to_owned(), json!(((high - low) / time * 1000.0).round() / 10.0));
    }
    for name in ["start", "after_forward", "peak_allocated", "peak_reserved"] {
        if let Some(bytes) = number(&row, &format!("{name}_bytes")) {
            row.insert(format!("{name}_mib"), json!((bytes / 1_048_576.0 * 10.0).round() / 10.0));
        }
    }
    // The second half is in equilibrium.
    let samples = row.get("samples").and_then(Value::as_array).cloned().unwrap_or_default();
    for name in ["sm_mhz", "watts", "celsius"] {
        let values: Vec<f64> = samples[samples.len() / 2..].iter().filter_map(|sample| sample[name].as_f64()).collect();
        if !values.is_empty() {
            row.insert(name.to_owned(), json!((values.iter().sum::<f64>() / values.len() as f64).round()));
        }
    }
    row
}

fn cell(column: &str, value: Option<&Value>) -> String {
    match value {
        None | Some(Value::Null) => String::new(),
        Some(Value::String(text)) => text.clone(),
        Some(Value::Array(list)) => list.iter().map(|value| cell("", Some(value))).collect::<Vec<_>>().join(" "),
        Some(Value::Number(number)) if column.ends_with("_us") => significant(number.as_f64().unwrap_or_default()),
        Some(value) => value
            .as_f64()
            .filter(|number| number.fract() == 0.0)
            .map_or_else(|| value.to_string(), |number| format!("{number:.0}")),
    }
}

/// Formats with four significant digits, without exponent and trailing zeros.
fn significant(value: f64) -> String {
    if value <= 0.0 {
        return "0".to_owned();
    }
    let scale = 10_f64.powi(DIGITS - 1 - value.log10().floor() as i32);
    format!("{}", (value * scale).round() / scale)
}

/// Returns date, device and versions, and the counts of each section. Sections that an earlier profile
/// measured stay, with its date; the other fields are those of the earlier profile.
fn header(document: &Value, sections: &[Value], previous: Value) -> Value {
    let mut header = document["header"].as_object().cloned().unwrap_or_default();
    let minutes = header.remove("arguments").map_or(Value::Null, |arguments| arguments["minutes"].clone());
    for name in ["ranks", "system", "sm_mhz", "watts", "celsius"] {
        header.remove(name);
    }
    header.insert("minutes".to_owned(), minutes);
    header.insert("source".to_owned(), json!("own measurement with planscope measure"));
    header.insert("licence".to_owned(), json!("MIT OR Apache-2.0"));
    let date = header.get("date").cloned().unwrap_or_default();
    if let Value::Object(earlier) = previous {
        header = earlier;
    }
    let mut counts = header.remove("sections").and_then(|counts| counts.as_object().cloned()).unwrap_or_default();
    for section in sections {
        let left_out: u64 =
            section["left_out"].as_object().into_iter().flatten().filter_map(|(_, count)| count.as_u64()).sum();
        let rows = |name: &str| section[name].as_array().map_or(0, Vec::len);
        let name = section["name"].as_str().unwrap_or_default().to_owned();
        let (measured, skipped) = (rows("results"), rows("skipped"));
        counts.insert(name, json!({"date": date, "measured": measured, "skipped": skipped, "left_out": left_out}));
    }
    header.insert("sections".to_owned(), Value::Object(counts));
    Value::Object(header)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_four_digits() {
        assert_eq!(
            [1222.112, 0.123_456, 19_817.225, 60.0, 9.9996].map(significant),
            ["1222", "0.1235", "19820", "60", "10"]
        );
    }

    #[test]
    fn every_row_has_its_table() {
        let row = |text: &str| serde_json::from_str::<Row>(text).unwrap();
        assert_eq!(table("compiled", &row(r#"{"op": "rope"}"#)).unwrap(), "pointwise");
        assert_eq!(table("compiled", &row(r#"{"op": "training_step"}"#)).unwrap(), "validation");
        assert_eq!(table("fp8", &row("{}")).unwrap(), "fp8");
        assert!(table("unheard", &row("{}")).is_err());
        let both = split(&row(
            r#"{"op": "flex", "tokens": 4096, "heads": 16, "time_us": 745.0, "backward_us": 1900.5, "p10_us": 1}"#,
        ));
        assert_eq!(both.iter().map(|row| cell("time_us", row.get("time_us"))).collect::<Vec<_>>(), ["745", "1901"]);
        assert_eq!(both[1]["squared"], 4 * 4096 * 4096);
        // Layers have both directions in a row.
        assert_eq!(split(&row(r#"{"op": "layer", "layer_us": 5, "backward_us": 3}"#)).len(), 1);
        let memory = derived(row(
            r#"{"peak_reserved_bytes": 1048576000, "samples": [{"watts": 1}, {"watts": 600}, {"watts": 700}]}"#,
        ));
        assert_eq!(cell("peak_reserved_mib", memory.get("peak_reserved_mib")), "1000");
        assert_eq!(cell("watts", memory.get("watts")), "650");
        assert_eq!(cell("lengths", Some(&json!([512, 256]))), "512 256");
    }
}
