//! Collective data in NCCL events.

use serde::{Deserialize, Serialize};

/// A collective or point-to-point send, from slice arguments.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Collective {
    /// Operation name, for example "allreduce".
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Element type, for example "BFloat16".
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dtype: Option<String>,
    /// Input element count per rank.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub elements_in: Option<u64>,
    /// Output element count per rank.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub elements_out: Option<u64>,
    /// Group size.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub group_size: Option<u32>,
    /// Group name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub group: Option<String>,
    /// Group description.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// Group ranks as text; the trace writer truncates long lists.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ranks: Option<String>,
    /// Source rank.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub source: Option<u32>,
    /// Destination rank.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub destination: Option<u32>,
    /// Sequence number within the group.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sequence: Option<u64>,
}

impl Collective {
    /// Sets a field from a number or text argument. Returns false for an unknown key.
    pub(super) fn set(&mut self, key: &str, value: &str) -> bool {
        let text = || Some(value.chars().take(200).collect());
        match key {
            "Collective name" => self.name = text(),
            "dtype" => self.dtype = text(),
            "In msg nelems" => self.elements_in = value.parse().ok(),
            "Out msg nelems" => self.elements_out = value.parse().ok(),
            "Group size" => self.group_size = value.parse().ok(),
            "Process Group Name" => self.group = text(),
            "Process Group Description" => self.description = text(),
            "Process Group Ranks" => self.ranks = text(),
            "Src Rank" => self.source = value.parse().ok(),
            "Dst Rank" => self.destination = value.parse().ok(),
            "Seq" => self.sequence = value.parse().ok(),
            _ => return false,
        }
        true
    }

    /// True if any field other than the type is set.
    pub(super) fn is_described(&self) -> bool {
        self.name.is_some() || self.elements_in.is_some() || self.elements_out.is_some()
    }
}
