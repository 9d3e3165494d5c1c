//! `cuGetProcAddress` against NVIDIA's recorded answers, for every name.

mod common;

use std::ffi::{CString, c_char, c_int, c_void};
use std::fs;
use std::ptr;

use common::{library, root};
use serde_json::Value;
use symbol_versions::Library;

type GetProcAddress = unsafe extern "C" fn(*const c_char, *mut *mut c_void, c_int, u64, *mut c_int) -> c_int;

/// Our `libcuda.so.1`, saying that it is the driver that was recorded.
struct Driver(*mut c_void);

impl Driver {
    fn open() -> Self {
        // SAFETY: no other thread of this test program reads the environment: there is one test.
        unsafe { std::env::set_var("REGAUGE_DRIVER_VERSION", "13.0") };
        let path = CString::new(library(Library::Cuda).into_os_string().into_encoded_bytes()).unwrap();
        // SAFETY: loading the library runs no code that needs anything.
        let handle = unsafe { libc::dlopen(path.as_ptr(), libc::RTLD_NOW) };
        assert!(!handle.is_null());
        Self(handle)
    }

    /// The address that the dynamic linker gives for a name.
    fn symbol(&self, name: &str) -> *mut c_void {
        let name = CString::new(name).unwrap();
        // SAFETY: the handle is open.
        unsafe { libc::dlsym(self.0, name.as_ptr()) }
    }

    /// Result, address and status; the last two start as 0x55 and 77, as in the recording.
    fn get_proc_address(&self, name: &str, version: c_int, flags: u64) -> (c_int, *mut c_void, c_int) {
        // SAFETY: the symbol is a function of that type.
        let function: GetProcAddress = unsafe { std::mem::transmute(self.symbol("cuGetProcAddress_v2")) };
        let name = CString::new(name).unwrap();
        let (mut address, mut status) = (ptr::without_provenance_mut(0x55), 77);
        // SAFETY: the pointers are to values that live.
        let result = unsafe { function(name.as_ptr(), &mut address, version, flags, &mut status) };
        (result, address, status)
    }
}

/// Name, version and flags in the text of a recorded call: `"cuMemAlloc", &p, 12000, 0, &status`.
fn arguments(text: &str) -> Option<(&str, c_int, u64)> {
    let (name, rest) = text.strip_prefix('"')?.split_once('"')?;
    let mut rest = rest.strip_prefix(", &p, ")?.split(", ");
    Some((name, rest.next()?.parse().ok()?, rest.next()?.parse().ok()?))
}

#[test]
fn every_recorded_answer_is_given() {
    let driver = Driver::open();
    let text = fs::read_to_string(root().join("tests/oracle/results/procaddr.jsonl")).unwrap();
    let (mut calls, mut names) = (0, 0);
    for line in text.lines() {
        let record: Value = serde_json::from_str(line).unwrap();
        let out = &record["out"];
        if record["group"] == "parity" && out["name"].is_string() {
            names += 1;
            parity(&driver, out);
        } else if record["group"] == "behaviour"
            && record["call"] == "cuGetProcAddress_v2"
            && let Some((name, version, flags)) = arguments(record["args"].as_str().unwrap())
        {
            calls += 1;
            let (result, address, status) = driver.get_proc_address(name, version, flags);
            assert_eq!(result, record["code"], "{line}");
            assert_eq!(status, out["status"], "{line}");
            let expected = match out["p"].as_str() {
                Some("unwritten") => ptr::without_provenance_mut(0x55),
                Some("NULL") => ptr::null_mut(),
                _ => driver.symbol(out["dladdr"].as_str().unwrap()),
            };
            assert_eq!(address, expected, "{line}");
        }
    }
    assert!(calls > 200 && names > 600, "{calls} calls, {names} names");
}

/// What a name's base resolves to at two versions is at the address that `dlsym` gives.
fn parity(driver: &Driver, record: &Value) {
    let base = record["base"].as_str().unwrap();
    for (version, key) in [(12090, "resolves_at_12090"), (13000, "resolves_at_13000")] {
        let expected = match record[key].as_str().unwrap() {
            "" => ptr::null_mut(),
            name => driver.symbol(name),
        };
        let (result, address, status) = driver.get_proc_address(base, version, 0);
        assert_eq!((result, address), (0, expected), "{base} at {version}");
        if version == 12090 {
            assert_eq!(status, record["status"], "{base}");
        }
    }
}
