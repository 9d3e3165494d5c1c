//! A graph: nodes and edges.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, Weak};

use super::condition::{self, Condition};
use super::{GRAPHS, NODES, Node, Operation, UserObject};
use crate::abi::{CUgraphEdgeData, CUgraphInstantiateResult, Error, Result};

/// A dependency: `to` begins when `from` has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Edge {
    /// The node that comes first.
    pub from: u64,
    /// The node that comes after it.
    pub to: u64,
    /// The application's annotation. A node always waits for the whole of the one before it, whatever it says.
    pub data: CUgraphEdgeData,
}

/// A graph.
pub struct Graph {
    handle: u64,
    this: Weak<Self>,
    /// A node owns it: applications cannot destroy it.
    embedded: AtomicBool,
    /// Captures that add to it now.
    captures: AtomicU32,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// In the order of creation.
    nodes: Vec<Arc<Node>>,
    /// In the order of creation.
    edges: Vec<Edge>,
    /// The nodes that nothing depends on, in the order in which they came to that.
    sinks: Vec<u64>,
    /// In a clone: the clones of the original's nodes.
    clones: HashMap<u64, u64>,
    /// Handles for conditional nodes that were made for the graph.
    conditions: Vec<Arc<Condition>>,
    /// User objects and how many references the graph has.
    objects: Vec<(Arc<UserObject>, u32)>,
    /// Somebody added a memory node, or tried to: such a graph is never copied, nothing is taken out of it, and it has one
    /// executable graph at a time (recorded).
    memory: bool,
    /// Whether a graph that has one executable graph at a time has that.
    instance: Weak<()>,
}

impl Graph {
    /// An empty graph with a handle.
    pub fn new() -> Arc<Self> {
        let handle = GRAPHS.reserve();
        let graph = Arc::new_cyclic(|this| Self {
            handle,
            this: this.clone(),
            embedded: AtomicBool::new(false),
            captures: AtomicU32::new(0),
            state: Mutex::default(),
        });
        GRAPHS.publish(handle, Arc::clone(&graph));
        graph
    }

    /// An empty graph for a conditional node to own.
    pub(super) fn new_body() -> Arc<Self> {
        let body = Self::new();
        body.embedded.store(true, Ordering::Release);
        body
    }

    /// Keeps a condition that was made for the graph.
    pub fn add_condition(&self, condition: Arc<Condition>) {
        self.state().conditions.push(condition);
    }

    /// The conditions that were made for the graph.
    pub(super) fn conditions(&self) -> Vec<Arc<Condition>> {
        self.state().conditions.clone()
    }

    /// Why it cannot be instantiated, if its conditional nodes are the reason.
    pub fn refusal(&self) -> Option<CUgraphInstantiateResult> {
        condition::refusal(self)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(|e| e.into_inner())
    }

    /// What applications hold.
    pub fn handle(&self) -> u64 {
        self.handle
    }

    /// Ends the handle and those of the nodes. What was instantiated from the graph lives on.
    ///
    /// # Errors
    /// INVALID_VALUE for a graph that a node owns, ILLEGAL_STATE while a capture adds to it.
    pub fn destroy(&self) -> Result<()> {
        if self.embedded.load(Ordering::Acquire) {
            return Err(Error::INVALID_VALUE);
        }
        if self.captures.load(Ordering::Acquire) > 0 {
            return Err(Error::ILLEGAL_STATE);
        }
        self.end();
        Ok(())
    }

    pub(super) fn end(&self) {
        GRAPHS.remove(self.handle);
        let (nodes, objects, conditions) = {
            let mut state = self.state();
            state.edges.clear();
            state.sinks.clear();
            let conditions = std::mem::take(&mut state.conditions);
            (
                std::mem::take(&mut state.nodes),
                std::mem::take(&mut state.objects),
                conditions,
            )
        };
        for node in nodes {
            forget(&node);
        }
        for (object, count) in objects {
            object.release(count);
        }
        drop(conditions);
    }

    /// A capture begins or ends to add nodes.
    pub(super) fn capture(&self, begins: bool) {
        if begins {
            self.captures.fetch_add(1, Ordering::AcqRel);
        } else {
            self.captures.fetch_sub(1, Ordering::AcqRel);
        }
    }

    /// Adds a node that depends on `after`, which must be nodes of this graph, each named once.
    ///
    /// # Errors
    /// INVALID_VALUE otherwise.
    pub fn add(&self, operation: Operation, after: &[(u64, CUgraphEdgeData)]) -> Result<Arc<Node>> {
        let mut state = self.state();
        state.memory |= operation.is_memory();
        for (index, &(from, data)) in after.iter().enumerate() {
            let known = state.node(from).ok_or(Error::INVALID_VALUE)?;
            if after[..index].iter().any(|&(other, _)| other == from) {
                return Err(Error::INVALID_VALUE);
            }
            check_edge(&known.operation(), &operation, &data)?;
        }
        let node = Node::new(self.this.clone(), operation);
        state.nodes.push(Arc::clone(&node));
        let to = node.handle();
        state.sinks.push(to);
        for &(from, data) in after {
            state.link(Edge { from, to, data });
        }
        Ok(node)
    }

    /// Removes a node and its edges.
    ///
    /// # Errors
    /// INVALID_VALUE when it is not in the graph, NOT_SUPPORTED in a graph with memory nodes (recorded).
    pub fn remove(&self, node: &Node) -> Result<()> {
        let removed = {
            let mut state = self.state();
            let index = state.index(node.handle()).ok_or(Error::INVALID_VALUE)?;
            if state.memory {
                return Err(Error::NOT_SUPPORTED);
            }
            let (before, kept) = std::mem::take(&mut state.edges)
                .into_iter()
                .filter(|edge| edge.from != node.handle())
                .partition(|edge| edge.to == node.handle());
            state.edges = kept;
            state.sinks.retain(|&sink| sink != node.handle());
            let before: Vec<Edge> = before;
            before.iter().for_each(|edge| state.unlinked(edge.from));
            state.nodes.remove(index)
        };
        forget(&removed);
        Ok(())
    }

    /// Adds dependencies: all or, after an error, none.
    ///
    /// # Errors
    /// INVALID_VALUE for nodes of other graphs, an edge that exists, and an edge from a node to itself. A cycle is an error when
    /// the graph is instantiated.
    pub fn add_edges(&self, edges: &[Edge]) -> Result<()> {
        let mut state = self.state();
        let before = state.edges.len();
        // What to go back to when a later one is wrong.
        let sinks = (edges.len() > 1).then(|| state.sinks.clone());
        for edge in edges {
            let ends = state.node(edge.from).zip(state.node(edge.to));
            let fits = ends.is_some_and(|(from, to)| {
                edge.from != edge.to && check_edge(&from.operation(), &to.operation(), &edge.data).is_ok()
            });
            if !fits || state.find(edge.from, edge.to).is_some() {
                state.edges.truncate(before);
                if let Some(sinks) = sinks {
                    state.sinks = sinks;
                }
                return Err(Error::INVALID_VALUE);
            }
            state.link(*edge);
        }
        Ok(())
    }

    /// Removes dependencies.
    ///
    /// # Errors
    /// INVALID_VALUE for one that does not exist, NOT_SUPPORTED in a graph with memory nodes (recorded).
    pub fn remove_edges(&self, edges: &[Edge]) -> Result<()> {
        let mut state = self.state();
        if state.memory {
            return Err(Error::NOT_SUPPORTED);
        }
        for edge in edges {
            let index = state.find(edge.from, edge.to).ok_or(Error::INVALID_VALUE)?;
            state.edges.remove(index);
            state.unlinked(edge.from);
        }
        Ok(())
    }

    /// All nodes, in the order of creation.
    pub fn nodes(&self) -> Vec<Arc<Node>> {
        self.state().nodes.clone()
    }

    /// The nodes without dependencies, the newest first (recorded).
    pub fn roots(&self) -> Vec<u64> {
        let state = self.state();
        let is_root = |node: &&Arc<Node>| !state.edges.iter().any(|edge| edge.to == node.handle());
        state
            .nodes
            .iter()
            .rev()
            .filter(is_root)
            .map(|node| node.handle())
            .collect()
    }

    /// All edges, by the node they come from.
    pub fn edges(&self) -> Vec<Edge> {
        self.state().edges.clone()
    }

    /// The nodes that nothing depends on, in the order in which they came to that.
    pub(super) fn sinks(&self) -> Vec<u64> {
        self.state().sinks.clone()
    }

    /// The edges into a node.
    pub fn dependencies(&self, node: u64) -> Vec<Edge> {
        self.edges().into_iter().filter(|edge| edge.to == node).collect()
    }

    /// The edges out of a node.
    pub fn dependents(&self, node: u64) -> Vec<Edge> {
        self.edges().into_iter().filter(|edge| edge.from == node).collect()
    }

    /// Whether the node belongs to the graph.
    pub fn contains(&self, node: u64) -> bool {
        self.state().node(node).is_some()
    }

    /// Whether the graph, or a child of it, begins or ends a block's life, or was to, or depends on a condition: of such there are
    /// no copies.
    pub fn is_unique(&self) -> bool {
        let node_is = |node: &Arc<Node>| match node.operation() {
            Operation::Child(child) => child.is_unique(),
            operation => matches!(operation, Operation::Conditional(_)),
        };
        self.state().memory || self.nodes().iter().any(node_is)
    }

    /// A copy, children and user objects included.
    ///
    /// # Errors
    /// NOT_SUPPORTED for a graph with memory or conditional nodes (recorded).
    pub fn duplicate(&self) -> Result<Arc<Self>> {
        if self.is_unique() {
            return Err(Error::NOT_SUPPORTED);
        }
        let copy = Self::new();
        let (nodes, edges, sinks, objects) = {
            let state = self.state();
            let (nodes, edges) = (state.nodes.clone(), state.edges.clone());
            (nodes, edges, state.sinks.clone(), state.objects.clone())
        };
        let mut clones = HashMap::new();
        for node in &nodes {
            let operation = match node.operation() {
                Operation::Child(child) => Operation::Child(child.embed()?),
                operation => operation,
            };
            clones.insert(node.handle(), copy.add(operation, &[])?.handle());
        }
        let mut state = copy.state();
        state.edges = edges
            .iter()
            .filter_map(|edge| {
                Some(Edge {
                    from: *clones.get(&edge.from)?,
                    to: *clones.get(&edge.to)?,
                    data: edge.data,
                })
            })
            .collect();
        state.sinks = sinks.iter().filter_map(|sink| clones.get(sink).copied()).collect();
        state.clones = clones;
        for (object, count) in objects {
            object.retain(count);
            state.objects.push((object, count));
        }
        drop(state);
        Ok(copy)
    }

    /// A copy for a node to own.
    ///
    /// # Errors
    /// As [`Graph::duplicate`].
    pub fn embed(&self) -> Result<Arc<Self>> {
        let copy = self.duplicate()?;
        copy.embedded.store(true, Ordering::Release);
        Ok(copy)
    }

    /// The graph itself for a node to own.
    ///
    /// # Errors
    /// INVALID_VALUE when a node owns it already.
    pub fn take_over(self: &Arc<Self>) -> Result<Arc<Self>> {
        if self.embedded.swap(true, Ordering::AcqRel) {
            return Err(Error::INVALID_VALUE);
        }
        Ok(Arc::clone(self))
    }

    /// The clone, in this graph, of another graph's node.
    ///
    /// # Errors
    /// INVALID_VALUE when there is none.
    pub fn clone_of(&self, original: u64) -> Result<u64> {
        let state = self.state();
        let clone = state.clones.get(&original).copied().ok_or(Error::INVALID_VALUE)?;
        state.node(clone).map(|_| clone).ok_or(Error::INVALID_VALUE)
    }

    /// Takes references of a user object.
    pub fn retain_object(&self, object: &Arc<UserObject>, count: u32) {
        let mut state = self.state();
        match state.objects.iter_mut().find(|(known, _)| Arc::ptr_eq(known, object)) {
            Some((_, held)) => *held += count,
            None => state.objects.push((Arc::clone(object), count)),
        }
    }

    /// Gives references of a user object back, as far as the graph has them.
    pub fn release_object(&self, object: &Arc<UserObject>, count: u32) {
        let released = {
            let mut state = self.state();
            let Some(index) = state.objects.iter().position(|(known, _)| Arc::ptr_eq(known, object)) else {
                return;
            };
            let held = &mut state.objects[index].1;
            let released = count.min(*held);
            *held -= released;
            if *held == 0 {
                state.objects.remove(index);
            }
            released
        };
        object.release(released);
    }

    /// The user objects, one reference each, for an executable graph.
    pub(super) fn objects(&self) -> Vec<Arc<UserObject>> {
        let mut objects: Vec<_> = self
            .state()
            .objects
            .iter()
            .map(|(object, _)| Arc::clone(object))
            .collect();
        for node in self.nodes() {
            match node.operation() {
                Operation::Child(child) => objects.extend(child.objects()),
                Operation::Conditional(conditional) => {
                    objects.extend(conditional.bodies.iter().flat_map(|body| body.objects()));
                }
                _ => {}
            }
        }
        objects
    }

    /// Whether an update of `claim`'s executable graph by this one is refused: it has memory nodes, and another executable graph
    /// has them.
    pub(super) fn is_claimed_by_other(&self, claim: &Arc<()>) -> bool {
        let instance = self.state().instance.upgrade();
        instance.is_some_and(|instance| !Arc::ptr_eq(&instance, claim))
    }

    /// Enters an executable graph, which keeps what is returned.
    ///
    /// # Errors
    /// NOT_SUPPORTED when the graph has memory or conditional nodes and an executable graph already (recorded).
    pub(super) fn claim_instance(&self) -> Result<Arc<()>> {
        let exclusive = self.is_unique();
        let instance = Arc::new(());
        if exclusive {
            let mut state = self.state();
            if state.instance.strong_count() > 0 {
                return Err(Error::NOT_SUPPORTED);
            }
            state.instance = Arc::downgrade(&instance);
        }
        Ok(instance)
    }
}

impl State {
    fn link(&mut self, edge: Edge) {
        // It is most often one of the newest.
        if let Some(index) = self.sinks.iter().rposition(|&sink| sink == edge.from) {
            self.sinks.remove(index);
        }
        self.edges.push(edge);
    }

    /// An edge from the node is gone.
    fn unlinked(&mut self, from: u64) {
        if !self.edges.iter().any(|edge| edge.from == from) && !self.sinks.contains(&from) {
            self.sinks.push(from);
        }
    }

    fn index(&self, node: u64) -> Option<usize> {
        self.nodes.iter().position(|known| known.handle() == node)
    }

    fn node(&self, node: u64) -> Option<Arc<Node>> {
        // A foreign node's handle is alive, too, so the list decides; the table is faster for large graphs.
        let found = NODES.get(node)?;
        self.index_of(&found).then_some(found)
    }

    fn index_of(&self, node: &Arc<Node>) -> bool {
        // New nodes are asked for most.
        self.nodes.iter().rev().any(|known| Arc::ptr_eq(known, node))
    }

    fn find(&self, from: u64, to: u64) -> Option<usize> {
        self.edges.iter().position(|edge| edge.from == from && edge.to == to)
    }
}

/// Ends a node's handle, and the graph that it owns.
fn forget(node: &Node) {
    NODES.remove(node.handle());
    match node.operation() {
        Operation::Child(child) => child.end(),
        Operation::Conditional(conditional) => conditional.end(),
        _ => {}
    }
}

/// Checks an annotation: only kernels have more than one kind of dependency between them.
fn check_edge(from: &Operation, to: &Operation, data: &CUgraphEdgeData) -> Result<()> {
    let kernels = matches!((from, to), (Operation::Kernel(_), Operation::Kernel(_)));
    let valid = data.to_port == 0
        && data.reserved == [0; 5]
        && match data.r#type {
            0 => data.from_port == 0,
            // Programmatic: of the kernel's trigger, or of its beginning.
            1 => kernels && matches!(data.from_port, 1 | 2),
            _ => false,
        };
    if valid { Ok(()) } else { Err(Error::INVALID_VALUE) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn empty(graph: &Graph, after: &[u64]) -> Result<u64> {
        let after: Vec<_> = after.iter().map(|&node| (node, CUgraphEdgeData::default())).collect();
        Ok(graph.add(Operation::Empty, &after)?.handle())
    }

    fn edge(from: u64, to: u64) -> Edge {
        Edge {
            from,
            to,
            data: CUgraphEdgeData::default(),
        }
    }

    #[test]
    fn edges_are_unique_and_inside_the_graph() {
        let (graph, other) = (Graph::new(), Graph::new());
        let a = empty(&graph, &[]).unwrap();
        let b = empty(&graph, &[a]).unwrap();
        let foreign = empty(&other, &[]).unwrap();
        assert_eq!(empty(&graph, &[a, a]), Err(Error::INVALID_VALUE));
        assert_eq!(empty(&graph, &[foreign]), Err(Error::INVALID_VALUE));
        assert_eq!(empty(&graph, &[0]), Err(Error::INVALID_VALUE));
        for wrong in [edge(a, b), edge(a, a), edge(foreign, b)] {
            assert_eq!(graph.add_edges(&[wrong]), Err(Error::INVALID_VALUE), "{wrong:?}");
        }
        assert_eq!(graph.add_edges(&[edge(b, a)]), Ok(()), "a cycle is found later");
        assert_eq!(graph.remove_edges(&[edge(b, a)]), Ok(()));
        assert_eq!(graph.remove_edges(&[edge(b, a)]), Err(Error::INVALID_VALUE));
        assert_eq!(graph.nodes().len(), 2);
        assert_eq!(graph.edges(), [edge(a, b)]);
        assert_eq!(graph.roots(), [a]);
    }

    #[test]
    fn sinks_are_known_by_when_they_came_to_be() {
        let graph = Graph::new();
        let a = empty(&graph, &[]).unwrap();
        let b = empty(&graph, &[a]).unwrap();
        let c = empty(&graph, &[a]).unwrap();
        assert_eq!(graph.sinks(), [b, c]);
        assert!(graph.add_edges(&[edge(b, c), edge(c, c)]).is_err());
        assert_eq!(graph.sinks(), [b, c], "nothing was added");
        graph.add_edges(&[edge(b, c)]).unwrap();
        assert_eq!(graph.sinks(), [c]);
        graph.remove_edges(&[edge(b, c)]).unwrap();
        assert_eq!(graph.sinks(), [c, b]);
        let copy = graph.duplicate().unwrap();
        assert_eq!(copy.sinks(), [copy.clone_of(c).unwrap(), copy.clone_of(b).unwrap()]);
        graph.remove(&super::super::node(b).unwrap()).unwrap();
        assert_eq!(graph.sinks(), [c], "a has another dependent");
        graph.remove(&super::super::node(c).unwrap()).unwrap();
        assert_eq!(graph.sinks(), [a]);
    }

    #[test]
    fn clones_know_their_originals_and_go_on_alone() {
        let graph = Graph::new();
        let a = empty(&graph, &[]).unwrap();
        let b = empty(&graph, &[a]).unwrap();
        let copy = graph.duplicate().unwrap();
        let late = empty(&graph, &[]).unwrap();
        let (a2, b2) = (copy.clone_of(a).unwrap(), copy.clone_of(b).unwrap());
        assert_eq!(copy.edges(), [edge(a2, b2)]);
        assert_eq!(copy.clone_of(late), Err(Error::INVALID_VALUE));
        assert_eq!(graph.clone_of(a), Err(Error::INVALID_VALUE));
        graph.destroy().unwrap();
        assert!(super::super::node(a).is_err());
        assert_eq!(copy.nodes().len(), 2);
        copy.destroy().unwrap();
        assert!(super::super::graph(copy.handle()).is_err());
    }

    #[test]
    fn annotated_edges_are_for_kernels() {
        let graph = Graph::new();
        let a = empty(&graph, &[]).unwrap();
        let b = empty(&graph, &[]).unwrap();
        for data in [[1, 0, 1], [1, 0, 0], [0, 1, 0], [0, 0, 2]] {
            let data = CUgraphEdgeData {
                from_port: data[0],
                to_port: data[1],
                r#type: data[2],
                reserved: [0; 5],
            };
            let edge = Edge { from: a, to: b, data };
            assert_eq!(graph.add_edges(&[edge]), Err(Error::INVALID_VALUE), "{data:?}");
        }
    }
}
