//! What NCCL's events say of their messages.

use serde::{Deserialize, Serialize};

/// A collective or a send, by the arguments of its slice.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Collective {
    /// Name, for example "allreduce".
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Type of the elements, for example "BFloat16".
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dtype: Option<String>,
    /// Elements that a rank puts in.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub elements_in: Option<u64>,
    /// Elements that a rank gets out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub elements_out: Option<u64>,
    /// Ranks of the group.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub group_size: Option<u32>,
    /// Name of the group.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub group: Option<String>,
    /// Description of the group.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// Ranks of the group as the file writes them; long lists are cut there.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ranks: Option<String>,
    /// Sender of a message.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub source: Option<u32>,
    /// Receiver of a message.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub destination: Option<u32>,
    /// Number of the call within the group.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sequence: Option<u64>,
}

impl Collective {
    /// Sets what an argument says, number or text; false where the key is of something else.
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

    /// Whether it says anything of a message; a type alone does not.
    pub(super) fn is_told(&self) -> bool {
        self.name.is_some() || self.elements_in.is_some() || self.elements_out.is_some()
    }
}
