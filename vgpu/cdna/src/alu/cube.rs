//! Cube map coordinates: which face a direction meets, and where.

use super::{
    format::{F32, Format},
    mode::Env,
    soft::add,
};

/// The axis with the largest magnitude: 2 is z, which wins ties, then y (1), then x (0).
fn major(x: u32, y: u32, z: u32) -> u8 {
    let m = |v: u32| f32::from_bits(v & 0x7fff_ffff);
    if m(z) >= m(x) && m(z) >= m(y) {
        2
    } else if m(y) >= m(x) {
        1
    } else {
        0
    }
}

fn below_zero(x: u32) -> bool {
    f32::from_bits(x) < 0.0
}

/// `v_cubeid_f32`: the face as a float: 0 +x, 1 -x, 2 +y, 3 -y, 4 +z, 5 -z.
pub fn id(x: u32, y: u32, z: u32) -> u32 {
    let axis = major(x, y, z);
    let negative = below_zero([x, y, z][usize::from(axis)]);
    f32::from(2 * axis + u8::from(negative)).to_bits()
}

const MINUS: u32 = 0x8000_0000;

/// `v_cubesc_f32`: the coordinate along the face's s.
pub fn sc(x: u32, y: u32, z: u32) -> u32 {
    match major(x, y, z) {
        2 if below_zero(z) => x ^ MINUS,
        2 | 1 => x,
        _ if below_zero(x) => z,
        _ => z ^ MINUS,
    }
}

/// `v_cubetc_f32`: the coordinate along the face's t.
pub fn tc(x: u32, y: u32, z: u32) -> u32 {
    match major(x, y, z) {
        1 if below_zero(y) => z ^ MINUS,
        1 => z,
        _ => y ^ MINUS,
    }
}

/// `v_cubema_f32`: twice the major coordinate.
pub fn ma(x: u32, y: u32, z: u32, env: &Env) -> u32 {
    let v = u64::from([x, y, z][usize::from(major(x, y, z))]);
    if F32::is_nan(v) {
        (v | F32::QUIET) as u32
    } else {
        add::<F32>(v, v, env) as u32
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn faces_and_coordinates() {
        let f = f32::to_bits;
        let (x, y, z) = (f(0.25), f(-2.0), f(1.0));
        assert_eq!(id(x, y, z), f(3.0));
        assert_eq!(sc(x, y, z), x);
        assert_eq!(tc(x, y, z), f(-1.0));
        assert_eq!(ma(x, y, z, &Env::DEFAULT), f(-4.0));
        assert_eq!(id(f(-3.0), y, z), f(1.0));
        assert_eq!(sc(f(-3.0), y, z), z);
        assert_eq!(id(f(1.0), f(1.0), f(1.0)), f(4.0));
    }
}
