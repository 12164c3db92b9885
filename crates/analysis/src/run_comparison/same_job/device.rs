//! Accelerator names from logs and benchmarks.

use std::fmt;

/// Accelerator family names.
const FAMILIES: [&str; 33] = [
    "GB300",
    "GB200",
    "GH200",
    "B300",
    "B200",
    "B100",
    "H200",
    "H100",
    "H800",
    "H20",
    "A100",
    "A800",
    "A40",
    "A30",
    "A10",
    "A10G",
    "RTX 3090",
    "RTX 4090",
    "RTX 5090",
    "RTX A6000",
    "RTX 6000 Ada",
    "V100",
    "L40S",
    "L40",
    "L20",
    "L4",
    "MI355X",
    "MI325X",
    "MI300X",
    "MI250X",
    "MI250",
    "910B",
    "910C",
];
/// Families for which the peak of PCIe and NVL boards differs from the modules.
const WITH_BOARDS: [&str; 3] = ["H100", "H200", "H800"];

/// A known accelerator.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct DeviceName {
    family: &'static str,
    variant: Option<&'static str>,
}

impl DeviceName {
    /// Finds a known accelerator name in a text, for example `NVIDIA H100 80GB HBM3`,
    /// `A100-SXM4-80GB` or `NVIDIA H100 PCIe`. Returns `None` if the text contains no such name or
    /// several.
    pub fn find(text: &str) -> Option<Self> {
        let terms = || text.split(|c: char| !c.is_ascii_alphanumeric()).filter(|word| !word.is_empty());
        let words: Vec<&str> = terms().collect();
        let is_at = |family: &str, at: usize| {
            let mut rest = words[at..].iter();
            family.split(' ').all(|word| rest.next().is_some_and(|other| other.eq_ignore_ascii_case(word)))
        };
        let find_family = |at: usize| FAMILIES.into_iter().find(|family| is_at(family, at));
        let mut found = (0..words.len()).filter_map(find_family);
        let family = found.next()?;
        if found.any(|other| other != family) {
            return None;
        }
        let has = |wanted: &str| terms().any(|word| word.eq_ignore_ascii_case(wanted));
        let variant = if has("MIG") {
            Some("MIG")
        } else {
            ["PCIe", "NVL"].into_iter().find(|board| WITH_BOARDS.contains(&family) && has(board))
        };
        Some(Self { family, variant })
    }

    /// Returns true for a MIG slice or a board with a lower peak than the module with the same
    /// name.
    pub const fn is_variant(self) -> bool {
        self.variant.is_some()
    }
}

impl fmt::Display for DeviceName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.variant {
            Some(variant) => write!(f, "{} {variant}", self.family),
            None => f.write_str(self.family),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn accelerators_are_found_by_their_terms() {
        for (text, name) in [
            ("NVIDIA H100 80GB HBM3", Some("H100")),
            ("H100-96GB (500 W)", Some("H100")),
            ("NVIDIA H100 PCIe", Some("H100 PCIe")),
            ("NVIDIA H100 NVL", Some("H100 NVL")),
            ("NVIDIA H100 80GB HBM3 MIG 1g.10gb", Some("H100 MIG")),
            ("NVIDIA A100-PCIE-40GB", Some("A100")),
            ("A100-SXM4-80GB", Some("A100")),
            ("Ascend 910B", Some("910B")),
            ("AMD Instinct MI300X", Some("MI300X")),
            ("8 H100 and 8 A100", None),
            ("NVIDIA GeForce RTX 4090", Some("RTX 4090")),
            ("NVIDIA RTX 6000 Ada Generation", Some("RTX 6000 Ada")),
            ("NVIDIA RTX A6000", Some("RTX A6000")),
            ("Quadro RTX 6000", None),
            ("4090 MiB", None),
            ("", None),
        ] {
            assert_eq!(DeviceName::find(text).map(|name| name.to_string()).as_deref(), name, "{text}");
        }
    }
}
