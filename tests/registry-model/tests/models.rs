//! Look-ups in the registry while it changes: every interleaving with at most three preemptions a run, and every value that
//! the memory model lets a load see.
//!
//! Each model is a short program of two threads. The properties: a reader gets an entry that some thread entered, whole, and that
//! holds the address, or of a glance what is true of it; memory that lives all the time is always found; what a thread itself has done, or was told of, it sees; ids
//! of one address only grow; of several claims one succeeds.
//!
//! That the models can fail is part of the test: [`what_is_too_weak_is_noticed`] runs them with each class of orderings weakened
//! (`registry_model::checked::Weakness`), and each must be caught by some model. Steps in a wrong order were tried by hand in the
//! registry's files, each caught by a model: `Registry::remove` giving the block
//! back for reuse before `Block::kill`; `Block::fill` making the sequence number even before the last field is written; a second block
//! of a page replacing the first while the shared page is still empty; `Block::claim` storing the number without comparing it.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use loom::thread;
use registry_model::checked::{self, Weakness};
use registry_model::device::Context;
use registry_model::registry::{Description, Entry, Glance, Kind, Registry, Slot};

const PAGE: u64 = 4096;

/// Of a block that gets one of two ids.
const ANY_ID: u64 = 1000;

static CONTEXT: Context = Context(5);
/// That of blocks of the host in models of glances.
static OTHER_CONTEXT: Context = Context(31);

/// The block that gets this id; its flags and `more` follow from all the rest, so that fields which do not belong together show.
fn block(base: u64, size: u64, id: u64) -> Description {
    Description {
        flags: (size * 7 + id) as u32,
        more: base * 3 + size * 5 + id,
        ..Description::device(Kind::Device, base, size, &CONTEXT)
    }
}

/// Fails on an entry that is not one of `entered`, or that does not hold the address.
fn check(found: Option<Entry>, address: u64, entered: &[Description]) -> Option<u64> {
    let entry = found?;
    assert!(entry.contains(address), "{entry:?} does not hold {address:#x}");
    let same = |made: &&Description| {
        (made.base, made.size, made.device_base, made.flags, made.more, made.kind)
            == (
                entry.base,
                entry.size,
                entry.device_base,
                entry.flags,
                entry.more,
                entry.kind,
            )
    };
    assert!(entered.iter().any(|made| same(&made)), "{entry:?} was never entered");
    let id = u64::from(entry.flags) - entry.size * 7;
    assert!(entry.id == id || id == ANY_ID, "{entry:?} has another's id");
    Some(entry.id)
}

/// What one model does with a new registry, from its first thread.
type Model = fn(&Arc<Registry>);

fn beside(registry: &Arc<Registry>, f: impl FnOnce(&Registry) + 'static) -> thread::JoinHandle<()> {
    let registry = Arc::clone(registry);
    thread::spawn(move || f(&registry))
}

/// A block appears: nobody sees half of it, and levels of the table that are made for it are whole.
fn insert(registry: &Arc<Registry>) {
    let new = block(PAGE, 100, 1);
    let writer = beside(registry, move |registry| {
        registry.insert(new).unwrap();
    });
    check(registry.lookup(PAGE + 50), PAGE + 50, &[new]);
    writer.join().unwrap();
    assert!(check(registry.lookup(PAGE + 50), PAGE + 50, &[new]).is_some());
}

/// A block goes, and its storage describes another one elsewhere.
fn reuse_of_storage(registry: &Arc<Registry>) {
    let (old, new) = (block(0, 100, 1), block(PAGE, 200, 2));
    let id = registry.insert(old).unwrap().id;
    let writer = beside(registry, move |registry| {
        assert!(registry.remove(old.base, id).is_some());
        registry.insert(new).unwrap();
    });
    check(registry.lookup(50), 50, &[old]);
    check(registry.lookup(PAGE + 150), PAGE + 150, &[new]);
    writer.join().unwrap();
    assert!(registry.lookup(50).is_none());
}

/// A block goes, and another one comes at its address: a reader that saw the second never sees the first again.
fn reuse_of_address(registry: &Arc<Registry>) {
    let (old, new) = (block(0, 100, 1), block(0, 200, 2));
    let id = registry.insert(old).unwrap().id;
    let writer = beside(registry, move |registry| {
        assert!(registry.remove(old.base, id).is_some());
        registry.insert(new).unwrap();
    });
    let first = check(registry.lookup(50), 50, &[old, new]);
    let second = check(registry.lookup(50), 50, &[old, new]);
    if let (Some(first), Some(second)) = (first, second) {
        assert!(first <= second, "id {second} after {first}");
    }
    writer.join().unwrap();
    assert!(check(registry.lookup(50), 50, &[new]).is_some_and(|now| now > id));
}

/// A second block comes to a page and goes again: the first one is found throughout.
fn shared_page(registry: &Arc<Registry>) {
    let (first, second) = (block(0, 100, 1), block(1000, 200, 2));
    registry.insert(first).unwrap();
    let writer = beside(registry, move |registry| {
        let id = registry.insert(second).unwrap().id;
        assert!(registry.remove(second.base, id).is_some());
    });
    assert!(check(registry.lookup(50), 50, &[first]).is_some());
    check(registry.lookup(1100), 1100, &[second]);
    writer.join().unwrap();
}

/// A third block comes to a page that two share already.
fn third_of_a_page(registry: &Arc<Registry>) {
    let (first, second, third) = (block(0, 100, 1), block(1000, 200, 2), block(2000, 300, 3));
    registry.insert(first).unwrap();
    registry.insert(second).unwrap();
    let writer = beside(registry, move |registry| {
        registry.insert(third).unwrap();
    });
    check(registry.lookup(2100), 2100, &[third]);
    writer.join().unwrap();
    assert!(check(registry.lookup(2100), 2100, &[third]).is_some());
}

/// More blocks come to a page than one list of them holds.
fn many_on_a_page(registry: &Arc<Registry>) {
    let on_page = |n: u64| block(n * 100, 50, n + 1);
    for n in 0..6 {
        registry.insert(on_page(n)).unwrap();
    }
    let writer = beside(registry, move |registry| {
        registry.insert(on_page(6)).unwrap();
    });
    check(registry.lookup(620), 620, &[on_page(6)]);
    writer.join().unwrap();
    assert!(check(registry.lookup(620), 620, &[on_page(6)]).is_some());
}

/// A large block goes, and a small one comes where it was, for which the table gets more levels: a neighbour is found throughout.
fn growth(registry: &Arc<Registry>) {
    let (neighbour, large, small) = (block(0, 100, 1), block(4 * PAGE, 4 * PAGE, 2), block(5 * PAGE, 100, 3));
    registry.insert(neighbour).unwrap();
    let id = registry.insert(large).unwrap().id;
    let writer = beside(registry, move |registry| {
        assert!(registry.remove(large.base, id).is_some());
        registry.insert(small).unwrap();
    });
    check(registry.lookup(5 * PAGE + 50), 5 * PAGE + 50, &[large, small]);
    assert!(check(registry.lookup(50), 50, &[neighbour]).is_some());
    writer.join().unwrap();
    assert!(registry.lookup(7 * PAGE).is_none());
    assert!(check(registry.lookup(5 * PAGE + 50), 5 * PAGE + 50, &[small]).is_some());
}

/// A block over a run of pages goes, of which one entry stands for all, and a small one comes into the run: a neighbour on the next
/// page is found throughout.
fn run_of_pages(registry: &Arc<Registry>) {
    let (neighbour, large, small) = (block(2 * PAGE, 100, 1), block(0, 2 * PAGE, 2), block(PAGE, 100, 3));
    registry.insert(neighbour).unwrap();
    let id = registry.insert(large).unwrap().id;
    let writer = beside(registry, move |registry| {
        assert!(registry.remove(large.base, id).is_some());
        registry.insert(small).unwrap();
    });
    check(registry.lookup(PAGE + 50), PAGE + 50, &[large, small]);
    assert!(check(registry.lookup(2 * PAGE), 2 * PAGE, &[neighbour]).is_some());
    writer.join().unwrap();
    assert!(registry.lookup(0).is_none());
    assert!(check(registry.lookup(PAGE + 50), PAGE + 50, &[small]).is_some());
}

/// Memory with two addresses goes: neither gives half of it.
fn two_addresses(registry: &Arc<Registry>) {
    let registered = Description {
        kind: Kind::Registered,
        device_base: 4 * PAGE,
        ..block(100, 50, 1)
    };
    let id = registry.insert(registered).unwrap().id;
    let writer = beside(registry, move |registry| {
        assert!(registry.remove(registered.base, id).is_some());
    });
    check(registry.lookup(4 * PAGE), 4 * PAGE, &[registered]);
    check(registry.lookup(100), 100, &[registered]);
    writer.join().unwrap();
    assert!(registry.lookup(4 * PAGE).is_none() && registry.lookup(100).is_none());
}

fn piece(size: u64, id: u64) -> Description {
    Description {
        kind: Kind::Pool,
        ..block(PAGE, size, id)
    }
}

fn claim(registry: &Registry) -> Option<Slot> {
    let (entry, block) = registry.claim(Kind::Pool, PAGE)?;
    Some(Slot::of_claimed(block, entry.base, PAGE))
}

/// A pool's piece is freed and given out again, without the registry's lock, while somebody asks.
fn piece_of_a_pool(registry: &Arc<Registry>) {
    let (old, new) = (piece(100, 1), piece(200, 2));
    let slot = registry.reserve(PAGE, PAGE, &CONTEXT).unwrap();
    slot.describe(&old, registry.next_id());
    let writer = beside(registry, move |registry| {
        let id = registry.next_id();
        claim(registry).unwrap().describe(&new, id);
    });
    check(registry.lookup(PAGE + 50), PAGE + 50, &[old, new]);
    writer.join().unwrap();
    assert!(check(registry.lookup(PAGE + 50), PAGE + 50, &[new]).is_some());
}

/// Two threads free a pool's piece: one of them does, and may give it out again; only then the other may free that.
fn two_claims(registry: &Arc<Registry>) {
    let (old, new) = (piece(100, 1), piece(200, 2));
    let slot = registry.reserve(PAGE, PAGE, &CONTEXT).unwrap();
    slot.describe(&old, registry.next_id());
    let other = {
        let registry = Arc::clone(registry);
        thread::spawn(move || {
            let (entry, block) = registry.claim(Kind::Pool, PAGE)?;
            Slot::of_claimed(block, entry.base, PAGE).describe(&new, registry.next_id());
            Some(entry.id)
        })
    };
    let mine = check(
        registry.claim(Kind::Pool, PAGE).map(|(entry, _)| entry),
        PAGE,
        &[old, new],
    );
    let others = other.join().unwrap();
    assert!(mine.is_none() || mine != others, "both got the same");
    // What was given out again is there unless it was claimed, too.
    let left = check(registry.lookup(PAGE), PAGE, &[new]);
    assert_eq!(left.is_some(), others.is_some() && mine.is_none());
}

/// Both of two threads enter blocks, one on the other's page.
fn two_writers(registry: &Arc<Registry>) {
    let (mine, yours) = (block(0, 100, ANY_ID), block(1000, 100, ANY_ID));
    let writer = beside(registry, move |registry| {
        registry.insert(yours).unwrap();
    });
    let id = registry.insert(mine).unwrap().id;
    assert!(check(registry.lookup(50), 50, &[mine]).is_some());
    check(registry.lookup(1050), 1050, &[yours]);
    assert!(registry.remove(mine.base, id).is_some());
    writer.join().unwrap();
    assert!(check(registry.lookup(1050), 1050, &[yours]).is_some());
    assert!(registry.lookup(50).is_none());
}

/// A thread that was told of one block's end and of another one finds it so.
fn told(registry: &Arc<Registry>) {
    let (old, new) = (block(PAGE, 100, 1), block(2 * PAGE, 100, 2));
    let id = registry.insert(old).unwrap().id;
    let word = Arc::new(loom::sync::atomic::AtomicBool::new(false));
    let teller = {
        let (registry, word) = (Arc::clone(registry), Arc::clone(&word));
        thread::spawn(move || {
            assert!(registry.remove(old.base, id).is_some());
            registry.insert(new).unwrap();
            word.store(true, Ordering::Release);
        })
    };
    let told = word.load(Ordering::Acquire);
    let gone = check(registry.lookup(PAGE), PAGE, &[old]).is_none();
    let there = check(registry.lookup(2 * PAGE), 2 * PAGE, &[new]).is_some();
    assert!(!told || (gone && there));
    teller.join().unwrap();
}

fn on_host(base: u64, size: u64, id: u64) -> Description {
    Description {
        kind: Kind::Host,
        context: &OTHER_CONTEXT,
        ..block(base, size, id)
    }
}

/// Which of `entered` a glance tells of; 0 is none of them, `None` that a whole look-up is needed, which finds one.
fn glance(registry: &Registry, address: u64, entered: &[Description]) -> Option<usize> {
    match registry.glance(address) {
        Glance::Unknown => Some(0),
        Glance::Plain { memory, device } => {
            let says = |made: &Description| {
                address - made.base < made.size && (memory, device) == (made.kind.memory_type(), made.context.ordinal())
            };
            let which = entered.iter().position(says);
            assert!(
                which.is_some(),
                "{address:#x} is no memory of type {memory} on {device}"
            );
            which.map(|which| which + 1)
        }
        Glance::More => None,
    }
}

/// A block comes: a glance tells of it or does not, and never of what lies behind its end.
fn glance_at_new(registry: &Arc<Registry>) {
    let new = block(PAGE, PAGE + 100, 1);
    let writer = beside(registry, move |registry| {
        registry.insert(new).unwrap();
    });
    for address in [PAGE + 50, 2 * PAGE + 50] {
        assert!(glance(registry, address, &[new]).is_some());
    }
    assert_eq!(glance(registry, 2 * PAGE + 100, &[new]), Some(0));
    writer.join().unwrap();
    assert_eq!(glance(registry, 2 * PAGE + 99, &[new]), Some(1));
}

/// A block goes, and one of another type, size and device comes where it was: a glance never mixes the two, nor goes back.
fn glance_at_replaced(registry: &Arc<Registry>) {
    let (old, new) = (block(0, 2 * PAGE, 1), on_host(0, 100, 2));
    let id = registry.insert(old).unwrap().id;
    let writer = beside(registry, move |registry| {
        assert!(registry.remove(old.base, id).is_some());
        registry.insert(new).unwrap();
    });
    let first = glance(registry, 50, &[old, new]);
    let second = glance(registry, 50, &[old, new]);
    assert!(first != Some(2) || second == Some(2), "{second:?} after {first:?}");
    glance(registry, PAGE + 50, &[old]);
    writer.join().unwrap();
    assert_eq!(glance(registry, 50, &[old, new]), Some(2));
    assert_eq!(glance(registry, PAGE + 50, &[old]), Some(0));
}

/// A second block comes to a page: a glance tells of the first, or that the page must be looked up, which finds it.
fn glance_at_shared_page(registry: &Arc<Registry>) {
    let (first, second) = (block(0, 100, 1), on_host(1000, 200, 2));
    registry.insert(first).unwrap();
    let writer = beside(registry, move |registry| {
        registry.insert(second).unwrap();
    });
    if glance(registry, 50, &[first]) != Some(1) {
        assert_eq!(registry.glance(50), Glance::More);
        assert!(check(registry.lookup(50), 50, &[first]).is_some());
    }
    // What does not begin with its page is never told of without a look at the block.
    assert!(matches!(glance(registry, 1100, &[]), None | Some(0)));
    writer.join().unwrap();
    assert_eq!(registry.glance(1100), Glance::More);
}

/// A thread that was told of one block's end and of another one glances at them so.
fn told_and_glances(registry: &Arc<Registry>) {
    let (old, new) = (block(0, 100, 1), on_host(3 * PAGE, 100, 2));
    let id = registry.insert(old).unwrap().id;
    let word = Arc::new(loom::sync::atomic::AtomicBool::new(false));
    let teller = {
        let (registry, word) = (Arc::clone(registry), Arc::clone(&word));
        thread::spawn(move || {
            assert!(registry.remove(old.base, id).is_some());
            registry.insert(new).unwrap();
            word.store(true, Ordering::Release);
        })
    };
    let told = word.load(Ordering::Acquire);
    let gone = glance(registry, 0, &[old]) == Some(0);
    let there = glance(registry, 3 * PAGE, &[new]) == Some(1);
    assert!(!told || (gone && there));
    teller.join().unwrap();
}

/// The models, each with the most preemptions of one run: where each thread takes many steps, more would take minutes. The quick ones
/// come first, so that what is too weak is noticed soon.
const MODELS: [(&str, usize, Model); 17] = [
    ("insert", 3, insert),
    ("glance at a new block", 2, glance_at_new),
    ("glance at a replaced block", 2, glance_at_replaced),
    ("glance at a shared page", 2, glance_at_shared_page),
    ("told, and glances", 2, told_and_glances),
    ("third of a page", 2, third_of_a_page),
    ("many on a page", 1, many_on_a_page),
    ("two addresses", 2, two_addresses),
    ("two writers", 3, two_writers),
    ("told", 1, told),
    ("piece of a pool", 2, piece_of_a_pool),
    ("two claims", 2, two_claims),
    ("reuse of an address", 1, reuse_of_address),
    ("reuse of storage", 2, reuse_of_storage),
    ("shared page", 2, shared_page),
    ("growth", 1, growth),
    ("run of pages", 2, run_of_pages),
];

/// Runs a model in all its interleavings; the number of them, or the first failure.
fn run(model: Model, preemptions: usize) -> Result<usize, String> {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(preemptions);
    builder.max_branches = 10_000;
    let runs = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&runs);
    let outcome = catch_unwind(AssertUnwindSafe(|| {
        builder.check(move || {
            counted.fetch_add(1, Ordering::Relaxed);
            model(&Arc::new(Registry::new()));
        });
    }));
    match outcome {
        Ok(()) => Ok(runs.load(Ordering::Relaxed)),
        Err(panic) => Err(panic
            .downcast_ref::<String>()
            .cloned()
            .or_else(|| panic.downcast_ref::<&str>().map(|text| (*text).to_owned()))
            .unwrap_or_default()),
    }
}

#[test]
fn look_ups_are_right_in_every_interleaving() {
    for (name, preemptions, model) in MODELS {
        let start = Instant::now();
        let runs = run(model, preemptions).unwrap_or_else(|failure| panic!("{name}: {failure}"));
        println!("{name}: {runs} interleavings, {:.1} s", start.elapsed().as_secs_f64());
        assert!(runs > 1, "{name}: the threads never met");
    }
}

#[test]
fn what_is_too_weak_is_noticed() {
    let missed: Vec<Weakness> = Weakness::ALL
        .into_iter()
        .filter(|&weakness| {
            let caught = MODELS.into_iter().find_map(|(name, preemptions, model)| {
                checked::with(weakness, || run(model, preemptions.min(2)))
                    .err()
                    .map(|failure| (name, failure))
            });
            println!("{weakness:?}: {caught:?}");
            caught.is_none()
        })
        .collect();
    assert!(missed.is_empty(), "no model notices {missed:?}");
}
