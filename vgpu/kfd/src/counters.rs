//! What this process's GPU queues did, for people and for tests.
//!
//! Two files per process. `<VGPU_COUNTERS><pid>.tsv` has a `name<TAB>value` line per counter; `<VGPU_COUNTERS><pid>.kernels`
//! a table with a line per kernel, made only when the process runs one. They are rewritten when queues fall idle and at
//! exit, so they can be read while the process lives and are nearly right if it is killed.

use std::{
    collections::BTreeMap,
    fmt::Write as _,
    path::{Path, PathBuf},
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, AtomicU64, Ordering::Relaxed},
    },
};

use cdna::dispatch::Stats;

use crate::os;

macro_rules! counters {
    ($($(#[doc = $doc:literal])* $name:ident,)*) => {
        /// All counters of a process.
        #[derive(Debug, Default)]
        pub struct Counters {
            $($(#[doc = $doc])* pub $name: AtomicU64,)*
            dirty: AtomicBool,
            file: Option<PathBuf>,
            kernels: Mutex<BTreeMap<Arc<str>, KernelCounters>>,
        }

        impl Counters {
            /// The file's text.
            pub fn to_tsv(&self) -> String {
                let mut text = String::new();
                $(let _ = writeln!(text, concat!(stringify!($name), "\t{}"), self.$name.load(Relaxed));)*
                text
            }
        }
    };
}

counters! {
    /// Kernel dispatch packets executed to their end.
    dispatches,
    /// Waves started.
    waves,
    /// Wave instructions executed.
    instructions,
    /// Loads from global memory, as wave instructions.
    kernel_loads,
    /// Stores to global memory, as wave instructions.
    kernel_stores,
    /// Atomics on global memory, as wave instructions.
    kernel_atomics,
    /// LDS instructions.
    kernel_lds,
    /// Cycles that the wave instructions of kernels keep their units busy, estimated.
    kernel_cycles,
    /// Bytes stored to global memory by kernels.
    kernel_bytes_stored,
    /// Bytes loaded from global memory by kernels.
    kernel_bytes_loaded,
    /// Barrier packets (AND, OR, VALUE) completed.
    barriers,
    /// SDMA packets executed.
    sdma_packets,
    /// Bytes copied by SDMA packets.
    sdma_bytes_copied,
    /// Bytes filled by SDMA packets.
    sdma_bytes_filled,
    /// Bytes that SDMA copies, kernel loads and kernel stores moved to or from memory of another process.
    foreign_bytes,
    /// IPC handles given out.
    ipc_exports,
    /// IPC handles opened.
    ipc_imports,
    /// dma-buf descriptors given out.
    dmabuf_exports,
    /// dma-buf descriptors opened.
    dmabuf_imports,
    /// `process_vm_readv`/`writev` calls cut short at device memory.
    cma_refusals,
    /// Memory faults of queues.
    memory_faults,
    /// Queues stopped by an error other than a memory fault.
    queue_errors,
}

/// What the dispatches of one kernel did.
#[derive(Clone, Copy, Debug, Default)]
struct KernelCounters {
    dispatches: u64,
    nanoseconds: u64,
    stats: Stats,
}

impl Counters {
    /// Counters that go to `<prefix><pid>.tsv`, if there is a prefix.
    pub fn new(prefix: Option<&PathBuf>) -> Self {
        let file = prefix.map(|prefix| {
            let mut name = prefix.clone().into_os_string();
            name.push(format!("{}.tsv", os::pid()));
            let file = PathBuf::from(name);
            // Of an earlier process with this number: it must not show below a shorter text of ours.
            let _ = std::fs::remove_file(&file);
            let _ = std::fs::remove_file(file.with_extension("kernels"));
            file
        });
        Self {
            file,
            dirty: AtomicBool::new(true),
            ..Self::default()
        }
    }

    /// Adds to a counter and remembers that the file is behind.
    pub fn add(&self, counter: &AtomicU64, n: u64) {
        counter.fetch_add(n, Relaxed);
        self.dirty.store(true, Relaxed);
    }

    /// Whether kernels are counted one by one; their names are asked for only then.
    pub fn by_kernel(&self) -> bool {
        self.file.is_some()
    }

    /// Counts a dispatch of a kernel.
    pub fn add_kernel(&self, kernel: Arc<str>, stats: &Stats, nanoseconds: u64) {
        let mut kernels = self.kernels.lock().unwrap_or_else(PoisonError::into_inner);
        let entry = kernels.entry(kernel).or_default();
        entry.dispatches += 1;
        entry.nanoseconds += nanoseconds;
        entry.stats.add(stats);
        self.dirty.store(true, Relaxed);
    }

    /// The table of kernels; `None` if none has run.
    fn kernels_to_tsv(&self) -> Option<String> {
        let kernels = self.kernels.lock().unwrap_or_else(PoisonError::into_inner);
        if kernels.is_empty() {
            return None;
        }
        let mut text = "kernel\tdispatches\tnanoseconds\twaves\tinstructions\tbytes_loaded\tbytes_stored\tloads\tstores\tatomics\tlds\tcycles\n".to_owned();
        for (name, k) in &*kernels {
            let (dispatches, nanoseconds, s) = (k.dispatches, k.nanoseconds, &k.stats);
            let (waves, instructions) = (s.waves, s.instructions);
            let _ = writeln!(
                text,
                "{name}\t{dispatches}\t{nanoseconds}\t{waves}\t{instructions}\t{}\t{}\t{}\t{}\t{}\t{}\t{}",
                s.bytes_loaded, s.bytes_stored, s.loads, s.stores, s.atomics, s.lds, s.cycles
            );
        }
        Some(text)
    }

    /// Writes the files if they are behind.
    pub fn publish(&self) {
        let Some(file) = &self.file else { return };
        if !self.dirty.swap(false, Relaxed) {
            return;
        }
        match os::open(file, libc::O_WRONLY | libc::O_CREAT, 0o644) {
            // Values only grow, so the new text is never shorter than the old one and no reader sees a torn end.
            Ok(fd) => {
                use std::os::fd::AsRawFd as _;
                os::write_all(fd.as_raw_fd(), self.to_tsv().as_bytes());
            }
            Err(error) => log::warn!("cannot write counters to {}: {error}", file.display()),
        }
        if let Some(text) = self.kernels_to_tsv()
            && let Err(error) = replace(&file.with_extension("kernels"), &text)
        {
            log::warn!("cannot write the table of kernels: {error}");
        }
    }
}

/// Writes a file of which readers see the old text or the new one.
fn replace(path: &Path, text: &str) -> std::io::Result<()> {
    let new = path.with_extension("kernels-new");
    std::fs::write(&new, text)?;
    std::fs::rename(new, path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_file_holds_one_line_per_counter() {
        let counters = Counters::default();
        counters.add(&counters.ipc_imports, 3);
        let text = counters.to_tsv();
        assert!(text.lines().any(|line| line == "ipc_imports\t3"));
        assert!(text.lines().all(|line| line.split('\t').count() == 2));
    }
}
