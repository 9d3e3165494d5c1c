//! The client against the real worker process, and against workers that misbehave.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use kernels_ptx_translate::client::{Client, Config};
use kernels_ptx_translate::protocol::{CompileRequest, HIDDEN_ARGS_SIZE, Target, TranslateError};

const PTX: &[u8] = b"
.version 7.8
.target sm_70
.address_size 64
.visible .global .align 16 .u32 gvar[4] = {11, 22, 33, 44};
.visible .entry k_store(.param .u64 p, .param .u32 v)
{ .reg .u64 %t; .reg .u32 %r; ld.param.u64 %t, [p]; ld.param.u32 %r, [v]; st.u32 [%t], %r; ret; }
.visible .entry k_other(.param .u64 p) { .reg .u64 %t; ld.param.u64 %t, [p]; st.u32 [%t], 1; ret; }
\0";

struct Scratch(PathBuf);

impl Scratch {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("regauge-client-test-{}-{name}", std::process::id()));
        let _ = std::fs::remove_dir_all(&path);
        std::fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    /// A worker that is a shell script.
    fn script(&self, text: &str) -> PathBuf {
        use std::os::unix::fs::PermissionsExt;
        let path = self.0.join("worker.sh");
        std::fs::write(&path, format!("#!/bin/sh\n{text}\n")).unwrap();
        std::fs::set_permissions(&path, PermissionsExt::from_mode(0o755)).unwrap();
        path
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn config(worker: impl Into<PathBuf>) -> Config {
    Config {
        worker: worker.into(),
        comgr: None,
        cache: None,
        cache_size: 1 << 24,
        workers: 2,
        timeout: Duration::from_secs(60),
    }
}

fn real() -> Config {
    config(env!("CARGO_BIN_EXE_regauge-ptx-worker"))
}

fn request(entry: &str) -> CompileRequest {
    CompileRequest {
        entry: entry.into(),
        target: Target::Gfx90a,
        block: [64, 1, 1],
        opt_level: 1,
    }
}

#[test]
fn a_module_is_inspected_and_its_kernels_compiled_by_several_threads() {
    let client = Arc::new(Client::new(real()));
    let info = client.inspect(PTX).unwrap();
    assert_eq!(
        info.entries.iter().map(|e| e.name.as_str()).collect::<Vec<_>>(),
        ["k_store", "k_other"]
    );
    assert_eq!(
        (info.globals[0].size, &info.data[..8]),
        (16, &[11, 0, 0, 0, 22, 0, 0, 0][..])
    );
    let threads: Vec<_> = (0..6)
        .map(|number| {
            let client = Arc::clone(&client);
            std::thread::spawn(move || {
                client
                    .compile(PTX, &request(["k_store", "k_other"][number % 2]))
                    .unwrap()
            })
        })
        .collect();
    for (number, thread) in threads.into_iter().enumerate() {
        let kernel = thread.join().unwrap();
        assert_eq!(
            kernel.kernarg_size,
            [16 + HIDDEN_ARGS_SIZE, 8 + HIDDEN_ARGS_SIZE][number % 2]
        );
        assert!(kernel.code_object.starts_with(b"\x7fELF"));
    }
    assert_eq!(
        client.compile(PTX, &request("nope")),
        Err(TranslateError::NoSuchEntry("nope".into()))
    );
    assert_eq!(client.inspect(b"hello"), Err(TranslateError::NotPtx));
}

#[test]
fn a_second_process_finds_the_kernel_in_the_cache_without_a_worker() {
    let scratch = Scratch::new("cache");
    let cache = Some(scratch.0.join("cache"));
    let first = Client::new(Config {
        cache: cache.clone(),
        ..real()
    });
    let kernel = first.compile(PTX, &request("k_store")).unwrap();
    // The same worker by identity, but it can no longer be started: only the cache can answer.
    let copy = scratch.0.join("copy");
    std::fs::copy(env!("CARGO_BIN_EXE_regauge-ptx-worker"), &copy).unwrap();
    let same_time = std::fs::metadata(env!("CARGO_BIN_EXE_regauge-ptx-worker"))
        .unwrap()
        .modified()
        .unwrap();
    let file = std::fs::File::options().write(true).open(&copy).unwrap();
    file.set_modified(same_time).unwrap();
    drop(file);
    use std::os::unix::fs::PermissionsExt;
    std::fs::set_permissions(&copy, PermissionsExt::from_mode(0o600)).unwrap();
    let second = Client::new(Config { cache, ..config(copy) });
    assert_eq!(second.compile(PTX, &request("k_store")), Ok(kernel));
    assert!(matches!(
        second.compile(PTX, &request("k_other")),
        Err(TranslateError::Worker(_))
    ));
}

#[test]
fn ranks_that_start_together_compile_a_kernel_once() {
    let scratch = Scratch::new("together");
    let starts = scratch.0.join("starts");
    let real = env!("CARGO_BIN_EXE_regauge-ptx-worker");
    let worker = scratch.script(&format!("echo started >> {}; exec {real} \"$@\"", starts.display()));
    // Clients of their own, as ranks have: only the folder is shared.
    let ranks: Vec<_> = (0..6)
        .map(|_| {
            let config = Config {
                cache: Some(scratch.0.join("cache")),
                ..config(&worker)
            };
            std::thread::spawn(move || Client::new(config).compile(PTX, &request("k_store")).unwrap())
        })
        .collect();
    let kernels: Vec<_> = ranks.into_iter().map(|rank| rank.join().unwrap()).collect();
    assert!(kernels.windows(2).all(|pair| pair[0] == pair[1]));
    assert_eq!(std::fs::read_to_string(starts).unwrap(), "started\n");
}

#[test]
fn the_worker_ends_with_its_client_even_while_it_compiles() {
    let scratch = Scratch::new("ends");
    // A copy of its own, so that its processes can be told from other tests'.
    let worker = scratch.0.join("worker");
    std::fs::copy(env!("CARGO_BIN_EXE_regauge-ptx-worker"), &worker).unwrap();
    let mut large = String::from(
        ".version 7.8\n.target sm_70\n.visible .entry big(.param .u64 p)\n{ .reg .b64 %d; .reg .f64 %f<9>;\nld.param.u64 %d, [p];\n",
    );
    for n in 0..20_000 {
        let (a, b) = (n % 8, (n * 5 + 1) % 8);
        large += &format!(
            "ld.f64 %f{a}, [%d+{}]; fma.rn.f64 %f{b}, %f{a}, %f{b}, %f{a}; st.f64 [%d+{}], %f{b};\n",
            n * 8,
            n * 16
        );
    }
    large += "ret; }";
    let client = Client::new(Config {
        timeout: Duration::from_millis(1500),
        ..config(&worker)
    });
    let error = client
        .compile(
            large.as_bytes(),
            &CompileRequest {
                opt_level: 3,
                ..request("big")
            },
        )
        .unwrap_err();
    assert!(
        matches!(&error, TranslateError::Compiler(text) if text.contains("too long")),
        "{error}"
    );
    let gone = || {
        let processes = std::fs::read_dir("/proc").unwrap().flatten();
        processes
            .filter(|p| std::fs::read_link(p.path().join("exe")).is_ok_and(|exe| exe == worker))
            .count()
            == 0
    };
    let deadline = Instant::now() + Duration::from_secs(5);
    while !gone() {
        assert!(Instant::now() < deadline, "the worker is still there");
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn a_worker_that_dies_fails_its_request_and_says_why() {
    let scratch = Scratch::new("dies");
    let client = Client::new(config(scratch.script("echo LLVM ERROR: no such luck >&2; exit 1")));
    let error = client.inspect(PTX).unwrap_err();
    assert!(
        matches!(&error, TranslateError::Died(text) if text.contains("no such luck")),
        "{error}"
    );
    // A missing worker is named.
    let error = Client::new(config("/nonexistent/worker")).inspect(PTX).unwrap_err();
    assert!(
        matches!(&error, TranslateError::Worker(text) if text.contains("/nonexistent/worker")),
        "{error}"
    );
    // One that answers nonsense is not believed.
    let client = Client::new(config(
        scratch.script("exec 3<&0; (head -c 16 <&3 >/dev/null; echo 'hello hello hello' >&3; sleep 0.3) &"),
    ));
    let error = client.inspect(PTX).unwrap_err();
    assert!(matches!(error, TranslateError::Worker(_)), "{error}");
}

#[test]
fn the_worker_answers_garbage_by_closing() {
    use std::io::{Read, Write};
    use std::os::unix::net::UnixStream;
    for garbage in [
        &b"not a message at all, but long enough"[..],
        &[0xff; 64],
        b"RGPT\x02\0\0\0\0\0\0\0\0\0\0\0{}",
        b"",
    ] {
        let (mut ours, theirs) = UnixStream::pair().unwrap();
        let mut worker = std::process::Command::new(env!("CARGO_BIN_EXE_regauge-ptx-worker"));
        worker.arg("--serve").stdin(std::os::fd::OwnedFd::from(theirs));
        assert!(worker.status().unwrap().success());
        drop(worker);
        ours.write_all(garbage).unwrap();
        ours.shutdown(std::net::Shutdown::Write).unwrap();
        ours.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
        // It answers nothing and closes: a reset counts as closed.
        let mut answer = Vec::new();
        match ours.read_to_end(&mut answer) {
            Ok(_) => assert!(answer.is_empty()),
            Err(error) => assert_eq!(error.kind(), std::io::ErrorKind::ConnectionReset),
        }
    }
}

#[test]
fn a_worker_that_hangs_is_given_up() {
    let scratch = Scratch::new("hangs");
    // In the background and with the socket, as the real worker runs after it detached.
    let script = scratch.script("exec 3<&0; sleep 3 &");
    let client = Client::new(Config {
        timeout: Duration::from_millis(300),
        ..config(script)
    });
    let start = Instant::now();
    let error = client.inspect(PTX).unwrap_err();
    assert!(
        matches!(&error, TranslateError::Compiler(text) if text.contains("too long")),
        "{error}"
    );
    assert!(start.elapsed() < Duration::from_secs(2));
}

#[test]
fn a_forked_child_uses_workers_of_its_own() {
    let client = Client::new(real());
    client.inspect(PTX).unwrap();
    // SAFETY: the child only talks to its own worker and leaves by _exit.
    let child = unsafe { libc::fork() };
    if child == 0 {
        let fine = client.compile(PTX, &request("k_store")).is_ok();
        // SAFETY: leaves the forked child without running the test harness.
        unsafe { libc::_exit(if fine { 0 } else { 1 }) };
    }
    let mut status = 0;
    // SAFETY: our own child.
    assert_eq!(unsafe { libc::waitpid(child, &mut status, 0) }, child);
    assert_eq!(status, 0);
    client.compile(PTX, &request("k_other")).unwrap();
}

#[test]
fn the_compiler_library_that_the_user_named_is_the_only_one_tried() {
    let client = Client::new(Config {
        comgr: Some("/nonexistent/libamd_comgr.so".into()),
        ..real()
    });
    let error = client.compile(PTX, &request("k_store")).unwrap_err();
    assert!(
        matches!(&error, TranslateError::NoCompiler(text)
            if text.contains("REGAUGE_COMGR") && text.contains("/nonexistent/libamd_comgr.so")),
        "{error}"
    );
}
