//! Stream capture: operations become nodes instead of work.
//!
//! A *sequence* is one capture, from begin to end, with all streams that joined it by waiting for its events. Per stream it
//! knows the nodes that the stream's next operation depends on.
//!
//! ```text
//! begin(s)   s: []        kernel in s        record(e, s), wait(s2, e)     kernel in s2      record(f, s2), wait(s, f)
//!                         s: [k1]            s: [k1]  s2: [k1]             s2: [k2]          s: [k1 k2] -> end(s)
//! ```
//!
//! Rules are as recorded (`tests/oracle/streams.cc`, `graphs.cc`). While nobody captures, all of this costs one load.

use std::cell::Cell;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::thread::ThreadId;

use super::{Graph, Operation};
use crate::abi::{CUgraphEdgeData, CUstreamCaptureMode, Error, Result};
use crate::attention;
use crate::stream::{Event, Kind, Stream};

/// How many sequences there are.
static ACTIVE: AtomicUsize = AtomicUsize::new(0);
static SEQUENCES: Mutex<Vec<Arc<Sequence>>> = Mutex::new(Vec::new());
static NEXT_ID: AtomicU64 = AtomicU64::new(1);

thread_local! {
    /// `cudaThreadExchangeStreamCaptureMode`.
    static MODE: Cell<CUstreamCaptureMode> = const { Cell::new(CUstreamCaptureMode::GLOBAL) };
}

/// One capture.
pub struct Sequence {
    id: u64,
    mode: CUstreamCaptureMode,
    thread: ThreadId,
    /// The stream that began it.
    origin: u64,
    /// The context, by the id of its streams.
    owner: u64,
    graph: Arc<Graph>,
    invalid: AtomicBool,
    ended: AtomicBool,
    streams: Mutex<Vec<Member>>,
}

/// A stream of a sequence.
struct Member {
    stream: u64,
    /// The legacy default stream would wait for it.
    blocking: bool,
    /// What its next operation depends on.
    after: Vec<u64>,
    /// `after` as last told to the application, which holds the pointer.
    told: Box<[u64]>,
}

/// A point in a sequence: what an event recorded there stands for.
#[derive(Clone)]
pub struct Point {
    sequence: Arc<Sequence>,
    nodes: Vec<u64>,
}

/// What a capture is, as `cuStreamGetCaptureInfo` tells it.
pub struct Info {
    /// Unique in the process.
    pub id: u64,
    /// The graph's handle.
    pub graph: u64,
    /// What the stream's next operation depends on: valid until the next question about the stream.
    pub after: *const u64,
    /// How many.
    pub count: usize,
}

fn sequences() -> MutexGuard<'static, Vec<Arc<Sequence>>> {
    SEQUENCES.lock().unwrap_or_else(|e| e.into_inner())
}

/// Whether anybody captures.
#[inline]
pub fn is_active() -> bool {
    ACTIVE.load(Ordering::Relaxed) != 0
}

/// The sequence that a stream belongs to, valid or not.
fn of(stream: &Stream) -> Option<Arc<Sequence>> {
    if !is_active() {
        return None;
    }
    sequences().iter().find(|sequence| sequence.has(stream.id())).cloned()
}

impl Sequence {
    fn members(&self) -> MutexGuard<'_, Vec<Member>> {
        self.streams.lock().unwrap_or_else(|e| e.into_inner())
    }

    fn has(&self, stream: u64) -> bool {
        self.members().iter().any(|member| member.stream == stream)
    }

    fn is_valid(&self) -> bool {
        !self.invalid.load(Ordering::Acquire)
    }

    /// Spoils the capture: from now on its streams refuse operations, and its end gives no graph.
    pub fn invalidate(&self) {
        self.invalid.store(true, Ordering::Release);
    }

    /// What the stream's next operation depends on.
    fn after(&self, stream: u64) -> Vec<u64> {
        let members = self.members();
        let member = members.iter().find(|member| member.stream == stream);
        member.map(|member| member.after.clone()).unwrap_or_default()
    }

    fn set_after(&self, stream: u64, after: Vec<u64>) {
        if let Some(member) = self.members().iter_mut().find(|member| member.stream == stream) {
            member.after = after;
        }
    }

    /// Adds what else the stream's next operation depends on; a stream that is no member becomes one.
    fn join(&self, stream: &Stream, nodes: &[u64]) {
        let mut members = self.members();
        let index = members.iter().position(|member| member.stream == stream.id());
        let index = index.unwrap_or_else(|| {
            members.push(Member::new(stream, Vec::new()));
            members.len() - 1
        });
        let after = &mut members[index].after;
        for node in nodes {
            if !after.contains(node) {
                after.push(*node);
            }
        }
    }

    /// Makes an operation of `stream` a node, on which the stream's next one depends.
    ///
    /// # Errors
    /// INVALID_VALUE when the application took the nodes before it out of the graph.
    pub fn add(&self, stream: &Stream, operation: Operation) -> Result<()> {
        let after: Vec<_> = self
            .after(stream.id())
            .into_iter()
            .map(|node| (node, CUgraphEdgeData::default()))
            .collect();
        let node = self.graph.add(operation, &after)?;
        self.set_after(stream.id(), vec![node.handle()]);
        Ok(())
    }

    /// Every stream's work is before the end of the stream that began.
    fn is_joined(&self) -> bool {
        let mut before = self.after(self.origin);
        let edges = self.graph.edges();
        let mut next = 0;
        while let Some(&node) = before.get(next) {
            next += 1;
            for edge in edges.iter().filter(|edge| edge.to == node) {
                if !before.contains(&edge.from) {
                    before.push(edge.from);
                }
            }
        }
        self.members()
            .iter()
            .all(|member| member.after.iter().all(|node| before.contains(node)))
    }

    /// Destroys the graph of a capture that failed, one of the application's own too (recorded).
    fn discard(&self) {
        // Another capture may add to it, and decides then.
        let _ = self.graph.destroy();
    }

    /// Takes the sequence out of the list.
    fn end(&self) {
        if self.ended.swap(true, Ordering::AcqRel) {
            return;
        }
        let mut all = sequences();
        all.retain(|sequence| sequence.id != self.id);
        ACTIVE.store(all.len(), Ordering::Release);
        if all.is_empty() {
            attention::lower(attention::CAPTURING);
        }
        drop(all);
        self.graph.capture(false);
    }
}

impl Member {
    fn new(stream: &Stream, after: Vec<u64>) -> Self {
        Self {
            stream: stream.id(),
            blocking: matches!(stream.kind(), Kind::Blocking | Kind::PerThread),
            after,
            told: Box::default(),
        }
    }
}

/// Begins to capture `stream`, into a new graph or behind nodes of an existing one.
///
/// # Errors
/// STREAM_CAPTURE_UNSUPPORTED for the legacy default stream, but STREAM_CAPTURE_IMPLICIT as [`check_legacy`], INVALID_VALUE for an unknown
/// mode and foreign nodes, ILLEGAL_STATE when the stream is captured already.
pub fn begin(stream: &Stream, mode: CUstreamCaptureMode, into: Option<(Arc<Graph>, Vec<u64>)>) -> Result<()> {
    if !(0..=2).contains(&mode.0) {
        return Err(Error::INVALID_VALUE);
    }
    check_legacy(stream)?;
    if stream.kind() == Kind::Legacy {
        return Err(Error::STREAM_CAPTURE_UNSUPPORTED);
    }
    if of(stream).is_some() {
        return Err(Error::ILLEGAL_STATE);
    }
    let (graph, after) = into.unwrap_or_else(|| (Graph::new(), Vec::new()));
    if !after.iter().all(|&node| graph.contains(node)) {
        // Only a graph of the application's own can lack them.
        return Err(Error::INVALID_VALUE);
    }
    graph.capture(true);
    let sequence = Arc::new(Sequence {
        id: NEXT_ID.fetch_add(1, Ordering::Relaxed),
        mode,
        thread: std::thread::current().id(),
        origin: stream.id(),
        owner: stream.owner(),
        graph,
        invalid: AtomicBool::new(false),
        ended: AtomicBool::new(false),
        streams: Mutex::new(vec![Member::new(stream, after)]),
    });
    let mut all = sequences();
    all.push(sequence);
    ACTIVE.store(all.len(), Ordering::Release);
    attention::raise(attention::CAPTURING);
    Ok(())
}

/// Ends the capture that `stream` began and returns the graph.
///
/// # Errors
/// ILLEGAL_STATE when the stream is not captured, STREAM_CAPTURE_WRONG_THREAD (the capture is over), STREAM_CAPTURE_UNMATCHED when another
/// stream began it, STREAM_CAPTURE_INVALIDATED, STREAM_CAPTURE_UNJOINED, STREAM_CAPTURE_IMPLICIT as [`check_legacy`].
pub fn end(stream: &Stream) -> Result<Arc<Graph>> {
    check_legacy(stream)?;
    let sequence = of(stream).ok_or(Error::ILLEGAL_STATE)?;
    if sequence.origin != stream.id() {
        sequence.invalidate();
        return Err(Error::STREAM_CAPTURE_UNMATCHED);
    }
    let result = if !sequence.is_valid() {
        // Recorded: it comes before the wrong thread.
        Err(Error::STREAM_CAPTURE_INVALIDATED)
    } else if sequence.mode != CUstreamCaptureMode::RELAXED && sequence.thread != std::thread::current().id() {
        Err(Error::STREAM_CAPTURE_WRONG_THREAD)
    } else if !sequence.is_joined() {
        Err(Error::STREAM_CAPTURE_UNJOINED)
    } else {
        Ok(Arc::clone(&sequence.graph))
    };
    sequence.end();
    if result.is_err() {
        sequence.discard();
    }
    result
}

/// Ends what a destroyed stream captures.
pub fn stream_destroyed(stream: &Stream) {
    if let Some(sequence) = of(stream).filter(|sequence| sequence.origin == stream.id()) {
        sequence.end();
        sequence.discard();
    }
}

/// Ends all captures of a context that ends.
pub fn context_ended(owner: u64) {
    if !is_active() {
        return;
    }
    let all: Vec<_> = sequences().iter().filter(|s| s.owner == owner).cloned().collect();
    for sequence in all {
        sequence.end();
    }
}

/// The capture that takes an operation of `stream`, if there is one: the operation must become a node then.
///
/// # Errors
/// STREAM_CAPTURE_INVALIDATED, or STREAM_CAPTURE_IMPLICIT as [`check_legacy`].
pub fn intercept(stream: &Stream) -> Result<Option<Arc<Sequence>>> {
    if !is_active() {
        return Ok(None);
    }
    match of(stream) {
        Some(sequence) if sequence.is_valid() => Ok(Some(sequence)),
        Some(_) => Err(Error::STREAM_CAPTURE_INVALIDATED),
        None => check_legacy(stream).map(|()| None),
    }
}

/// Questions that a captured stream answers while its capture is valid.
///
/// # Errors
/// As [`intercept`].
pub fn check_valid(stream: &Stream) -> Result<()> {
    intercept(stream).map(|_| ())
}

/// Refuses what cannot be captured.
///
/// # Errors
/// STREAM_CAPTURE_UNSUPPORTED in a captured stream, whose capture that spoils, or STREAM_CAPTURE_IMPLICIT as [`check_legacy`].
pub fn refuse(stream: &Stream) -> Result<()> {
    if !is_active() {
        return Ok(());
    }
    if let Some(sequence) = of(stream) {
        sequence.invalidate();
        return Err(Error::STREAM_CAPTURE_UNSUPPORTED);
    }
    check_legacy(stream)
}

/// As [`refuse`], for what waits for a stream or may do so: beside the captures of other streams it is as unsafe as
/// [`check_unsafe_call`] says (recorded for queries too).
///
/// # Errors
/// As both.
pub fn refuse_wait(stream: &Stream) -> Result<()> {
    refuse(stream)?;
    check_unsafe_call()
}

/// As [`intercept`], for what is as unsafe as [`check_unsafe_call`] says in a stream that is not captured.
///
/// # Errors
/// As both.
pub fn intercept_unsafe(stream: &Stream) -> Result<Option<Arc<Sequence>>> {
    let sequence = intercept(stream)?;
    if sequence.is_none() {
        check_unsafe_call()?;
    }
    Ok(sequence)
}

/// The captures for whose streams the legacy default stream would wait, if `stream` is that.
fn in_the_way(stream: &Stream) -> Vec<Arc<Sequence>> {
    if stream.kind() != Kind::Legacy || !is_active() {
        return Vec::new();
    }
    let blocking = |s: &&Arc<Sequence>| s.owner == stream.owner() && s.members().iter().any(|member| member.blocking);
    sequences().iter().filter(blocking).cloned().collect()
}

/// The legacy default stream would wait for blocking streams, which cannot be while they are captured.
///
/// # Errors
/// STREAM_CAPTURE_IMPLICIT; the captures are spoiled.
fn check_legacy(stream: &Stream) -> Result<()> {
    let captures = in_the_way(stream);
    captures.iter().for_each(|sequence| sequence.invalidate());
    if captures.is_empty() {
        Ok(())
    } else {
        Err(Error::STREAM_CAPTURE_IMPLICIT)
    }
}

/// Waiting for a whole context, by the id of its streams, cannot be captured, in whatever mode and thread.
///
/// # Errors
/// STREAM_CAPTURE_UNSUPPORTED; the captures are spoiled.
pub fn check_context(owner: u64) -> Result<()> {
    if !is_active() {
        return Ok(());
    }
    let mut result = Ok(());
    for sequence in sequences().iter().filter(|s| s.owner == owner) {
        sequence.invalidate();
        result = Err(Error::STREAM_CAPTURE_UNSUPPORTED);
    }
    result
}

/// Calls that may wait for a device behind the scenes are unsafe beside a capture, as the modes say.
///
/// # Errors
/// STREAM_CAPTURE_UNSUPPORTED; the captures are spoiled.
pub fn check_unsafe_call() -> Result<()> {
    let mode = MODE.get();
    if !is_active() || mode == CUstreamCaptureMode::RELAXED {
        return Ok(());
    }
    let me = std::thread::current().id();
    let mut result = Ok(());
    // Those that are spoiled already too (recorded).
    for sequence in sequences().iter() {
        let mine = sequence.thread == me && sequence.mode != CUstreamCaptureMode::RELAXED;
        let global = mode == CUstreamCaptureMode::GLOBAL && sequence.mode == CUstreamCaptureMode::GLOBAL;
        if mine || global {
            sequence.invalidate();
            result = Err(Error::STREAM_CAPTURE_UNSUPPORTED);
        }
    }
    result
}

/// Sets the calling thread's mode and returns the one before. An unknown one is taken as recorded: without an error.
pub fn exchange_mode(mode: CUstreamCaptureMode) -> CUstreamCaptureMode {
    MODE.replace(mode)
}

/// Whether a stream is captured: `None`, or whether the capture is valid.
///
/// # Errors
/// STREAM_CAPTURE_IMPLICIT as [`check_legacy`], but nothing is spoiled.
pub fn status(stream: &Stream) -> Result<Option<bool>> {
    if !in_the_way(stream).is_empty() {
        return Err(Error::STREAM_CAPTURE_IMPLICIT);
    }
    Ok(of(stream).map(|sequence| sequence.is_valid()))
}

/// What is known about the capture of a stream; `None` when there is none, or it is invalid. The nodes are told only to who
/// `wants_nodes`: an array that was told before stays what it is until then.
pub fn info(stream: &Stream, wants_nodes: bool) -> Option<Info> {
    let sequence = of(stream).filter(|sequence| sequence.is_valid())?;
    let mut members = sequence.members();
    let member = members.iter_mut().find(|member| member.stream == stream.id())?;
    if wants_nodes {
        member.told = member.after.clone().into_boxed_slice();
    }
    Some(Info {
        id: sequence.id,
        graph: sequence.graph.handle(),
        after: member.told.as_ptr(),
        count: member.after.len(),
    })
}

/// Replaces, or adds to, what the next operation of a captured stream depends on. `change` says the nodes, and whether they
/// replace those before; it is asked when the stream turns out to be captured.
///
/// # Errors
/// ILLEGAL_STATE when the stream is not captured, STREAM_CAPTURE_INVALIDATED, STREAM_CAPTURE_IMPLICIT as [`check_legacy`], those of `change`,
/// INVALID_VALUE for nodes of another graph.
pub fn update_dependencies(stream: &Stream, change: impl FnOnce() -> Result<(Vec<u64>, bool)>) -> Result<()> {
    let sequence = intercept(stream)?.ok_or(Error::ILLEGAL_STATE)?;
    let (nodes, replace) = change()?;
    if !nodes.iter().all(|&node| sequence.graph.contains(node)) {
        return Err(Error::INVALID_VALUE);
    }
    if replace {
        sequence.set_after(stream.id(), Vec::new());
    }
    sequence.join(stream, &nodes);
    Ok(())
}

/// The point that an event recorded in a captured stream stands for.
pub fn point(sequence: &Arc<Sequence>, stream: &Stream) -> Point {
    Point {
        sequence: Arc::clone(sequence),
        nodes: sequence.after(stream.id()),
    }
}

impl Point {
    /// The capture is over, or spoiled: the event stands for nothing any more.
    pub fn is_lost(&self) -> bool {
        self.sequence.ended.load(Ordering::Acquire) || !self.sequence.is_valid()
    }

    /// What a question about an event recorded there is answered with.
    ///
    /// # Errors
    /// CAPTURED_EVENT while the capture goes on, which `spoils` it, INVALID_VALUE when it is over or spoiled.
    pub fn refuse(&self, spoils: bool) -> Result<()> {
        if self.is_lost() {
            return Err(Error::INVALID_VALUE);
        }
        if spoils {
            self.sequence.invalidate();
        }
        Err(Error::CAPTURED_EVENT)
    }
}

/// `cudaStreamWaitEvent` where the stream or the event is captured; false when neither is and the stream must wait itself.
///
/// # Errors
/// STREAM_CAPTURE_ISOLATION for a captured stream and an event that is not, STREAM_CAPTURE_MERGE for two captures, INVALID_VALUE for an
/// event of a capture that is over or spoiled, STREAM_CAPTURE_IMPLICIT for the legacy default stream. All but the last question spoil the
/// captures.
pub fn wait(stream: &Stream, event: &Event) -> Result<bool> {
    let point = event.captured();
    if point.is_none() && !is_active() {
        return Ok(false);
    }
    let sequence = intercept(stream)?;
    match (sequence, point) {
        (None, None) => Ok(false),
        (Some(sequence), None) => {
            if event.was_recorded() {
                sequence.invalidate();
                return Err(Error::STREAM_CAPTURE_ISOLATION);
            }
            Ok(true)
        }
        (sequence, Some(point)) => {
            if point.is_lost() {
                if let Some(sequence) = sequence {
                    sequence.invalidate();
                }
                return Err(Error::INVALID_VALUE);
            }
            match sequence {
                Some(sequence) if sequence.id != point.sequence.id => {
                    sequence.invalidate();
                    point.sequence.invalidate();
                    return Err(Error::STREAM_CAPTURE_MERGE);
                }
                None if stream.kind() == Kind::Legacy => {
                    point.sequence.invalidate();
                    return Err(Error::STREAM_CAPTURE_IMPLICIT);
                }
                _ => {}
            }
            point.sequence.join(stream, &point.nodes);
            Ok(true)
        }
    }
}
