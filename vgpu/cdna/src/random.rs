//! Numbers that decide an interleaving: the same for the same seed, on every machine.

/// A generator (xorshift with a multiplication: Vigna, "An experimental exploration of Marsaglia's xorshift generators").
#[derive(Clone, Debug)]
pub struct Random(u64);

impl Random {
    /// The sequence of a seed.
    pub fn new(seed: u64) -> Self {
        // Neighbouring seeds must not give neighbouring states, and the state must not be 0.
        Random(seed.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    /// The next number.
    pub fn draw(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    /// A number below `n`, which is not 0.
    pub fn below(&mut self, n: u64) -> u64 {
        (self.draw() >> 16) % n
    }
}
