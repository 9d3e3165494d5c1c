//! UCX, the layer below MPI, over device memory: its own `ucx_perftest` for every combination of memory, and a program of ours
//! that checks every byte (`tests/programs/ucp_exchange.c`).

use std::net::TcpListener;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use crate::counters::Counters;
use crate::exec::{self, BarMode};
use crate::setup::{self, Rocr};
use crate::{Result, bench, process, programs};

/// Between processes UCX maps the other's memory.
const IPC: &str = "";
/// It copies to host memory and back.
const STAGED: &str = "self,tcp,cuda_copy";
/// All that UCX knows but CUDA IPC.
const NO_IPC: &str = "^cuda_ipc";

/// One run of a pair of processes.
#[derive(Clone)]
pub struct Case {
    what: What,
    /// `UCX_TLS`; empty: UCX's own choice.
    transports: &'static str,
    gpus: u32,
    bar: BarMode,
    rocr: Rocr,
    /// Seconds.
    limit: u64,
}

#[derive(Clone, Copy)]
enum What {
    /// `ucx_perftest -t TEST -m MEMORY`: it finishes; it does not look at data.
    Perftest { test: &'static str, memory: &'static str },
    /// `ucp_exchange` with these arguments.
    Exchange(&'static str),
}

impl Case {
    const fn new(what: What) -> Self {
        Self {
            what,
            transports: IPC,
            gpus: 2,
            bar: BarMode::Large,
            rocr: Rocr::V612,
            limit: 120,
        }
    }

    fn by(self, transports: &'static str) -> Self {
        Self { transports, ..self }
    }

    fn gpus(self, gpus: u32) -> Self {
        Self { gpus, ..self }
    }

    fn small_bar(self) -> Self {
        let bar = BarMode::Small;
        Self { bar, ..self }
    }

    fn over(self, rocr: Rocr) -> Self {
        Self { rocr, ..self }
    }

    fn limit(self, limit: u64) -> Self {
        Self { limit, ..self }
    }

    /// What runs, and what is unlike the usual: two GPUs, a large BAR, ROCr 6.1.2, UCX's own transports.
    pub fn describe(&self) -> String {
        let mut text = match self.what {
            What::Perftest { test, memory } => format!("ucx_perftest {test} {memory}"),
            What::Exchange(arguments) => format!("ucp_exchange {arguments}").trim_end().to_owned(),
        };
        if !self.transports.is_empty() {
            text.push_str(", UCX_TLS=");
            text.push_str(self.transports);
        }
        if self.gpus != 2 {
            text.push_str(&format!(", {} GPU", self.gpus));
        }
        if self.bar == BarMode::Small {
            text.push_str(", small BAR");
        }
        if self.rocr != Rocr::V612 {
            text.push_str(&format!(", ROCr {}", self.rocr.name()));
        }
        text
    }

    /// Runs it. CUDA IPC must have been used, or not, as the transports and the kinds of memory say.
    pub fn run(&self) -> Result<String> {
        let ucx = setup::ucx()?;
        let mut arguments = exec::Arguments::for_command(match self.what {
            What::Perftest { test, memory } => {
                let port = free_port()?;
                let hexadecimal = format!("{port:04X}");
                let program = ucx.join("bin/ucx_perftest").display().to_string();
                let mut command: Vec<String> = ["sh", "-c", PAIR].map(String::from).to_vec();
                command.extend([program, port.to_string(), hexadecimal, test.into(), memory.into()]);
                command
            }
            What::Exchange(arguments) => {
                let mut command = vec![build()?.display().to_string()];
                command.extend(arguments.split_whitespace().map(String::from));
                command
            }
        });
        let scratch = bench::Scratch::new("ucx")?;
        let prefix = scratch.path().join("counters");
        arguments.counters = Some(prefix.clone());
        arguments.gpus = self.gpus;
        arguments.bar = self.bar;
        arguments.rocr = self.rocr.clone();
        let modules = ucx.join("lib/ucx");
        arguments
            .variables
            .push(format!("UCX_MODULE_DIR={}", modules.display()));
        if !self.transports.is_empty() {
            arguments.variables.push(format!("UCX_TLS={}", self.transports));
        }
        let mut command = exec::command(&arguments, &scratch.path().join("gpu"))?;
        exec::put_ucx_in_front(&mut command, &ucx);
        let outcome = process::run(&mut command, Duration::from_secs(self.limit))?;
        if !outcome.success() {
            return Err(format!("{}:\n{}", outcome.ending(), outcome.tail(20)).into());
        }
        let last = outcome.output.lines().last().unwrap_or_default().to_owned();
        match self.what {
            What::Perftest { .. } if outcome.output.contains("Final:") => Ok(String::new()),
            What::Perftest { .. } => Err(format!("no result:\n{}", outcome.tail(20)).into()),
            What::Exchange(arguments) => {
                let imports = Counters::read(&prefix)?.total("ipc_imports");
                // Only device memory has IPC handles.
                let device = !arguments.contains("--kinds") || arguments.contains("device");
                if (imports > 0) == (device && self.transports == IPC) {
                    Ok(format!("{last}, {imports} blocks opened by IPC"))
                } else {
                    Err(format!("{imports} blocks were opened by IPC").into())
                }
            }
        }
    }
}

/// The two ends of `ucx_perftest`: program, port, port in hexadecimal, test, kinds of memory.
const PAIR: &str = r#"
"$0" -p "$1" > /dev/null & server=$!
until grep -qi ":$2 0*:0000 0A" /proc/net/tcp /proc/net/tcp6; do kill -0 $server || exit 1; sleep 0.02; done
"$0" -p "$1" 127.0.0.1 -t "$3" -m "$4" -s 65536 -n 4 -w 2 || { kill $server; exit 1; }
wait $server
"#;

/// A TCP port that was free a moment ago.
fn free_port() -> Result<u16> {
    Ok(TcpListener::bind("127.0.0.1:0")?.local_addr()?.port())
}

/// Builds `ucp_exchange` against UCX's headers and libraries, NVIDIA's `cuda.h` and our driver.
fn build() -> Result<PathBuf> {
    let (source, ucx) = (bench::root().join("tests/programs/ucp_exchange.c"), setup::ucx()?);
    let mut command = Command::new("gcc");
    command.args(["-O2", "-Wall", "-Wextra", "-Werror"]);
    for include in [setup::nvcc()?.join("include"), ucx.join("include")] {
        command.arg("-isystem").arg(include);
    }
    command.arg(&source).arg(bench::release().join("libcuda.so.1"));
    let libraries = ucx.join("lib");
    command.arg("-L").arg(&libraries).args(["-lucp", "-lucs"]);
    command.arg(format!("-Wl,-rpath-link,{}", libraries.display()));
    programs::compile("ucp_exchange", &source, command)
}

fn perftests(tests: &[&'static str], memories: &[&'static str], transports: &[&'static str]) -> Vec<Case> {
    let mut cases = Vec::new();
    for &transports in transports {
        for &memory in memories {
            cases.extend(
                tests
                    .iter()
                    .map(|&test| Case::new(What::Perftest { test, memory }).by(transports)),
            );
        }
    }
    cases
}

const TESTS: [&str; 4] = ["tag_lat", "tag_bw", "ucp_put_bw", "ucp_get"];

/// What `cargo xtask test ucx` runs.
pub fn cases() -> Vec<Case> {
    let exchange = |arguments| Case::new(What::Exchange(arguments));
    let mut cases = perftests(&TESTS, &["cuda,cuda", "cuda,host", "host,cuda"], &[IPC, STAGED]);
    cases.extend(perftests(&["tag_bw", "ucp_get"], &["cuda-managed,cuda"], &[IPC]));
    cases.extend([
        exchange(""),
        exchange("").gpus(1).by(NO_IPC),
        exchange("--kinds device,managed,host").by(STAGED),
        exchange("--kinds device,pinned").small_bar(),
        exchange("--kinds device,managed,host").over(Rocr::V523),
        exchange("--kinds device --operations tag,put --sizes 1048575,16777219,67108864"),
        exchange("--kinds device --operations am,get --sizes 1048575,16777219").by(STAGED),
    ]);
    cases
}

/// What `cargo xtask soak ucx` runs.
pub fn soak() -> Vec<Case> {
    const KINDS: [&str; 9] = [
        "host,host",
        "cuda,cuda",
        "cuda,host",
        "host,cuda",
        "cuda-managed,cuda-managed",
        "cuda-managed,cuda",
        "cuda,cuda-managed",
        "cuda-managed,host",
        "host,cuda-managed",
    ];
    const ALL: [&str; 8] = [
        "tag_lat",
        "tag_bw",
        "tag_sync_lat",
        "ucp_put_lat",
        "ucp_put_bw",
        "ucp_get",
        "ucp_am_lat",
        "ucp_am_bw",
    ];
    let mut cases = perftests(&ALL, &KINDS, &[IPC, STAGED, NO_IPC]);
    for rocr in [Rocr::V612, Rocr::V523] {
        for transports in [IPC, STAGED, NO_IPC] {
            for gpus in [1, 2] {
                for arguments in [
                    "--all-offsets --sizes 1,2,3,7,8,9,63,64,65,511,1023,1025,4095,4097,8191,8193,32767,65537,262147",
                    "--kinds device,host --sizes 1048576,1048577,4194303,16777213,67108864",
                    "--kinds managed,pinned,registered --sizes 1048577,16777213",
                ] {
                    let case = Case::new(What::Exchange(arguments)).by(transports);
                    let case = case.gpus(gpus).over(rocr.clone()).limit(540);
                    cases.extend([case.clone(), case.small_bar()]);
                }
            }
        }
    }
    cases
}
