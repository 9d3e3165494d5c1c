//! What this process's GPU queues did, for people and for tests.
//!
//! One file per process, `<VGPU_COUNTERS><pid>.tsv`, a `name<TAB>value` line per counter. It is rewritten when queues
//! fall idle and at exit, so it can be read while the process lives and is nearly right if it is killed.

use std::{
    fmt::Write as _,
    path::PathBuf,
    sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed},
};

use crate::os;

macro_rules! counters {
    ($($(#[doc = $doc:literal])* $name:ident,)*) => {
        /// All counters of a process.
        #[derive(Debug, Default)]
        pub struct Counters {
            $($(#[doc = $doc])* pub $name: AtomicU64,)*
            dirty: AtomicBool,
            file: Option<PathBuf>,
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

impl Counters {
    /// Counters that go to `<prefix><pid>.tsv`, if there is a prefix.
    pub fn new(prefix: Option<&PathBuf>) -> Self {
        let file = prefix.map(|prefix| {
            let mut name = prefix.clone().into_os_string();
            name.push(format!("{}.tsv", os::pid()));
            let file = PathBuf::from(name);
            // Of an earlier process with this number: it must not show below a shorter text of ours.
            let _ = std::fs::remove_file(&file);
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

    /// Writes the file if it is behind.
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
    }
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
