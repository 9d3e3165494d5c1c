//! `hsa_status_t`: a newtype with constants, never an enum, so that an unknown value is never undefined behaviour.

use core::fmt;

/// The result of most HSA calls; 0 is success.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
#[repr(transparent)]
#[must_use]
pub struct hsa_status_t(pub i32);

macro_rules! statuses {
    ($($name:ident = $value:literal: $doc:literal;)*) => {
        $(#[doc = $doc] pub const $name: hsa_status_t = hsa_status_t($value);)*

        /// The constant's name, for messages; `None` for a value this crate does not know.
        pub fn name(status: hsa_status_t) -> Option<&'static str> {
            match status.0 {
                $($value => Some(stringify!($name)),)*
                _ => None,
            }
        }
    };
}

statuses! {
    HSA_STATUS_SUCCESS = 0x0: "Done.";
    HSA_STATUS_INFO_BREAK = 0x1: "A callback ended an iteration early.";
    HSA_STATUS_ERROR_INVALID_MEMORY_POOL = 40: "Not a memory pool.";
    HSA_STATUS_ERROR_MEMORY_APERTURE_VIOLATION = 41: "A kernel touched an address outside its apertures.";
    HSA_STATUS_ERROR_ILLEGAL_INSTRUCTION = 42: "A kernel executed an illegal instruction.";
    HSA_STATUS_ERROR_MEMORY_FAULT = 43: "A kernel accessed memory that is not mapped or not writable.";
    HSA_STATUS_CU_MASK_REDUCED = 44: "The compute unit mask was set, but smaller than asked.";
    HSA_STATUS_ERROR_OUT_OF_REGISTERS = 45: "A kernel needs more registers than a workgroup can have.";
    HSA_STATUS_ERROR_RESOURCE_BUSY = 46: "The resource is in use.";
    HSA_STATUS_ERROR = 0x1000: "Failed without saying why.";
    HSA_STATUS_ERROR_INVALID_ARGUMENT = 0x1001: "An argument is outside what the call accepts.";
    HSA_STATUS_ERROR_INVALID_QUEUE_CREATION = 0x1002: "The agent has no queue of that kind.";
    HSA_STATUS_ERROR_INVALID_ALLOCATION = 0x1003: "The allocation is not what the call needs.";
    HSA_STATUS_ERROR_INVALID_AGENT = 0x1004: "Not an agent.";
    HSA_STATUS_ERROR_INVALID_REGION = 0x1005: "Not a memory region.";
    HSA_STATUS_ERROR_INVALID_SIGNAL = 0x1006: "Not a signal.";
    HSA_STATUS_ERROR_INVALID_QUEUE = 0x1007: "Not a queue.";
    HSA_STATUS_ERROR_OUT_OF_RESOURCES = 0x1008: "Memory or another resource ran out.";
    HSA_STATUS_ERROR_INVALID_PACKET_FORMAT = 0x1009: "A queue met a packet it cannot read.";
    HSA_STATUS_ERROR_RESOURCE_FREE = 0x100A: "A resource could not be freed.";
    HSA_STATUS_ERROR_NOT_INITIALIZED = 0x100B: "`hsa_init` was not called.";
    HSA_STATUS_ERROR_REFCOUNT_OVERFLOW = 0x100C: "A reference count overflowed.";
    HSA_STATUS_ERROR_INCOMPATIBLE_ARGUMENTS = 0x100D: "The arguments do not fit together.";
    HSA_STATUS_ERROR_INVALID_INDEX = 0x100E: "An index is out of range.";
    HSA_STATUS_ERROR_INVALID_ISA = 0x100F: "The code object is for another instruction set.";
    HSA_STATUS_ERROR_INVALID_CODE_OBJECT = 0x1010: "Not a code object.";
    HSA_STATUS_ERROR_INVALID_EXECUTABLE = 0x1011: "Not an executable.";
    HSA_STATUS_ERROR_FROZEN_EXECUTABLE = 0x1012: "The executable is frozen.";
    HSA_STATUS_ERROR_INVALID_SYMBOL_NAME = 0x1013: "The executable has no such symbol.";
    HSA_STATUS_ERROR_VARIABLE_ALREADY_DEFINED = 0x1014: "The variable has a definition.";
    HSA_STATUS_ERROR_VARIABLE_UNDEFINED = 0x1015: "The variable has no definition.";
    HSA_STATUS_ERROR_EXCEPTION = 0x1016: "A kernel raised an exception (a trap).";
    HSA_STATUS_ERROR_INVALID_ISA_NAME = 0x1017: "Not the name of an instruction set.";
    HSA_STATUS_ERROR_INVALID_EXECUTABLE_SYMBOL = 0x1019: "Not a symbol of an executable.";
    HSA_STATUS_ERROR_INVALID_CODE_OBJECT_READER = 0x1021: "Not a code object reader.";
    HSA_STATUS_ERROR_INVALID_WAVEFRONT = 0x1023: "Not a wavefront.";
    HSA_STATUS_ERROR_INVALID_RUNTIME_STATE = 0x1025: "The runtime is in no state for this call.";
    HSA_STATUS_ERROR_FATAL = 0x1026: "The runtime cannot go on.";
}

impl fmt::Debug for hsa_status_t {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match name(*self) {
            Some(name) => f.write_str(name),
            None => write!(f, "hsa_status_t({:#x})", self.0),
        }
    }
}
