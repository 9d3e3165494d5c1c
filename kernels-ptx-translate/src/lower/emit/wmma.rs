//! Whole-matrix fragments (PTX ISA, "wmma"): which lane holds what is ours to choose, since programs may not know it.
//!
//! Matrices are cut into the tiles of `matrix.rs`, eight rows or columns each, so that a fragment of `wmma` is one of `mma`
//! wherever both exist. Registers are in the order of [`Shape::rows`] and [`Shape::columns`]. Fragments of halves have
//! eight registers whatever the shape: those beyond the tiles repeat them.

use super::matrix::{Element, Product};
use super::memory::Space;
use super::{Emit, Result};
use crate::lower::text::{Val, ir, st};
use crate::ptx::ast::{Instruction, Operand, ScalarType};

/// M, N and K.
#[derive(Clone, Copy, Debug)]
struct Shape {
    m: u32,
    n: u32,
    k: u32,
}

impl Shape {
    fn of(i: &Instruction<'_>) -> Option<Self> {
        i.modifiers.iter().find_map(|word| {
            let (m, rest) = word.strip_prefix('m')?.split_once('n')?;
            let (n, k) = rest.split_once('k')?;
            Some(Self {
                m: m.parse().ok()?,
                n: n.parse().ok()?,
                k: k.parse().ok()?,
            })
        })
    }

    /// The shapes that PTX has for an element type.
    fn fits(self, element: Element) -> bool {
        let size = (self.m, self.n, self.k);
        match element {
            Element::Float(ScalarType::F64) => size == (8, 8, 4),
            Element::Float(ScalarType::Tf32) => size == (16, 16, 8),
            Element::Integer { bits: 4, .. } => size == (8, 8, 32),
            Element::Bits => size == (8, 8, 128),
            _ => matches!(size, (16, 16, 16) | (8, 32, 16) | (32, 8, 16)),
        }
    }

    /// The shapes that PTX has for a type of C and D.
    fn sums(self, ty: ScalarType) -> bool {
        let size = (self.m, self.n, self.k);
        match ty {
            ScalarType::F64 => size == (8, 8, 4),
            ScalarType::F16 => matches!(size, (16, 16, 16) | (8, 32, 16) | (32, 8, 16)),
            ScalarType::F32 => matches!(size, (16, 16, 16) | (8, 32, 16) | (32, 8, 16) | (16, 16, 8)),
            ScalarType::S32 => matches!(
                size,
                (16, 16, 16) | (8, 32, 16) | (32, 8, 16) | (8, 8, 32) | (8, 8, 128)
            ),
            _ => false,
        }
    }

    /// Chunks of K that four lanes hold a register of each.
    fn chunks(self, element: Element) -> u32 {
        self.k / (4 * element.register() / stored(element))
    }

    /// Tile and chunk of every register of A, in pairs of tiles as `mma` has them.
    fn rows(self, element: Element) -> Vec<(u32, u32)> {
        let tiles = self.m / 8;
        let mut found = Vec::new();
        for pair in (0..tiles).step_by(2) {
            for chunk in 0..self.chunks(element) {
                found.extend((pair..tiles.min(pair + 2)).map(|tile| (tile, chunk)));
            }
        }
        found
    }

    /// Tile and chunk of every register of B.
    fn columns(self, element: Element) -> Vec<(u32, u32)> {
        let chunks = self.chunks(element);
        (0..self.n / 8)
            .flat_map(|tile| (0..chunks).map(move |chunk| (tile, chunk)))
            .collect()
    }

    /// The tile of rows and that of columns of every two elements of C and D.
    fn tiles(self) -> Vec<(u32, u32)> {
        let tiles = self.m / 8;
        let mut found = Vec::new();
        for pair in (0..tiles).step_by(2) {
            for n in 0..self.n / 8 {
                found.extend((pair..tiles.min(pair + 2)).map(|m| (m, n)));
            }
        }
        found
    }
}

/// Bits of an element in memory.
fn stored(element: Element) -> u32 {
    match element {
        Element::Bits => 1,
        // A tf32 element is a float in memory.
        _ => element.bits(),
    }
}

/// Where a matrix lies in memory.
struct Matrix {
    pointer: Val,
    ty: &'static str,
    /// Elements from one row (or column) to the next, 64 bits.
    stride: Val,
    /// The elements of a row follow each other, not those of a column.
    by_rows: bool,
    /// Bits of an element.
    bits: u32,
}

impl<'a> Emit<'_, '_, 'a> {
    pub(super) fn wmma(&mut self, i: &Instruction<'a>) -> Result<()> {
        let shape = Shape::of(i).ok_or_else(|| i.unsupported())?;
        let element = || {
            i.modifiers
                .iter()
                .find_map(|m| Element::named(m))
                .ok_or_else(|| i.unsupported())
        };
        let sum = || {
            i.types()
                .next()
                .filter(|&ty| shape.sums(ty))
                .ok_or_else(|| i.unsupported())
        };
        if i.has("mma") {
            self.wmma_mma(i, shape)
        } else if i.has("store") {
            self.store_sums(i, shape, sum()?)
        } else if i.has("c") {
            self.load_sums(i, shape, sum()?)
        } else {
            self.load_fragment(i, shape, element()?)
        }
    }

    /// The matrix whose address is operand `at` and whose stride is `stride`, if it is given; `dense` otherwise.
    fn in_memory(
        &mut self,
        i: &Instruction<'a>,
        at: usize,
        stride: usize,
        dense: (u32, u32),
        bits: u32,
    ) -> Result<Matrix> {
        let by_rows = i.has("row");
        let (pointer, ty) = self.pointer_at(i, at, Space::of(i))?;
        let stride = if i.operands.len() > stride {
            let v = self.src_at(i, stride, 32)?;
            self.resize(&v, 32, 64, false)
        } else {
            let (columns, rows) = dense;
            format!("{}", if by_rows { columns } else { rows })
        };
        Ok(Matrix {
            pointer,
            ty,
            stride,
            by_rows,
            bits,
        })
    }

    /// The address of an element.
    fn element_at(&mut self, matrix: &Matrix, row: &str, column: &str) -> Val {
        let (line, at) = if matrix.by_rows { (row, column) } else { (column, row) };
        let line = self.resize(line, 32, 64, false);
        let at = self.resize(at, 32, 64, false);
        let v = ir!(self.t, "mul i64 {line}, {}", matrix.stride);
        let v = ir!(self.t, "add i64 {v}, {at}");
        let v = if matrix.bits < 8 {
            ir!(self.t, "udiv i64 {v}, {}", 8 / matrix.bits)
        } else {
            ir!(self.t, "mul i64 {v}, {}", matrix.bits / 8)
        };
        ir!(self.t, "getelementptr i8, {} {}, i64 {v}", matrix.ty, matrix.pointer)
    }

    fn load_bits(&mut self, matrix: &Matrix, p: &str, bits: u32) -> Val {
        ir!(self.t, "load i{bits}, {} {p}, align {}", matrix.ty, bits / 8)
    }

    /// `tile` times eight and what of the lane says which row or column of the tile.
    fn line(&mut self, tile: u32, of_lane: &str) -> Val {
        if tile == 0 {
            of_lane.to_string()
        } else {
            ir!(self.t, "add i32 {of_lane}, {}", 8 * tile)
        }
    }

    /// Lane / 4 and lane % 4.
    fn lane_parts(&mut self) -> (Val, Val) {
        let lane = self.t.call("rg_lane", &[]);
        (ir!(self.t, "lshr i32 {lane}, 2"), ir!(self.t, "and i32 {lane}, 3"))
    }

    /// `wmma.load.a` and `wmma.load.b`.
    fn load_fragment(&mut self, i: &Instruction<'a>, shape: Shape, element: Element) -> Result<()> {
        let is_a = i.has("a");
        let bits = stored(element);
        if !shape.fits(element) || !(is_a || i.has("b")) {
            return Err(i.unsupported());
        }
        // Elements of a register follow each other in memory.
        let together = i.has("row") == is_a;
        if bits < 8 && !together {
            return Err(i.unsupported());
        }
        let (registers, dense) = if is_a {
            (shape.rows(element), (shape.k, shape.m))
        } else {
            (shape.columns(element), (shape.n, shape.k))
        };
        let matrix = self.in_memory(i, 1, 2, dense, bits)?;
        let width = element.register();
        let count = width / bits;
        let (g, t) = self.lane_parts();
        let first = ir!(self.t, "mul i32 {t}, {count}");
        let mut values = Vec::new();
        for (tile, chunk) in registers {
            let line = self.line(tile, &g);
            let k = ir!(self.t, "add i32 {first}, {}", 4 * count * chunk);
            let read = |e: &mut Self, k: &str, bits: u32| {
                let p = if is_a {
                    e.element_at(&matrix, &line, k)
                } else {
                    e.element_at(&matrix, k, &line)
                };
                e.load_bits(&matrix, &p, bits)
            };
            if together {
                values.push(read(self, &k, width));
                continue;
            }
            let mut all = "0".to_string();
            for at in 0..count {
                let k = ir!(self.t, "add i32 {k}, {at}");
                let v = read(self, &k, bits);
                let v = self.resize(&v, bits, width, false);
                let v = ir!(self.t, "shl i{width} {v}, {}", at * bits);
                all = ir!(self.t, "or i{width} {all}, {v}");
            }
            values.push(all);
        }
        let list = self.vector(i, 0)?;
        let repeats = element == Element::Float(ScalarType::F16) && list.len() == 8;
        if list.len() != values.len() && !repeats {
            return Err(i.unsupported());
        }
        for (operand, v) in list.iter().zip(values.iter().cycle()) {
            self.dst(i, operand, v, width, false)?;
        }
        Ok(())
    }

    /// Row and columns of the two elements of a tile that a lane holds.
    fn pair(&mut self, tile: (u32, u32), g: &str, t: &str) -> (Val, [Val; 2]) {
        let first = ir!(self.t, "shl i32 {t}, 1");
        let row = self.line(tile.0, g);
        let column = self.line(tile.1, &first);
        let next = ir!(self.t, "or i32 {column}, 1");
        (row, [column, next])
    }

    /// `wmma.load.c`.
    fn load_sums(&mut self, i: &Instruction<'a>, shape: Shape, ty: ScalarType) -> Result<()> {
        let matrix = self.in_memory(i, 1, 2, (shape.n, shape.m), ty.bits())?;
        let (g, t) = self.lane_parts();
        let mut values = Vec::new();
        for tile in shape.tiles() {
            let (row, columns) = self.pair(tile, &g, &t);
            let mut parts = Vec::new();
            for column in &columns {
                let p = self.element_at(&matrix, &row, column);
                parts.push(self.load_bits(&matrix, &p, ty.bits()));
            }
            if ty == ScalarType::F16 {
                values.push(self.join16(&parts[0].clone(), &parts[1].clone()));
            } else {
                values.append(&mut parts);
            }
        }
        let list = self.vector(i, 0)?;
        if list.len() != values.len() {
            return Err(i.unsupported());
        }
        for (operand, v) in list.iter().zip(&values) {
            self.dst(i, operand, v, ty.bits().max(32), false)?;
        }
        Ok(())
    }

    /// `wmma.store.d`.
    fn store_sums(&mut self, i: &Instruction<'a>, shape: Shape, ty: ScalarType) -> Result<()> {
        let matrix = self.in_memory(i, 0, 2, (shape.n, shape.m), ty.bits())?;
        let values = self.registers(i, 1, ty.bits().max(32))?;
        let (g, t) = self.lane_parts();
        let tiles = shape.tiles();
        let packed = ty == ScalarType::F16;
        if values.len() != tiles.len() * if packed { 1 } else { 2 } {
            return Err(i.unsupported());
        }
        for (at, tile) in tiles.into_iter().enumerate() {
            let (row, columns) = self.pair(tile, &g, &t);
            for (n, column) in columns.iter().enumerate() {
                let v = if packed {
                    self.half_of(&values[at], n as u32)
                } else {
                    values[2 * at + n].clone()
                };
                let p = self.element_at(&matrix, &row, column);
                let bits = ty.bits();
                st!(self.t, "store i{bits} {v}, {} {p}, align {}", matrix.ty, bits / 8);
            }
        }
        Ok(())
    }

    /// `wmma.mma`.
    fn wmma_mma(&mut self, i: &Instruction<'a>, shape: Shape) -> Result<()> {
        let types: Vec<ScalarType> = i.types().collect();
        let elements: Vec<Element> = i.modifiers.iter().filter_map(|m| Element::named(m)).collect();
        let half = Element::Float(ScalarType::F16);
        let &[result, .., sum] = types.as_slice() else {
            return Err(i.unsupported());
        };
        // Of halves only D and C are named.
        let (a, b) = match elements.as_slice() {
            _ if types.len() == 2 && elements.iter().all(|&e| e == half) => (half, half),
            &[a, b] | &[_, a, b, _] => (a, b),
            _ => return Err(i.unsupported()),
        };
        let fits = shape.fits(a) && shape.sums(sum) && shape.sums(result);
        if !fits || (a != half && result != sum) {
            return Err(i.unsupported());
        }
        let product = Product::of(i, a, b, sum, result)?;
        let (x, y) = (self.registers(i, 1, a.register())?, self.registers(i, 2, a.register())?);
        let by_tile = |values: &[Val], places: &[(u32, u32)]| -> Result<Vec<Vec<Val>>> {
            let mut tiles: Vec<Vec<Val>> = Vec::new();
            for (at, &(tile, _)) in places.iter().enumerate() {
                tiles.resize_with(tiles.len().max(tile as usize + 1), Vec::new);
                tiles[tile as usize].push(values.get(at).ok_or_else(|| i.unsupported())?.clone());
            }
            Ok(tiles)
        };
        let rows = by_tile(&x, &shape.rows(a))?;
        let columns = by_tile(&y, &shape.columns(b))?;
        // `multiply_tiles` has sums by rows of tiles, fragments by pairs of rows.
        let places: Vec<usize> = shape
            .tiles()
            .iter()
            .flat_map(|&(m, n)| {
                let first = 2 * (m * (shape.n / 8) + n) as usize;
                [first, first + 1]
            })
            .collect();
        let given = self.accumulators(i, 3, product, places.len())?;
        let mut sums = given.clone();
        for (&place, v) in places.iter().zip(&given) {
            sums[place].clone_from(v);
        }
        let sums = self.multiply_tiles(i, product, &rows, &columns, &sums)?;
        let sums: Vec<Val> = places.iter().map(|&place| sums[place].clone()).collect();
        match self.operand(i, 0)? {
            Operand::Vector(list) if list.len() == sums.len() || 2 * list.len() == sums.len() => {}
            _ => return Err(i.unsupported()),
        }
        self.give(i, product, &sums)
    }
}
