//! The model to be trained: modules in the order in which a sample flows through them.

pub mod items;
pub mod module;
pub mod presets;

pub use items::{Audio, Patch, Video};
pub use module::{Bias, Diffusion, Gradients, Mask, Module, ModuleRole, Moe, Norm, heads_trade};

use serde::{Deserialize, Serialize};

/// A model: encoders, the backbone that reads what they make, and a generator behind it; at least one of these.
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

    /// The module that images go through: a vision encoder, else a generator of images.
    pub fn images(&self) -> Option<&Module> {
        self.with_role(ModuleRole::VisionEncoder)
            .or_else(|| self.with_role(ModuleRole::Generator).filter(|generator| generator.patch.is_some()))
    }

    /// The module that clips of sound go through.
    pub fn sound(&self) -> Option<&Module> {
        self.with_role(ModuleRole::AudioEncoder)
    }

    /// How the generator turns video into tokens, if it makes video.
    pub fn video(&self) -> Option<Video> {
        self.with_role(ModuleRole::Generator).and_then(|generator| generator.video)
    }

    /// Tokens that one image occupies in the backbone's sequence.
    pub fn tokens_per_image(&self) -> u32 {
        self.images().map_or(0, Module::backbone_tokens_per_item)
    }

    /// Tokens that one clip of sound occupies in the backbone's sequence. Video has none there: its tokens are the
    /// generator's own.
    pub fn tokens_per_clip(&self) -> u32 {
        self.sound().map_or(0, Module::backbone_tokens_per_item)
    }

    /// The modules whose output a module reads: the backbone reads what the encoders make, a generator what the
    /// backbone makes, or the encoders where there is no backbone.
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

    /// What a backward computes in the layers of a module.
    pub fn gradients_of(&self, module: usize) -> Gradients {
        if !self.modules[module].frozen {
            return Gradients::All;
        }
        if self.needs_gradient(module) { Gradients::Inputs } else { Gradients::None }
    }

    /// Whether the gradient of what enters a module is of use: something that feeds it is trained.
    pub fn needs_gradient(&self, module: usize) -> bool {
        let is_trained = |&before: &usize| {
            let of = &self.modules[before];
            !of.frozen || of.has_projection() || self.needs_gradient(before)
        };
        self.fed_by(module).iter().any(is_trained)
    }

    /// Place of the first module that reads or makes items.
    pub fn item_module_index(&self) -> Option<usize> {
        self.modules.iter().position(|module| module.role != ModuleRole::Backbone)
    }

    fn with_role(&self, role: ModuleRole) -> Option<&Module> {
        self.modules.iter().find(|module| module.role == role)
    }
}
