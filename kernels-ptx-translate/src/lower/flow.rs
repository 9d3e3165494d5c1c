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
        for at in 0..blocks.len() {
            let mut successors = Vec::new();
            let last = blocks[at].instructions.last().copied().filter(|i| is_transfer(i));
            match last {
                Some(i) if i.opcode == "bra" => successors.push(target(&branch_target(i)?)),
                Some(i) if i.opcode == "brx" => successors.extend(branch_table(body, i)?.iter().map(target)),
                Some(_) => successors.push(exit),
                None => {}
            }
            if last.is_none_or(|i| i.predicate.is_some()) {
                successors.push(at + 1);
            }
            blocks[at].successors = successors;
        }
        Ok(Self { blocks, at_label })
    }

    /// The index that stands for leaving the function.
    pub fn exit(&self) -> usize {
        self.blocks.len()
    }

    /// For each block, the blocks that can be reached from it by one or more edges.
    pub fn reach(&self) -> Vec<Vec<bool>> {
        let n = self.blocks.len();
        (0..n)
            .map(|from| {
                let mut seen = vec![false; n + 1];
                let mut queue = self.blocks[from].successors.clone();
                while let Some(at) = queue.pop() {
                    if !std::mem::replace(&mut seen[at], true) && at < n {
                        queue.extend(&self.blocks[at].successors);
                    }
                }
                seen
            })
            .collect()
    }

    /// The blocks between a branch and the point where its arms meet again: reached from a successor of `from` without
    /// passing its nearest common post-dominator.
    pub fn influenced(&self, from: usize, post: &[Vec<bool>]) -> Vec<usize> {
        let n = self.blocks.len();
        let mut seen = vec![false; n + 1];
        let mut queue = self.blocks[from].successors.clone();
        let mut found = Vec::new();
        while let Some(at) = queue.pop() {
            if at >= n || (post[from][at] && at != from) || std::mem::replace(&mut seen[at], true) {
                continue;
            }
            found.push(at);
            queue.extend(&self.blocks[at].successors);
        }
        found
    }

    /// `post[a][b]`: every way from `a` out of the function passes `b`.
    pub fn post_dominators(&self) -> Vec<Vec<bool>> {
        let n = self.blocks.len();
        let mut post = vec![vec![true; n + 1]; n + 1];
        post[n] = vec![false; n + 1];
        post[n][n] = true;
        let mut changed = true;
        while changed {
            changed = false;
            for at in (0..n).rev() {
                let mut next = vec![true; n + 1];
                for &s in &self.blocks[at].successors {
                    next.iter_mut().zip(&post[s]).for_each(|(x, y)| *x &= *y);
                }
                next[at] = true;
                if next != post[at] {
                    post[at] = next;
                    changed = true;
                }
            }
        }
        post
    }
}
