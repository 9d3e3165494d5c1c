//! Resource limits and cache preferences of a context (`cuCtxSetLimit`, `cuCtxSetCacheConfig`).

use super::Device;
use crate::abi::{CUlimit, Error, Result};

/// Largest stack of a thread: CUDA's limit of local memory per thread.
const MAX_STACK: usize = 512 << 10;

/// What a context's owner chose. Defaults are those recorded on NVIDIA hardware.
#[derive(Clone, Debug)]
pub struct Settings {
    stack: usize,
    printf_fifo: usize,
    malloc_heap: usize,
    pending_launches: usize,
    l2_fetch_granularity: usize,
    /// `CUfunc_cache`: a preference that the hardware (64 KiB of LDS, always) has no use for; read back as set.
    pub cache_config: i32,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            stack: 1024,
            printf_fifo: 8_650_752,
            malloc_heap: 8 << 20,
            pending_launches: 2048,
            l2_fetch_granularity: 64,
            cache_config: 0,
        }
    }
}

impl Settings {
    /// `cuCtxSetCacheConfig`; [`Error::INVALID_VALUE`] for a number that is no preference.
    pub fn set_cache_config(&mut self, config: i32) -> Result<()> {
        if !(0..=3).contains(&config) {
            return Err(Error::INVALID_VALUE);
        }
        self.cache_config = config;
        Ok(())
    }

    /// `cuCtxGetLimit`. [`Error::UNSUPPORTED_LIMIT`] for one that the capability does not have, [`Error::INVALID_VALUE`]
    /// for a number that is none.
    pub fn limit(&self, limit: CUlimit, device: &Device) -> Result<usize> {
        Ok(match limit {
            CUlimit::STACK_SIZE => self.stack,
            CUlimit::PRINTF_FIFO_SIZE => self.printf_fifo,
            CUlimit::MALLOC_HEAP_SIZE => self.malloc_heap,
            CUlimit::DEV_RUNTIME_SYNC_DEPTH => return Err(Error::UNSUPPORTED_LIMIT),
            CUlimit::DEV_RUNTIME_PENDING_LAUNCH_COUNT => self.pending_launches,
            CUlimit::MAX_L2_FETCH_GRANULARITY => self.l2_fetch_granularity,
            // No part of the L2 cache can be set aside.
            CUlimit::PERSISTING_L2_CACHE_SIZE => 0,
            CUlimit::SHMEM_SIZE => super::attributes::shared_memory_optin(device),
            CUlimit::CIG_ENABLED | CUlimit::CIG_SHMEM_FALLBACK_ENABLED => 0,
            _ => return Err(Error::INVALID_VALUE),
        })
    }

    /// `cuCtxSetLimit`; errors as [`Settings::limit`], and [`Error::INVALID_VALUE`] for a value out of range.
    pub fn set_limit(&mut self, limit: CUlimit, value: usize) -> Result<()> {
        match limit {
            CUlimit::STACK_SIZE if value <= MAX_STACK => self.stack = value.next_multiple_of(16),
            CUlimit::PRINTF_FIFO_SIZE => self.printf_fifo = value,
            CUlimit::MALLOC_HEAP_SIZE => self.malloc_heap = value,
            CUlimit::DEV_RUNTIME_SYNC_DEPTH => return Err(Error::UNSUPPORTED_LIMIT),
            CUlimit::DEV_RUNTIME_PENDING_LAUNCH_COUNT => self.pending_launches = value,
            CUlimit::MAX_L2_FETCH_GRANULARITY if value <= 128 => self.l2_fetch_granularity = value,
            CUlimit::PERSISTING_L2_CACHE_SIZE => {}
            CUlimit::SHMEM_SIZE | CUlimit::CIG_ENABLED | CUlimit::CIG_SHMEM_FALLBACK_ENABLED => {
                return Err(Error::UNSUPPORTED_LIMIT);
            }
            _ => return Err(Error::INVALID_VALUE),
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stack_is_a_multiple_of_sixteen_and_bounded() {
        let mut settings = Settings::default();
        settings.set_limit(CUlimit::STACK_SIZE, 1000).unwrap();
        assert_eq!(settings.stack, 1008);
        assert_eq!(
            settings.set_limit(CUlimit::STACK_SIZE, 1 << 40),
            Err(Error::INVALID_VALUE)
        );
        assert_eq!(settings.set_limit(CUlimit(99), 1), Err(Error::INVALID_VALUE));
        assert_eq!(
            settings.set_limit(CUlimit::DEV_RUNTIME_SYNC_DEPTH, 4),
            Err(Error::UNSUPPORTED_LIMIT)
        );
    }
}
