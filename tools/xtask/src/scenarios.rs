//! Protocols between processes and streams, from what users reported: the programs of `tests/programs` that check every element
//! they exchange.

use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use crate::exec::{self, BarMode};
use crate::setup::{self, Rocr};
use crate::{Result, bench, process, programs};

/// One run of one program.
#[derive(Clone)]
pub struct Scenario {
    /// `tests/programs/NAME.c`.
    program: &'static str,
    /// Its arguments, in one line.
    arguments: &'static str,
    gpus: u32,
    arch: &'static str,
    bar: BarMode,
    rocr: Rocr,
    variables: &'static [&'static str],
    /// Seconds.
    limit: u64,
    /// What the output must say.
    says: &'static [&'static str],
}

impl Scenario {
    /// A run over two gfx90a GPUs with a large BAR and ROCr 6.1.2, for at most two minutes.
    const fn new(program: &'static str, arguments: &'static str) -> Self {
        Self {
            program,
            arguments,
            gpus: 2,
            arch: "gfx90a",
            bar: BarMode::Large,
            rocr: Rocr::V612,
            variables: &[],
            limit: 120,
            says: &[],
        }
    }

    fn gpus(self, gpus: u32) -> Self {
        Self { gpus, ..self }
    }

    fn gfx942(self) -> Self {
        Self { arch: "gfx942", ..self }
    }

    fn small_bar(self) -> Self {
        Self {
            bar: BarMode::Small,
            ..self
        }
    }

    fn over(self, rocr: Rocr) -> Self {
        Self { rocr, ..self }
    }

    fn with(self, variables: &'static [&'static str]) -> Self {
        Self { variables, ..self }
    }

    fn limit(self, limit: u64) -> Self {
        Self { limit, ..self }
    }

    fn says(self, says: &'static [&'static str]) -> Self {
        Self { says, ..self }
    }

    /// Program, arguments and what is unlike [`Scenario::new`].
    pub fn describe(&self) -> String {
        let mut text = format!("{} {} ({} x {}", self.program, self.arguments, self.gpus, self.arch);
        if self.bar == BarMode::Small {
            text.push_str(", small BAR");
        }
        if self.rocr != Rocr::V612 {
            text.push_str(", ROCr ");
            text.push_str(&self.rocr.name());
        }
        for variable in self.variables {
            text.push_str(", ");
            text.push_str(variable);
        }
        text.push(')');
        text
    }

    /// Builds and runs it; the program's last line is what it has to say.
    pub fn run(&self) -> Result<String> {
        self.run_heard(|_| ())
    }

    /// As [`Scenario::run`]; `hear` gets each line that the program prints, as it comes.
    pub fn run_heard(&self, hear: impl FnMut(&str) + Send + 'static) -> Result<String> {
        let mut arguments = exec::Arguments::for_command([build(self.program)?]);
        arguments
            .command
            .extend(self.arguments.split_whitespace().map(Into::into));
        arguments.gpus = self.gpus;
        arguments.arch = self.arch.into();
        arguments.bar = self.bar;
        arguments.rocr = self.rocr.clone();
        arguments
            .variables
            .extend(self.variables.iter().map(|&variable| variable.into()));
        let scratch = bench::Scratch::new(self.program)?;
        let limit = Duration::from_secs(self.limit);
        let outcome = process::run_heard(&mut exec::command(&arguments, scratch.path())?, limit, hear)?;
        if !outcome.success() {
            return Err(format!("{}:\n{}", outcome.ending(), outcome.tail(20)).into());
        }
        if let Some(missing) = self.says.iter().find(|text| !outcome.output.contains(**text)) {
            return Err(format!("it does not say {missing:?}:\n{}", outcome.tail(20)).into());
        }
        Ok(outcome.output.lines().last().unwrap_or_default().to_owned())
    }
}

/// Builds `tests/programs/NAME.c` with NVIDIA's headers against our libraries: those of CUDA 13 if its name ends in that number.
fn build(name: &str) -> Result<PathBuf> {
    let source = bench::root().join("tests/programs").join(name).with_extension("c");
    let mut command = Command::new("gcc");
    command.args(["-O2", "-Wall", "-Wextra", "-Werror"]);
    let is_13 = name.ends_with("_13");
    let runtime = if is_13 { "libcudart.so.13" } else { "libcudart.so.12" };
    if is_13 {
        // Without the folder crt, for which the toolchain's stands in.
        command.arg("-I").arg(setup::cudart("13.0")?.join("include"));
    }
    command.arg("-I").arg(setup::nvcc()?.join("include"));
    command.arg("-I").arg(setup::nvtx()?.join("include")).arg(&source);
    command
        // Programs that open the libraries by name are not linked to them.
        .arg("-Wl,--as-needed")
        .args([runtime, "libcuda.so.1"].map(|library| bench::release().join(library)))
        .arg("-lpthread");
    programs::compile(name, &source, command)
}

/// What `cargo xtask test scenarios` runs.
pub fn cases() -> Vec<Scenario> {
    let halo = |arguments| Scenario::new("gated_halo", arguments);
    let streams = || Scenario::new("waiting_streams", "");
    let window = |arguments| Scenario::new("symmetric_window", arguments);
    vec![
        window("--ranks 2"),
        window("--ranks 2").gpus(1).small_bar(),
        window("--ranks 4").gpus(4).gfx942(),
        // Virtual memory is not there, and the calls say so.
        window("--ranks 2").over(Rocr::V523),
        halo("--ranks 2"),
        halo("--ranks 2 --put kernel").gpus(1).small_bar(),
        halo("--ranks 2").over(Rocr::V523),
        halo("--ranks 4 --dimensions 4 --iterations 40"),
        halo("--ranks 4 --dimensions 4 --iterations 40 --put kernel")
            .gpus(4)
            .gfx942(),
        // As many waiting streams as QUDA has: 8 directions x 2 buffers in each process.
        halo("--ranks 8 --iterations 1000 --dimensions 4 --words 1024 --rounds 1 --seconds 1100").limit(1200),
        halo("--ranks 2 --iterations 300").with(&["VGPU_COHERENCE=hostile"]),
        halo("--ranks 4 --dimensions 4 --iterations 40")
            .with(&["VGPU_COHERENCE=hostile"])
            .over(Rocr::V523)
            .small_bar(),
        halo("--ranks 4 --gate event"),
        halo("--ranks 2 --gate event").small_bar().over(Rocr::V523),
        Scenario::new("ipc_events", "").says(&["an event of a process that has ended", "will wait for ever"]),
        Scenario::new("ipc_events", "").gpus(1).small_bar().over(Rocr::V523),
        stress("--seconds 6 --cycles 3"),
        stress("--seconds 6 --cycles 2 --kind mapped"),
        stress("--seconds 6 --cycles 3").over(Rocr::V523).gpus(1).small_bar(),
        Scenario::new("any_thread", ""),
        Scenario::new("any_thread", "").gpus(1).small_bar().over(Rocr::V523),
        Scenario::new("hostile_handles", ""),
        Scenario::new("hostile_handles", "--forge 1 --seed 1"),
        Scenario::new("hostile_handles", "--turns 100").over(Rocr::V523).gpus(1),
        Scenario::new("hostile_handles", "--turns 100 --forge 1 --seed 2")
            .over(Rocr::V523)
            .gpus(1),
        Scenario::new("pool_sharing", "").says(&["pools shared"]),
        Scenario::new("pool_sharing", "")
            .gpus(1)
            .small_bar()
            .says(&["pools shared"]),
        Scenario::new("pool_sharing", "")
            .over(Rocr::V523)
            .says(&["not supported"]),
        Scenario::new("mapped_peers", "")
            .with(&["LARGE_BAR=1"])
            .says(&["mapped by 2 GPUs", "seen as dma-bufs"]),
        Scenario::new("mapped_peers", "")
            .gpus(8)
            .gfx942()
            .small_bar()
            .says(&["mapped by 8 GPUs"]),
        Scenario::new("mapped_peers", "")
            .over(Rocr::V523)
            .says(&["not supported"]),
        // Counters that cross the ends of signed and unsigned numbers.
        halo("--ranks 2 --iterations 60 --width 32 --start 0x7ffffff0"),
        halo("--ranks 2 --iterations 60 --width 32 --start 0xfffffff0"),
        halo("--ranks 2 --iterations 60 --start 0xfffffff0"),
        halo("--ranks 2 --iterations 60 --start 0x7ffffffffffffff0"),
        halo("--ranks 2 --iterations 60 --start 0xfffffffffffffff0"),
        streams(),
        streams().small_bar(),
        streams().with(&["REGAUGE_QUEUES=1"]).over(Rocr::V523),
        Scenario::new("unloaded", ""),
        Scenario::new("unloaded", "").over(Rocr::V523).small_bar(),
        Scenario::new("markers", ""),
        Scenario::new("markers", "").with(&["NVTX_INJECTION64_PATH=/nonexistent/tool.so"]),
        Scenario::new("batches_13", ""),
        Scenario::new("batches_13", "").over(Rocr::V523).small_bar(),
        Scenario::new("visibility", ""),
        Scenario::new("visibility", "").over(Rocr::V523),
        Scenario::new("visibility", "").gpus(8),
        Scenario::new("visibility", "").gpus(8).over(Rocr::V523).small_bar(),
        // Other programs at each length of time; a failure names its seed.
        property("--seconds 3 --seed 1"),
        property("--seconds 3 --seed 100").small_bar(),
        property("--seconds 3 --seed 200")
            .over(Rocr::V523)
            .gpus(1)
            .with(&["REGAUGE_QUEUES=1"]),
        // The log names kernel and address.
        fault("unmapped").says(&["0x600dead000", "the kernel store_word was running"]),
        fault("freed")
            .says(&["GPU memory fault at 0x", "the kernel load_word was running"])
            .small_bar(),
        fault("trap").says(&["the kernel trap_here was running"]),
        fault("assert").says(&["the kernel fail_assertion was running", "Assertion `oops` failed"]),
        fault("unmapped").says(&["0x600dead000"]).over(Rocr::V523),
        fault("freed").says(&["GPU memory fault at 0x"]).over(Rocr::V523),
        fault("trap")
            .says(&["the kernel trap_here was running"])
            .over(Rocr::V523),
        fault("assert")
            .says(&["Assertion `oops` failed"])
            .over(Rocr::V523)
            .small_bar(),
        fault("shared").says(&["overflow_shared"]),
        fault("shared").says(&["overflow_shared"]).over(Rocr::V523),
        fault("misaligned"),
        fault("misaligned").over(Rocr::V523),
        fault("endless"),
        fault("endless").over(Rocr::V523).small_bar(),
    ]
}

fn property(arguments: &'static str) -> Scenario {
    Scenario::new("stream_property", arguments)
}

fn fault(case: &'static str) -> Scenario {
    Scenario::new("faults", case).gpus(1)
}

fn stress(arguments: &'static str) -> Scenario {
    Scenario::new("memory_stress", arguments).says(&["memory_stress: ok"])
}

/// What `cargo xtask soak memory-stress` runs: 10 minutes over ROCr 6.1.2, then the rest over 5.2.3 and with a small BAR.
pub fn soak_memory() -> Vec<Scenario> {
    vec![
        stress("--seconds 600 --cycles 10").limit(1800),
        stress("--seconds 120 --cycles 4 --kind mapped").limit(900),
        stress("--seconds 120 --cycles 4 --seed 1000")
            .limit(900)
            .over(Rocr::V523),
        stress("--seconds 120 --cycles 4 --seed 2000")
            .limit(900)
            .gpus(1)
            .small_bar(),
    ]
}

/// What `cargo xtask soak stream-property` runs: 10 minutes, over both ROCr builds.
pub fn soak_property() -> Vec<Scenario> {
    vec![
        property("--seconds 200 --seed 10000").limit(900),
        property("--seconds 100 --seed 20000").limit(900).small_bar(),
        property("--seconds 200 --seed 30000").limit(900).over(Rocr::V523),
        property("--seconds 100 --seed 40000 --streams 200 --operations 2000")
            .limit(900)
            .over(Rocr::V523)
            .with(&["REGAUGE_QUEUES=2"]),
    ]
}

/// What `cargo xtask soak symmetric-window` runs: 10 000 mappings and more, in every order of taking down.
pub fn soak_windows() -> Vec<Scenario> {
    let window = |arguments| Scenario::new("symmetric_window", arguments).limit(3600);
    vec![
        window("--ranks 2 --cycles 64"),
        window("--ranks 4 --cycles 64"),
        window("--ranks 8 --cycles 64").gpus(8),
        window("--ranks 8 --cycles 32").gpus(1).small_bar(),
        window("--ranks 2 --cycles 3500 --mib 2 --seconds 3500").gpus(1),
    ]
}

/// What `cargo xtask soak gated-halo` runs.
pub fn soak() -> Vec<Scenario> {
    let halo = |arguments| Scenario::new("gated_halo", arguments).limit(3600);
    vec![
        halo("--ranks 2 --iterations 100000 --words 1024 --rounds 1 --seconds 3500"),
        halo("--ranks 2 --iterations 100000 --words 1024 --rounds 1 --seconds 3500").with(&["VGPU_COHERENCE=hostile"]),
        halo("--ranks 2 --iterations 100000 --words 1024 --rounds 1 --seconds 3500 --put kernel").gpus(1),
        halo("--ranks 2 --iterations 20000 --words 1024 --seconds 3500 --gate event"),
        halo("--ranks 8 --iterations 5000 --dimensions 4 --words 1024 --seconds 3500").gpus(4),
        halo("--ranks 8 --iterations 5000 --words 65536 --seconds 3500").small_bar(),
        halo("--ranks 4 --iterations 10000 --words 1024 --seconds 3500").over(Rocr::V523),
    ]
}
