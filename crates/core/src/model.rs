//! The trained model: modules in the order of the data flow.

pub mod items;
pub mod layers;
pub mod module;
pub mod presets;

pub use items::{Audio, Patch, Video};
pub use layers::{
    Adapters, LINEAR_CHUNK, LatentAttention, LayerKind, LinearAttention, MAX_KINDS, Mixer, MlpKind, Moe,
    ParameterCount, Recurrence, Window,
};
pub use module::{AdaptedMatrix, Bias, Diffusion, Gradients, Mask, Module, ModuleRole, Norm, heads_support_all_to_all};

use serde::{Deserialize, Serialize};

/// A model with encoders, a backbone that reads their output, and a generator after it. At least
/// one of them is present.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct Model {
    /// Display name, for example "Llama-2 7B".
    pub name: String,
    /// Modules in flow order.
    pub modules: Vec<Module>,
}

impl Model {
    /// Total number of parameters.
    pub fn parameters(&self) -> u64 {
        self.modules.iter().map(Module::parameters).sum()
    }

    /// Total number of layers, the length of the chain that a pipeline partitions.
    pub fn layers(&self) -> u32 {
        self.modules.iter().map(|module| module.layers).sum()
    }

    /// Sets the number of layers of the language model. A pattern of kinds repeats or ends early.
    pub fn set_layers(&mut self, layers: u32) {
        let Some(module) = self.modules.iter_mut().find(|module| module.role == ModuleRole::Backbone) else { return };
        module.layers = layers;
        module.pattern = module.pattern.take().map(|kinds| kinds.chars().cycle().take(layers as usize).collect());
    }

    /// Returns the module that reads text. The context length refers to its sequences.
    pub fn backbone(&self) -> Option<&Module> {
        self.modules.iter().find(|module| module.role == ModuleRole::Backbone)
    }

    /// Returns the module that processes images: a vision encoder, otherwise an image generator.
    pub fn images(&self) -> Option<&Module> {
        self.with_role(ModuleRole::VisionEncoder)
            .or_else(|| self.with_role(ModuleRole::Generator).filter(|generator| generator.patch.is_some()))
    }

    /// Returns the module that processes audio clips.
    pub fn sound(&self) -> Option<&Module> {
        self.with_role(ModuleRole::AudioEncoder)
    }

    /// Returns the video tokenization of a video generator.
    pub fn video(&self) -> Option<Video> {
        self.with_role(ModuleRole::Generator).and_then(|generator| generator.video)
    }

    /// Tokens per image in the backbone's sequence.
    pub fn tokens_per_image(&self) -> u32 {
        self.images().map_or(0, Module::backbone_tokens_per_item)
    }

    /// Tokens per audio clip in the backbone's sequence. Video tokens exist only in the generator.
    pub fn tokens_per_clip(&self) -> u32 {
        self.sound().map_or(0, Module::backbone_tokens_per_item)
    }

    /// Returns the modules whose output a module reads. The backbone reads the encoders; a
    /// generator reads the backbone, or the encoders in a model without a backbone.
    pub fn fed_by(&self, module: usize) -> Vec<usize> {
        let is_encoder = |role| matches!(role, ModuleRole::VisionEncoder | ModuleRole::AudioEncoder);
        let before = || self.modules.iter().enumerate().take(module);
        let with = |wanted: &dyn Fn(ModuleRole) -> bool| -> Vec<usize> {
            before().filter(|(_, other)| wanted(other.role)).map(|(index, _)| index).collect()
        };
        match self.modules[module].role {
            ModuleRole::VisionEncoder | ModuleRole::AudioEncoder => Vec::new(),
            ModuleRole::Backbone => with(&is_encoder),
            ModuleRole::Generator => {
                let backbones = with(&|role| role == ModuleRole::Backbone);
                if backbones.is_empty() { with(&is_encoder) } else { backbones }
            }
        }
    }

    /// Returns the gradients that the backward computes in a module's layers.
    pub fn module_gradients(&self, module: usize) -> Gradients {
        if !self.modules[module].frozen {
            return Gradients::All;
        }
        if self.needs_gradient(module) { Gradients::Inputs } else { Gradients::None }
    }

    /// Returns whether a module must compute its input gradient, because a preceding module is
    /// trained.
    pub fn needs_gradient(&self, module: usize) -> bool {
        let is_trained = |&before: &usize| {
            let predecessor = &self.modules[before];
            !predecessor.frozen || predecessor.has_projection() || self.needs_gradient(before)
        };
        self.fed_by(module).iter().any(is_trained)
    }

    /// Returns the index of the first module with input or output items.
    pub fn item_module_index(&self) -> Option<usize> {
        self.modules.iter().position(|module| module.role != ModuleRole::Backbone)
    }

    fn with_role(&self, role: ModuleRole) -> Option<&Module> {
        self.modules.iter().find(|module| module.role == role)
    }
}
