//! The control-flow graph of a function body.

use std::collections::HashMap;

use crate::protocol::TranslateError;
use crate::ptx::ast::{Body, Instruction, LabelId, LabelKind, Operand, Statement};

/// A run of instructions entered at its head only.
#[derive(Debug, Default)]
pub struct Block<'m, 'a> {
    /// Instructions in order; a transfer of control can only be the last.
    pub instructions: Vec<&'m Instruction<'a>>,
    /// Blocks that may follow; `Flow::exit` stands for leaving the function. For a conditional branch the target is
    /// first.
    pub successors: Vec<usize>,
}

/// The blocks of a body in source order: block 0 is the entry, each falls through to the next.
#[derive(Debug)]
pub struct Flow<'m, 'a> {
    /// The blocks.
    pub blocks: Vec<Block<'m, 'a>>,
    /// Block at which each code label stands.
    pub at_label: HashMap<LabelId, usize>,
}

/// Whether an instruction ends its block.
pub fn is_transfer(i: &Instruction<'_>) -> bool {
    matches!(i.opcode, "bra" | "brx" | "ret" | "exit")
}

/// The target of a `bra`.
pub fn branch_target(i: &Instruction<'_>) -> Result<LabelId, TranslateError> {
    match i.operands.first() {
        Some(Operand::Label(label)) => Ok(*label),
        _ => Err(i.unsupported()),
    }
}

/// The targets of a `brx.idx`.
pub fn branch_table<'m>(body: &'m Body<'_>, i: &Instruction<'_>) -> Result<&'m [LabelId], TranslateError> {
    match i.operands.get(1) {
        Some(Operand::Label(label)) => match &body.label(*label).kind {
            LabelKind::BranchTargets(targets) => Ok(targets),
            _ => Err(i.unsupported()),
        },
        _ => Err(i.unsupported()),
    }
}

impl<'m, 'a> Flow<'m, 'a> {
    /// Splits a body into blocks.
    pub fn of(body: &'m Body<'a>) -> Result<Self, TranslateError> {
        let mut blocks = vec![Block::default()];
        let mut at_label = HashMap::new();
        let mut ended = false;
        for statement in &body.statements {
            match statement {
                Statement::Label(label) => {
                    if ended
                        || blocks
                            .last()
                            .is_some_and(|b: &Block<'_, '_>| !b.instructions.is_empty())
                    {
                        blocks.push(Block::default());
                        ended = false;
                    }
                    at_label.insert(*label, blocks.len() - 1);
                }
                Statement::Instruction(i) => {
                    if ended {
                        blocks.push(Block::default());
                    }
                    let last = blocks.len() - 1;
                    blocks[last].instructions.push(i);
                    ended = is_transfer(i);
                }
            }
        }
        let exit = blocks.len();
        let target = |label: &LabelId| at_label.get(label).copied().unwrap_or(exit);
        for (at, block) in blocks.iter_mut().enumerate() {
            let mut successors = Vec::new();
            let last = block.instructions.last().copied().filter(|i| is_transfer(i));
            match last {
                Some(i) if i.opcode == "bra" => successors.push(target(&branch_target(i)?)),
                Some(i) if i.opcode == "brx" => successors.extend(branch_table(body, i)?.iter().map(target)),
                Some(_) => successors.push(exit),
                None => {}
            }
            if last.is_none_or(|i| i.predicate.is_some()) {
                successors.push(at + 1);
            }
            block.successors = successors;
        }
        Ok(Self { blocks, at_label })
    }

    /// The index that stands for leaving the function.
    pub fn exit(&self) -> usize {
        self.blocks.len()
    }

    /// For each block, whether a block of `wanted` is it or can be reached from it; the last entry is the exit's.
    pub fn leads_to(&self, wanted: &[bool]) -> Vec<bool> {
        let mut found = wanted.to_vec();
        found.push(false);
        // Backwards first: one pass settles everything but loops.
        loop {
            let mut changed = false;
            for at in (0..self.blocks.len()).rev() {
                if !found[at] && self.blocks[at].successors.iter().any(|&s| found[s]) {
                    found[at] = true;
                    changed = true;
                }
            }
            if !changed {
                return found;
            }
        }
    }

    /// The loops, those inside others too.
    pub fn cycles(&self) -> Vec<Vec<usize>> {
        let n = self.blocks.len();
        let mut found = Vec::new();
        let mut unexplored = self.strongly_connected(&vec![true; n]);
        while let Some(cycle) = unexplored.pop() {
            let mut inner = vec![false; n];
            cycle.iter().for_each(|&b| inner[b] = true);
            let outside = (0..n).filter(|&b| !inner[b]);
            let mut entries: Vec<usize> = outside
                .flat_map(|b| self.blocks[b].successors.iter().copied())
                .collect();
            entries.retain(|&s| s < n && inner[s]);
            // Nothing leads to code that is not reached, or to a loop at the function's start.
            entries.extend(cycle.first().filter(|_| entries.is_empty()));
            // What still turns without the blocks where this loop is entered is a loop inside it.
            entries.into_iter().for_each(|b| inner[b] = false);
            if inner.contains(&true) {
                unexplored.extend(self.strongly_connected(&inner));
            }
            found.push(cycle);
        }
        found
    }

    /// The strongly connected blocks among `within`: more than one, or one that follows itself (Tarjan, without
    /// recursion).
    fn strongly_connected(&self, within: &[bool]) -> Vec<Vec<usize>> {
        let n = self.blocks.len();
        let (mut index, mut low, mut on_stack) = (vec![usize::MAX; n], vec![0; n], vec![false; n]);
        let (mut stack, mut found, mut next) = (Vec::new(), Vec::new(), 0);
        for root in 0..n {
            if index[root] != usize::MAX || !within[root] {
                continue;
            }
            // Blocks being visited, each with the number of successors done.
            let mut path = vec![(root, 0)];
            while let Some((at, done)) = path.pop() {
                if done == 0 {
                    (index[at], low[at]) = (next, next);
                    next += 1;
                    stack.push(at);
                    on_stack[at] = true;
                }
                if let Some(&s) = self.blocks[at].successors.get(done) {
                    path.push((at, done + 1));
                    if s < n && within[s] && index[s] == usize::MAX {
                        path.push((s, 0));
                    } else if s < n && on_stack[s] {
                        low[at] = low[at].min(index[s]);
                    }
                    continue;
                }
                if let Some(&(parent, _)) = path.last() {
                    low[parent] = low[parent].min(low[at]);
                }
                if low[at] == index[at] {
                    let from = stack.iter().rposition(|&b| b == at).unwrap_or(0);
                    let mut cycle = stack.split_off(from);
                    cycle.iter().for_each(|&b| on_stack[b] = false);
                    cycle.sort_unstable();
                    if cycle.len() > 1 || self.blocks[at].successors.contains(&at) {
                        found.push(cycle);
                    }
                }
            }
        }
        found
    }

    /// The blocks between a branch and the point where its arms meet again: reached from a successor of `from` without
    /// passing its nearest post-dominator.
    pub fn influenced(&self, from: usize, post: &[usize]) -> Vec<usize> {
        let n = self.blocks.len();
        let mut seen = vec![false; n + 1];
        let mut queue = self.blocks[from].successors.clone();
        let mut found = Vec::new();
        while let Some(at) = queue.pop() {
            if at >= n || at == post[from] || std::mem::replace(&mut seen[at], true) {
                continue;
            }
            found.push(at);
            queue.extend(&self.blocks[at].successors);
        }
        found
    }

    /// The nearest post-dominator of each block: every way out of the function passes it. A block that cannot leave has
    /// the exit (Cooper, Harvey and Kennedy, "A Simple, Fast Dominance Algorithm", on the reversed graph).
    pub fn post_dominators(&self) -> Vec<usize> {
        let n = self.blocks.len();
        let mut predecessors = vec![Vec::new(); n + 1];
        for (at, block) in self.blocks.iter().enumerate() {
            block.successors.iter().for_each(|&s| predecessors[s].push(at));
        }
        // Order in which blocks finish when the reversed graph is walked from the exit.
        let mut order = vec![usize::MAX; n + 1];
        let (mut finished, mut seen) = (Vec::new(), vec![false; n + 1]);
        let mut path = vec![(n, 0)];
        seen[n] = true;
        while let Some((at, done)) = path.pop() {
            if let Some(&p) = predecessors[at].get(done) {
                path.push((at, done + 1));
                if !std::mem::replace(&mut seen[p], true) {
                    path.push((p, 0));
                }
            } else {
                order[at] = finished.len();
                finished.push(at);
            }
        }
        let mut post = vec![usize::MAX; n + 1];
        post[n] = n;
        let mut changed = true;
        while changed {
            changed = false;
            for &at in finished.iter().rev().filter(|&&at| at != n) {
                let mut nearest = usize::MAX;
                for &s in self.blocks[at].successors.iter().filter(|&&s| post[s] != usize::MAX) {
                    if nearest == usize::MAX {
                        nearest = s;
                        continue;
                    }
                    let mut other = s;
                    while nearest != other {
                        if order[nearest] < order[other] {
                            nearest = post[nearest];
                        } else {
                            other = post[other];
                        }
                    }
                }
                if nearest != usize::MAX && post[at] != nearest {
                    post[at] = nearest;
                    changed = true;
                }
            }
        }
        post.iter_mut().for_each(|p| *p = if *p == usize::MAX { n } else { *p });
        post
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A graph from its successor lists; the exit is one past the last block.
    fn graph(successors: &[&[usize]]) -> Flow<'static, 'static> {
        let blocks = successors
            .iter()
            .map(|s| Block {
                instructions: Vec::new(),
                successors: s.to_vec(),
            })
            .collect();
        Flow {
            blocks,
            at_label: HashMap::new(),
        }
    }

    #[test]
    fn the_arms_of_a_branch_end_where_they_meet() {
        // 0 -> 1 | 2, 1 -> 3, 2 -> 3, 3 -> exit
        let flow = graph(&[&[1, 2], &[3], &[3], &[4]]);
        let post = flow.post_dominators();
        assert_eq!(post, [3, 3, 3, 4, 4]);
        let mut arms = flow.influenced(0, &post);
        arms.sort_unstable();
        assert_eq!(arms, [1, 2]);
    }

    #[test]
    fn a_loop_is_one_cycle() {
        // 0 -> 1, 1 -> 2 | 3, 2 -> 1, 3 -> 3 | exit
        let flow = graph(&[&[1], &[2, 3], &[1], &[3, 4]]);
        let mut cycles = flow.cycles();
        cycles.sort();
        assert_eq!(cycles, [vec![1, 2], vec![3]]);
        assert_eq!(flow.post_dominators(), [1, 3, 1, 4, 4]);
        assert_eq!(
            flow.leads_to(&[false, false, true, false]),
            [true, true, true, false, false]
        );
    }

    #[test]
    fn a_loop_inside_a_loop_is_a_cycle_too() {
        // 0 -> 1, 1 -> 2, 2 -> 2 | 3, 3 -> 1 | exit
        let flow = graph(&[&[1], &[2], &[2, 3], &[1, 4]]);
        let mut cycles = flow.cycles();
        cycles.sort();
        assert_eq!(cycles, [vec![1, 2, 3], vec![2]]);
        // Of nothing but a loop and one inside it: 0 -> 1, 1 -> 1 | 0
        let mut cycles = graph(&[&[1], &[1, 0]]).cycles();
        cycles.sort();
        assert_eq!(cycles, [vec![0, 1], vec![1]]);
    }

    #[test]
    fn blocks_that_never_leave_do_no_harm() {
        let flow = graph(&[&[1, 2], &[1], &[3]]);
        assert_eq!(flow.post_dominators(), [2, 3, 3, 3]);
        assert_eq!(flow.cycles(), [vec![1]]);
    }
}
