//! Detects unsupported file types from the first bytes.

use super::TraceError;

const TRACE: &str = "send the file that torch.profiler writes with export_chrome_trace, packed with gzip or not";
const NSYS: &str = "send the SQLite export of the same report: nsys export --type sqlite report.nsys-rep";
const ROCPROF: &str = "record it with rocprofv3 --output-format pftrace, which writes a Perfetto trace";

/// Magic bytes, file type, and remedy.
const MAGIC: [(&[u8], &str, &str); 12] = [
    (b"\x89PNG", "a PNG image", TRACE),
    (b"%PDF", "a PDF document", TRACE),
    (
        b"<!DOCTYPE",
        "a web page",
        "memory timelines and other reports hold no slices; send the file of export_chrome_trace",
    ),
    (b"<html", "a web page", "memory timelines and other reports hold no slices; send the file of export_chrome_trace"),
    (b"PK\x03\x04", "a zip archive", "unpack it and send the file inside"),
    (b"\x28\xb5\x2f\xfd", "a zstd archive", "unpack it and send the file inside"),
    (b"\x80\x04", "a Python pickle", "pickles are never opened; write the trace with export_chrome_trace"),
    (b"\x80\x05", "a Python pickle", "pickles are never opened; write the trace with export_chrome_trace"),
    (b"SQLite format 3", "the cut header of an SQLite file", NSYS),
    (b"\x89HDF", "an HDF5 file, as nsys export --type hdf writes it", NSYS),
    (b"\xff\xfe", "UTF-16 text", "save it as UTF-8"),
    (b"\xfe\xff", "UTF-16 text", "save it as UTF-8"),
];

/// Words that must all occur in the first lines, file type, and remedy.
const TEXTS: [(&[&str], &str, &str); 7] = [
    (
        &["Self CPU", "CPU total"],
        "a table of key_averages().table()",
        "it has totals per operator and no slices; send the file of export_chrome_trace",
    ),
    (&["Start (ns),Duration (ns)"], "a CSV table of nsys stats", NSYS),
    (&["Total Time (ns)", "Instances"], "a CSV table of nsys stats", NSYS),
    (&["Total Time (ns)", "Num Calls"], "a CSV table of nsys stats", NSYS),
    (&["Start_Timestamp", "End_Timestamp"], "a CSV table of rocprofv3", ROCPROF),
    (&["TotalDurationNs"], "a CSV table of rocprof", ROCPROF),
    (&["BeginNs", "EndNs"], "a CSV table of rocprof", ROCPROF),
];

/// Plane names in an XSpace.
const PLANES: [&[u8]; 4] = [b"/host:", b"/device:", b"Task Environment", b"#Chip"];

/// Returns an error if the first bytes match a known file type other than a trace.
pub(super) fn find(head: &[u8]) -> Option<TraceError> {
    let error = |looks_like, remedy| Some(TraceError::NotATrace { looks_like, remedy });
    if let Some(&(_, looks_like, remedy)) = MAGIC.iter().find(|(magic, ..)| head.starts_with(magic)) {
        return error(looks_like, remedy);
    }
    let beginning = &head[..head.len().min(64)];
    if head.first() == Some(&0x0a) && PLANES.iter().any(|name| beginning.windows(name.len()).any(|part| part == *name))
    {
        return error("an xplane.pb of the JAX or TensorFlow profiler", "send the trace.json.gz from the same folder");
    }
    let text = std::str::from_utf8(&head[..head.len().min(4096)]).or_else(|error| {
        // The last character may be truncated.
        std::str::from_utf8(&head[..error.valid_up_to()]).map_err(|_| ())
    });
    let text = text.ok().filter(|text| !text.is_empty() && !text.trim_start().starts_with(['{', '[']))?;
    if let Some(&(_, looks_like, remedy)) =
        TEXTS.iter().find(|(terms, ..)| terms.iter().all(|word| text.contains(word)))
    {
        return error(looks_like, remedy);
    }
    let printable = |c: char| !c.is_control() || c.is_whitespace();
    let is_text = text.len() >= 32.min(head.len()) && text.chars().all(printable);
    if is_text && !text.trim().is_empty() { error("a text file", TRACE) } else { None }
}
