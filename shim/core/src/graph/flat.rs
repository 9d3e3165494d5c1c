//! A graph as one list, child graphs included.
//!
//! ```text
//! node a, child node c (of p -> q), node b     c after a, b after c
//!
//! 0 a    1 (begin of c, after 0)    2 p (after 1)    3 q (after 2)    4 c (after 3)    5 b (after 4)
//! ```

use core::ops::Range;
use std::collections::{HashMap, VecDeque};

use super::{Graph, Operation};

/// A node in a list.
#[derive(Clone)]
pub(super) struct Item {
    /// The graph's node; 0 for the place where a child begins.
    pub node: u64,
    /// What it does. A child does nothing: its nodes stand before it.
    pub operation: Operation,
    /// The items that must have ended, by their places in the list.
    pub after: Vec<usize>,
    /// A node that is switched off does nothing.
    pub enabled: bool,
    /// Of a child: where its nodes stand.
    pub children: Range<usize>,
    /// Of a conditional node: what it decides about.
    pub bodies: Vec<Vec<Item>>,
    /// Of those that nothing in their graph depends on: the place among them, the first to come to that first.
    pub sink: Option<usize>,
}

impl Item {
    fn new(node: u64, operation: Operation, after: Vec<usize>) -> Self {
        Self {
            node,
            operation,
            after,
            enabled: true,
            children: 0..0,
            bodies: Vec::new(),
            sink: None,
        }
    }

    /// What it does at a launch.
    pub fn active(&self) -> &Operation {
        match &self.operation {
            Operation::Child(_) => &Operation::Empty,
            _ if !self.enabled => &Operation::Empty,
            operation => operation,
        }
    }
}

/// The list of a graph: nodes in the order of creation.
pub(super) fn flatten(graph: &Graph) -> Vec<Item> {
    let mut items = Vec::new();
    append(&mut items, graph, None);
    items
}

/// Appends a graph's nodes; those without dependencies come after `begin`. Returns the places of those that nothing depends on.
fn append(items: &mut Vec<Item>, graph: &Graph, begin: Option<usize>) -> Vec<usize> {
    let (nodes, edges) = (graph.nodes(), graph.edges());
    // Where a node begins (its dependencies are entered there) and where it ends (others depend on that).
    let mut places: HashMap<u64, (usize, usize)> = HashMap::with_capacity(nodes.len());
    for node in &nodes {
        let operation = node.operation();
        let first = items.len();
        if let Operation::Child(child) = &operation {
            let child = child.clone();
            items.push(Item::new(0, Operation::Empty, Vec::new()));
            let leaves = append(items, &child, Some(first));
            let mut end = Item::new(node.handle(), operation, leaves);
            end.children = first + 1..items.len();
            if end.after.is_empty() {
                end.after.push(first);
            }
            items.push(end);
        } else {
            let mut item = Item::new(node.handle(), operation, Vec::new());
            if let Operation::Conditional(conditional) = &item.operation {
                item.bodies = conditional.bodies.iter().map(|body| flatten(body)).collect();
            }
            items.push(item);
        }
        places.insert(node.handle(), (first, items.len() - 1));
    }
    for edge in &edges {
        if let (Some(from), Some(to)) = (places.get(&edge.from), places.get(&edge.to)) {
            items[to.0].after.push(from.1);
        }
    }
    if let Some(begin) = begin {
        for (first, _) in places.values() {
            if items[*first].after.is_empty() {
                items[*first].after.push(begin);
            }
        }
    }
    let leaves = graph.sinks().into_iter().filter_map(|sink| Some(places.get(&sink)?.1));
    let leaves: Vec<usize> = leaves.collect();
    for (place, &leaf) in leaves.iter().enumerate() {
        items[leaf].sink = Some(place);
    }
    leaves
}

/// The item of a node, in bodies too.
pub(super) fn find(items: &mut [Item], node: u64) -> Option<&mut Item> {
    for item in items {
        if item.node == node {
            return Some(item);
        }
        for body in &mut item.bodies {
            if let Some(found) = find(body, node) {
                return Some(found);
            }
        }
    }
    None
}

/// Whether every item, in bodies too, can come after those it depends on.
pub(super) fn has_order(items: &[Item]) -> bool {
    order(items).is_some() && items.iter().flat_map(|item| &item.bodies).all(|body| has_order(body))
}

/// An order in which every item comes after those it depends on; `None` for a cycle.
pub(super) fn order(items: &[Item]) -> Option<Vec<usize>> {
    let dependents = dependents(items);
    let mut missing: Vec<usize> = items.iter().map(|item| item.after.len()).collect();
    let mut order: Vec<usize> = (0..items.len()).filter(|&index| missing[index] == 0).collect();
    let mut next = 0;
    while let Some(&index) = order.get(next) {
        next += 1;
        for &dependent in &dependents[index] {
            missing[dependent] -= 1;
            if missing[dependent] == 0 {
                order.push(dependent);
            }
        }
    }
    (order.len() == items.len()).then_some(order)
}

/// For each item those that depend on it.
pub(super) fn dependents(items: &[Item]) -> Vec<Vec<usize>> {
    let mut dependents = vec![Vec::new(); items.len()];
    for (index, item) in items.iter().enumerate() {
        for &before in &item.after {
            dependents[before].push(index);
        }
    }
    dependents
}

/// Where the structure of a new list is another than that of an old one. Places are the new list's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Difference {
    /// The item is of another type.
    Type(usize),
    /// The item, if it can be named, has other dependencies; or depends on the second one, where the old one depends on another.
    Edges(Option<usize>, Option<usize>),
}

/// A node among those of its graph: the item at which its dependencies are entered, and the one that others depend on.
#[derive(Clone, Copy)]
struct Ends {
    begin: usize,
    end: usize,
}

/// A graph of a list, its nodes the newest first.
struct Level<'a> {
    items: &'a [Item],
    nodes: Vec<Ends>,
}

impl<'a> Level<'a> {
    /// The graph whose nodes, children included, stand at `range`.
    fn new(items: &'a [Item], range: Range<usize>) -> Self {
        let mut nodes = Vec::new();
        let mut next = range.end;
        while next > range.start {
            let end = next - 1;
            let begin = match items[end].operation {
                Operation::Child(_) => items[end].children.start - 1,
                _ => end,
            };
            nodes.push(Ends { begin, end });
            next = begin;
        }
        Self { items, nodes }
    }

    /// The nodes of this graph that a node depends on, by their ends, in the order in which the edges were made.
    fn before(&self, node: Ends) -> impl Iterator<Item = usize> {
        let first = self.nodes.last().map_or(0, |node| node.begin);
        let after = self.items[node.begin].after.iter().copied();
        after.filter(move |&before| before >= first)
    }

    fn at(&self, end: usize) -> Ends {
        // The newest come first, so their ends descend.
        let found = self.nodes.binary_search_by(|node| end.cmp(&node.end));
        self.nodes[found.unwrap_or_default()]
    }

    /// The nodes that nothing depends on, the last to come to that first.
    fn sinks(&self) -> Vec<Ends> {
        let mut sinks: Vec<_> = self
            .nodes
            .iter()
            .filter(|node| self.items[node.end].sink.is_some())
            .copied()
            .collect();
        sinks.sort_by_key(|node| std::cmp::Reverse(self.items[node.end].sink));
        sinks
    }
}

/// For every item of `old` the one of `new` that takes its place.
///
/// As recorded, and as CUDA's documentation of updates has it: the nodes that nothing depends on correspond by their order, the last to
/// come to that first, and from there on, breadth first, the dependencies of corresponding nodes, in the order in which the edges were made. In what
/// order other nodes were made does not matter.
pub(super) fn pair(old: &[Item], new: &[Item]) -> Result<Vec<usize>, Difference> {
    let mut pairs = vec![usize::MAX; old.len()];
    pair_level(
        &mut pairs,
        &Level::new(old, 0..old.len()),
        &Level::new(new, 0..new.len()),
    )?;
    Ok(pairs)
}

fn pair_level(pairs: &mut [usize], old: &Level<'_>, new: &Level<'_>) -> Result<(), Difference> {
    let (sinks, new_sinks) = (old.sinks(), new.sinks());
    if old.nodes.len() != new.nodes.len() || new_sinks.len() < sinks.len() {
        return Err(Difference::Edges(None, None));
    }
    if let Some(more) = new_sinks.get(sinks.len()) {
        return Err(Difference::Edges(Some(more.end), None));
    }
    let mut queue: VecDeque<(Ends, Ends)> = sinks.into_iter().zip(new_sinks).collect();
    let mut taken: HashMap<usize, usize> = HashMap::with_capacity(new.nodes.len());
    for (a, b) in &queue {
        pairs[a.end] = b.end;
        taken.insert(b.end, a.end);
    }
    while let Some((a, b)) = queue.pop_front() {
        let (old_item, new_item) = (&old.items[a.end], &new.items[b.end]);
        if old_item.operation.node_type() != new_item.operation.node_type() {
            return Err(Difference::Type(b.end));
        }
        let (before, now): (Vec<_>, Vec<_>) = (old.before(a).collect(), new.before(b).collect());
        if before.len() != now.len() {
            return Err(Difference::Edges(Some(b.end), None));
        }
        for (from, to) in before.into_iter().zip(now) {
            match (pairs[from], taken.get(&to)) {
                (usize::MAX, None) => {
                    pairs[from] = to;
                    taken.insert(to, from);
                    queue.push_back((old.at(from), new.at(to)));
                }
                (known, _) if known == to => {}
                _ => return Err(Difference::Edges(Some(b.end), Some(to))),
            }
        }
        if let Operation::Child(_) = old_item.operation {
            pairs[a.begin] = b.begin;
            let level = |items, item: &Item| Level::new(items, item.children.clone());
            pair_level(pairs, &level(old.items, old_item), &level(new.items, new_item))?;
        }
    }
    // Nothing is left but cycles, which lead to no sink.
    if taken.len() < new.nodes.len() {
        return Err(Difference::Edges(None, None));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::abi::CUgraphEdgeData;

    fn add(graph: &Graph, operation: Operation, after: &[u64]) -> u64 {
        let after: Vec<_> = after.iter().map(|&node| (node, CUgraphEdgeData::default())).collect();
        graph.add(operation, &after).unwrap().handle()
    }

    /// The list of a graph of empty nodes.
    fn list(count: usize, edges: &[(usize, usize)]) -> Vec<Item> {
        let graph = Graph::new();
        let nodes: Vec<u64> = (0..count).map(|_| add(&graph, Operation::Empty, &[])).collect();
        let data = CUgraphEdgeData::default();
        for &(from, to) in edges {
            let (from, to) = (nodes[from], nodes[to]);
            graph.add_edges(&[crate::graph::Edge { from, to, data }]).unwrap();
        }
        flatten(&graph)
    }

    #[test]
    fn children_stand_between_their_ends() {
        let child = Graph::new();
        let p = add(&child, Operation::Empty, &[]);
        add(&child, Operation::Empty, &[p]);
        let graph = Graph::new();
        let a = add(&graph, Operation::Empty, &[]);
        let c = add(&graph, Operation::Child(child.embed().unwrap()), &[a]);
        add(&graph, Operation::Empty, &[c]);
        let items = flatten(&graph);
        let after: Vec<_> = items.iter().map(|item| item.after.clone()).collect();
        assert_eq!(after, [vec![], vec![0], vec![1], vec![2], vec![3], vec![4]]);
        assert_eq!((items[4].node, items[4].children.clone()), (c, 2..4));
        assert_eq!(order(&items).unwrap(), [0, 1, 2, 3, 4, 5]);
    }

    #[test]
    fn an_empty_child_keeps_the_order() {
        let graph = Graph::new();
        let a = add(&graph, Operation::Empty, &[]);
        let c = add(&graph, Operation::Child(Graph::new().embed().unwrap()), &[a]);
        add(&graph, Operation::Empty, &[c]);
        let items = flatten(&graph);
        let after: Vec<_> = items.iter().map(|item| item.after.clone()).collect();
        assert_eq!(after, [vec![], vec![0], vec![1], vec![2]]);
    }

    #[test]
    fn cycles_and_differences_are_found() {
        assert!(order(&list(3, &[(0, 1), (1, 2), (2, 0)])).is_none());
        let edges = |node: Option<usize>, from: Option<usize>| Err(Difference::Edges(node, from));
        let base = list(2, &[(0, 1)]);
        assert_eq!(pair(&base, &list(2, &[(0, 1)])), Ok(vec![0, 1]));
        assert_eq!(pair(&base, &list(3, &[(0, 1)])), edges(None, None));
        assert_eq!(pair(&base, &list(2, &[])), edges(Some(0), None));
        assert_eq!(
            pair(&base, &list(2, &[(1, 0)])),
            Ok(vec![1, 0]),
            "by structure, not by age"
        );
        assert_eq!(pair(&base, &list(2, &[(0, 1), (1, 0)])), edges(None, None), "a cycle");
        let with = |first: Operation| {
            let graph = Graph::new();
            let first = add(&graph, first, &[]);
            add(&graph, Operation::Empty, &[first]);
            flatten(&graph)
        };
        let child = with(Operation::Child(Graph::new().embed().unwrap()));
        assert_eq!(pair(&with(Operation::Empty), &child), Err(Difference::Type(1)));
    }

    #[test]
    fn structures_differ_where_cuda_says() {
        let base = [(0, 1), (0, 2), (1, 3), (2, 3), (4, 5)];
        type Edges = &'static [(usize, usize)];
        // The rows of `structures` in tests/oracle/sequences.cc whose answers show the rule.
        let rows: [(Edges, Edges, Option<usize>, Option<usize>); 8] = [
            (&[(3, 4)], &[], None, None),
            (&[(4, 0)], &[], Some(0), None),
            (&[(4, 1), (4, 2)], &[], Some(1), None),
            (&[], &[(1, 3)], Some(1), None),
            (&[], &[(4, 5)], Some(3), None),
            (&[(2, 1)], &[(0, 1)], Some(1), Some(2)),
            (&[(1, 5)], &[(1, 3)], Some(5), None),
            (&[(5, 3)], &[(2, 3)], Some(3), None),
        ];
        for (more, less, node, from) in rows {
            let kept = base.iter().filter(|edge| !less.contains(edge));
            let new: Vec<_> = kept.chain(more).copied().collect();
            assert_eq!(
                pair(&list(6, &base), &list(6, &new)),
                Err(Difference::Edges(node, from)),
                "{new:?}"
            );
        }
    }

    #[test]
    fn children_correspond_too() {
        let make = |first: bool| {
            let (child, graph) = (Graph::new(), Graph::new());
            let p = add(&child, Operation::Empty, &[]);
            add(&child, Operation::Empty, &[p]);
            let child = Operation::Child(child.embed().unwrap());
            // The same graph, its nodes made in either order.
            if first {
                let c = add(&graph, child, &[]);
                add(&graph, Operation::Empty, &[c]);
            } else {
                let a = add(&graph, Operation::Empty, &[]);
                let c = add(&graph, child, &[]);
                let data = CUgraphEdgeData::default();
                graph.add_edges(&[crate::graph::Edge { from: c, to: a, data }]).unwrap();
            }
            flatten(&graph)
        };
        assert_eq!(pair(&make(true), &make(false)), Ok(vec![1, 2, 3, 4, 0]));
        assert_eq!(pair(&make(true), &make(true)), Ok(vec![0, 1, 2, 3, 4]));
    }
}
