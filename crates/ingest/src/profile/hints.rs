//! Additional information about a file.

use super::ledger::Ledger;

/// Accelerator names used in file names.
const DEVICES: [&str; 26] = [
    "GB300", "GB200", "GH200", "L40", "L4", "L20", "H20", "A10", "A30", "MI325X", "MI355X", "B300", "B200", "B100",
    "H200", "H100", "H800", "A100", "A800", "A40", "V100", "L40S", "MI300X", "MI250", "MI250X", "910B",
];

/// Additional information about a file. None is required to detect the format.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Hints {
    /// File name. In some formats only the name contains device, device count or devices per node.
    pub name: String,
    /// Size of the measured group, if the format omits it.
    pub ranks: Option<u32>,
    /// Devices per node, if the format omits it.
    pub ranks_per_node: Option<u32>,
}

impl Hints {
    /// Returns the accelerator in the file name and records it as an assumption.
    pub(super) fn device(&self, ledger: &mut Ledger) -> Option<String> {
        let device = self
            .name
            .split(|c: char| !c.is_ascii_alphanumeric())
            .find_map(|word| DEVICES.into_iter().find(|device| device.eq_ignore_ascii_case(word)))?;
        ledger.assume(format!("the device is {device}, by the file's name"));
        Some(device.to_owned())
    }

    /// Returns the device count in a name such as `AR_GPU8_1M`.
    pub(super) fn ranks_in_name(&self) -> Option<u32> {
        let start = self.name.find("GPU")? + "GPU".len();
        let digits: String = self.name[start..].chars().take_while(char::is_ascii_digit).collect();
        digits.parse().ok()
    }

    /// Returns devices per node in a name such as `sp_time_1nodes_8gpus_per_node`.
    pub(super) fn ranks_per_node_in_name(&self) -> Option<u32> {
        self.number_before("gpus_per_node")
    }

    /// Returns the node count in such a name.
    pub(super) fn nodes_in_name(&self) -> Option<u32> {
        self.number_before("nodes_")
    }

    fn number_before(&self, word: &str) -> Option<u32> {
        let before = &self.name[..self.name.find(word)?];
        before[before.trim_end_matches(|c: char| c.is_ascii_digit()).len()..].parse().ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_tell_numbers() {
        let named = |name: &str| Hints { name: name.to_owned(), ..Hints::default() };
        assert_eq!(named("AR_GPU7_1M_1024M_LUT").ranks_in_name(), Some(7));
        assert_eq!(named("GPU").ranks_in_name(), None);
        assert_eq!(named("GPU99999999999").ranks_in_name(), None);
        assert_eq!(named("sp_time_1nodes_8gpus_per_node.json").ranks_per_node_in_name(), Some(8));
        assert_eq!(named("16gpus_per_node").ranks_per_node_in_name(), Some(16));
        assert_eq!(named("é8gpus_per_node").ranks_per_node_in_name(), Some(8));
        assert_eq!(named("gpus_per_node").ranks_per_node_in_name(), None);
    }
}
