//! A graph as one list, child graphs included.
//!
//! ```text
//! node a, child node c (of p -> q), node b     c after a, b after c
//!
//! 0 a    1 (begin of c, after 0)    2 p (after 1)    3 q (after 2)    4 c (after 3)    5 b (after 4)
//! ```

use core::ops::Range;
use std::collections::HashMap;

use super::{Graph, Operation};
use crate::abi::Result;

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
pub(super) fn flatten(graph: &Graph) -> Result<Vec<Item>> {
    let mut items = Vec::new();
    append(&mut items, graph, None)?;
    Ok(items)
}

/// Appends a graph's nodes; those without dependencies come after `begin`. Returns the places of those that nothing depends on.
fn append(items: &mut Vec<Item>, graph: &Graph, begin: Option<usize>) -> Result<Vec<usize>> {
    let (nodes, edges) = (graph.nodes(), graph.edges());
    // Where a node begins (its dependencies are entered there) and where it ends (others depend on that).
    let mut places: HashMap<u64, (usize, usize)> = HashMap::with_capacity(nodes.len());
    for node in &nodes {
        let operation = node.operation();
        let first = items.len();
        if let Operation::Child(child) = &operation {
            let child = child.clone();
            items.push(Item::new(0, Operation::Empty, Vec::new()));
            let leaves = append(items, &child, Some(first))?;
            let mut end = Item::new(node.handle(), operation, leaves);
            end.children = first + 1..items.len();
            if end.after.is_empty() {
                end.after.push(first);
            }
            items.push(end);
        } else {
            let mut item = Item::new(node.handle(), operation, Vec::new());
            if let Operation::Conditional(conditional) = &item.operation {
                item.bodies = conditional
                    .bodies
                    .iter()
                    .map(|body| flatten(body))
                    .collect::<Result<_>>()?;
            }
            items.push(item);
        }
        places.insert(node.handle(), (first, items.len() - 1));
    }
    let mut leaf: HashMap<u64, bool> = nodes.iter().map(|node| (node.handle(), true)).collect();
    for edge in &edges {
        if let (Some(from), Some(to)) = (places.get(&edge.from), places.get(&edge.to)) {
            items[to.0].after.push(from.1);
            leaf.insert(edge.from, false);
        }
    }
    if let Some(begin) = begin {
        for (first, _) in places.values() {
            if items[*first].after.is_empty() {
                items[*first].after.push(begin);
            }
        }
    }
    let leaves = nodes.iter().filter(|node| leaf.get(&node.handle()) == Some(&true));
    Ok(leaves
        .filter_map(|node| places.get(&node.handle()).map(|place| place.1))
        .collect())
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

/// How two lists differ in structure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Difference {
    /// Nodes were added or removed.
    Count,
    /// The item at this place is of another type.
    Type(usize),
    /// The item at this place has other dependencies or dependents.
    Edges(usize),
}

/// The first difference, in the order of creation.
pub(super) fn difference(old: &[Item], new: &[Item]) -> Option<Difference> {
    if old.len() != new.len() {
        return Some(Difference::Count);
    }
    let same = |a: &[usize], b: &[usize]| {
        let sorted = |list: &[usize]| {
            let mut list = list.to_vec();
            list.sort_unstable();
            list
        };
        sorted(a) == sorted(b)
    };
    let (before, now) = (dependents(old), dependents(new));
    old.iter().zip(new).enumerate().find_map(|(index, (a, b))| {
        if a.operation.node_type() != b.operation.node_type() {
            Some(Difference::Type(index))
        } else if !same(&a.after, &b.after) || !same(&before[index], &now[index]) {
            Some(Difference::Edges(index))
        } else {
            None
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::abi::CUgraphEdgeData;

    fn add(graph: &Graph, operation: Operation, after: &[u64]) -> u64 {
        let after: Vec<_> = after.iter().map(|&node| (node, CUgraphEdgeData::default())).collect();
        graph.add(operation, &after).unwrap().handle()
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
        let items = flatten(&graph).unwrap();
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
        let items = flatten(&graph).unwrap();
        let after: Vec<_> = items.iter().map(|item| item.after.clone()).collect();
        assert_eq!(after, [vec![], vec![0], vec![1], vec![2]]);
    }

    #[test]
    fn cycles_and_differences_are_found() {
        let make = |edges: &[(usize, usize)], count: usize| {
            let mut items: Vec<_> = (0..count)
                .map(|index| Item::new(index as u64 + 1, Operation::Empty, Vec::new()))
                .collect();
            for &(from, to) in edges {
                items[to].after.push(from);
            }
            items
        };
        assert!(order(&make(&[(0, 1), (1, 2), (2, 0)], 3)).is_none());
        let base = make(&[(0, 1)], 2);
        assert_eq!(difference(&base, &make(&[(0, 1)], 2)), None);
        assert_eq!(difference(&base, &make(&[(0, 1)], 3)), Some(Difference::Count));
        assert_eq!(difference(&base, &make(&[], 2)), Some(Difference::Edges(0)));
        let mut other = make(&[(0, 1)], 2);
        other[1].operation = Operation::Child(Graph::new());
        assert_eq!(difference(&base, &other), Some(Difference::Type(1)));
    }
}
