//! The files under `/sys` and `/proc` that ROCr, libdrm and `rocminfo` read, as real files below `VGPU_ROOT`.
//!
//! Real files, because `fopen`, `opendir` and `readdir` then need nothing but another path.

use std::{fmt::Write as _, fs, io, path::Path};

use cdna::Target;

use crate::{
    abi::queue_type,
    config::{Bar, Link as Connection, MachineConfig},
};

/// Path prefixes that belong to the virtual machine, and what they are called below `VGPU_ROOT`.
pub const PREFIXES: &[(&str, &str)] = &[
    ("/sys/devices/virtual/kfd", "sys/devices/virtual/kfd"),
    ("/sys/class/kfd", "sys/devices/virtual/kfd"),
    ("/sys/module/amdgpu", "sys/module/amdgpu"),
    ("/sys/dev/char/226:", "sys/dev/char/226:"),
    ("/proc/modules", "proc/modules"),
];

/// Render node minor of GPU 0.
pub const FIRST_RENDER_MINOR: u32 = 128;

const TOPOLOGY: &str = "sys/devices/virtual/kfd/kfd/topology";

/// What tells one product from the other in the topology and in the DRM device information.
#[derive(Clone, Copy, Debug)]
pub struct Product {
    /// PCI device id.
    pub device_id: u32,
    /// `major * 10000 + minor * 100 + stepping`.
    pub gfx_target_version: u32,
    /// Compute units that are enabled.
    pub compute_units: u32,
    /// Shader arrays in all XCCs.
    pub arrays: u32,
    /// Compute units of one shader array.
    pub cu_per_array: u32,
    /// Accelerated compute dies in one device.
    pub xcc: u32,
    /// MHz.
    pub engine_clock: u32,
    /// MHz.
    pub memory_clock: u32,
    /// Bits.
    pub memory_width: u32,
    /// L2 in KiB.
    pub l2: u32,
    /// SDMA engines for links to other GPUs.
    pub xgmi_engines: u32,
}

/// The product that stands for an instruction set.
pub fn product(target: Target) -> Product {
    match target {
        // One die of an MI250X.
        Target::Gfx90a => Product {
            device_id: 0x7408,
            gfx_target_version: 90010,
            compute_units: 110,
            arrays: 8,
            cu_per_array: 14,
            xcc: 1,
            engine_clock: 1700,
            memory_clock: 1600,
            memory_width: 4096,
            l2: 8192,
            xgmi_engines: 3,
        },
        // An MI300X.
        Target::Gfx942 => Product {
            device_id: 0x74a1,
            gfx_target_version: 90402,
            compute_units: 304,
            arrays: 32,
            cu_per_array: 10,
            xcc: 8,
            engine_clock: 2100,
            memory_clock: 2600,
            memory_width: 8192,
            l2: 4096,
            xgmi_engines: 14,
        },
    }
}

/// Copy engines for the host's memory and the GPU's own, and queues of each engine.
const SDMA_ENGINES: u32 = 2;
const QUEUES_PER_SDMA_ENGINE: u32 = 8;

/// How many SDMA queues of a kind a GPU has; `None` for other kinds.
pub fn sdma_queues(target: Target, queue_type: u32) -> Option<usize> {
    let engines = match queue_type {
        queue_type::SDMA => SDMA_ENGINES,
        queue_type::SDMA_XGMI => product(target).xgmi_engines,
        _ => return None,
    };
    Some((engines * QUEUES_PER_SDMA_ENGINE) as usize)
}

/// The id by which ioctls name a GPU: any nonzero number.
pub fn gpu_id(gpu: u32) -> u32 {
    0x5a01 + gpu * 0x0101
}

/// Writes the whole tree below `root`.
///
/// # Errors
/// The file system's.
pub fn write_tree(root: &Path, config: &MachineConfig) -> io::Result<()> {
    for top in ["sys", "proc"] {
        let _ = fs::remove_dir_all(root.join(top));
    }
    let put = |path: String, text: &str| -> io::Result<()> {
        let path = root.join(path);
        if let Some(parent) = path.parent() {
            fs::create_dir_all(parent)?;
        }
        fs::write(path, text)
    };
    let node = |n: u32, file: &str| format!("{TOPOLOGY}/nodes/{n}/{file}");

    put(format!("{TOPOLOGY}/generation_id"), "2\n")?;
    put(
        format!("{TOPOLOGY}/system_properties"),
        "platform_oem 0\nplatform_id 0\nplatform_rev 0\n",
    )?;

    // The kernel links the CPU to a GPU only where the CPU can address its memory; ROCr 6.4 decides from that link.
    let cpu_links = if config.bar == Bar::Large { config.gpus } else { 0 };
    put(node(0, "gpu_id"), "0\n")?;
    put(node(0, "name"), "\n")?;
    put(node(0, "properties"), &cpu_properties(cpu_links))?;
    put(
        node(0, "mem_banks/0/properties"),
        &memory_bank(0, host_memory(), 72, 3200),
    )?;
    for gpu in 0..cpu_links {
        put(
            node(0, &format!("io_links/{gpu}/properties")),
            &Link::pcie(0, gpu + 1).text(),
        )?;
    }

    for gpu in 0..config.gpus {
        let n = gpu + 1;
        let product = product(config.target);
        put(node(n, "gpu_id"), &format!("{}\n", gpu_id(gpu)))?;
        put(node(n, "name"), "vgpu\n")?;
        put(node(n, "properties"), &gpu_properties(gpu, config, &product))?;
        let heap_type = if config.bar == Bar::Large { 1 } else { 2 };
        let bank = memory_bank(heap_type, config.memory, product.memory_width, product.memory_clock);
        put(node(n, "mem_banks/0/properties"), &bank)?;
        put(node(n, "caches/0/properties"), &cache(gpu, 1, 16, 64, 1))?;
        put(node(n, "caches/1/properties"), &cache(gpu, 2, product.l2, 128, 16))?;
        put(node(n, "io_links/0/properties"), &Link::pcie(n, 0).text())?;
        for (i, peer) in (0..config.gpus).filter(|peer| *peer != gpu).enumerate() {
            match config.link {
                Connection::Xgmi => put(
                    node(n, &format!("io_links/{}/properties", i + 1)),
                    &Link::xgmi(config.target, gpu, peer).text(),
                )?,
                // Through the root complex, and only where the peer's memory has an address there.
                Connection::Pcie if config.bar == Bar::Large => put(
                    node(n, &format!("p2p_links/{i}/properties")),
                    &Link::peer(n, peer + 1).text(),
                )?,
                Connection::Pcie => {}
            }
        }

        let minor = FIRST_RENDER_MINOR + gpu;
        let device = format!("sys/dev/char/226:{minor}/device");
        put(format!("{device}/drm/renderD{minor}/dev"), &format!("226:{minor}\n"))?;
        put(format!("{device}/drm/card{gpu}/dev"), &format!("226:{gpu}\n"))?;
        put(format!("{device}/vendor"), "0x1002\n")?;
        put(format!("{device}/device"), &format!("{:#06x}\n", product.device_id))?;
        let uevent = format!(
            "DRIVER=amdgpu\nPCI_ID=1002:{:04X}\nPCI_SLOT_NAME=0000:{:02x}:00.0\n",
            product.device_id, n
        );
        put(format!("{device}/uevent"), &uevent)?;
    }

    // rocminfo asks these whether the driver is loaded.
    put("proc/modules".into(), "amdgpu 9789440 0 - Live 0x0000000000000000\n")?;
    put("sys/module/amdgpu/version".into(), "6.10.5\n")?;
    put("sys/module/amdgpu/refcnt".into(), "0\n")?;
    fs::create_dir_all(root.join("sys/module/amdgpu/holders"))?;
    put("sys/module/amdgpu/initstate".into(), "live\n")
}

fn host_memory() -> u64 {
    // SAFETY: sysconf has no preconditions.
    unsafe { libc::sysconf(libc::_SC_PHYS_PAGES) as u64 * libc::sysconf(libc::_SC_PAGESIZE) as u64 }
}

/// `name value` lines.
fn lines(pairs: &[(&str, u64)]) -> String {
    pairs.iter().fold(String::new(), |mut text, (name, value)| {
        let _ = writeln!(text, "{name} {value}");
        text
    })
}

fn cpu_properties(links: u32) -> String {
    // SAFETY: sysconf has no preconditions.
    let cores = unsafe { libc::sysconf(libc::_SC_NPROCESSORS_ONLN) } as u64;
    lines(&[
        ("cpu_cores_count", cores),
        ("simd_count", 0),
        ("mem_banks_count", 1),
        ("caches_count", 0),
        ("io_links_count", links.into()),
        ("p2p_links_count", 0),
        ("cpu_core_id_base", 0),
        ("simd_id_base", 0),
        ("max_waves_per_simd", 0),
        ("lds_size_in_kb", 0),
        ("gds_size_in_kb", 0),
        ("num_gws", 0),
        ("wave_front_size", 0),
        ("array_count", 0),
        ("simd_arrays_per_engine", 0),
        ("cu_per_simd_array", 0),
        ("simd_per_cu", 0),
        ("max_slots_scratch_cu", 0),
        ("gfx_target_version", 0),
        ("vendor_id", 0),
        ("device_id", 0),
        ("location_id", 0),
        ("domain", 0),
        ("drm_render_minor", 0),
        ("hive_id", 0),
        ("num_sdma_engines", 0),
        ("num_sdma_xgmi_engines", 0),
        ("num_sdma_queues_per_engine", 0),
        ("num_cp_queues", 0),
        ("max_engine_clk_ccompute", 2600),
    ])
}

/// `capability`: doorbell type 2 (64-bit AQL doorbells), ECC on SRAM; no debug trap, no XNACK. SVM is a matter of configuration.
const CAPABILITY: u64 = 2 << 12 // DoorbellType
    | 1 << 3 // QueueSizePowerOfTwo
    | 1 << 4 // QueueSize32bit
    | 1 << 7 // WatchPointsSupported
    | 2 << 8 // WatchPointsTotalBits: four of them
    | 1 << 26; // SRAM_EDCSupport: makes the ISA name say sramecc+

/// `hive_id` of GPUs that are linked by XGMI: any nonzero number.
const HIVE: u64 = 7070;

fn gpu_properties(gpu: u32, config: &MachineConfig, product: &Product) -> String {
    let others = config.gpus - 1;
    let (links, peers, hive) = match (config.link, config.bar) {
        (Connection::Xgmi, _) => (others, 0, HIVE),
        (Connection::Pcie, Bar::Large) => (0, others, 0),
        (Connection::Pcie, Bar::Small) => (0, 0, 0),
    };
    lines(&[
        ("cpu_cores_count", 0),
        ("simd_count", u64::from(product.compute_units) * 4),
        ("mem_banks_count", 1),
        ("caches_count", 2),
        ("io_links_count", 1 + u64::from(links)),
        ("p2p_links_count", peers.into()),
        ("cpu_core_id_base", 0),
        ("simd_id_base", simd_id_base(gpu)),
        ("max_waves_per_simd", 8),
        ("lds_size_in_kb", 64),
        ("gds_size_in_kb", 0),
        ("num_gws", 64),
        ("wave_front_size", 64),
        ("array_count", product.arrays.into()),
        ("simd_arrays_per_engine", 1),
        ("cu_per_simd_array", product.cu_per_array.into()),
        ("simd_per_cu", 4),
        ("max_slots_scratch_cu", 32),
        ("gfx_target_version", product.gfx_target_version.into()),
        ("vendor_id", 0x1002),
        ("device_id", product.device_id.into()),
        ("location_id", u64::from(gpu + 1) << 8),
        ("domain", 0),
        ("drm_render_minor", (FIRST_RENDER_MINOR + gpu).into()),
        ("hive_id", hive),
        ("num_sdma_engines", SDMA_ENGINES.into()),
        ("num_sdma_xgmi_engines", product.xgmi_engines.into()),
        ("num_sdma_queues_per_engine", QUEUES_PER_SDMA_ENGINE.into()),
        ("num_cp_queues", 24),
        ("max_engine_clk_fcompute", product.engine_clock.into()),
        ("local_mem_size", 0),
        ("fw_version", 71),
        ("capability", CAPABILITY | u64::from(config.svm) << 27), // SVMAPISupported
        ("debug_prop", 1495),
        ("sdma_fw_version", 8),
        ("unique_id", 0x7667_7075_0000_0000 | u64::from(gpu + 1)),
        ("num_xcc", product.xcc.into()),
        ("max_engine_clk_ccompute", 2600),
    ])
}

fn simd_id_base(gpu: u32) -> u64 {
    0x8000_1000 + u64::from(gpu) * 0x1000
}

fn memory_bank(heap_type: u32, size: u64, width: u32, clock: u32) -> String {
    lines(&[
        ("heap_type", heap_type.into()),
        ("size_in_bytes", size),
        ("flags", 0),
        ("width", width.into()),
        ("mem_clk_max", clock.into()),
    ])
}

fn cache(gpu: u32, level: u64, kib: u32, line: u64, ways: u64) -> String {
    let mut text = lines(&[
        ("processor_id_low", simd_id_base(gpu)),
        ("level", level),
        ("size", kib.into()),
        ("cache_line_size", line),
        ("cache_lines_per_tag", 1),
        ("association", ways),
        ("latency", 0),
        ("type", 9),
    ]);
    text.push_str("sibling_map 1\n");
    text
}

/// Weights between the eight dies of a node with four MI250X, as `rocm-smi --showtopoweight` shows them: not every die has a
/// link to every other.
const MI250X_WEIGHTS: [[u64; 8]; 8] = [
    [0, 15, 15, 30, 30, 30, 15, 30],
    [15, 0, 30, 15, 30, 15, 30, 45],
    [15, 30, 0, 15, 15, 30, 30, 30],
    [30, 15, 15, 0, 30, 45, 30, 15],
    [30, 30, 15, 30, 0, 15, 15, 30],
    [30, 15, 30, 45, 15, 0, 30, 15],
    [15, 30, 30, 30, 15, 30, 0, 15],
    [30, 45, 30, 15, 30, 15, 15, 0],
];

/// An `io_links` or `p2p_links` entry.
struct Link {
    kind: u64,
    from: u32,
    to: u32,
    weight: u64,
    min_bandwidth: u64,
    max_bandwidth: u64,
}

impl Link {
    fn pcie(from: u32, to: u32) -> Self {
        Self {
            kind: 2,
            from,
            to,
            weight: 20,
            min_bandwidth: 312,
            max_bandwidth: 31504,
        }
    }

    /// GPU to GPU through the root complex: the way up and the way down again.
    fn peer(from: u32, to: u32) -> Self {
        Self {
            weight: 40,
            ..Self::pcie(from, to)
        }
    }

    /// Between two GPUs of a hive. The driver's weight is 15 a hop; bandwidth is that of one link and of all between the two.
    fn xgmi(target: Target, gpu: u32, peer: u32) -> Self {
        let (a, b) = (gpu as usize, peer as usize);
        let (weight, link, links) = match target {
            Target::Gfx90a => {
                let weight = MI250X_WEIGHTS.get(a).and_then(|row| row.get(b)).copied().unwrap_or(15);
                // The two dies of a package have four links between them.
                (weight, 50_000, if a / 2 == b / 2 { 4 } else { 1 })
            }
            Target::Gfx942 => (15, 64_000, 1),
        };
        Self {
            kind: 11,
            from: gpu + 1,
            to: peer + 1,
            weight,
            min_bandwidth: link,
            max_bandwidth: link * links,
        }
    }

    fn text(&self) -> String {
        lines(&[
            ("type", self.kind),
            ("version_major", 0),
            ("version_minor", 0),
            ("node_from", self.from.into()),
            ("node_to", self.to.into()),
            ("weight", self.weight),
            ("min_latency", 0),
            ("max_latency", 0),
            ("min_bandwidth", self.min_bandwidth),
            ("max_bandwidth", self.max_bandwidth),
            ("recommended_transfer_size", 0),
            ("recommended_sdma_engine_id_mask", 0),
            ("flags", 1),
        ])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tree(config: &MachineConfig, name: &str) -> std::path::PathBuf {
        let root = std::env::temp_dir().join(format!("vgpu-sysfs-{}-{name}", std::process::id()));
        write_tree(&root, config).unwrap();
        root
    }

    fn count(root: &Path, node: u32, what: &str) -> usize {
        fs::read_dir(root.join(format!("{TOPOLOGY}/nodes/{node}/{what}"))).map_or(0, Iterator::count)
    }

    #[test]
    fn announced_links_exist() {
        for (bar, link) in [Bar::Large, Bar::Small]
            .iter()
            .flat_map(|bar| [(*bar, Connection::Xgmi), (*bar, Connection::Pcie)])
        {
            let config = MachineConfig {
                gpus: 4,
                target: Target::Gfx90a,
                memory: 1 << 30,
                bar,
                link,
                svm: true,
            };
            let root = tree(&config, &format!("{bar:?}-{link:?}"));
            for node in 0..5 {
                let text = fs::read_to_string(root.join(format!("{TOPOLOGY}/nodes/{node}/properties"))).unwrap();
                for kind in ["io_links", "p2p_links"] {
                    let said = text
                        .lines()
                        .find_map(|line| line.strip_prefix(&format!("{kind}_count ")))
                        .unwrap();
                    assert_eq!(
                        said.parse::<usize>().unwrap(),
                        count(&root, node, kind),
                        "{kind} of node {node}, {bar:?}, {link:?}"
                    );
                }
            }
            assert_eq!(count(&root, 0, "io_links"), if bar == Bar::Large { 4 } else { 0 });
            let peers = (count(&root, 1, "io_links") - 1, count(&root, 1, "p2p_links"));
            let expected = match (link, bar) {
                (Connection::Xgmi, _) => (3, 0),
                (Connection::Pcie, Bar::Large) => (0, 3),
                (Connection::Pcie, Bar::Small) => (0, 0),
            };
            assert_eq!(peers, expected, "{bar:?}, {link:?}");
            fs::remove_dir_all(root).unwrap();
        }
    }

    #[test]
    fn links_weigh_the_same_both_ways() {
        for a in 0..8 {
            for b in 0..8 {
                let (there, back) = (Link::xgmi(Target::Gfx90a, a, b), Link::xgmi(Target::Gfx90a, b, a));
                assert_eq!(
                    (there.weight, there.max_bandwidth),
                    (back.weight, back.max_bandwidth),
                    "{a} {b}"
                );
            }
        }
    }
}
