//! Which instructions of the processor there are: loops are compiled for several sets, and the best one is picked at run time.

/// A set of features, from the least to the most.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// What every processor of the architecture has.
    Baseline,
    /// AVX2 and fused multiply-add.
    Avx2,
    /// AVX-512 F, BW, VL and DQ, as well.
    Avx512,
}

impl Level {
    /// All levels.
    pub const ALL: [Level; 3] = [Level::Baseline, Level::Avx2, Level::Avx512];

    /// What this processor has.
    #[inline]
    pub fn of_processor() -> Level {
        #[cfg(test)]
        if let Some(level) = testing::CAP.get() {
            return level.min(Self::detect());
        }
        Self::detect()
    }

    #[inline]
    fn detect() -> Level {
        #[cfg(target_arch = "x86_64")]
        {
            use std::arch::is_x86_feature_detected as has;
            if !(has!("avx2") && has!("fma")) {
                return Level::Baseline;
            }
            if has!("avx512f") && has!("avx512bw") && has!("avx512vl") && has!("avx512dq") {
                return Level::Avx512;
            }
            Level::Avx2
        }
        #[cfg(not(target_arch = "x86_64"))]
        Level::Baseline
    }
}

/// For tests: every level that this processor has, one after the other.
#[cfg(test)]
pub(crate) mod testing {
    use std::{
        cell::Cell,
        io::{Write as _, stderr},
    };

    use super::Level;

    thread_local! {
        pub static CAP: Cell<Option<Level>> = const { Cell::new(None) };
    }

    /// Runs `check` with each level as if the processor had no more. Says which ones it lacks, past the test harness, which
    /// keeps what a passing test prints to itself.
    pub fn at_every_level(what: &str, mut check: impl FnMut(Level)) {
        for level in Level::ALL {
            if level > Level::detect() {
                let _ = writeln!(
                    stderr(),
                    "NOT TESTED: {what} with {level:?}, which this processor lacks"
                );
                continue;
            }
            CAP.set(Some(level));
            check(level);
        }
        CAP.set(None);
    }
}
