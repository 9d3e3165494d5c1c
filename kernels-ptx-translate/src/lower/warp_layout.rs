//! Chooses how CUDA's 32-lane warps lie on 64-lane waves.
//!
//! Paired is the default. It is wrong where the two warps of a wave must move independently: a barrier that they reach
//! under different control flow (the wave would arrive twice), barriers of some of the warps, and a warp that spins on
//! what the other one is to write. Then the kernel is Solo: one warp a wave, at most 512 threads.

use std::collections::{HashMap, HashSet};

use super::flow::{Flow, is_transfer};
use super::is_indirect_call;
use crate::protocol::TranslateError;
use crate::ptx::ast::{Address, AddressBase, FuncId, Instruction, Module, Operand, Parameter, RegId, Symbol};

/// What a kernel asks of the layout.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Demands {
    /// The two warps of a wave would break its barriers.
    pub barriers: bool,
    /// Barriers of a part of the block.
    pub named_barriers: bool,
    /// Barriers that need cells in LDS: those, and reductions.
    pub cells: bool,
    /// A loop waits for another thread.
    pub spins: bool,
}

fn is_barrier(i: &Instruction<'_>) -> bool {
    matches!(i.opcode, "bar" | "barrier") && !i.has("warp") && !i.has("cluster")
}

/// A barrier of an explicit number of threads, or one that only arrives.
fn is_named(i: &Instruction<'_>) -> bool {
    let counted = if i.has("red") {
        i.operands.len() > 3
    } else {
        i.operands.len() > 1
    };
    is_barrier(i) && (counted || i.has("arrive"))
}

/// A load that another thread may be expected to change.
fn is_watched_load(i: &Instruction<'_>) -> bool {
    match i.opcode {
        "ld" => ["volatile", "relaxed", "acquire", "mmio"].iter().any(|m| i.has(m)) || i.has("cv"),
        "atom" => true,
        _ => false,
    }
}

/// Registers read by an instruction, guard included; for `st`, `red` and the like all operands.
pub fn reads(i: &Instruction<'_>) -> Vec<RegId> {
    let mut found = Vec::new();
    found.extend(i.predicate.map(|p| p.register));
    let skip = usize::from(has_destination(i));
    i.operands.iter().skip(skip).for_each(|o| registers(o, &mut found));
    if let Some(call) = &i.call {
        registers(&call.callee, &mut found);
        call.arguments.iter().for_each(|o| registers(o, &mut found));
    }
    found
}

/// Registers written by an instruction.
pub fn writes(i: &Instruction<'_>) -> Vec<RegId> {
    let mut found = Vec::new();
    if has_destination(i) {
        i.operands.iter().take(1).for_each(|o| registers(o, &mut found));
    }
    if let Some(call) = &i.call {
        call.returns.iter().for_each(|o| registers(o, &mut found));
    }
    found
}

fn has_destination(i: &Instruction<'_>) -> bool {
    match i.opcode {
        "st" | "red" | "bra" | "brx" | "call" | "ret" | "exit" | "trap" | "membar" | "fence" | "prefetch"
        | "prefetchu" | "nanosleep" | "applypriority" | "discard" | "cp" | "stmatrix" | "multimem" | "setmaxnreg" => {
            false
        }
        "bar" | "barrier" => i.has("red"),
        "mbarrier" => !["init", "inval"].iter().any(|m| i.has(m)),
        _ => !matches!(i.operands.first(), Some(Operand::Address(_))),
    }
}

fn registers(operand: &Operand<'_>, found: &mut Vec<RegId>) {
    match operand {
        Operand::Register(r) | Operand::Not(r) | Operand::Negate(r) | Operand::Part(r, _) => found.push(*r),
        Operand::Address(Address {
            base: AddressBase::Register(r),
            ..
        }) => found.push(*r),
        Operand::Tuple(list) | Operand::Vector(list) => list.iter().for_each(|o| registers(o, found)),
        Operand::Pair(a, b) => {
            registers(a, found);
            registers(b, found);
        }
        _ => {}
    }
}

/// Whether what an instruction writes may differ from one warp to another even if its operands do not.
fn varies(i: &Instruction<'_>) -> bool {
    let special = i.operands.iter().any(|o| match o {
        Operand::Special(name, _) => !matches!(
            *name,
            "%ntid" | "%nctaid" | "%ctaid" | "%gridid" | "%dynamic_smem_size" | "%total_smem_size"
        ),
        _ => false,
    });
    special
        || is_watched_load(i)
        || i.has("local")
        || matches!(
            i.opcode,
            "shfl" | "vote" | "match" | "redux" | "activemask" | "elect" | "call" | "tex" | "tld4" | "mbarrier"
        )
}

/// Functions of `functions` that hold an instruction of a kind, or call one that does.
fn holding(
    module: &Module<'_>,
    functions: &[FuncId],
    kind: fn(&Instruction<'_>) -> bool,
) -> Result<HashSet<FuncId>, TranslateError> {
    let mut found = HashSet::new();
    loop {
        let before = found.len();
        for &id in functions {
            let Some(body) = &module.function(id).body else {
                continue;
            };
            let flow = Flow::of(body)?;
            let mut all = flow.blocks.iter().flat_map(|b| &b.instructions);
            if all.any(|i| kind(i) || callee(i).is_some_and(|f| found.contains(&f))) {
                found.insert(id);
            }
        }
        if found.len() == before {
            return Ok(found);
        }
    }
}

fn is_param_load(i: &Instruction<'_>) -> bool {
    i.opcode == "ld" && i.modifiers.iter().any(|m| m.starts_with("param"))
}

fn callee(i: &Instruction<'_>) -> Option<FuncId> {
    match i.call.as_deref()?.callee {
        Operand::Symbol(Symbol::Function(id), _) => Some(id),
        _ => None,
    }
}

/// The branches of each function, by block, on which a thread waits for others.
pub type Waits = HashMap<FuncId, HashSet<usize>>;

/// What the kernel `functions[0]` and the functions it reaches ask for, and where they wait. Indirect calls reach those of
/// `address_taken`.
pub fn demands(
    module: &Module<'_>,
    functions: &[FuncId],
    address_taken: &[FuncId],
) -> Result<(Demands, Waits), TranslateError> {
    let barriers = holding(module, functions, is_barrier)?;
    let may_reach = |kind: &HashSet<FuncId>| {
        let mut reached = address_taken.iter().map(|&f| module.function(f).alias.unwrap_or(f));
        reached.any(|f| kind.contains(&f))
    };
    let calls_may_stop = may_reach(&barriers);
    let watching = holding(module, functions, is_watched_load)?;
    let calls_may_watch = may_reach(&watching);
    let mut demands = Demands::default();
    let mut waiting = Waits::new();
    for &id in functions {
        let Some(body) = &module.function(id).body else {
            continue;
        };
        let flow = Flow::of(body)?;
        let stops = |i: &Instruction<'_>| is_barrier(i) || callee(i).is_some_and(|f| barriers.contains(&f));
        for i in flow.blocks.iter().flat_map(|b| &b.instructions) {
            demands.named_barriers |= is_named(i);
            demands.cells |= is_named(i) || (is_barrier(i) && i.has("red"));
            // Lanes that go to different functions meet a barrier in different places.
            demands.barriers |= calls_may_stop && is_indirect_call(i);
        }
        let watched = |i: &Instruction<'_>| {
            is_watched_load(i)
                || callee(i).is_some_and(|f| watching.contains(&f))
                || calls_may_watch && is_indirect_call(i)
        };
        let branches = waits(&flow, &stops, &watched);
        demands.spins |= !branches.is_empty();
        waiting.insert(id, branches);
        if !demands.barriers && barriers.contains(&id) {
            // A kernel's own parameters are the same for all warps; a function's, and what a call returned, need not be.
            let given = if id == functions[0] {
                &module.function(id).params[..]
            } else {
                &[]
            };
            let uniform = |i: &Instruction<'_>| match i.operands.get(1) {
                Some(Operand::Address(a)) => match a.base {
                    AddressBase::Symbol(Symbol::Variable(v)) => given.contains(&Parameter::Variable(v)),
                    _ => !given.is_empty(),
                },
                _ => false,
            };
            demands.barriers = divergent_barrier(&flow, &stops, &uniform);
        }
    }
    Ok((demands, waiting))
}

/// A barrier under control flow that warps may take differently. `uniform`: of a load from parameter space, whether all
/// warps find the same.
fn divergent_barrier(
    flow: &Flow<'_, '_>,
    stops: &dyn Fn(&Instruction<'_>) -> bool,
    uniform: &dyn Fn(&Instruction<'_>) -> bool,
) -> bool {
    let post = flow.post_dominators();
    let n = flow.blocks.len();
    let has: Vec<bool> = flow
        .blocks
        .iter()
        .map(|b| b.instructions.iter().any(|i| stops(i)))
        .collect();
    let leads = flow.leads_to(&has);
    let mut varying: HashSet<RegId> = HashSet::new();
    let mut split = vec![false; n];
    loop {
        let before = (varying.len(), split.iter().filter(|s| **s).count());
        for (at, block) in flow.blocks.iter().enumerate() {
            for i in &block.instructions {
                let param = is_param_load(i) && !uniform(i);
                if split[at] || param || varies(i) || reads(i).iter().any(|r| varying.contains(r)) {
                    varying.extend(writes(i));
                }
            }
            let Some(last) = block.instructions.last().filter(|_| block.successors.len() > 1) else {
                continue;
            };
            // An arm that meets no more barriers is a way out: the lanes that take it are simply gone.
            let branches = last.predicate.is_some() || last.opcode == "brx";
            if branches && reads(last).iter().any(|r| varying.contains(r)) && block.successors.iter().all(|&s| leads[s])
            {
                flow.influenced(at, &post).into_iter().for_each(|b| split[b] = true);
            }
        }
        if before == (varying.len(), split.iter().filter(|s| **s).count()) {
            break;
        }
    }
    flow.blocks.iter().enumerate().any(|(at, block)| {
        block
            .instructions
            .iter()
            .any(|i| stops(i) && (split[at] || i.predicate.is_some_and(|p| varying.contains(&p.register))))
    })
}

/// The branches, by block, that leave a loop without a barrier once another thread has changed what the loop loads.
fn waits(
    flow: &Flow<'_, '_>,
    stops: &dyn Fn(&Instruction<'_>) -> bool,
    watched_load: &dyn Fn(&Instruction<'_>) -> bool,
) -> HashSet<usize> {
    let mut found = HashSet::new();
    if !flow
        .blocks
        .iter()
        .flat_map(|b| &b.instructions)
        .any(|i| watched_load(i))
    {
        return found;
    }
    let post = flow.post_dominators();
    for cycle in flow.cycles() {
        let inside: Vec<&Instruction<'_>> = cycle
            .iter()
            .flat_map(|&b| flow.blocks[b].instructions.iter().copied())
            .collect();
        if inside.iter().any(|i| stops(i)) {
            continue;
        }
        let mut watched: HashSet<RegId> = HashSet::new();
        for i in inside.iter().filter(|i| watched_load(i) && !is_update(i, &inside)) {
            watched.extend(writes(i));
            if i.call.is_some() {
                // What it returns is in parameter space.
                let loads = inside.iter().filter(|i| is_param_load(i));
                watched.extend(loads.flat_map(|i| writes(i)));
            }
        }
        let leaves = |b: usize| {
            flow.blocks[b]
                .successors
                .iter()
                .any(|s| cycle.binary_search(s).is_err())
        };
        let depends = |b: usize, watched: &HashSet<RegId>| {
            let last = flow.blocks[b].instructions.last();
            last.is_some_and(|i| is_transfer(i) && reads(i).iter().any(|r| watched.contains(r)))
        };
        loop {
            let before = watched.len();
            for i in &inside {
                if reads(i).iter().any(|r| watched.contains(r)) {
                    watched.extend(writes(i));
                }
            }
            // A flag set on one arm only, as in "if (got the lock) done = true", tells which arm was taken.
            for &b in cycle.iter().filter(|&&b| !leaves(b)) {
                if depends(b, &watched) {
                    let mut arms = flow.influenced(b, &post);
                    arms.retain(|arm| cycle.binary_search(arm).is_ok());
                    let inside_arms = arms.iter().flat_map(|&arm| &flow.blocks[arm].instructions);
                    watched.extend(inside_arms.flat_map(|i| writes(i)));
                }
            }
            if watched.len() == before {
                break;
            }
        }
        found.extend(cycle.iter().filter(|&&b| leaves(b) && depends(b, &watched)));
    }
    found
}

/// A compare-and-swap that retries with what it found: some lane always succeeds, nobody waits for anybody.
fn is_update(i: &Instruction<'_>, inside: &[&Instruction<'_>]) -> bool {
    if i.opcode != "atom" || !i.has("cas") {
        return false;
    }
    let (Some(expected), found) = (i.operands.get(2), writes(i)) else {
        return false;
    };
    let mut registers_expected = Vec::new();
    registers(expected, &mut registers_expected);
    let mut derived: HashSet<RegId> = found.into_iter().collect();
    loop {
        let before = derived.len();
        for other in inside {
            if reads(other).iter().any(|r| derived.contains(r)) {
                derived.extend(writes(other));
            }
        }
        if derived.len() == before {
            break;
        }
    }
    registers_expected.iter().any(|r| derived.contains(r))
}
