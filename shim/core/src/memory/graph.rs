//! Blocks of graphs' allocation nodes: ROCr blocks that are in the registry only while they live.

use super::registry::Description;
pub use super::unlisted::Unlisted as Block;
use super::{Kind, REGISTRY};
use crate::abi::Result;

impl Block {
    /// Makes it memory that CUDA's calls know. Returns the id for [`Block::leave`].
    ///
    /// # Errors
    /// UNKNOWN when the registry refuses it, which no program can cause.
    pub fn enter(&self) -> Result<u64> {
        let description = Description::device(Kind::Graph, self.address(), self.size(), self.context());
        REGISTRY
            .insert(description)
            .map(|entry| entry.id)
            .map_err(|conflict| super::unexpected(conflict, &description))
    }

    /// Undoes [`Block::enter`].
    pub fn leave(&self, id: u64) {
        REGISTRY.remove(self.address(), id);
    }
}
