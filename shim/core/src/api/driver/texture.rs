//! Texture Object Management and Surface Object Management.

use crate::abi::{
    CUDA_RESOURCE_DESC, CUDA_RESOURCE_DESC_linear, CUDA_RESOURCE_DESC_pitch2D, CUDA_RESOURCE_DESC_res,
    CUDA_RESOURCE_VIEW_DESC, CUDA_TEXTURE_DESC, CUarray, CUmipmappedArray, CUresourcetype, CUsurfObject, CUtexObject,
    Error, Plain, Result, conv,
};
use crate::api::texture_fields::{SamplingFields, ViewFields};
use crate::device::{self, context};
use crate::driver;
use crate::memory::array::Format;
use crate::memory::texture::{self, Resource, Sampling};

/// What a description names.
fn resource(desc: &CUDA_RESOURCE_DESC) -> Result<Resource> {
    if desc.flags != 0 {
        return Err(Error::INVALID_VALUE);
    }
    // SAFETY: every member holds integers and pointers only, and the type of the resource says which was written.
    unsafe {
        Ok(match desc.resType {
            CUresourcetype::ARRAY => Resource::Array(desc.res.array as u64),
            CUresourcetype::MIPMAPPED_ARRAY => Resource::Mipmapped(desc.res.mipmap as u64),
            CUresourcetype::LINEAR => {
                let linear = desc.res.linear;
                Resource::Linear {
                    address: linear.devPtr,
                    format: Format::new(linear.format, linear.numChannels)?,
                    size: linear.sizeInBytes as u64,
                }
            }
            CUresourcetype::PITCH2D => {
                let rows = desc.res.pitch2D;
                Resource::Pitched {
                    address: rows.devPtr,
                    format: Format::new(rows.format, rows.numChannels)?,
                    width: rows.width as u64,
                    height: rows.height as u64,
                    pitch: rows.pitchInBytes as u64,
                }
            }
            _ => return Err(Error::INVALID_VALUE),
        })
    }
}

fn describe(resource: &Resource) -> CUDA_RESOURCE_DESC {
    let (kind, res) = match *resource {
        Resource::Array(handle) => (
            CUresourcetype::ARRAY,
            CUDA_RESOURCE_DESC_res {
                array: handle as CUarray,
            },
        ),
        Resource::Mipmapped(handle) => {
            let mipmap = handle as CUmipmappedArray;
            (CUresourcetype::MIPMAPPED_ARRAY, CUDA_RESOURCE_DESC_res { mipmap })
        }
        Resource::Linear { address, format, size } => {
            let linear = CUDA_RESOURCE_DESC_linear {
                devPtr: address,
                format: format.name,
                numChannels: format.channels,
                sizeInBytes: size as usize,
            };
            (CUresourcetype::LINEAR, CUDA_RESOURCE_DESC_res { linear })
        }
        Resource::Pitched {
            address,
            format,
            width,
            height,
            pitch,
        } => {
            let rows = CUDA_RESOURCE_DESC_pitch2D {
                devPtr: address,
                format: format.name,
                numChannels: format.channels,
                width: width as usize,
                height: height as usize,
                pitchInBytes: pitch as usize,
            };
            (CUresourcetype::PITCH2D, CUDA_RESOURCE_DESC_res { pitch2D: rows })
        }
    };
    let mut desc = CUDA_RESOURCE_DESC::zeroed();
    (desc.resType, desc.res) = (kind, res);
    desc
}

fn sampling(desc: &CUDA_TEXTURE_DESC) -> Result<Sampling> {
    if desc.reserved != [0; 12] {
        return Err(Error::INVALID_VALUE);
    }
    Ok(desc.sampling(desc.flags))
}

driver! {
    /// CUDA Driver API, Texture Object Management: `cuTexObjectCreate`. The view may be NULL.
    fn cuTexObjectCreate(
        object: *mut CUtexObject, resource_desc: *const CUDA_RESOURCE_DESC, texture_desc: *const CUDA_TEXTURE_DESC,
        view_desc: *const CUDA_RESOURCE_VIEW_DESC,
    ) {
        let context = context::current()?;
        if object.is_null() {
            return Err(Error::INVALID_VALUE);
        }
        let resource = resource(&conv::read(resource_desc)?)?;
        let sampling = sampling(&conv::read(texture_desc)?)?;
        let view = (!view_desc.is_null()).then(|| conv::read(view_desc)).transpose()?.map(|desc| desc.view());
        conv::write(object, texture::create(context, resource, sampling, view)?)
    }

    /// CUDA Driver API, Texture Object Management: `cuTexObjectDestroy`. An object that is not there is fine (recorded).
    fn cuTexObjectDestroy(object: CUtexObject) {
        device::initialized()?;
        texture::destroy(object);
        Ok(())
    }

    /// CUDA Driver API, Texture Object Management: `cuTexObjectGetResourceDesc`.
    fn cuTexObjectGetResourceDesc(desc: *mut CUDA_RESOURCE_DESC, object: CUtexObject) {
        device::initialized()?;
        let texture = texture::get(object)?;
        texture.resource.check()?;
        conv::write(desc, describe(&texture.resource))
    }

    /// CUDA Driver API, Texture Object Management: `cuTexObjectGetTextureDesc`.
    fn cuTexObjectGetTextureDesc(desc: *mut CUDA_TEXTURE_DESC, object: CUtexObject) {
        device::initialized()?;
        let sampling = &texture::get(object)?.sampling;
        conv::write(desc, CUDA_TEXTURE_DESC { flags: sampling.flags, ..SamplingFields::of(sampling) })
    }

    /// CUDA Driver API, Texture Object Management: `cuTexObjectGetResourceViewDesc`.
    fn cuTexObjectGetResourceViewDesc(desc: *mut CUDA_RESOURCE_VIEW_DESC, object: CUtexObject) {
        device::initialized()?;
        conv::write(desc, ViewFields::of(texture::get(object)?.view.as_ref()))
    }

    /// CUDA Driver API, Surface Object Management: `cuSurfObjectCreate`, of an array.
    fn cuSurfObjectCreate(object: *mut CUsurfObject, resource_desc: *const CUDA_RESOURCE_DESC) {
        let context = context::current()?;
        if object.is_null() {
            return Err(Error::INVALID_VALUE);
        }
        let Resource::Array(array) = resource(&conv::read(resource_desc)?)? else {
            return Err(Error::INVALID_VALUE);
        };
        conv::write(object, texture::create_surface(context, array)?)
    }

    /// CUDA Driver API, Surface Object Management: `cuSurfObjectDestroy`. An object that is not there is fine (recorded).
    fn cuSurfObjectDestroy(object: CUsurfObject) {
        device::initialized()?;
        texture::destroy_surface(object);
        Ok(())
    }

    /// CUDA Driver API, Surface Object Management: `cuSurfObjectGetResourceDesc`.
    fn cuSurfObjectGetResourceDesc(desc: *mut CUDA_RESOURCE_DESC, object: CUsurfObject) {
        device::initialized()?;
        let resource = Resource::Array(texture::surface(object)?.array);
        resource.check()?;
        conv::write(desc, describe(&resource))
    }
}
