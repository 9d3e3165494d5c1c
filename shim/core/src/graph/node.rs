//! A node of a graph.

use std::sync::{Arc, Mutex, Weak};

use super::{Graph, NODES, Operation};
use crate::abi::{Error, Result};

/// A node: an operation in a graph.
pub struct Node {
    handle: u64,
    graph: Weak<Graph>,
    operation: Mutex<Operation>,
}

impl Node {
    /// A node with a handle of its own. The graph adds it to its list.
    pub(super) fn new(graph: Weak<Graph>, operation: Operation) -> Arc<Self> {
        let handle = NODES.reserve();
        let node = Arc::new(Self {
            handle,
            graph,
            operation: Mutex::new(operation),
        });
        NODES.publish(handle, Arc::clone(&node));
        node
    }

    /// What applications hold.
    pub fn handle(&self) -> u64 {
        self.handle
    }

    /// The graph it belongs to.
    ///
    /// # Errors
    /// INVALID_VALUE when the graph was destroyed.
    pub fn graph(&self) -> Result<Arc<Graph>> {
        self.graph.upgrade().ok_or(Error::INVALID_VALUE)
    }

    /// A copy of what it does: large parts are shared.
    pub fn operation(&self) -> Operation {
        self.operation.lock().unwrap_or_else(|e| e.into_inner()).clone()
    }

    /// Replaces what it does by something of the same type.
    ///
    /// # Errors
    /// INVALID_VALUE for another type.
    pub fn set(&self, operation: Operation) -> Result<()> {
        let mut mine = self.operation.lock().unwrap_or_else(|e| e.into_inner());
        if mine.node_type() != operation.node_type() {
            return Err(Error::INVALID_VALUE);
        }
        *mine = operation;
        Ok(())
    }
}
