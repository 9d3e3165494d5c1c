//! Options of the just-in-time compiler, and the logs it writes for the application.

use core::ffi::{c_char, c_int, c_uint, c_void};

use super::translator::Failure;
use crate::abi::{Error, Result, conv};

const WALL_TIME: c_int = 2;
const INFO_LOG_BUFFER: c_int = 3;
const INFO_LOG_BUFFER_SIZE: c_int = 4;
const ERROR_LOG_BUFFER: c_int = 5;
const ERROR_LOG_BUFFER_SIZE: c_int = 6;
const TARGET: c_int = 9;
/// `CU_JIT_MIN_CTA_PER_SM`, `CU_JIT_MAX_THREADS_PER_BLOCK` and `CU_JIT_OVERRIDE_DIRECTIVE_VALUES` are the last ones.
const LAST: c_int = 33;

/// The oldest architecture that a JIT of today compiles for, as recorded: 50 is refused.
const OLDEST_TARGET: usize = 60;

/// What an application asked of the compiler. Only what has an effect here is kept.
#[derive(Debug)]
pub struct Options {
    error_log: Log,
    info_log: Log,
    wall_time: *mut *mut c_void,
    target: Option<usize>,
}

/// A buffer for messages and where the length is written back: into the option's value itself.
#[derive(Clone, Copy, Debug)]
struct Log {
    buffer: *mut c_char,
    size: usize,
    written: *mut *mut c_void,
}

impl Default for Options {
    fn default() -> Self {
        let none = Log {
            buffer: core::ptr::null_mut(),
            size: 0,
            written: core::ptr::null_mut(),
        };
        Self {
            error_log: none,
            info_log: none,
            wall_time: core::ptr::null_mut(),
            target: None,
        }
    }
}

impl Options {
    /// Reads `count` options and their values.
    ///
    /// # Errors
    /// INVALID_VALUE for missing arrays or an unknown option.
    ///
    /// # Safety
    /// The arrays have `count` elements and stay for the call that the options are for.
    pub unsafe fn read(count: c_uint, options: *const c_int, values: *mut *mut c_void) -> Result<Self> {
        // SAFETY: the caller's promise.
        let names = unsafe { conv::slice(options, count as usize) }?;
        if count > 0 && values.is_null() {
            return Err(Error::INVALID_VALUE);
        }
        let mut read = Self::default();
        for (index, &name) in names.iter().enumerate() {
            // SAFETY: `count` values, by the caller's promise.
            let slot = unsafe { values.add(index) };
            // SAFETY: as above.
            let value = unsafe { *slot };
            match name {
                WALL_TIME => read.wall_time = slot,
                INFO_LOG_BUFFER => read.info_log.buffer = value.cast(),
                INFO_LOG_BUFFER_SIZE => (read.info_log.size, read.info_log.written) = (value as u32 as usize, slot),
                ERROR_LOG_BUFFER => read.error_log.buffer = value.cast(),
                ERROR_LOG_BUFFER_SIZE => (read.error_log.size, read.error_log.written) = (value as u32 as usize, slot),
                TARGET => read.target = Some(value as usize),
                0..=LAST => {}
                _ => return Err(Error::INVALID_VALUE),
            }
        }
        Ok(read)
    }

    /// Refuses what NVIDIA's compiler would.
    ///
    /// # Errors
    /// INVALID_PTX for a target that is too old.
    pub fn check(&self) -> core::result::Result<(), Failure> {
        match self.target {
            Some(target) if target < OLDEST_TARGET => Err(Failure::new(
                Error::INVALID_PTX,
                format!("ptxas fatal   : sm_{target} is not supported"),
            )),
            _ => Ok(()),
        }
    }

    /// Writes the logs: the failure's text into the error log, `info` into the info log, and both lengths, as recorded
    /// without the NUL.
    pub fn report(&self, failure: Option<&Failure>, info: &str) {
        if let Some(failure) = failure {
            log::debug!("a module was refused with {:?}: {}", failure.error, failure.log);
        }
        self.error_log.write(failure.map_or("", |failure| &failure.log));
        self.info_log.write(info);
        if !self.wall_time.is_null() {
            // SAFETY: the slot of an option, which stays for the call. The value is a float in the word's low half.
            unsafe { self.wall_time.cast::<f32>().write(0.0) };
        }
    }
}

impl Log {
    fn write(&self, text: &str) {
        if !self.buffer.is_null() {
            let _ = conv::write_string(self.buffer, self.size, text);
        }
        if !self.written.is_null() {
            let written = text.len().min(self.size);
            // SAFETY: the slot of an option, which stays for the call.
            unsafe { self.written.write(written as *mut c_void) };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn logs_and_their_lengths_are_written_back() {
        let mut error = [0x7eu8; 16];
        let mut info = [0x7eu8; 16];
        let names = [
            ERROR_LOG_BUFFER,
            ERROR_LOG_BUFFER_SIZE,
            INFO_LOG_BUFFER,
            INFO_LOG_BUFFER_SIZE,
            12,
        ];
        let mut values: [*mut c_void; 5] = [
            error.as_mut_ptr().cast(),
            core::ptr::without_provenance_mut(16),
            info.as_mut_ptr().cast(),
            core::ptr::without_provenance_mut(16),
            core::ptr::without_provenance_mut(1),
        ];
        // SAFETY: five options and values.
        let options = unsafe { Options::read(5, names.as_ptr(), values.as_mut_ptr()) }.unwrap();
        options.report(Some(&Failure::new(Error::INVALID_PTX, "syntax")), "");
        assert_eq!((&error[..7], values[1] as usize), (&b"syntax\0"[..], 6));
        assert_eq!((info[0], values[3] as usize), (0, 0));
        options.report(Some(&Failure::new(Error::INVALID_PTX, "longer than the buffer")), "");
        assert_eq!((&error[..], values[1] as usize), (&b"longer than the\0"[..], 16));
    }

    #[test]
    fn unknown_options_and_missing_arrays_are_refused() {
        let mut values = [core::ptr::null_mut(); 1];
        // SAFETY: one option, or none that is followed.
        unsafe {
            assert!(Options::read(1, [999].as_ptr(), values.as_mut_ptr()).is_err());
            assert!(Options::read(1, core::ptr::null(), core::ptr::null_mut()).is_err());
            assert!(Options::read(0, core::ptr::null(), core::ptr::null_mut()).is_ok());
            values[0] = 50 as *mut c_void;
            let old = Options::read(1, [TARGET].as_ptr(), values.as_mut_ptr()).unwrap();
            assert_eq!(old.check().map_err(Error::from), Err(Error::INVALID_PTX));
        }
    }
}
