//! ROCr: found, new enough, and the GPUs it sees.

use core::ffi::{CStr, c_char, c_void};

use hsa_sys::*;

use super::Report;

const CHECK: &str = "ROCr";

/// Looks at ROCr and its GPUs. `None` if it cannot be used, else the instruction set of each GPU.
pub fn check(report: &mut Report, driver: bool) -> Option<Vec<String>> {
    let wanted = std::env::var_os("REGAUGE_ROCR").filter(|text| !text.is_empty());
    let functions = match Functions::load(wanted.as_deref()) {
        Ok(functions) => functions,
        Err(error) => {
            let cure = match (&error, wanted.is_some()) {
                (LoadError::NotFound(_), true) => "REGAUGE_ROCR names the library to use: correct or unset it",
                (LoadError::NotFound(_), false) => {
                    "install it (Debian: libhsa-runtime64-1; AMD: hsa-rocr), load the rocm module, or name it in REGAUGE_ROCR"
                }
                (LoadError::TooOld(_), _) => "use ROCm 5.2 or newer",
            };
            report.problem(CHECK, error.to_string(), cure);
            return None;
        }
    };
    let path = loaded_from().unwrap_or_else(|| "an unknown file".into());
    let missing = functions.missing();
    if missing.is_empty() {
        report.ok(CHECK, format!("{path}, with every function that Regauge can use"));
    } else {
        let list = missing
            .iter()
            .map(|(name, since)| format!("{name} (ROCm {since})"))
            .collect::<Vec<_>>()
            .join(", ");
        report.ok(
            CHECK,
            format!("{path}; it has all that is needed, and lacks the optional {list}"),
        );
    }
    // SAFETY: hsa_init has no preconditions.
    let status = unsafe { functions.hsa_init() };
    if status != HSA_STATUS_SUCCESS {
        let cure = if driver {
            "see the kernel's log (dmesg | grep -i -e kfd -e amdgpu): driver and ROCm may not fit each other"
        } else {
            "the kernel driver is what is missing: see above"
        };
        report.problem(CHECK, format!("hsa_init fails: {status:?}"), cure);
        return None;
    }
    report.ok(CHECK, version(&functions));
    let gpus = gpus(&functions);
    devices(report, &gpus);
    Some(gpus)
}

fn version(functions: &Functions) -> String {
    let number = |attribute: u32| {
        let mut value = 0u16;
        // SAFETY: these attributes are 16-bit numbers.
        let status = unsafe { functions.hsa_system_get_info(attribute, (&raw mut value).cast()) };
        (status == HSA_STATUS_SUCCESS).then_some(value)
    };
    let mut text = match (
        number(HSA_SYSTEM_INFO_VERSION_MAJOR),
        number(HSA_SYSTEM_INFO_VERSION_MINOR),
    ) {
        (Some(major), Some(minor)) => format!("HSA {major}.{minor}"),
        _ => "HSA of an unknown version".into(),
    };
    let mut build: *const c_char = core::ptr::null();
    // SAFETY: the attribute is a pointer to a text that lives as long as the library.
    let status =
        unsafe { functions.hsa_system_get_info(HSA_AMD_SYSTEM_INFO_BUILD_VERSION, (&raw mut build).cast::<c_void>()) };
    if status == HSA_STATUS_SUCCESS && !build.is_null() {
        // SAFETY: as above; the text ends with NUL.
        let build = unsafe { CStr::from_ptr(build) }.to_string_lossy();
        text.push_str(&format!(", ROCr build {build}"));
    }
    text
}

/// The file that the loader took, from this process's map.
fn loaded_from() -> Option<String> {
    let maps = std::fs::read_to_string("/proc/self/maps").ok()?;
    let line = maps.lines().find(|line| line.contains("libhsa-runtime64"))?;
    line.find('/').map(|at| line[at..].to_owned())
}

fn gpus(functions: &Functions) -> Vec<String> {
    struct Search<'f> {
        functions: &'f Functions,
        names: Vec<String>,
    }
    unsafe extern "C" fn collect(agent: hsa_agent_t, data: *mut c_void) -> hsa_status_t {
        // SAFETY: `data` is the search below, which outlives the iteration.
        let search = unsafe { &mut *data.cast::<Search<'_>>() };
        let (mut kind, mut name) = (0u32, [0u8; 64]);
        // SAFETY: the attributes are a 32-bit number and 64 characters.
        let known = unsafe {
            let kind = search
                .functions
                .hsa_agent_get_info(agent, HSA_AGENT_INFO_DEVICE, (&raw mut kind).cast());
            let name = search
                .functions
                .hsa_agent_get_info(agent, HSA_AGENT_INFO_NAME, name.as_mut_ptr().cast());
            kind == HSA_STATUS_SUCCESS && name == HSA_STATUS_SUCCESS
        };
        if known && kind == HSA_DEVICE_TYPE_GPU {
            let end = name.iter().position(|&byte| byte == 0).unwrap_or(name.len());
            search.names.push(String::from_utf8_lossy(&name[..end]).into_owned());
        }
        HSA_STATUS_SUCCESS
    }
    let mut search = Search {
        functions,
        names: Vec::new(),
    };
    // SAFETY: the callback has the right type, its data lives through the call; ROCr is initialised.
    let status = unsafe { functions.hsa_iterate_agents(collect, (&raw mut search).cast()) };
    if status == HSA_STATUS_SUCCESS {
        search.names
    } else {
        Vec::new()
    }
}

fn devices(report: &mut Report, gpus: &[String]) {
    const CHECK: &str = "devices";
    let usable = |name: &&String| ["gfx90a", "gfx942"].contains(&name.as_str());
    let (good, other): (Vec<_>, Vec<_>) = gpus.iter().partition(|name| usable(name));
    if gpus.is_empty() {
        report.problem(
            CHECK,
            "ROCr sees no GPU",
            "see whether ROCR_VISIBLE_DEVICES hides them, and what the kernel's log says of amdgpu",
        );
        return;
    }
    let names = |list: &[&String]| list.iter().map(|name| name.as_str()).collect::<Vec<_>>().join(", ");
    if !other.is_empty() {
        let text = format!("Regauge has no code for {}", names(&other));
        let cure = "kernels run on gfx90a (MI200 series) and gfx942 (MI300 series)";
        if good.is_empty() {
            report.problem(CHECK, text, cure);
        } else {
            report.warning(CHECK, text, cure);
        }
    }
    if !good.is_empty() {
        report.ok(CHECK, format!("{} GPUs: {}", good.len(), names(&good)));
    }
}
