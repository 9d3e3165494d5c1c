//! Graphs: operations and their dependencies, recorded once and launched often.
//!
//! ```text
//! nodes added one by one ─┐
//! a stream's operations ──┴─> Graph ──instantiate──> Exec ──plan──> Plan ──launch──> a stream
//!   (capture)                  nodes, edges           flat copy      packets, steps
//! ```
//!
//! A [`Graph`] is a description that may change at any time. An [`Exec`] is a flat copy of one, child graphs included, whose
//! parameters may change. A [`plan::Plan`] is what a launch submits, and never changes: launches on their way keep theirs.

pub mod capture;
mod check;
pub mod condition;
mod deferred;
mod dot;
mod exec;
mod flat;
#[allow(clippy::module_inception)]
mod graph;
pub mod memory;
mod node;
pub mod operation;
mod plan;
pub mod user_object;

use std::sync::Arc;

pub use exec::{Exec, Flags};
pub use graph::{Edge, Graph};
pub use node::Node;
pub use operation::Operation;
pub use user_object::UserObject;

use crate::abi::{Error, Result};
use crate::handle::Handles;

static GRAPHS: Handles<Graph> = Handles::new(0x71);
static NODES: Handles<Node> = Handles::new(0x72);
static EXECS: Handles<Exec> = Handles::new(0x73);
static USER_OBJECTS: Handles<UserObject> = Handles::new(0x74);

/// The graph behind a handle.
///
/// # Errors
/// INVALID_VALUE for NULL and for a destroyed or foreign handle.
pub fn graph(handle: u64) -> Result<Arc<Graph>> {
    GRAPHS.get(handle).ok_or(Error::INVALID_VALUE)
}

/// The node behind a handle.
///
/// # Errors
/// As [`graph`].
pub fn node(handle: u64) -> Result<Arc<Node>> {
    NODES.get(handle).ok_or(Error::INVALID_VALUE)
}

/// The executable graph behind a handle.
///
/// # Errors
/// As [`graph`].
pub fn exec(handle: u64) -> Result<Arc<Exec>> {
    EXECS.get(handle).ok_or(Error::INVALID_VALUE)
}

/// The user object behind a handle.
///
/// # Errors
/// As [`graph`].
pub fn user_object(handle: u64) -> Result<Arc<UserObject>> {
    USER_OBJECTS.get(handle).ok_or(Error::INVALID_VALUE)
}
