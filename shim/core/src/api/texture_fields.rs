//! The fields that the driver's and the runtime's descriptions of textures have alike.

use crate::abi::{
    CUDA_RESOURCE_VIEW_DESC, CUDA_TEXTURE_DESC, CUaddress_mode, CUfilter_mode, CUresourceViewFormat, Plain,
    cudaResourceViewDesc, cudaTextureDesc,
};
use crate::memory::texture::{Sampling, View};

/// A description of how a texture is read.
pub trait SamplingFields: Plain {
    /// In the driver's terms, with `flags` (`CU_TRSF_*`), which the two say differently.
    fn sampling(&self, flags: u32) -> Sampling;
    /// What is alike of a description; the rest is zero.
    fn of(sampling: &Sampling) -> Self;
}

/// A description of an array as if it had another format, fewer levels or fewer layers.
pub trait ViewFields: Plain {
    /// In the driver's terms.
    fn view(&self) -> View;
    /// A view as it was given; zeroes where there was none, where CUDA writes nothing of meaning (recorded).
    fn of(view: Option<&View>) -> Self;
}

macro_rules! samplings {
    ($($desc:ident)*) => {$(
        impl SamplingFields for $desc {
            fn sampling(&self, flags: u32) -> Sampling {
                Sampling {
                    address_modes: self.addressMode.map(|mode| mode.0),
                    filter: self.filterMode.0,
                    flags,
                    max_anisotropy: self.maxAnisotropy,
                    level_filter: self.mipmapFilterMode.0,
                    level_bias: self.mipmapLevelBias,
                    levels: [self.minMipmapLevelClamp, self.maxMipmapLevelClamp],
                    border: self.borderColor,
                }
            }

            fn of(sampling: &Sampling) -> Self {
                let mut desc = Self::zeroed();
                desc.addressMode = sampling.address_modes.map(CUaddress_mode);
                desc.filterMode = CUfilter_mode(sampling.filter);
                desc.maxAnisotropy = sampling.max_anisotropy;
                desc.mipmapFilterMode = CUfilter_mode(sampling.level_filter);
                desc.mipmapLevelBias = sampling.level_bias;
                [desc.minMipmapLevelClamp, desc.maxMipmapLevelClamp] = sampling.levels;
                desc.borderColor = sampling.border;
                desc
            }
        }
    )*};
}
samplings! { CUDA_TEXTURE_DESC cudaTextureDesc }

macro_rules! views {
    ($($desc:ident)*) => {$(
        impl ViewFields for $desc {
            fn view(&self) -> View {
                View {
                    format: self.format.0,
                    extents: [self.width, self.height, self.depth].map(|extent| extent as u64),
                    levels: [self.firstMipmapLevel, self.lastMipmapLevel],
                    layers: [self.firstLayer, self.lastLayer],
                }
            }

            fn of(view: Option<&View>) -> Self {
                let mut desc = Self::zeroed();
                if let Some(view) = view {
                    desc.format = CUresourceViewFormat(view.format);
                    [desc.width, desc.height, desc.depth] = view.extents.map(|extent| extent as usize);
                    [desc.firstMipmapLevel, desc.lastMipmapLevel] = view.levels;
                    [desc.firstLayer, desc.lastLayer] = view.layers;
                }
                desc
            }
        }
    )*};
}
views! { CUDA_RESOURCE_VIEW_DESC cudaResourceViewDesc }
