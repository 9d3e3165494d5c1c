//! Where log lines go: `vgpu[pid]: level: text` on stderr, one `write` each.

use std::sync::Once;

use crate::{config, os};

struct Stderr;

impl log::Log for Stderr {
    fn enabled(&self, _: &log::Metadata<'_>) -> bool {
        true
    }

    fn log(&self, record: &log::Record<'_>) {
        let level = record.level().as_str().to_ascii_lowercase();
        let line = format!("vgpu[{}]: {level}: {}\n", os::pid(), record.args());
        os::write_all(libc::STDERR_FILENO, line.as_bytes());
    }

    fn flush(&self) {}
}

/// Installs the sink at the level of `VGPU_LOG`. A malformed level is reported and read as `error`.
pub fn install() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let level = config::log_level();
        // The only other logger there could be is our own: the facade is linked into this library alone.
        let _ = log::set_logger(&Stderr);
        log::set_max_level(*level.as_ref().unwrap_or(&log::LevelFilter::Error));
        if let Err(malformed) = level {
            log::error!("{malformed}");
        }
    });
}
