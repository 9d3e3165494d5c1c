//! Driver Entry Point Access: `cuGetProcAddress`, `cuGetExportTable`.

use core::arch::{asm, global_asm};
use core::ffi::{c_char, c_int, c_void};
use core::ptr;
use std::sync::Once;

use symbol_versions::procaddr::{self, NotFound};

use super::version::driver_version;
use crate::abi::{CUdriverProcAddress_flags, CUdriverProcAddressQueryResult, CUuuid, Error, Result, conv};
use crate::{attention, driver};

// Defined by libcuda.so.1 next to its entry points; weak, because this crate's own tests have none.
global_asm!(".weak regauge_driver_entry_points");

/// The addresses of the exports of `libcuda.so.1`, in the order of its table: the ones that `dlsym` gives.
fn entry_points() -> &'static [usize] {
    let list: *const usize;
    // SAFETY: reads the address of a symbol, which is 0 when nothing defines it.
    unsafe {
        asm!(
            "mov {list}, qword ptr [rip + regauge_driver_entry_points@GOTPCREL]",
            list = out(reg) list,
            options(pure, nomem, nostack, preserves_flags)
        );
    }
    if list.is_null() {
        return &[];
    }
    // SAFETY: the list begins with the number of addresses that follow (symbol-versions, `render::implementation`).
    unsafe { core::slice::from_raw_parts(list.add(1), *list) }
}

/// What a search for an entry point found.
pub struct Found {
    /// The entry point, or NULL.
    pub address: *mut c_void,
    /// Why it is NULL.
    pub status: CUdriverProcAddressQueryResult,
}

/// Searches the entry point of `name` at `version` (-1: the newest).
///
/// A version above the driver's and flags other than the two defined ones are invalid; a name that is not found is a successful
/// search. That is how NVIDIA's driver behaves.
pub fn search(name: &[u8], version: c_int, flags: u64) -> Result<Found> {
    const KNOWN: u64 =
        (CUdriverProcAddress_flags::LEGACY_STREAM.0 | CUdriverProcAddress_flags::PER_THREAD_DEFAULT_STREAM.0) as u64;
    let version = if version == -1 { driver_version() } else { version };
    if !(0..=driver_version()).contains(&version) || flags & !KNOWN != 0 {
        return Err(Error::INVALID_VALUE);
    }
    let per_thread = flags & CUdriverProcAddress_flags::PER_THREAD_DEFAULT_STREAM.0 as u64 != 0;
    // A name that is no UTF-8 is no name of ours.
    let name = core::str::from_utf8(name).unwrap_or_default();
    let found = procaddr::resolve(name, version.unsigned_abs(), per_thread).and_then(|index| {
        let address = entry_points().get(index).ok_or(NotFound::Name)?;
        Ok(ptr::with_exposed_provenance_mut(*address))
    });
    Ok(match found {
        Ok(address) => Found {
            address,
            status: CUdriverProcAddressQueryResult::SUCCESS,
        },
        Err(NotFound::Name) => Found {
            address: ptr::null_mut(),
            status: CUdriverProcAddressQueryResult::SYMBOL_NOT_FOUND,
        },
        Err(NotFound::Version) => Found {
            address: ptr::null_mut(),
            status: CUdriverProcAddressQueryResult::VERSION_NOT_SUFFICIENT,
        },
    })
}

/// Has every call look whether somebody overwrote the beginning of `cuMemAlloc`, which every patcher of allocations must.
pub fn watch() {
    let entry = search(b"cuMemAlloc", -1, 0).map_or(ptr::null_mut(), |found| found.address);
    // SAFETY: an entry point of ours; this crate's own tests have none.
    unsafe { attention::watch((!entry.is_null()).then_some(entry.cast())) };
}

/// `cuGetProcAddress` as it is since CUDA 12: a search that finds nothing succeeds and says so in the status.
fn get_proc_address(
    symbol: *const c_char,
    pfn: *mut *mut c_void,
    version: c_int,
    flags: u64,
    status: *mut CUdriverProcAddressQueryResult,
) -> Result<()> {
    // SAFETY: NULL is checked; the client promises a C string.
    let name = unsafe { conv::bytes(symbol) }?;
    if pfn.is_null() {
        return Err(Error::INVALID_VALUE);
    }
    let found = search(name, version, flags)?;
    log::debug!(
        "cuGetProcAddress: {:?} at {version}: status {}",
        name.escape_ascii().to_string(),
        found.status.0
    );
    conv::write_if(status, found.status);
    conv::write(pfn, found.address)
}

driver! {
    /// CUDA Driver API, Driver Entry Point Access: `cuGetProcAddress`, as it was before CUDA 12: what is not found is an error,
    /// and the output stays as it was.
    fn cuGetProcAddress(symbol: *const c_char, pfn: *mut *mut c_void, cudaVersion: c_int, flags: u64) {
        // SAFETY: NULL is checked; the client promises a C string.
        let name = unsafe { conv::bytes(symbol) }?;
        let found = search(name, cudaVersion, flags)?;
        if found.address.is_null() {
            return Err(Error::SYMBOL_NOT_FOUND);
        }
        conv::write(pfn, found.address)
    }

    /// CUDA Driver API, Driver Entry Point Access: `cuGetProcAddress`.
    fn cuGetProcAddress_v2(
        symbol: *const c_char,
        pfn: *mut *mut c_void,
        cudaVersion: c_int,
        flags: u64,
        symbolStatus: *mut CUdriverProcAddressQueryResult,
    ) {
        get_proc_address(symbol, pfn, cudaVersion, flags, symbolStatus)
    }

    /// [`cuGetProcAddress_v2`] of a client compiled for per-thread default streams: with flags 0 it asks for that kind.
    fn cuGetProcAddress_v2_ptsz(
        symbol: *const c_char,
        pfn: *mut *mut c_void,
        cudaVersion: c_int,
        flags: u64,
        symbolStatus: *mut CUdriverProcAddressQueryResult,
    ) {
        let per_thread = CUdriverProcAddress_flags::PER_THREAD_DEFAULT_STREAM.0 as u64;
        get_proc_address(symbol, pfn, cudaVersion, if flags == 0 { per_thread } else { flags }, symbolStatus)
    }

    /// CUDA Driver API: `cuGetExportTable`. Regauge has no private tables; see [`refuse_export_table`].
    fn cuGetExportTable(ppExportTable: *mut *const c_void, pExportTableId: *const CUuuid) {
        refuse_export_table(ppExportTable, pExportTableId)
    }
}

/// The table that every version of NVIDIA's runtime asks for first or second, and whose refusal it survives with an error.
const CUDART_INTERFACE: u128 = 0x6bd5_fb6c_5bf4_e74a_8987_d939_12fd_9df9;

/// The other tables that NVIDIA's runtime and compiler are known to ask for.
const OTHER_TABLES: [u128; 8] = [
    0xa094_798c_2e74_2e74_93f2_0800_200c_0a66,
    0x42d8_5a81_23f6_cb47_8298_f6e7_8a3a_ecdc,
    0xc693_336e_1121_df11_a8c3_68f3_55d8_9593,
    0xd408_2055_bde6_704b_8d34_ba12_3c66_e1f2,
    0x263e_8860_7cd2_6143_92f6_bbd5_006d_fa7e,
    0xf8cf_f951_2146_8b4e_b9e2_fb46_9e7c_0dd9,
    0xda91_51d3_3ae6_cc41_a5c0_4f26_d533_e328,
    0x2131_8c60_9714_3248_8ca6_41ff_7324_c8f2,
];

/// Refuses a private table, and explains it to the user when it is NVIDIA's runtime that asks.
///
/// That runtime, linked statically or as NVIDIA's own `libcudart.so.12`, works with NVIDIA's driver only. Refused from the first
/// table on, it returns "named symbol not found" from every call, which tells a user nothing.
pub fn refuse_export_table(table: *mut *const c_void, id: *const CUuuid) -> Result<()> {
    static EXPLAINED: Once = Once::new();
    conv::write(table, ptr::null())?;
    let id = u128::from_be_bytes(conv::read(id.cast::<[u8; 16]>())?);
    if id == CUDART_INTERFACE {
        EXPLAINED.call_once(|| {
            log::error!(
                "this program uses NVIDIA's CUDA runtime, linked into it or into one of its libraries, and that works with \
                 NVIDIA's driver only: its calls will fail with error 500. Relink with `-cudart shared`; if it is linked so \
                 already, put Regauge's libcudart.so.12 in front of NVIDIA's (LD_LIBRARY_PATH or LD_PRELOAD)"
            );
        });
    }
    let known = id == CUDART_INTERFACE || OTHER_TABLES.contains(&id);
    Err(if known {
        Error::SYMBOL_NOT_FOUND
    } else {
        Error::INVALID_VALUE
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_above_the_drivers_and_unknown_flags_are_invalid() {
        for (version, flags) in [
            (12100, 0),
            (99000, 0),
            (-2, 0),
            (12000, 4),
            (12000, 8),
            (12000, 1 << 40),
        ] {
            assert!(search(b"cuMemAlloc", version, flags).is_err(), "{version} {flags}");
        }
    }

    #[test]
    fn a_name_that_is_not_there_is_a_successful_search() {
        let status = |name: &[u8], version| search(name, version, 0).unwrap().status;
        assert_eq!(
            status(b"cuNoSuchFunction", 12000),
            CUdriverProcAddressQueryResult::SYMBOL_NOT_FOUND
        );
        assert_eq!(status(b"\xff", 12000), CUdriverProcAddressQueryResult::SYMBOL_NOT_FOUND);
        assert_eq!(
            status(b"cuMemAllocAsync", 10000),
            CUdriverProcAddressQueryResult::VERSION_NOT_SUFFICIENT
        );
    }

    #[test]
    fn private_tables_are_refused() {
        let mut table = ptr::without_provenance(0x55);
        let mut ask = |id: u128| {
            let id = id.to_be_bytes();
            refuse_export_table(&raw mut table, (&raw const id).cast())
        };
        assert_eq!(ask(CUDART_INTERFACE), Err(Error::SYMBOL_NOT_FOUND));
        assert_eq!(ask(0), Err(Error::INVALID_VALUE));
        assert_eq!(
            refuse_export_table(ptr::null_mut(), ptr::null()),
            Err(Error::INVALID_VALUE)
        );
        assert_eq!(
            refuse_export_table(&raw mut table, ptr::null()),
            Err(Error::INVALID_VALUE)
        );
        assert!(table.is_null());
    }
}
