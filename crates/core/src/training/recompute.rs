//! Modules of a layer that selective recomputation repeats.

use serde::{Deserialize, Serialize};

/// Module whose outputs are not stored but computed again before its backward. Names are those of Megatron-LM's
/// `--recompute-modules`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum RecomputedModule {
    /// Scores and softmax of unfused attention. Fused attention does not store them.
    CoreAttn,
    /// Up-projections of latent attention, with rotary positions.
    MlaUpProj,
    /// Norms before attention and MLP.
    Layernorm,
    /// Activation of routed experts.
    MoeAct,
    /// MLP of layers without experts.
    Mlp,
    /// Router, exchange and experts.
    Moe,
    /// Shared experts.
    SharedExperts,
}

impl RecomputedModule {
    /// All modules, in display order.
    pub const ALL: [Self; 7] =
        [Self::CoreAttn, Self::MlaUpProj, Self::Layernorm, Self::MoeAct, Self::Mlp, Self::Moe, Self::SharedExperts];

    /// Returns the stable identifier, as in JSON.
    pub const fn id(self) -> &'static str {
        match self {
            Self::CoreAttn => "core_attn",
            Self::MlaUpProj => "mla_up_proj",
            Self::Layernorm => "layernorm",
            Self::MoeAct => "moe_act",
            Self::Mlp => "mlp",
            Self::Moe => "moe",
            Self::SharedExperts => "shared_experts",
        }
    }

    /// Returns the module with this identifier.
    pub fn from_id(id: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|module| module.id() == id)
    }
}

/// Set of modules. In JSON, a list of modules.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(from = "Vec<RecomputedModule>", into = "Vec<RecomputedModule>")]
pub struct RecomputedModules(u8);

impl From<Vec<RecomputedModule>> for RecomputedModules {
    fn from(modules: Vec<RecomputedModule>) -> Self {
        Self::of(&modules)
    }
}

impl From<RecomputedModules> for Vec<RecomputedModule> {
    fn from(set: RecomputedModules) -> Self {
        set.iter().collect()
    }
}

impl RecomputedModules {
    /// Returns the set of some modules.
    pub fn of(modules: &[RecomputedModule]) -> Self {
        modules.iter().fold(Self::default(), |set, &module| set.with(module))
    }

    /// Adds a module.
    #[must_use]
    pub const fn with(self, module: RecomputedModule) -> Self {
        Self(self.0 | 1 << module as u8)
    }

    /// Removes a module.
    #[must_use]
    pub const fn without(self, module: RecomputedModule) -> Self {
        Self(self.0 & !(1 << module as u8))
    }

    /// Returns the modules, in display order.
    pub fn iter(self) -> impl Iterator<Item = RecomputedModule> {
        RecomputedModule::ALL.into_iter().filter(move |&module| self.intersects(Self::of(&[module])))
    }

    /// Returns true if the sets have a module in common.
    pub const fn intersects(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }

    /// Returns true if the set has no module.
    #[allow(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
    pub const fn is_empty(&self) -> bool {
        self.0 == 0
    }
}
