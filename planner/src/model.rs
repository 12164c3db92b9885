//! The model to be trained: modules in the order in which a sample flows through them.

pub mod module;
pub mod presets;

pub use module::{Audio, Bias, Diffusion, Mask, Module, ModuleRole, Moe, Norm, Patch};

use serde::{Deserialize, Serialize};

/// A model: one or more modules, encoders first, the backbone last.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct Model {
    /// Shown name, for example "Llama-2 7B".
    pub name: String,
    /// Modules in flow order.
    pub modules: Vec<Module>,
}

impl Model {
    /// All parameters of all modules.
    pub fn parameters(&self) -> u64 {
        self.modules.iter().map(Module::parameters).sum()
    }

    /// Layers of all modules, the length of the chain that a pipeline cuts.
    pub fn layers(&self) -> u32 {
        self.modules.iter().map(|module| module.layers).sum()
    }

    /// The module that reads text, on whose sequence the context length is measured.
    pub fn backbone(&self) -> Option<&Module> {
        self.modules.iter().find(|module| module.role == ModuleRole::Backbone)
    }

    /// The module that reads or makes items (images, clips), if the model has one.
    pub fn item_module(&self) -> Option<&Module> {
        self.modules.iter().find(|module| module.role != ModuleRole::Backbone)
    }

    /// Tokens that one item occupies in the backbone's sequence.
    pub fn tokens_per_image(&self) -> u32 {
        self.item_module().map_or(0, Module::backbone_tokens_per_item)
    }
}
