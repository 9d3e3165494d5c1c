//! Small matrix products, D = A B + C, in the order of summation that this machine fixes.
//!
//! Silicon's order is not documented. Here every element starts from C and takes the products in ascending k, each step one
//! fused multiply-add rounded to nearest even (integers wrap).

use super::{
    features::Level,
    format::{F32, F64},
    mode::Env,
    soft,
};

/// Sizes of a product of `blocks` independent matrices.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    /// Rows of A, C and D.
    pub m: usize,
    /// Columns of B, C and D.
    pub n: usize,
    /// Rows of B.
    pub k: usize,
    /// Independent products.
    pub blocks: usize,
    /// Stored elements in a row of A: `k`, or half of it where A is sparse.
    pub terms: usize,
}

/// One stored element of A: its value and its column, which is the row of B it multiplies.
pub type Term<T> = (T, u16);

/// Number types with the fused step of the product.
pub trait Element: Copy + Default {
    /// a * b + c.
    fn step(a: Self, b: Self, c: Self) -> Self;
    /// The result has to be computed again by [`Element::exact`], because the host's NaN is not the hardware's.
    fn suspicious(self) -> bool;
    /// a * b + c with the hardware's NaN rules.
    fn exact(a: Self, b: Self, c: Self) -> Self;
}

impl Element for f32 {
    #[inline(always)]
    fn step(a: f32, b: f32, c: f32) -> f32 {
        a.mul_add(b, c)
    }

    fn suspicious(self) -> bool {
        self.is_nan()
    }

    fn exact(a: f32, b: f32, c: f32) -> f32 {
        let bits = |x: f32| u64::from(x.to_bits());
        f32::from_bits(soft::fma::<F32>(bits(a), bits(b), bits(c), &Env::DEFAULT) as u32)
    }
}

impl Element for f64 {
    #[inline(always)]
    fn step(a: f64, b: f64, c: f64) -> f64 {
        a.mul_add(b, c)
    }

    fn suspicious(self) -> bool {
        self.is_nan()
    }

    fn exact(a: f64, b: f64, c: f64) -> f64 {
        f64::from_bits(soft::fma::<F64>(a.to_bits(), b.to_bits(), c.to_bits(), &Env::DEFAULT))
    }
}

impl Element for i32 {
    #[inline(always)]
    fn step(a: i32, b: i32, c: i32) -> i32 {
        a.wrapping_mul(b).wrapping_add(c)
    }

    fn suspicious(self) -> bool {
        false
    }

    fn exact(a: i32, b: i32, c: i32) -> i32 {
        Self::step(a, b, c)
    }
}

/// Row-major operands: A as `blocks * m` rows of `terms`, B as `blocks * k` rows of `n`, D as `blocks * m` rows of `n`, which
/// holds C on entry.
pub fn multiply<T: Element>(shape: &Shape, a: &[Term<T>], b: &[T], d: &mut [T]) {
    let c = d.to_vec();
    fast(shape, a, b, d);
    if !d.iter().any(|x| x.suspicious()) {
        return;
    }
    for (row, (d_row, c_row)) in d.chunks_exact_mut(shape.n).zip(c.chunks_exact(shape.n)).enumerate() {
        let terms = &a[row * shape.terms..][..shape.terms];
        let b_block = &b[row / shape.m * shape.k * shape.n..];
        for (j, value) in d_row.iter_mut().enumerate().filter(|(_, v)| v.suspicious()) {
            *value = terms.iter().fold(c_row[j], |sum, &(x, k)| {
                T::exact(x, b_block[usize::from(k) * shape.n + j], sum)
            });
        }
    }
}

fn fast<T: Element>(shape: &Shape, a: &[Term<T>], b: &[T], d: &mut [T]) {
    #[cfg(target_arch = "x86_64")]
    if Level::of_processor() >= Level::Avx2 {
        /// [`steps`] compiled for processors with fused multiply-add.
        #[target_feature(enable = "fma,avx2")]
        fn featured<T: Element>(shape: &Shape, a: &[Term<T>], b: &[T], d: &mut [T]) {
            steps(shape, a, b, d);
        }
        // SAFETY: the processor has the features the function is compiled for.
        return unsafe { featured(shape, a, b, d) };
    }
    steps(shape, a, b, d);
}

#[inline(always)]
fn steps<T: Element>(shape: &Shape, a: &[Term<T>], b: &[T], d: &mut [T]) {
    let &Shape { m, n, k, terms, .. } = shape;
    for (block, d_block) in d.chunks_exact_mut(m * n).enumerate() {
        let b_block = &b[block * k * n..][..k * n];
        let a_block = &a[block * m * terms..][..m * terms];
        for (d_row, a_row) in d_block.chunks_exact_mut(n).zip(a_block.chunks_exact(terms)) {
            for &(x, at) in a_row {
                let b_row = &b_block[usize::from(at) * n..][..n];
                for (sum, &y) in d_row.iter_mut().zip(b_row) {
                    *sum = T::step(x, y, *sum);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::alu::{features::testing::at_every_level, testing::Lcg};

    #[test]
    fn products_sum_in_ascending_k_with_one_rounding_each() {
        at_every_level("matrix products", |_| products_sum_in_ascending_k());
    }

    fn products_sum_in_ascending_k() {
        let mut rng = Lcg::new(81);
        let shape = Shape {
            m: 4,
            n: 4,
            k: 3,
            blocks: 2,
            terms: 3,
        };
        let mut draw = || f32::from_bits(rng.f32());
        let a: Vec<Term<f32>> = (0..24).map(|i| (draw(), i % 3)).collect();
        let b: Vec<f32> = (0..24).map(|_| draw()).collect();
        let c: Vec<f32> = (0..32).map(|_| draw()).collect();
        let mut d = c.clone();
        multiply(&shape, &a, &b, &mut d);
        for block in 0..2 {
            for i in 0..4 {
                for j in 0..4 {
                    let want = (0..3).fold(c[(block * 4 + i) * 4 + j], |sum, k| {
                        f32::exact(a[(block * 4 + i) * 3 + k].0, b[(block * 3 + k) * 4 + j], sum)
                    });
                    assert_eq!(d[(block * 4 + i) * 4 + j].to_bits(), want.to_bits());
                }
            }
        }
    }

    #[test]
    fn sparse_rows_skip_the_elements_that_are_not_stored() {
        let shape = Shape {
            m: 1,
            n: 2,
            k: 4,
            blocks: 1,
            terms: 2,
        };
        let mut d = [100, 200];
        multiply(&shape, &[(2, 1), (3, 3)], &[9, 9, 10, 20, 9, 9, 1, 2], &mut d);
        assert_eq!(d, [123, 246]);
    }
}
