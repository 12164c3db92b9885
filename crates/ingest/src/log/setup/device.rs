//! Parses accelerator names printed by training programs and drivers.

use planner::run_comparison::DeviceName;

/// Vendor prefixes.
const MAKERS: [&str; 4] = ["nvidia ", "tesla ", "amd instinct ", "ascend "];
/// Maximum name length in bytes.
const MAX_NAME: usize = 60;

/// Finds the accelerator in torchtitan's `CUDA capacity: NVIDIA H100 with 94.99GiB memory`, in
/// `nvidia-smi` output, and in other lines with a vendor name. The line must be lower case.
pub(super) fn read(line: &str) -> Option<DeviceName> {
    if let Some((_, after)) = line.split_once("capacity: ") {
        return after.split_once(" with ").and_then(|(name, _)| DeviceName::find(name));
    }
    if let Some((before, _)) = line.split_once("(uuid:") {
        let (_, name) = before.split_once("gpu ")?.1.split_once(':')?;
        return DeviceName::find(name);
    }
    MAKERS.iter().find_map(|maker| {
        line.match_indices(maker).find_map(|(at, _)| {
            let name = &line[at..];
            let cut = name.char_indices().map(|(index, _)| index).take_while(|index| *index <= MAX_NAME).last()?;
            let name = if name.len() <= MAX_NAME { name } else { &name[..cut] };
            let end = name.find(['\'', '"', '(', ',', '|', ';', ')']).unwrap_or(name.len());
            DeviceName::find(&name[..end])
        })
    })
}
