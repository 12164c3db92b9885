//! Input of one item to the encoder and the backbone.

/// Input sizes for both modules.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct InputShape {
    /// Sequence lengths in encoder tokens, an entry per tile, image or clip. For equal lengths, the
    /// number of entries is the effective batch b(d).
    pub encoder: Vec<u32>,
    /// Backbone sequence length in tokens, s(d).
    pub backbone: u64,
}

impl InputShape {
    /// Returns the effective batch, b(d).
    pub fn batch(&self) -> u32 {
        self.encoder.len() as u32
    }

    pub(crate) fn read(&mut self, count: u32, length: u32, tokens: u64) {
        self.encoder.extend(std::iter::repeat_n(length, count as usize));
        self.backbone += tokens;
    }
}
