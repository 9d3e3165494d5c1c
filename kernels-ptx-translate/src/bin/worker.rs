//! The translator worker: one process per translation at a time, outside the CUDA process.
//!
//! Started by the client with the socket as standard input. It leaves the application's session and process tree,
//! bounds itself, and answers requests until the socket closes or nothing has come for a while.

use std::io::{self, Read};
use std::os::fd::{AsFd, AsRawFd};
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use kernels_ptx_translate::channel::Channel;
use kernels_ptx_translate::client::IDLE;
use kernels_ptx_translate::comgr::Compiler;
use kernels_ptx_translate::protocol::{self, CompileRequest, CompiledKernel, Reply, Request, Target, TranslateError};
use kernels_ptx_translate::{lower, ptx, translate};

old_glibc::program!();

const HELP: &str = "\
The translator of PTX kernels. CUDA processes start it by themselves; by hand:

  regauge-ptx-worker inspect FILE.ptx
  regauge-ptx-worker ir FILE.ptx ENTRY [--arch gfx90a|gfx942] [--block X,Y,Z]
  regauge-ptx-worker compile FILE.ptx [ENTRY] [-o FILE.co] [--arch ...] [--block ...] [-O LEVEL] [--comgr PATH]

inspect prints what the module contains, ir the LLVM IR of a kernel, compile writes its code object (without ENTRY it
only tries every kernel and says which cannot be translated).
--serve [--comgr PATH]: answers requests on the socket that is standard input.";

/// Memory bound: a hostile kernel must not take the node's.
const ADDRESS_SPACE: libc::rlim_t = 16 << 30;
/// LLVM recurses deeply on large functions.
const STACK: usize = 256 << 20;

fn main() -> ExitCode {
    let mut arguments = std::env::args().skip(1).peekable();
    let command = arguments.next().unwrap_or_default();
    let rest: Vec<String> = arguments.collect();
    let options = match Options::parse(rest) {
        Ok(options) => options,
        Err(message) => {
            eprintln!("regauge-ptx-worker: {message}");
            return ExitCode::from(2);
        }
    };
    let work = move || match command.as_str() {
        "--serve" => serve(&options),
        "inspect" | "ir" | "compile" => by_hand(&command, &options).unwrap_or_else(|message| {
            eprintln!("regauge-ptx-worker: {message}");
            ExitCode::FAILURE
        }),
        "--help" | "-h" | "help" => {
            println!("{HELP}");
            ExitCode::SUCCESS
        }
        _ => {
            eprintln!("{HELP}");
            ExitCode::from(2)
        }
    };
    if std::env::args().nth(1).as_deref() == Some("--serve") {
        // Before any thread exists: the process that continues is a child of this one.
        detach();
    }
    match std::thread::Builder::new()
        .stack_size(STACK)
        .spawn(work)
        .map(|t| t.join())
    {
        Ok(Ok(code)) => code,
        _ => ExitCode::FAILURE,
    }
}

/// The command line.
struct Options {
    positional: Vec<String>,
    output: Option<PathBuf>,
    comgr: Option<PathBuf>,
    /// Where the client has found the library, which nobody named.
    likely_comgr: Option<PathBuf>,
    target: Target,
    block: [u32; 3],
    opt_level: u8,
}

impl Options {
    fn parse(arguments: Vec<String>) -> Result<Self, String> {
        let mut options = Self {
            positional: Vec::new(),
            output: None,
            comgr: None,
            likely_comgr: None,
            target: Target::Gfx90a,
            block: [0; 3],
            opt_level: 3,
        };
        let mut arguments = arguments.into_iter();
        while let Some(argument) = arguments.next() {
            let mut value = || arguments.next().ok_or(format!("{argument} needs a value"));
            match argument.as_str() {
                "-o" => options.output = Some(value()?.into()),
                "--comgr" => options.comgr = Some(value()?.into()),
                "--likely-comgr" => options.likely_comgr = Some(value()?.into()),
                "--arch" => {
                    options.target = match value()?.as_str() {
                        "gfx90a" => Target::Gfx90a,
                        "gfx942" => Target::Gfx942,
                        other => return Err(format!("unknown architecture {other}")),
                    }
                }
                "--block" => {
                    let text = value()?;
                    let mut block = [1u32; 3];
                    for (at, part) in text.split(',').enumerate() {
                        let slot = block.get_mut(at).ok_or("a block has three dimensions")?;
                        *slot = part.parse().map_err(|_| format!("{part} is no number"))?;
                    }
                    options.block = block;
                }
                "-O" => options.opt_level = value()?.parse().map_err(|_| "-O needs a number".to_owned())?,
                _ => options.positional.push(argument),
            }
        }
        Ok(options)
    }

    fn compiler(&self) -> Result<Compiler, String> {
        match &self.comgr {
            Some(named) => Compiler::find(Some(named)),
            None => Compiler::near(self.likely_comgr.as_deref()),
        }
    }
}

fn by_hand(command: &str, options: &Options) -> Result<ExitCode, String> {
    let file = options.positional.first().ok_or("which file?")?;
    let text = std::fs::read(file).map_err(|e| format!("{file}: {e}"))?;
    if command == "inspect" {
        let mut info = translate::inspect(&text).map_err(|e| e.to_string())?;
        let data = std::mem::take(&mut info.data).len();
        println!("{info:#?}\n{data} initial bytes");
        return Ok(ExitCode::SUCCESS);
    }
    let request = |entry: String| CompileRequest {
        entry,
        target: options.target,
        block: options.block,
        opt_level: options.opt_level,
    };
    let entry = options.positional.get(1).cloned();
    if command == "ir" {
        let text = String::from_utf8_lossy(&text);
        let module = ptx::parse(&text).map_err(|e| e.to_string())?;
        let request = request(entry.ok_or("which entry?")?);
        print!(
            "{}",
            lower::lower_kernel(&module, &request)
                .map_err(|e| e.to_string())?
                .llvm_ir
        );
        return Ok(ExitCode::SUCCESS);
    }
    let compiler = options.compiler()?;
    let entries = match entry {
        Some(entry) => vec![entry],
        None => translate::inspect(&text)
            .map_err(|e| e.to_string())?
            .entries
            .into_iter()
            .map(|e| e.name)
            .collect(),
    };
    let mut code = ExitCode::SUCCESS;
    for entry in entries {
        let start = Instant::now();
        match translate::compile(&text, &request(entry.clone()), &compiler) {
            Ok(kernel) => {
                if let Some(output) = &options.output {
                    std::fs::write(output, &kernel.code_object).map_err(|e| format!("{}: {e}", output.display()))?;
                }
                println!("{}", summary(&entry, &kernel, start.elapsed(), &compiler));
            }
            Err(error) => {
                println!("{entry}: {error}");
                code = ExitCode::FAILURE;
            }
        }
    }
    Ok(code)
}

fn summary(entry: &str, kernel: &CompiledKernel, took: Duration, compiler: &Compiler) -> String {
    format!(
        "{entry}: {} bytes, {:?}, at most {} threads, {} VGPRs, {} LDS bytes, {} scratch bytes, {} argument bytes, \
         {took:.1?} by {}",
        kernel.code_object.len(),
        kernel.layout,
        kernel.max_threads,
        kernel.vgprs,
        kernel.static_lds,
        kernel.private_size,
        kernel.kernarg_size,
        compiler.describe()
    )
}

/// Leaves the application: its process tree, session, descriptors and limits.
fn detach() {
    // SAFETY: no other thread exists yet. The first process ends at once, so the application reaps it immediately and
    // its own wait() never meets the worker.
    unsafe {
        match libc::fork() {
            0 => {}
            -1 => libc::_exit(1),
            _ => libc::_exit(0),
        }
        libc::setsid();
        // Descriptors that the application left open on exec: the GPU's and its sockets must not live on here.
        if libc::syscall(libc::SYS_close_range, 3u32, u32::MAX, 0u32) != 0 {
            // Before Linux 5.9.
            let most = libc::sysconf(libc::_SC_OPEN_MAX).clamp(256, 1 << 20) as i32;
            (3..most).for_each(|fd| {
                libc::close(fd);
            });
        }
        libc::chdir(c"/".as_ptr());
        let none = libc::rlimit {
            rlim_cur: 0,
            rlim_max: 0,
        };
        libc::setrlimit(libc::RLIMIT_CORE, &none);
        let memory = libc::rlimit {
            rlim_cur: ADDRESS_SPACE,
            rlim_max: ADDRESS_SPACE,
        };
        libc::setrlimit(libc::RLIMIT_AS, &memory);
        // The application's mask and ignored signals are not ours.
        let mut mask = std::mem::zeroed();
        libc::sigemptyset(&mut mask);
        libc::sigprocmask(libc::SIG_SETMASK, &mask, std::ptr::null_mut());
        libc::signal(libc::SIGCHLD, libc::SIG_DFL);
    }
}

/// Ends the process as soon as the socket's other end is gone, also in the middle of a compilation.
fn watch_peer() {
    let watch = || {
        loop {
            let mut poll = libc::pollfd {
                fd: 0,
                events: libc::POLLRDHUP,
                revents: 0,
            };
            // SAFETY: one valid pollfd.
            let ready = unsafe { libc::poll(&mut poll, 1, -1) };
            if ready > 0 && poll.revents & (libc::POLLHUP | libc::POLLRDHUP | libc::POLLERR | libc::POLLNVAL) != 0 {
                // SAFETY: ends the process without running LLVM's destructors under a compiling thread.
                unsafe { libc::_exit(0) };
            }
        }
    };
    let _ = std::thread::Builder::new()
        .name("watch".into())
        .stack_size(64 << 10)
        .spawn(watch);
}

fn serve(options: &Options) -> ExitCode {
    let Ok(socket) = io::stdin().as_fd().try_clone_to_owned() else {
        return ExitCode::FAILURE;
    };
    debug_assert!(socket.as_raw_fd() > 2);
    watch_peer();
    let mut channel = Channel::new(socket);
    loop {
        channel.deadline = Some(Instant::now() + IDLE);
        let (request, ptx) = match protocol::decode::<Request>(&mut Patient {
            channel: &mut channel,
            first: true,
        }) {
            Ok(message) => message,
            Err(error) => {
                return if error.kind() == io::ErrorKind::InvalidData {
                    ExitCode::FAILURE
                } else {
                    ExitCode::SUCCESS
                };
            }
        };
        channel.deadline = None;
        let mut answer = answer(&request, &ptx, options);
        let blob = answer.as_mut().map(Reply::take_blob).unwrap_or_default();
        let sent = protocol::encode(&answer, blob.len())
            .and_then(|header| channel.send(&header))
            .and_then(|()| channel.send(&blob));
        if sent.is_err() {
            return ExitCode::SUCCESS;
        }
    }
}

/// The idle limit counts until a message starts, not for its whole transfer.
struct Patient<'c> {
    channel: &'c mut Channel,
    first: bool,
}

impl Read for Patient<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let got = self.channel.read(buffer)?;
        if std::mem::take(&mut self.first) {
            self.channel.deadline = None;
        }
        Ok(got)
    }
}

fn answer(request: &Request, ptx: &[u8], options: &Options) -> Result<Reply, TranslateError> {
    static COMPILER: OnceLock<Result<Compiler, String>> = OnceLock::new();
    // A panic is a bug of ours: it costs this request, not the worker's other work.
    let work = std::panic::AssertUnwindSafe(|| match request {
        Request::Inspect => translate::inspect(ptx).map(Reply::Inspected),
        Request::Compile(request) => match COMPILER.get_or_init(|| options.compiler()) {
            Ok(compiler) => translate::compile(ptx, request, compiler).map(Reply::Compiled),
            Err(error) => Err(TranslateError::NoCompiler(error.clone())),
        },
    });
    std::panic::catch_unwind(work).unwrap_or_else(|panic| {
        let text = panic.downcast_ref::<String>().cloned();
        let text = text
            .or_else(|| panic.downcast_ref::<&str>().map(|s| s.to_string()))
            .unwrap_or_default();
        Err(TranslateError::Worker(format!("the translator panicked: {text}")))
    })
}
