//! The registry against a naive model, and under threads.

use std::sync::atomic::{AtomicBool, AtomicUsize};

use super::*;
use crate::device::Context;

/// Registries are large; each test leaks one.
fn registry() -> &'static Registry {
    // In the zeroed heap, not on the stack: the roots alone are 1 MiB.
    Box::leak(Box::new(Registry::new()))
}

fn device(base: u64, size: u64) -> Description {
    Description::device(Kind::Device, base, size, Context::for_tests())
}

/// xorshift: repeatable, and enough here.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound
    }
}

#[test]
fn ends_are_exact() {
    let registry = registry();
    let base = 0x7f00_0000_1000;
    let entry = registry.insert(device(base, 1000)).unwrap();
    for (offset, inside) in [
        (0, true),
        (1, true),
        (999, true),
        (1000, false),
        (1023, false),
        (4095, false),
    ] {
        assert_eq!(registry.lookup(base + offset).is_some(), inside, "offset {offset}");
    }
    assert!(registry.lookup(base - 1).is_none());
    assert_eq!(registry.lookup(base + 500).unwrap().id, entry.id);
    assert_eq!(registry.remove(base, entry.id).unwrap().size, 1000);
    assert!(registry.lookup(base).is_none());
    assert!(registry.remove(base, entry.id).is_none(), "a second free finds nothing");
}

#[test]
fn addresses_no_program_has_are_unknown() {
    let registry = registry();
    for address in [0, 1, 1 << 47, 0x8000_0000_0000_1000, u64::MAX] {
        assert!(registry.lookup(address).is_none(), "{address:#x}");
    }
    for (base, size) in [(0x1000, 0), (u64::MAX, 1), ((1 << 47) - 10, 11), (0x1000, u64::MAX)] {
        assert_eq!(
            registry.insert(device(base, size)).err(),
            Some(Conflict::NotARange),
            "{base:#x}+{size:#x}"
        );
    }
}

#[test]
fn ids_start_at_one_and_are_never_given_twice() {
    let registry = registry();
    let mut last = 0;
    for _ in 0..100 {
        let entry = registry.insert(device(0x10_0000, 256)).unwrap();
        assert_eq!(entry.id, last + 1);
        last = entry.id;
        registry.remove(entry.base, entry.id);
    }
}

#[test]
fn blocks_share_pages_and_do_not_overlap() {
    let registry = registry();
    let page = 0x5555_0000_0000;
    let sizes = [
        (0, 100),
        (100, 1),
        (101, 99),
        (2000, 500),
        (4000, 5000),
        (9000, 1),
        (9001, 1),
        (9002, 1),
        (9003, 3),
    ];
    let entries: Vec<_> = sizes
        .map(|(at, size)| registry.insert(device(page + at, size)).unwrap())
        .into();
    for (base, size) in [
        (page, 1),
        (page + 50, 10),
        (page + 199, 2),
        (page + 3999, 2),
        (page + 8000, 1),
        (page, 20_000),
    ] {
        assert_eq!(
            registry.insert(device(base, size)).err(),
            Some(Conflict::Overlaps(Kind::Device)),
            "{base:#x}+{size}"
        );
    }
    for entry in &entries {
        assert_eq!(registry.lookup(entry.base).unwrap().id, entry.id);
        assert_eq!(registry.lookup(entry.base + entry.size - 1).unwrap().id, entry.id);
    }
    assert!(registry.lookup(page + 200).is_none());
    for entry in entries.iter().rev() {
        assert!(registry.remove(entry.base, entry.id).is_some());
        assert!(registry.lookup(entry.base).is_none());
    }
}

#[test]
fn registered_memory_answers_at_both_its_addresses() {
    let registry = registry();
    let (host, gpu) = (0x7fff_0000_0123, 0x2_0000_0123);
    let description = Description {
        kind: Kind::Registered,
        device_base: gpu,
        ..device(host, 5000)
    };
    let entry = registry.insert(description).unwrap();
    for offset in [0, 1, 4999] {
        for address in [host + offset, gpu + offset] {
            let found = registry.lookup(address).unwrap();
            assert_eq!((found.id, found.base), (entry.id, host));
            assert_eq!(found.device_address(address), gpu + offset);
            assert_eq!(found.host_address(address), host + offset);
            assert_eq!(found.bytes_left(address), 5000 - offset);
        }
    }
    assert!(registry.lookup(gpu + 5000).is_none());
    assert_eq!(registry.entries(|_| true).len(), 1);
    registry.remove(host, entry.id);
    assert!(registry.lookup(gpu).is_none() && registry.lookup(host).is_none());
}

#[test]
fn one_word_tells_of_plain_memory_and_of_nothing_else() {
    let registry = registry();
    let context = Context::for_tests();
    let base = 0x7f00_0000_0000;
    let kinds = [
        (Kind::Device, Some(2)),
        (Kind::Host, Some(1)),
        (Kind::Registered, Some(1)),
        (Kind::Imported, Some(2)),
        (Kind::Variable, Some(2)),
        (Kind::Managed, Some(3)),
        (Kind::Pool, None),
        (Kind::Mapping, None),
        (Kind::HostMapping, None),
        (Kind::Graph, Some(2)),
    ];
    // A page in part, a few pages, runs of 16, 2 MiB, 1 GiB; each also behind a page's first byte.
    for (kind, memory) in kinds {
        for size in [
            1u64,
            100,
            4096,
            5000,
            70_000,
            1 << 20,
            (2 << 20) + 5,
            (3 << 30) + 70_001,
        ] {
            for skip in [0, 64] {
                let description = Description {
                    kind,
                    ..device(base + skip, size)
                };
                let entry = registry.insert(description).unwrap();
                let plain = memory.map_or(Glance::More, |memory| Glance::Plain {
                    memory,
                    device: context.ordinal(),
                });
                for at in [0, 1.min(size - 1), size / 2, size - 1] {
                    let first_page = skip + at < 4096;
                    let expected = if skip > 0 && first_page { Glance::More } else { plain };
                    assert_eq!(
                        registry.glance(base + skip + at),
                        expected,
                        "{kind:?}, {size}+{skip}, byte {at}"
                    );
                }
                let behind = registry.glance(base + skip + size);
                assert!(
                    matches!(behind, Glance::Unknown | Glance::More),
                    "{kind:?}, {size}+{skip}"
                );
                assert!(registry.lookup(base + skip + size).is_none());
                registry.remove(entry.base, entry.id).unwrap();
                assert_eq!(registry.glance(base + skip), Glance::Unknown);
                assert_eq!(registry.glance(base + skip + size - 1), Glance::Unknown);
            }
        }
    }
    for special in [
        Description {
            kind: Kind::Registered,
            device_base: base - (1 << 40),
            ..device(base, 5000)
        },
        Description {
            kind: Kind::Imported,
            more: 7,
            ..device(base, 5000)
        },
    ] {
        let entry = registry.insert(special).unwrap();
        assert_eq!(registry.glance(base + 4500), Glance::More, "{special:?}");
        assert_eq!(registry.glance(special.device_base + 4500), Glance::More, "{special:?}");
        registry.remove(base, entry.id).unwrap();
    }
}

/// Random blocks of all sizes, dense enough that pages and spans are shared, against a list that is searched.
#[test]
fn it_agrees_with_a_list() {
    let registry = registry();
    let mut random = Random(0x9e37_79b9_7f4a_7c15);
    let mut model: Vec<Entry> = Vec::new();
    const AREA: u64 = 6 << 30;
    let start = 0x7f12_3456_7000;
    for step in 0..6000 {
        if random.below(3) > 0 {
            let size = 1 + match random.below(6) {
                0 => random.below(50),
                1 | 2 => random.below(20_000),
                3 => random.below(5 << 20),
                4 => (2 << 20) - 1 + random.below(3),
                _ => random.below(3 << 30),
            };
            let at = match random.below(3) {
                0 => random.below(AREA),
                1 => random.below(AREA) & !4095,
                // Next to something.
                _ => model.last().map_or(0, |entry| entry.base + entry.size - start),
            };
            let overlaps = model
                .iter()
                .any(|entry| start + at < entry.base + entry.size && entry.base < start + at + size);
            let description = Description {
                kind: [Kind::Device, Kind::Host, Kind::Managed, Kind::Pool][random.below(4) as usize],
                ..device(start + at, size)
            };
            let result = registry.insert(description);
            assert_eq!(result.is_err(), overlaps, "step {step}: {at:#x}+{size:#x}");
            model.extend(result);
        } else if !model.is_empty() {
            let entry = model.swap_remove(random.below(model.len() as u64) as usize);
            assert_eq!(
                registry.remove(entry.base, entry.id).map(|gone| gone.id),
                Some(entry.id),
                "step {step}"
            );
        }
        for _ in 0..4 {
            let address = match model.len() as u64 {
                0 => start + random.below(AREA),
                count => {
                    let entry = &model[random.below(count) as usize];
                    match random.below(4) {
                        0 => entry.base - 1,
                        1 => entry.base + entry.size,
                        2 => entry.base + random.below(entry.size),
                        _ => start + random.below(AREA),
                    }
                }
            };
            let expected = model.iter().find(|entry| entry.contains(address));
            assert_eq!(
                registry.lookup(address).map(|entry| entry.id),
                expected.map(|entry| entry.id),
                "step {step}: {address:#x}"
            );
            match registry.glance(address) {
                Glance::Unknown => assert!(expected.is_none(), "step {step}: {address:#x}"),
                Glance::Plain { memory, .. } => {
                    let kind = expected.map(|entry| entry.kind.memory_type());
                    assert_eq!(kind, Some(memory), "step {step}: {address:#x}");
                }
                Glance::More => {}
            }
        }
    }
    for entry in model {
        registry.remove(entry.base, entry.id);
        assert!(registry.lookup(entry.base).is_none());
    }
}

/// Threads allocate and free in their own areas, whose blocks reuse the same storage, while all look everywhere.
///
/// Each block's size follows from its base, so a reader that got half of one entry and half of another would notice. A block
/// that lives all the time must always be found.
#[test]
fn readers_never_see_half_an_entry() {
    const AREA: u64 = 64 << 20;
    let registry = registry();
    let start = 0x7e00_0000_0000;
    let size_of = |base: u64| 1 + (base.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40) % 100_000;
    let fixed = registry
        .insert(device(start - 4096, size_of(start - 4096).min(4096)))
        .unwrap();
    let stop = AtomicBool::new(false);
    let found = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for writer in 0..2u64 {
            let (stop, found) = (&stop, &found);
            scope.spawn(move || {
                let mut random = Random(writer + 1);
                let mut live: Vec<Entry> = Vec::new();
                let mut rounds = 0;
                // Until readers met blocks often enough, or for a few seconds at most.
                while rounds < 20_000 || (found.load(Ordering::Relaxed) < 1000 && rounds < 3_000_000) {
                    rounds += 1;
                    if live.len() < 50 && random.below(2) == 0 {
                        let base = start + writer * AREA + (random.below(AREA / 8) & !63);
                        live.extend(registry.insert(device(base, size_of(base))));
                    } else if !live.is_empty() {
                        let entry = live.swap_remove(random.below(live.len() as u64) as usize);
                        assert!(registry.remove(entry.base, entry.id).is_some());
                    }
                }
                stop.store(true, Ordering::Relaxed);
            });
        }
        for reader in 0..2u64 {
            let (stop, found) = (&stop, &found);
            scope.spawn(move || {
                let mut random = Random(reader + 100);
                while !stop.load(Ordering::Relaxed) {
                    assert_eq!(registry.lookup(fixed.base).map(|entry| entry.id), Some(fixed.id));
                    let address = start + random.below(2) * AREA + random.below(AREA / 8);
                    if let Some(entry) = registry.lookup(address) {
                        assert!(entry.contains(address));
                        assert_eq!(entry.size, size_of(entry.base));
                        assert!(entry.context == Context::for_tests());
                        found.fetch_add(1, Ordering::Relaxed);
                    }
                }
            });
        }
    });
    assert!(
        found.load(Ordering::Relaxed) > 0,
        "no reader met a block: the test shows nothing"
    );
}
