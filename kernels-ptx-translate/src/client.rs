//! What a CUDA process uses of the translator: requests to worker processes, memoised and cached.
//!
//! ```text
//! compile() -> memo (this process) -> disk cache -> lock of the key -> disk cache again -> a worker -> check -> store
//! ```
//!
//! Workers run outside the application's process tree and session, without its environment, and end when the socket
//! to it closes. One that dies fails its own request only. Forked children use none of their parent's.

use std::collections::HashMap;
use std::fs::File;
use std::hash::Hash;
use std::io::{self, Read, Seek, SeekFrom};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicPtr, Ordering};
use std::sync::{Arc, Condvar, Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use crate::cache::{Cache, Key};
use crate::channel::Channel;
pub use crate::config::Config;
use crate::protocol::{self, CompileRequest, CompiledKernel, ModuleInfo, Reply, Request, TranslateError};
use crate::{code_object, identity};

/// Results kept in memory before they are forgotten all at once.
const MEMO_LIMIT: usize = 4096;

/// Sends translations to worker processes. Shared by all threads; use one for the whole process.
pub struct Client {
    config: Config,
    /// Of the process that made it; a forked child gets its own (its parent's locks may be held for ever).
    state: AtomicPtr<State>,
}

/// What belongs to one process.
struct State {
    process: u32,
    pool: Mutex<Pool>,
    idle: Condvar,
    environment: OnceLock<Environment>,
    inspected: Memo<Key, ModuleInfo>,
    compiled: Memo<(Key, CompileRequest), CompiledKernel>,
}

/// What is looked up once, at the first request.
struct Environment {
    cache: Option<Cache>,
    /// Where comgr probably is, for want of a library that the user named.
    likely_comgr: Option<PathBuf>,
    /// Identities of worker and compiler.
    identity: String,
}

#[derive(Default)]
struct Pool {
    idle: Vec<Worker>,
    running: usize,
}

type Slot<V> = Arc<OnceLock<Result<V, TranslateError>>>;

/// Results by key; threads that ask for the same wait for the first.
struct Memo<K, V>(Mutex<HashMap<K, Slot<V>>>);

impl<K: Eq + Hash + Clone, V: Clone> Memo<K, V> {
    fn get(&self, key: K, make: impl FnOnce() -> Result<V, TranslateError>) -> Result<V, TranslateError> {
        let lock = || self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let slot = {
            let mut map = lock();
            if map.len() >= MEMO_LIMIT {
                map.clear();
            }
            map.entry(key.clone()).or_default().clone()
        };
        let result = slot.get_or_init(make).clone();
        // A failure may pass: the next request tries again.
        if result.is_err() {
            let mut map = lock();
            if map.get(&key).is_some_and(|s| Arc::ptr_eq(s, &slot)) {
                map.remove(&key);
            }
        }
        result
    }
}

impl Client {
    /// Makes a client. Nothing is started or opened until the first request.
    pub fn new(config: Config) -> Self {
        Self {
            config,
            state: AtomicPtr::new(State::new()),
        }
    }

    /// This process's state.
    fn state(&self) -> &State {
        let current = self.state.load(Ordering::Acquire);
        // SAFETY: states are never freed while the client lives.
        let state = unsafe { &*current };
        if state.process == std::process::id() {
            return state;
        }
        // A forked child: the parent's state is left as it is, for its locks may be held by threads that are not here.
        let own = State::new();
        match self
            .state
            .compare_exchange(current, own, Ordering::AcqRel, Ordering::Acquire)
        {
            // SAFETY: just made and published.
            Ok(_) => unsafe { &*own },
            Err(other) => {
                // SAFETY: ours was never published, and another thread of this process published `other`.
                unsafe {
                    drop(Box::from_raw(own));
                    &*other
                }
            }
        }
    }

    /// Describes a module.
    pub fn inspect(&self, ptx: &[u8]) -> Result<ModuleInfo, TranslateError> {
        let state = self.state();
        let text = Key::of([ptx]);
        state.inspected.get(text, || {
            let environment = self.environment(state);
            let key = Key::of([&b"inspect"[..], environment.identity.as_bytes(), &text.0]);
            match self.cached(state, &key, ptx, &Request::Inspect)? {
                Reply::Inspected(info) => Ok(info),
                Reply::Compiled(_) => Err(mixed_up()),
            }
        })
    }

    /// Compiles one kernel of a module.
    pub fn compile(&self, ptx: &[u8], request: &CompileRequest) -> Result<CompiledKernel, TranslateError> {
        let state = self.state();
        let text = Key::of([ptx]);
        state.compiled.get((text, request.clone()), || {
            let environment = self.environment(state);
            let asked = serde_json::to_vec(request).map_err(|e| TranslateError::Worker(e.to_string()))?;
            let key = Key::of([&b"compile"[..], environment.identity.as_bytes(), &asked, &text.0]);
            match self.cached(state, &key, ptx, &Request::Compile(request.clone()))? {
                Reply::Compiled(kernel) => {
                    // What comes from the worker or the disk is made of the application's text: look before loading.
                    let facts = code_object::check(&kernel.code_object, request.target)?;
                    let same = facts.symbol == kernel.symbol && facts.kernarg_size == kernel.kernarg_size;
                    if same { Ok(kernel) } else { Err(mixed_up()) }
                }
                Reply::Inspected(_) => Err(mixed_up()),
            }
        })
    }

    fn environment<'s>(&self, state: &'s State) -> &'s Environment {
        state.environment.get_or_init(|| {
            let likely_comgr = match self.config.comgr {
                Some(_) => None,
                None => identity::find_comgr(),
            };
            let of = |path: &Path| identity::of_file(path).unwrap_or_default();
            let compiler = self.config.comgr.as_deref().or(likely_comgr.as_deref());
            let compiler = compiler.map(of).unwrap_or_default();
            let identity = format!("{} {} {compiler}", env!("CARGO_PKG_VERSION"), of(&self.config.worker));
            let cache = self
                .config
                .cache
                .as_deref()
                .and_then(|path| Cache::open(path, self.config.cache_size));
            Environment {
                cache,
                likely_comgr,
                identity,
            }
        })
    }

    /// A reply from the disk cache, else from a worker.
    fn cached(&self, state: &State, key: &Key, ptx: &[u8], request: &Request) -> Result<Reply, TranslateError> {
        let Some(cache) = &self.environment(state).cache else {
            return self.ask(state, ptx, request);
        };
        let stored = || {
            let (mut reply, blob) = protocol::decode::<Reply>(&mut cache.get(key)?.as_slice()).ok()?;
            reply.put_blob(blob);
            Some(reply)
        };
        if let Some(reply) = stored() {
            return Ok(reply);
        }
        // One compile per kernel and node: whoever waited here finds the result of the one before.
        let _lock = cache.lock(key, self.config.timeout);
        if let Some(reply) = stored() {
            return Ok(reply);
        }
        let mut reply = self.ask(state, ptx, request)?;
        let blob = reply.take_blob();
        if let Ok(mut bytes) = protocol::encode(&reply, blob.len()) {
            bytes.extend_from_slice(&blob);
            cache.put(key, &bytes);
        }
        reply.put_blob(blob);
        Ok(reply)
    }

    /// A reply from a worker.
    fn ask(&self, state: &State, ptx: &[u8], request: &Request) -> Result<Reply, TranslateError> {
        let deadline = Instant::now() + self.config.timeout;
        let mut turn = Turn::take(state, self.config.workers, deadline)?;
        // A worker that waited may have ended meanwhile: only a fresh one's death is the request's fault.
        while let Some(worker) = turn.pool_worker() {
            match worker.ask(ptx, request, deadline) {
                Err(Failure::Died(_)) => continue,
                Err(Failure::Answered(error)) => {
                    turn.keep(worker);
                    return Err(error);
                }
                Err(Failure::Lost(error)) => return Err(error),
                Ok(reply) => {
                    turn.keep(worker);
                    return Ok(reply);
                }
            }
        }
        let comgr = match (&self.config.comgr, &self.environment(state).likely_comgr) {
            (Some(named), _) => Some(("--comgr", named.as_path())),
            (None, found) => found.as_deref().map(|path| ("--likely-comgr", path)),
        };
        let worker = Worker::start(&self.config.worker, comgr);
        let worker = worker
            .map_err(|e| TranslateError::Worker(format!("{} cannot be started: {e}", self.config.worker.display())))?;
        match worker.ask(ptx, request, deadline) {
            Ok(reply) => {
                turn.keep(worker);
                Ok(reply)
            }
            Err(Failure::Answered(error)) => {
                turn.keep(worker);
                Err(error)
            }
            Err(Failure::Lost(error)) => Err(error),
            Err(Failure::Died(error)) => Err(TranslateError::Died(match worker.last_words() {
                words if words.is_empty() => error.to_string(),
                words => words,
            })),
        }
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        // SAFETY: made by Box::into_raw and freed only here.
        unsafe { drop(Box::from_raw(*self.state.get_mut())) };
    }
}

fn mixed_up() -> TranslateError {
    TranslateError::Worker("the answer does not belong to the question".into())
}

impl State {
    fn new() -> *mut Self {
        Box::into_raw(Box::new(Self {
            process: std::process::id(),
            pool: Mutex::default(),
            idle: Condvar::new(),
            environment: OnceLock::new(),
            inspected: Memo(Mutex::default()),
            compiled: Memo(Mutex::default()),
        }))
    }
}

/// The right to use one worker: gives it back, or room for another, when dropped.
struct Turn<'s> {
    state: &'s State,
    workers: Vec<Worker>,
    next: Option<Worker>,
}

impl<'s> Turn<'s> {
    fn take(state: &'s State, limit: usize, deadline: Instant) -> Result<Self, TranslateError> {
        let mut pool = state.pool.lock().unwrap_or_else(PoisonError::into_inner);
        while pool.running >= limit {
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Err(TranslateError::Worker("every worker is busy".into()));
            }
            pool = state
                .idle
                .wait_timeout(pool, left)
                .unwrap_or_else(PoisonError::into_inner)
                .0;
        }
        pool.running += 1;
        let workers = pool.idle.pop().into_iter().collect();
        Ok(Self {
            state,
            workers,
            next: None,
        })
    }

    /// The idle worker that came with the turn, if it still lives.
    fn pool_worker(&mut self) -> Option<Worker> {
        self.workers.pop().filter(|w| !w.channel_is_stale())
    }

    /// Gives a healthy worker back.
    fn keep(&mut self, worker: Worker) {
        self.next = Some(worker);
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        let mut pool = self.state.pool.lock().unwrap_or_else(PoisonError::into_inner);
        pool.running -= 1;
        pool.idle.extend(self.next.take());
        drop(pool);
        self.state.idle.notify_one();
    }
}

/// How a request can fail.
enum Failure {
    /// The worker answered with an error.
    Answered(TranslateError),
    /// The worker is gone.
    Died(io::Error),
    /// The worker is of no more use; the error says why.
    Lost(TranslateError),
}

/// A running worker; closing the socket ends it.
struct Worker {
    channel: Mutex<Channel>,
    /// Its standard error, an anonymous file.
    errors: File,
}

impl Worker {
    fn start(executable: &Path, comgr: Option<(&str, &Path)>) -> io::Result<Self> {
        let (ours, theirs) = socket_pair()?;
        let errors = anonymous_file()?;
        let mut command = Command::new(executable);
        command.arg("--serve").env_clear();
        // No LD_PRELOAD, no LD_LIBRARY_PATH: the worker must not come under what the application runs under.
        for name in ["TMPDIR", "ROCM_PATH"] {
            if let Some(value) = std::env::var_os(name).filter(|v| Path::new(v).is_dir()) {
                command.env(name, value);
            }
        }
        // comgr's own cache would bypass ours.
        command.env("PATH", "/usr/bin:/bin").env("AMD_COMGR_CACHE", "0");
        if let Some((option, comgr)) = comgr {
            command.arg(option).arg(std::path::absolute(comgr)?);
            // ROCm outside the system's folders: comgr's own needs lie beside it.
            if let Some(folder) = comgr.parent().filter(|f| !f.starts_with("/usr/lib")) {
                command.env("LD_LIBRARY_PATH", folder);
            }
        }
        command
            .stdin(Stdio::from(theirs))
            .stdout(Stdio::null())
            .stderr(Stdio::from(errors.try_clone()?));
        let mut child = command.spawn()?;
        drop(command);
        // The worker detaches itself at once, so that the application's own wait() never meets it.
        let patience = Instant::now() + DETACH;
        let mut pause = Duration::from_micros(200);
        while let Ok(None) = child.try_wait() {
            if Instant::now() > patience {
                let _ = child.kill();
                let _ = child.wait();
                return Err(io::Error::other("it does not behave like the worker"));
            }
            std::thread::sleep(pause);
            pause = (pause * 2).min(Duration::from_millis(20));
        }
        Ok(Self {
            channel: Mutex::new(Channel::new(ours)),
            errors,
        })
    }

    fn channel_is_stale(&self) -> bool {
        self.channel.lock().unwrap_or_else(PoisonError::into_inner).is_stale()
    }

    fn ask(&self, ptx: &[u8], request: &Request, deadline: Instant) -> Result<Reply, Failure> {
        let mut channel = self.channel.lock().unwrap_or_else(PoisonError::into_inner);
        channel.deadline = Some(deadline);
        let answer = protocol::encode(request, ptx.len())
            .and_then(|header| channel.send(&header))
            .and_then(|()| channel.send(ptx))
            .and_then(|()| protocol::decode::<Result<Reply, TranslateError>>(&mut *channel));
        match answer {
            Ok((Ok(mut reply), blob)) => {
                // What it wrote on the way is not about the next request.
                let _ = self.errors.set_len(0);
                reply.put_blob(blob);
                Ok(reply)
            }
            Ok((Err(error), _)) => Err(Failure::Answered(error)),
            Err(error) if error.kind() == io::ErrorKind::TimedOut => Err(Failure::Lost(TranslateError::Compiler(
                "it took too long and was given up".into(),
            ))),
            Err(error) if error.kind() == io::ErrorKind::InvalidData => {
                Err(Failure::Lost(TranslateError::Worker(error.to_string())))
            }
            Err(error) => Err(Failure::Died(error)),
        }
    }

    /// The end of what a dead worker wrote: LLVM says there why it aborted.
    fn last_words(&self) -> String {
        let mut file = &self.errors;
        let length = file.metadata().map_or(0, |m| m.len());
        let mut text = Vec::new();
        let _ = file.seek(SeekFrom::Start(length.saturating_sub(4096)));
        let _ = file.take(4096).read_to_end(&mut text);
        String::from_utf8_lossy(&text).trim().to_owned()
    }
}

fn socket_pair() -> io::Result<(OwnedFd, OwnedFd)> {
    let mut fds = [0; 2];
    // SAFETY: room for two descriptors.
    if unsafe {
        libc::socketpair(
            libc::AF_UNIX,
            libc::SOCK_STREAM | libc::SOCK_CLOEXEC,
            0,
            fds.as_mut_ptr(),
        )
    } != 0
    {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: socketpair returned two new descriptors.
    Ok(unsafe { (OwnedFd::from_raw_fd(fds[0]), OwnedFd::from_raw_fd(fds[1])) })
}

fn anonymous_file() -> io::Result<File> {
    // SAFETY: a NUL-terminated name.
    let fd = unsafe { libc::memfd_create(c"regauge-worker-errors".as_ptr(), libc::MFD_CLOEXEC) };
    if fd < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: memfd_create returned a new descriptor.
    let file = unsafe { File::from_raw_fd(fd) };
    // Appending: we truncate it between requests while the worker keeps writing.
    // SAFETY: a valid descriptor.
    unsafe { libc::fcntl(file.as_raw_fd(), libc::F_SETFL, libc::O_APPEND) };
    Ok(file)
}

/// How long a worker may take to leave the application's process tree.
const DETACH: Duration = Duration::from_secs(20);

/// How long a worker without work lives: with LLVM loaded it holds some 100 MiB, and a node may run many ranks.
pub const IDLE: Duration = Duration::from_secs(10);
