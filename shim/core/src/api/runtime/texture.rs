//! Texture Object Management and Surface Object Management: channel descriptions, texture and surface objects.

use core::ffi::{c_int, c_void};

use crate::abi::{
    CU_TRSF_DISABLE_TRILINEAR_OPTIMIZATION, CU_TRSF_NORMALIZED_COORDINATES, CU_TRSF_READ_AS_INTEGER,
    CU_TRSF_SEAMLESS_CUBEMAP, CU_TRSF_SRGB, CUfilter_mode, CUresourcetype, CUsurfObject, CUtexObject, Error, Plain,
    Result, conv, cudaArray_t, cudaChannelFormatDesc, cudaChannelFormatKind, cudaMipmappedArray_t, cudaResourceDesc,
    cudaResourceDesc_linear, cudaResourceDesc_pitch2D, cudaResourceDesc_res, cudaResourceViewDesc, cudaTextureDesc,
    cudaTextureReadMode,
};
use crate::api::texture_fields::{SamplingFields, ViewFields};
use crate::device::context;
use crate::memory::array::{Format, Numeric};
use crate::memory::texture::{self, Resource, Sampling};
use crate::runtime;

/// CUDA Runtime API, Texture Object Management: `cudaCreateChannelDesc`. It cannot fail.
#[allow(non_snake_case)]
pub extern "C" fn cudaCreateChannelDesc(
    x: c_int,
    y: c_int,
    z: c_int,
    w: c_int,
    f: cudaChannelFormatKind,
) -> cudaChannelFormatDesc {
    cudaChannelFormatDesc { x, y, z, w, f }
}

/// Finds a field.
type Field = fn(&mut cudaTextureDesc) -> &mut c_int;

/// The flags that the runtime has fields for.
const FLAGS: [(u32, Field); 4] = [
    (CU_TRSF_NORMALIZED_COORDINATES, |desc| &mut desc.normalizedCoords),
    (CU_TRSF_SRGB, |desc| &mut desc.sRGB),
    (CU_TRSF_DISABLE_TRILINEAR_OPTIMIZATION, |desc| {
        &mut desc.disableTrilinearOptimization
    }),
    (CU_TRSF_SEAMLESS_CUBEMAP, |desc| &mut desc.seamlessCubemap),
];

/// The format of memory. Compressed ones are not for memory; how they are read is what is complained of first (recorded).
fn memory_format(desc: &cudaChannelFormatDesc, mode: cudaTextureReadMode) -> Result<Format> {
    Format::from_runtime(desc).map_err(|error| match error {
        Error::NOT_SUPPORTED if mode == cudaTextureReadMode::ELEMENT_TYPE => Error::INVALID_NORM_SETTING,
        Error::NOT_SUPPORTED => Error::INVALID_VALUE,
        error => error,
    })
}

/// What a description names; of memory with the format that `read` gives.
fn resource(desc: &cudaResourceDesc, read: impl Fn(&cudaChannelFormatDesc) -> Result<Format>) -> Result<Resource> {
    // SAFETY: every member holds integers and pointers only, and the type of the resource says which was written.
    unsafe {
        Ok(match desc.resType {
            CUresourcetype::ARRAY => Resource::Array(desc.res.array as u64),
            CUresourcetype::MIPMAPPED_ARRAY => Resource::Mipmapped(desc.res.mipmap as u64),
            CUresourcetype::LINEAR => {
                let linear = desc.res.linear;
                Resource::Linear {
                    address: linear.devPtr as u64,
                    format: read(&linear.desc)?,
                    size: linear.sizeInBytes as u64,
                }
            }
            CUresourcetype::PITCH2D => {
                let rows = desc.res.pitch2D;
                Resource::Pitched {
                    address: rows.devPtr as u64,
                    format: read(&rows.desc)?,
                    width: rows.width as u64,
                    height: rows.height as u64,
                    pitch: rows.pitchInBytes as u64,
                }
            }
            _ => return Err(Error::INVALID_VALUE),
        })
    }
}

fn describe(resource: &Resource) -> cudaResourceDesc {
    let (kind, res) = match *resource {
        Resource::Array(handle) => {
            let array = handle as cudaArray_t;
            (CUresourcetype::ARRAY, cudaResourceDesc_res { array })
        }
        Resource::Mipmapped(handle) => {
            let mipmap = handle as cudaMipmappedArray_t;
            (CUresourcetype::MIPMAPPED_ARRAY, cudaResourceDesc_res { mipmap })
        }
        Resource::Linear { address, format, size } => {
            let linear = cudaResourceDesc_linear {
                devPtr: address as *mut c_void,
                desc: format.runtime(),
                sizeInBytes: size as usize,
            };
            (CUresourcetype::LINEAR, cudaResourceDesc_res { linear })
        }
        Resource::Pitched {
            address,
            format,
            width,
            height,
            pitch,
        } => {
            let rows = cudaResourceDesc_pitch2D {
                devPtr: address as *mut c_void,
                desc: format.runtime(),
                width: width as usize,
                height: height as usize,
                pitchInBytes: pitch as usize,
            };
            (CUresourcetype::PITCH2D, cudaResourceDesc_res { pitch2D: rows })
        }
    };
    let mut desc = cudaResourceDesc::zeroed();
    (desc.resType, desc.res) = (kind, res);
    desc
}

/// In the driver's terms, checked as the runtime does it before the driver is asked (recorded).
fn sampling(mut desc: cudaTextureDesc, format: &Format) -> Result<Sampling> {
    let integer = format.numeric != Numeric::Float;
    let by_element = desc.readMode == cudaTextureReadMode::ELEMENT_TYPE;
    let has_fractions = integer && format.channel_size < 4;
    let fractions = desc.readMode == cudaTextureReadMode::NORMALIZED_FLOAT;
    // Integers that are no fractions have nothing between them.
    let plain = integer && !format.normalized && (by_element || !has_fractions);
    if plain && desc.filterMode == CUfilter_mode::LINEAR {
        return Err(Error::INVALID_FILTER_SETTING);
    }
    if fractions && !has_fractions || by_element && format.normalized {
        return Err(Error::INVALID_NORM_SETTING);
    }
    let mut flags = if by_element && integer {
        CU_TRSF_READ_AS_INTEGER
    } else {
        0
    };
    for (flag, field) in FLAGS {
        flags |= if *field(&mut desc) != 0 { flag } else { 0 };
    }
    Ok(desc.sampling(flags))
}

fn describe_sampling(sampling: &Sampling, format: &Format) -> cudaTextureDesc {
    let mut desc = cudaTextureDesc::of(sampling);
    for (flag, field) in FLAGS {
        *field(&mut desc) = c_int::from(sampling.flags & flag != 0);
    }
    let has_fractions = format.numeric != Numeric::Float && format.channel_size < 4;
    let fractions = has_fractions && sampling.flags & CU_TRSF_READ_AS_INTEGER == 0;
    desc.readMode = cudaTextureReadMode(i32::from(fractions));
    desc
}

runtime! {
    /// CUDA Runtime API, Texture Object Management: `cudaCreateTextureObject`. The view may be NULL.
    fn cudaCreateTextureObject(
        object: *mut CUtexObject, resource_desc: *const cudaResourceDesc, texture_desc: *const cudaTextureDesc,
        view_desc: *const cudaResourceViewDesc,
    ) {
        let context = context::runtime_current()?;
        let desc = conv::read(resource_desc)?;
        if object.is_null() {
            return Err(Error::INVALID_VALUE);
        }
        // So recorded.
        let how = conv::read(texture_desc).map_err(|_| Error::INVALID_RESOURCE_HANDLE)?;
        let resource = resource(&desc, |format| memory_format(format, how.readMode))?;
        let sampling = sampling(how, &resource.format()?)?;
        let view = (!view_desc.is_null()).then(|| conv::read(view_desc)).transpose()?.map(|desc| desc.view());
        conv::write(object, texture::create(context, resource, sampling, view)?)
    }

    /// CUDA Runtime API, Texture Object Management: `cudaDestroyTextureObject`. An object that is not there is fine (recorded).
    fn cudaDestroyTextureObject(object: CUtexObject) {
        context::runtime_current()?;
        texture::destroy(object);
        Ok(())
    }

    /// CUDA Runtime API, Texture Object Management: `cudaGetTextureObjectResourceDesc`.
    fn cudaGetTextureObjectResourceDesc(desc: *mut cudaResourceDesc, object: CUtexObject) {
        context::runtime_current()?;
        let texture = texture::get(object)?;
        texture.resource.check()?;
        conv::write(desc, describe(&texture.resource))
    }

    /// CUDA Runtime API, Texture Object Management: `cudaGetTextureObjectTextureDesc`.
    fn cudaGetTextureObjectTextureDesc(desc: *mut cudaTextureDesc, object: CUtexObject) {
        context::runtime_current()?;
        let texture = texture::get(object)?;
        texture.resource.check()?;
        conv::write(desc, describe_sampling(&texture.sampling, &texture.resource.format()?))
    }

    /// CUDA Runtime API, Texture Object Management: `cudaGetTextureObjectResourceViewDesc`.
    fn cudaGetTextureObjectResourceViewDesc(desc: *mut cudaResourceViewDesc, object: CUtexObject) {
        context::runtime_current()?;
        conv::write(desc, ViewFields::of(texture::get(object)?.view.as_ref()))
    }

    /// CUDA Runtime API, Surface Object Management: `cudaCreateSurfaceObject`, of an array.
    fn cudaCreateSurfaceObject(object: *mut CUsurfObject, resource_desc: *const cudaResourceDesc) {
        let context = context::runtime_current()?;
        let desc = conv::read(resource_desc)?;
        if object.is_null() {
            return Err(Error::INVALID_VALUE);
        }
        let Resource::Array(array) = resource(&desc, Format::from_runtime)? else {
            return Err(Error::INVALID_VALUE);
        };
        conv::write(object, texture::create_surface(context, array)?)
    }

    /// CUDA Runtime API, Surface Object Management: `cudaDestroySurfaceObject`. An object that is not there is fine (recorded).
    fn cudaDestroySurfaceObject(object: CUsurfObject) {
        context::runtime_current()?;
        texture::destroy_surface(object);
        Ok(())
    }

    /// CUDA Runtime API, Surface Object Management: `cudaGetSurfaceObjectResourceDesc`. Without room it blames the device (recorded).
    fn cudaGetSurfaceObjectResourceDesc(desc: *mut cudaResourceDesc, object: CUsurfObject) {
        context::runtime_current()?;
        let resource = Resource::Array(texture::surface(object)?.array);
        resource.check()?;
        conv::write(desc, describe(&resource)).map_err(|_| Error::INVALID_DEVICE)
    }
}
