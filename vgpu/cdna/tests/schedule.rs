//! Interleavings: the same seed gives the same, different seeds different ones, and several threads at once do all the work.

mod support;

use std::{collections::HashSet, thread};

use cdna::{
    Target::Gfx90a,
    dispatch::{Host, Work},
};
use support::{Kernel, Machine};

const OUT: u64 = 0x30_0000;

/// Every wave writes its number 40 times where a counter says, with some work in between.
const APPEND: &[u32] = &[
    0xc006_0180,
    0x0000_0000, // s_load_dwordx2 s[6:7], s[0:1], 0x0
    0x2002_0086, // v_lshrrev_b32 v1, 6, v0
    0xd200_0001,
    0x0405_0802, // v_lshl_or_b32 v1, s2, 4, v1
    0xbefe_0181, // s_mov_b64 exec, 1
    0xbf8c_c07f, // s_waitcnt lgkmcnt(0)
    0xb014_0028, // s_movk_i32 s20, 40
    // again:
    0x7e04_0280, // v_mov_b32 v2, 0
    0x7e06_0281, // v_mov_b32 v3, 1
    0xdd09_8000,
    0x0406_0302, // global_atomic_add v4, v2, v3, s[6:7] glc
    0xbf8c_0f70, // s_waitcnt vmcnt(0)
    0x2408_0882, // v_lshlrev_b32 v4, 2, v4
    0xdc70_8040,
    0x0006_0104, // global_store_dword v4, v1, s[6:7] offset:64
    0xb015_001e, // s_movk_i32 s21, 30
    // wait:
    0x8095_8115, // s_sub_u32 s21, s21, 1
    0xbf07_8015, // s_cmp_lg_u32 s21, 0
    0xbf85_fffd, // s_cbranch_scc1 wait
    0x8094_8114, // s_sub_u32 s20, s20, 1
    0xbf07_8014, // s_cmp_lg_u32 s20, 0
    0xbf85_fff1, // s_cbranch_scc1 again
];

const GROUPS: u32 = 8;
const WAVES: u32 = 2;
const ROUNDS: u32 = 40;

/// The waves in the order of their writes.
fn order(seed: Option<u64>) -> Vec<u32> {
    let mut machine = Machine::default();
    let out = machine.data(OUT, &[0; 16 + (GROUPS * WAVES * ROUNDS) as usize]);
    let kernel = Kernel {
        size: [64 * WAVES, 1, 1],
        grid: [64 * WAVES * GROUPS, 1, 1],
        seed,
        ..Kernel::new(Gfx90a, APPEND)
    };
    kernel
        .run(&mut machine, &[out as u32, (out >> 32) as u32])
        .expect("the kernel runs");
    let order = machine.dwords(OUT)[16..].to_vec();
    for group in 0..GROUPS {
        for wave in 0..WAVES {
            let writes = order.iter().filter(|w| **w == group << 4 | wave).count();
            assert_eq!(writes, ROUNDS as usize, "wave {wave} of work-group {group}");
        }
    }
    order
}

#[test]
fn a_seed_fixes_the_interleaving() {
    let orders: Vec<_> = (1..=6).map(|seed| order(Some(seed))).collect();
    for (seed, first) in (1..=6).zip(&orders) {
        assert_eq!(&order(Some(seed)), first, "seed {seed}");
    }
    let different: HashSet<_> = orders.iter().collect();
    assert_eq!(different.len(), orders.len(), "two seeds gave one interleaving");
    // And they do interleave: more changes of wave than there are waves.
    for order in &orders {
        let changes = order.windows(2).filter(|w| w[0] != w[1]).count();
        assert!(changes > 4 * (GROUPS * WAVES) as usize, "{changes} changes");
    }
}

/// A host that has threads to help.
struct Several<'a>(&'a Machine);

impl Host for Several<'_> {
    fn interrupt(&self, data: u32) {
        self.0.interrupt(data);
    }
    fn realtime(&self) -> u64 {
        self.0.realtime()
    }
    fn cancelled(&self) -> bool {
        self.0.cancelled()
    }
    fn share(&self, work: &Work<'_>) {
        thread::scope(|scope| {
            for _ in 0..3 {
                scope.spawn(|| work(false, &mut || false));
            }
            work(true, &mut || false);
        });
    }
    fn log(&self, line: &str) {
        self.0.log(line);
    }
}

#[test]
fn threads_that_help_leave_nothing_out_and_do_nothing_twice() {
    let mut machine = Machine::default();
    let groups = 2000;
    let out = machine.data(OUT, &vec![0; 16 + 40 * groups as usize]);
    let kernel = Kernel {
        grid: [64 * groups, 1, 1],
        ..Kernel::new(Gfx90a, APPEND)
    };
    let stats = kernel
        .run_on(&mut machine, &[out as u32, (out >> 32) as u32], |machine| {
            Several(machine)
        })
        .expect("the kernel runs");
    assert_eq!(stats.waves, u64::from(groups));
    assert_eq!(stats.atomics, 40 * u64::from(groups));
    let mut writes = machine.dwords(OUT)[16..].to_vec();
    writes.sort_unstable();
    let want: Vec<u32> = (0..groups).flat_map(|g| [g << 4; 40]).collect();
    assert_eq!(writes, want);
}

#[test]
fn a_fault_ends_the_work_of_all_threads() {
    let mut machine = Machine::default();
    // Room for a hundred work-groups' writes, then nothing.
    let out = machine.data(OUT, &[0; 16 + 4000]);
    let kernel = Kernel {
        grid: [64 * 2000, 1, 1],
        ..Kernel::new(Gfx90a, APPEND)
    };
    let stop = kernel.run_on(&mut machine, &[out as u32, (out >> 32) as u32], |machine| {
        Several(machine)
    });
    let text = format!("{:?}", stop.expect_err("there is no memory"));
    assert!(
        text.contains("global_store_dword") && text.contains("work-group"),
        "{text}"
    );
}
