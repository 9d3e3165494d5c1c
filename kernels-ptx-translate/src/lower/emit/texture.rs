//! Textures and surfaces (PTX ISA, "Texture Instructions" and "Surface Instructions") in software: an object is the address
//! of a descriptor, and `runtime/texture.ll` holds the sampler. Texture references, which name an object of the module
//! instead, samplers of their own, and what has no helper there are unsupported.

use super::{Emit, Result};
use crate::lower::text::{Val, ir, st};
use crate::protocol::TranslateError;
use crate::ptx::ast::{AddressBase, Instruction, Operand, ScalarType};

/// How many coordinates select an element, and whether a layer stands before them.
#[derive(Clone, Copy)]
struct Geometry {
    coordinates: usize,
    layered: bool,
    /// The coordinates are a direction.
    cube: bool,
}

impl Geometry {
    fn of(i: &Instruction<'_>) -> Result<Self> {
        let geometry = i.modifiers.iter().find_map(|m| match *m {
            "1d" => Some((1, false, false)),
            "2d" => Some((2, false, false)),
            "3d" => Some((3, false, false)),
            "a1d" => Some((1, true, false)),
            "a2d" => Some((2, true, false)),
            "cube" => Some((3, false, true)),
            "acube" => Some((3, true, true)),
            _ => None,
        });
        let (coordinates, layered, cube) = geometry.ok_or_else(|| i.unsupported())?;
        Ok(Self {
            coordinates,
            layered,
            cube,
        })
    }

    /// As the helpers know it; a cube is a layered plane to them.
    fn number(self) -> Val {
        let number = match self {
            Self { cube: true, .. } => 6,
            Self {
                layered: true,
                coordinates,
                ..
            } => 4 + coordinates,
            Self { coordinates, .. } => coordinates,
        };
        number.to_string()
    }
}

/// An operand `[object, coordinates]`.
struct Place {
    object: Val,
    /// x, y and z: 32 bits each, 0 where the geometry has none.
    at: [Val; 3],
    layer: Val,
}

/// The error that this instruction is not translated with such an operand.
fn with_what(i: &Instruction<'_>, what: &str) -> TranslateError {
    TranslateError::Unsupported {
        line: i.line,
        construct: format!("{} with {what}", i.name()),
    }
}

/// The elements of a vector; a scalar is one of one.
fn list_of<'i, 'a>(operand: &'i Operand<'a>) -> &'i [Operand<'a>] {
    match operand {
        Operand::Vector(list) => list,
        one => std::slice::from_ref(one),
    }
}

impl<'a> Emit<'_, '_, 'a> {
    pub(super) fn texture(&mut self, i: &Instruction<'a>) -> Result<()> {
        match i.opcode {
            "tex" => self.tex(i),
            "tld4" => self.gather_texels(i),
            "suld" => self.suld(i),
            "sust" => self.sust(i),
            "txq" | "suq" => self.query(i),
            _ => Err(i.unsupported()),
        }
    }

    /// The object that a register holds.
    fn object(&mut self, i: &Instruction<'a>, operand: &Operand<'a>) -> Result<Val> {
        match operand {
            Operand::Register(r) if self.reg_bits(*r) == 64 => Ok(self.load_reg(*r)),
            Operand::Symbol(..) => Err(with_what(i, "a texture or surface reference")),
            _ => Err(i.unsupported()),
        }
    }

    fn place(&mut self, i: &Instruction<'a>, operand: &Operand<'a>, geometry: Geometry) -> Result<Place> {
        let Operand::Tuple(parts) = operand else {
            return Err(i.unsupported());
        };
        let (object, coordinates) = match parts.as_slice() {
            [object, coordinates] => (object, coordinates),
            [_, _, _] => return Err(with_what(i, "a sampler of its own")),
            _ => return Err(i.unsupported()),
        };
        let object = self.object(i, object)?;
        let mut list = list_of(coordinates);
        let mut layer = "0".to_string();
        if geometry.layered {
            let (first, rest) = list.split_first().ok_or_else(|| i.unsupported())?;
            (layer, list) = (self.src(i, first, 32)?, rest);
        }
        if list.len() < geometry.coordinates {
            return Err(i.unsupported());
        }
        let mut at = ["0", "0", "0"].map(String::from);
        for (to, operand) in at.iter_mut().zip(&list[..geometry.coordinates]) {
            *to = self.src(i, operand, 32)?;
        }
        Ok(Place { object, at, layer })
    }

    fn tex(&mut self, i: &Instruction<'a>) -> Result<()> {
        let types: Vec<ScalarType> = i.types().collect();
        let &[to, from] = types.as_slice() else {
            return Err(i.unsupported());
        };
        if !matches!(to, ScalarType::U32 | ScalarType::S32 | ScalarType::F32) || i.vector() != 4 {
            return Err(i.unsupported());
        }
        let geometry = Geometry::of(i)?;
        let operand = self.operand(i, 1)?;
        let place = self.place(i, operand, geometry)?;
        let further = i.operands.len() - 2;
        let words = self.through(&place.object.clone(), |this| match from {
            ScalarType::S32 if further == 0 && !geometry.cube => {
                let ([x, y, z], number) = (&place.at, geometry.number());
                let arguments = [&place.object, &number, x, y, z, &place.layer].map(String::as_str);
                Ok(this.t.call("rg_tex_fetch", &arguments))
            }
            ScalarType::F32 => {
                let detail = this.detail(i, &place, geometry)?;
                Ok(this.sample(place, geometry, detail.as_deref()))
            }
            _ => Err(i.unsupported()),
        })?;
        self.words(i, &words)
    }

    /// Four words that `fetch` finds through an object. Number 0 is no object, and gives zeroes: as recorded, that is no fault.
    fn through(&mut self, object: &str, fetch: impl FnOnce(&mut Self) -> Result<Val>) -> Result<Val> {
        let slot = self.t.slot("<4 x i32>", 16);
        st!(
            self.t,
            "store <4 x i32> zeroinitializer, ptr addrspace(5) {slot}, align 16"
        );
        let (there, join) = (self.t.label(), self.t.label());
        let is_object = ir!(self.t, "icmp ne i64 {object}, 0");
        st!(self.t, "br i1 {is_object}, label %{there}, label %{join}");
        self.t.place(&there);
        let words = fetch(self)?;
        st!(self.t, "store <4 x i32> {words}, ptr addrspace(5) {slot}, align 16");
        st!(self.t, "br label %{join}");
        self.t.place(&join);
        Ok(ir!(self.t, "load <4 x i32>, ptr addrspace(5) {slot}, align 16"))
    }

    /// The level of detail that the operands after the place ask for.
    fn detail(&mut self, i: &Instruction<'a>, place: &Place, geometry: Geometry) -> Result<Option<Val>> {
        match i.operands.len() {
            2 if !i.has("level") && !i.has("grad") => Ok(None),
            3 if i.has("level") => {
                let level = self.src_at(i, 2, 32)?;
                Ok(Some(ir!(self.t, "bitcast i32 {level} to float")))
            }
            4 if i.has("grad") && !geometry.cube => {
                let mut steps = Vec::new();
                for at in [2, 3] {
                    let list = list_of(self.operand(i, at)?);
                    for coordinate in 0..3 {
                        steps.push(match list.get(coordinate) {
                            Some(operand) if coordinate < geometry.coordinates => {
                                let v = self.src(i, operand, 32)?;
                                ir!(self.t, "bitcast i32 {v} to float")
                            }
                            _ => "0.0".into(),
                        });
                    }
                }
                let arguments: Vec<&str> = std::iter::once(&place.object)
                    .chain(&steps)
                    .map(String::as_str)
                    .collect();
                Ok(Some(self.t.call("rg_tex_detail", &arguments)))
            }
            _ => Err(i.unsupported()),
        }
    }

    /// Coordinates as floats. A direction becomes a place on a face, which is a layer.
    fn coordinates(&mut self, place: &Place, geometry: Geometry) -> ([Val; 3], Val) {
        let floats = place.at.each_ref().map(|c| ir!(self.t, "bitcast i32 {c} to float"));
        if !geometry.cube {
            return (floats, place.layer.clone());
        }
        let face = self.t.call("rg_tex_face", &floats.each_ref().map(String::as_str));
        let [u, v, face] = [0, 1, 2].map(|at| ir!(self.t, "extractelement <4 x i32> {face}, i32 {at}"));
        let [u, v] = [u, v].map(|c| ir!(self.t, "bitcast i32 {c} to float"));
        let layer = self.t.call("rg_tex_cube_layer", &[&place.object, &place.layer, &face]);
        ([u, v, "0.0".into()], layer)
    }

    fn sample(&mut self, place: Place, geometry: Geometry, detail: Option<&str>) -> Val {
        let ([x, y, z], layer) = self.coordinates(&place, geometry);
        let number = geometry.number();
        let (helper, level) = match detail {
            Some(detail) => ("rg_tex_level", detail),
            None => ("rg_tex_sample", "0"),
        };
        self.t
            .call(helper, &[&place.object, &number, &x, &y, &z, &layer, level])
    }

    /// `tld4`: a channel of the elements around.
    fn gather_texels(&mut self, i: &Instruction<'a>) -> Result<()> {
        let types: Vec<ScalarType> = i.types().collect();
        let channel = ["r", "g", "b", "a"].iter().position(|channel| i.has(channel));
        let (&[_, ScalarType::F32], Some(channel)) = (types.as_slice(), channel) else {
            return Err(i.unsupported());
        };
        let geometry = Geometry::of(i)?;
        if i.vector() != 4 || geometry.coordinates == 1 || geometry.number() == "3" || i.operands.len() != 2 {
            return Err(i.unsupported());
        }
        let operand = self.operand(i, 1)?;
        let place = self.place(i, operand, geometry)?;
        let words = self.through(&place.object.clone(), |this| {
            let ([x, y, _], layer) = this.coordinates(&place, geometry);
            let (number, channel) = (geometry.number(), channel.to_string());
            let arguments = [&place.object, &number, &x, &y, &layer, &channel].map(String::as_str);
            Ok(this.t.call("rg_tex_gather", &arguments))
        })?;
        self.words(i, &words)
    }

    /// Writes four words to the destination.
    fn words(&mut self, i: &Instruction<'a>, words: &str) -> Result<()> {
        let Operand::Vector(list) = self.operand(i, 0)? else {
            return Err(i.unsupported());
        };
        if list.len() != 4 {
            return Err(i.unsupported());
        }
        for (at, operand) in list.iter().enumerate() {
            let word = ir!(self.t, "extractelement <4 x i32> {words}, i32 {at}");
            self.dst(i, operand, &word, 32, false)?;
        }
        Ok(())
    }

    /// How an access outside ends, as the helpers know it.
    fn outside(i: &Instruction<'a>) -> Result<&'static str> {
        let modes = [("zero", "0"), ("clamp", "1"), ("trap", "2")];
        let mode = modes.iter().find(|(name, _)| i.has(name));
        mode.map(|(_, number)| *number).ok_or_else(|| i.unsupported())
    }

    /// The address of `bytes` bytes at a place whose x counts bytes, and whether to access it.
    fn surface_address(&mut self, i: &Instruction<'a>, operand: &Operand<'a>, bytes: u32) -> Result<(Val, Val)> {
        let geometry = Geometry::of(i)?;
        if geometry.cube {
            return Err(i.unsupported());
        }
        let place = self.place(i, operand, geometry)?;
        let [x, y, z] = &place.at;
        let (number, bytes, mode) = (geometry.number(), bytes.to_string(), Self::outside(i)?);
        let arguments = [&place.object, &number, x, y, z, &place.layer, &bytes].map(String::as_str);
        let arguments = [arguments.as_slice(), &[mode]].concat();
        let address = self.t.call("rg_surf_address", &arguments);
        let somewhere = ir!(self.t, "icmp ne i64 {address}, 0");
        // Address 0 is accessed where that is to fault.
        let access = if mode == "2" { "true".into() } else { somewhere };
        Ok((address, access))
    }

    /// Element type and number of `.b` accesses.
    fn plain_access(&self, i: &Instruction<'a>) -> Result<(u32, u32)> {
        let (bits, count) = (self.ty(i)?.bits(), u32::from(i.vector()));
        if !i.has("b") || count > 4 || bits * count > 128 {
            return Err(i.unsupported());
        }
        Ok((bits, count))
    }

    fn elements<'i>(i: &Instruction<'a>, operand: &'i Operand<'a>, count: u32) -> Result<&'i [Operand<'a>]> {
        let list = list_of(operand);
        if list.len() == count as usize {
            Ok(list)
        } else {
            Err(i.unsupported())
        }
    }

    fn suld(&mut self, i: &Instruction<'a>) -> Result<()> {
        let (bits, count) = self.plain_access(i)?;
        let list = Self::elements(i, self.operand(i, 0)?, count)?;
        let operand = self.operand(i, 1)?;
        let (address, access) = self.surface_address(i, operand, bits / 8 * count)?;
        let slot = self.t.slot(&format!("[{count} x i{bits}]"), 16);
        st!(
            self.t,
            "store [{count} x i{bits}] zeroinitializer, ptr addrspace(5) {slot}, align 16"
        );
        let (load, join) = (self.t.label(), self.t.label());
        st!(self.t, "br i1 {access}, label %{load}, label %{join}");
        self.t.place(&load);
        let p = ir!(self.t, "inttoptr i64 {address} to ptr addrspace(1)");
        for at in 0..count {
            let offset = at * bits / 8;
            let q = ir!(self.t, "getelementptr i8, ptr addrspace(1) {p}, i32 {offset}");
            // Volatile, so that an access that is to fault stays.
            let v = ir!(
                self.t,
                "load volatile i{bits}, ptr addrspace(1) {q}, align {}",
                bits / 8
            );
            let to = ir!(self.t, "getelementptr i8, ptr addrspace(5) {slot}, i32 {offset}");
            st!(self.t, "store i{bits} {v}, ptr addrspace(5) {to}, align {}", bits / 8);
        }
        st!(self.t, "br label %{join}");
        self.t.place(&join);
        for (at, operand) in list.iter().enumerate() {
            let offset = at as u32 * bits / 8;
            let from = ir!(self.t, "getelementptr i8, ptr addrspace(5) {slot}, i32 {offset}");
            let v = ir!(self.t, "load i{bits}, ptr addrspace(5) {from}, align {}", bits / 8);
            self.dst(i, operand, &v, bits, false)?;
        }
        Ok(())
    }

    fn sust(&mut self, i: &Instruction<'a>) -> Result<()> {
        if i.has("p") {
            return self.sust_formatted(i);
        }
        let (bits, count) = self.plain_access(i)?;
        let list = Self::elements(i, self.operand(i, 1)?, count)?;
        let mut values = Vec::new();
        for operand in list {
            values.push(self.src(i, operand, bits)?);
        }
        let operand = self.operand(i, 0)?;
        let (address, access) = self.surface_address(i, operand, bits / 8 * count)?;
        let (store, join) = (self.t.label(), self.t.label());
        st!(self.t, "br i1 {access}, label %{store}, label %{join}");
        self.t.place(&store);
        let p = ir!(self.t, "inttoptr i64 {address} to ptr addrspace(1)");
        for (at, v) in values.iter().enumerate() {
            let offset = at as u32 * bits / 8;
            let q = ir!(self.t, "getelementptr i8, ptr addrspace(1) {p}, i32 {offset}");
            st!(self.t, "store i{bits} {v}, ptr addrspace(1) {q}, align {}", bits / 8);
        }
        st!(self.t, "br label %{join}");
        self.t.place(&join);
        Ok(())
    }

    /// `sust.p`: x counts elements, and the surface's format decides what is written of four words.
    fn sust_formatted(&mut self, i: &Instruction<'a>) -> Result<()> {
        let list = Self::elements(i, self.operand(i, 1)?, u32::from(i.vector()))?;
        let geometry = Geometry::of(i)?;
        if self.ty(i)?.bits() != 32 || list.len() > 4 || geometry.cube {
            return Err(i.unsupported());
        }
        let mut words = "zeroinitializer".to_string();
        for (at, operand) in list.iter().enumerate() {
            let v = self.src(i, operand, 32)?;
            words = ir!(self.t, "insertelement <4 x i32> {words}, i32 {v}, i32 {at}");
        }
        let operand = self.operand(i, 0)?;
        let place = self.place(i, operand, geometry)?;
        let [x, y, z] = &place.at;
        let (number, mode) = (geometry.number(), Self::outside(i)?);
        let arguments = [&place.object, &number, x, y, z, &place.layer].map(String::as_str);
        let arguments = [arguments.as_slice(), &[mode, &words]].concat();
        self.t.call("rg_surf_put", &arguments);
        Ok(())
    }

    fn query(&mut self, i: &Instruction<'a>) -> Result<()> {
        let offset = match i.modifiers.as_slice() {
            ["width", "b32"] => "28",
            ["height", "b32"] => "32",
            ["depth", "b32"] => "36",
            _ => return Err(i.unsupported()),
        };
        let object = match self.operand(i, 1)? {
            Operand::Address(address) if address.offset == 0 => match address.base {
                AddressBase::Register(r) => self.object(i, &Operand::Register(r))?,
                _ => return Err(i.unsupported()),
            },
            _ => return Err(i.unsupported()),
        };
        let v = self.t.call("rg_tex_word", &[&object, offset]);
        self.result(i, &v, 32)
    }
}
