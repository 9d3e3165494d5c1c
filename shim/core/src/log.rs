//! Where log lines go: standard error, as `regauge[pid]: level: text`.
//!
//! One line is one `write`, so that lines of many ranks on one terminal do not mix. An error of the write is ignored: a
//! library must not end its host because standard error is closed.

use std::sync::Once;

use crate::config;

/// Writes records to standard error.
struct Sink;

impl log::Log for Sink {
    fn enabled(&self, metadata: &log::Metadata<'_>) -> bool {
        // goblin, which reads ELF files for us, tells every step of it; that is nobody's news but goblin's own.
        let foreign = metadata.target().split("::").next() == Some("goblin");
        !foreign && metadata.level() <= log::max_level()
    }

    fn log(&self, record: &log::Record<'_>) {
        if self.enabled(record.metadata()) {
            let level = match record.level() {
                log::Level::Error => "error",
                log::Level::Warn => "warning",
                log::Level::Info => "info",
                log::Level::Debug => "debug",
                log::Level::Trace => "trace",
            };
            let line = format!("regauge[{}]: {level}: {}\n", std::process::id(), record.args());
            // Not through std's handle: its lock may be held for ever in a forked child.
            // SAFETY: the bytes live during the call.
            unsafe { libc::write(libc::STDERR_FILENO, line.as_ptr().cast(), line.len()) };
        }
    }

    fn flush(&self) {}
}

/// Installs the sink, once; later calls do nothing.
pub fn init() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        // Reading the level may warn about it, so lines must have a way out before.
        log::set_max_level(log::LevelFilter::Warn);
        // Fails when the host program is Rust, links us statically and logs for itself: then that is where lines go.
        let _ = log::set_logger(&Sink);
        log::set_max_level(*config::LOG.get());
    });
}

#[cfg(test)]
mod tests {
    use log::{Level, Log, Metadata};

    use super::*;

    #[test]
    fn what_goblin_says_of_elf_files_is_kept_quiet() {
        log::set_max_level(log::LevelFilter::Trace);
        let enabled = |target| Sink.enabled(&Metadata::builder().target(target).level(Level::Debug).build());
        assert!(!enabled("goblin") && !enabled("goblin::elf::dynamic"));
        assert!(enabled("regauge::memory") && enabled("goblins"));
    }
}
