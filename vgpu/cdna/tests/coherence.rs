//! Missing fences are found out: each kernel without its fence sees, or leaves, old data, and with it the new.

mod support;

use cdna::{
    Target::{self, Gfx90a, Gfx942},
    coherence::Cache,
};
use support::{Kernel, Machine, with_buffer};

const OUT: u64 = 0x30_0000;
const IN: u64 = 0x31_0000;

/// Every lane stores its number.
const STORE: &[u32] = &[
    0x2402_0082, // v_lshlrev_b32 v1, 2, v0
    0xdc70_8000,
    0x0006_0001, // global_store_dword v1, v0, s[6:7]
];

/// Every lane copies a dword from the second argument to the first: the addresses, and the copy itself.
const ADDRESSES: &[u32] = &[
    0xc00a_0100,
    0x0000_0000, // s_load_dwordx4 s[4:7], s[0:1], 0x0
    0x2402_0082, // v_lshlrev_b32 v1, 2, v0
    0xbf8c_c07f, // s_waitcnt lgkmcnt(0)
];
const COPY: &[u32] = &[
    0xdc50_8000,
    0x0206_0001, // global_load_dword v2, v1, s[6:7]
    0xbf8c_0f70, // s_waitcnt vmcnt(0)
    0xdc70_8000,
    0x0004_0201, // global_store_dword v1, v2, s[4:5]
];

/// What a release and an acquire of system scope are in a kernel.
fn release(target: Target) -> &'static [u32] {
    match target {
        // buffer_wbl2; s_waitcnt vmcnt(0)
        Gfx90a => &[0xe0a0_0000, 0x0000_0000, 0xbf8c_0f70],
        // buffer_wbl2 sc0 sc1; s_waitcnt vmcnt(0)
        Gfx942 => &[0xe0a0_c000, 0x0000_0000, 0xbf8c_0f70],
    }
}

fn acquire(target: Target) -> &'static [u32] {
    match target {
        // buffer_invl2
        Gfx90a => &[0xe0a4_0000, 0x0000_0000],
        // buffer_inv sc0 sc1
        Gfx942 => &[0xe0a4_c000, 0x0000_0000],
    }
}

/// Two work-groups meet. The first reads a number, says so, waits for the second with loads of the agent's scope, reads the number
/// again, perhaps after an acquire of that scope, and notes both; the second writes the number meanwhile.
fn meet(target: Target, with_acquire: bool) -> Vec<u32> {
    // global_load_dword with glc, or sc1; buffer_wbinvl1_vol, or buffer_inv sc1.
    let (load, acquire) = match target {
        Gfx90a => (0xdc51_8000, 0xe0fc_0000),
        Gfx942 => (0xde50_8000, 0xe0a4_8000),
    };
    let acquire = [acquire, 0x0000_0000];
    let first = [
        &[
            0xdc50_8008,
            0x0306_0001, // global_load_dword v3, v1, s[6:7] offset:8
            0xbf8c_0f70, // s_waitcnt vmcnt(0)
            0xdd08_8000,
            0x0006_0201, // global_atomic_add v1, v2, s[6:7]
            // spin:
            0xbf8e_0001, // s_sleep 1
            load + 4,
            0x0406_0001, // global_load_dword v4, v1, s[6:7] offset:4
            0xbf8c_0f70, // s_waitcnt vmcnt(0)
            0x7e10_0504, // v_readfirstlane_b32 s8, v4
            0xbf06_8008, // s_cmp_eq_u32 s8, 0
            0xbf85_fff9, // s_cbranch_scc1 spin
        ][..],
        if with_acquire { &acquire } else { &[] },
        &[
            0xdc50_8008,
            0x0506_0001, // global_load_dword v5, v1, s[6:7] offset:8
            0xbf8c_0f70, // s_waitcnt vmcnt(0)
            0xdc70_800c,
            0x0006_0301, // global_store_dword v1, v3, s[6:7] offset:12
            0xdc70_8010,
            0x0006_0501, // global_store_dword v1, v5, s[6:7] offset:16
            0xbf81_0000, // s_endpgm
        ],
    ]
    .concat();
    let choice = [
        0xbefe_0181,                      // s_mov_b64 exec, 1
        0x7e02_0280,                      // v_mov_b32 v1, 0
        0x7e04_0281,                      // v_mov_b32 v2, 1
        0xbf06_8002,                      // s_cmp_eq_u32 s2, 0
        0xbf84_0000 | first.len() as u32, // s_cbranch_scc0 second
    ];
    let second = [
        0xbf8e_0001, // s_sleep 1
        load,
        0x0406_0001, // global_load_dword v4, v1, s[6:7]
        0xbf8c_0f70, // s_waitcnt vmcnt(0)
        0x7e10_0504, // v_readfirstlane_b32 s8, v4
        0xbf06_8008, // s_cmp_eq_u32 s8, 0
        0xbf85_fff9, // s_cbranch_scc1 second
        0x7e0c_0287, // v_mov_b32 v6, 7
        0xdc70_8008,
        0x0006_0601, // global_store_dword v1, v6, s[6:7] offset:8
        0xbf8c_0f70, // s_waitcnt vmcnt(0)
        0xdd08_8004,
        0x0006_0201, // global_atomic_add v1, v2, s[6:7] offset:4
    ];
    with_buffer(&[&choice, &first, &second])
}

fn hostile() -> Machine {
    let mut machine = Machine::default();
    machine.cache = Some(Cache::default());
    machine
}

fn run(machine: &mut Machine, kernel: &Kernel) {
    let args = [OUT as u32, (OUT >> 32) as u32, IN as u32, (IN >> 32) as u32];
    kernel.run(machine, &args).expect("the kernel runs");
}

fn lanes() -> Vec<u32> {
    (0..64).collect()
}

#[test]
fn a_store_reaches_the_host_at_a_release() {
    for target in [Gfx90a, Gfx942] {
        let mut machine = hostile();
        machine.data(OUT, &[99; 64]);
        run(&mut machine, &Kernel::new(target, &with_buffer(&[STORE])));
        assert_eq!(machine.dwords(OUT), [99; 64], "{target:?}: nothing was released");
        machine.cache.as_ref().expect("it is hostile").write_back();
        assert_eq!(machine.dwords(OUT), lanes(), "{target:?}: the packet's release");

        let mut machine = hostile();
        machine.data(OUT, &[99; 64]);
        let with_release = with_buffer(&[STORE, release(target)]);
        run(&mut machine, &Kernel::new(target, &with_release));
        assert_eq!(machine.dwords(OUT), lanes(), "{target:?}: the kernel's own release");
    }
}

#[test]
fn without_caches_no_release_is_needed() {
    let mut machine = Machine::default();
    machine.data(OUT, &[99; 64]);
    run(&mut machine, &Kernel::new(Gfx90a, &with_buffer(&[STORE])));
    assert_eq!(machine.dwords(OUT), lanes());
}

/// What a second copy gives after the host changed what the first had read.
fn copied_twice(target: Target, acquire: &[u32], invalidate: bool) -> u32 {
    let copy = |acquire| Kernel::new(target, &[ADDRESSES, acquire, COPY].concat());
    let mut machine = hostile();
    machine.data(OUT, &[0; 64]);
    machine.data(IN, &[1; 64]);
    run(&mut machine, &copy(&[]));
    machine.poke(IN, 5, 2);
    let cache = machine.cache.as_ref().expect("it is hostile");
    if invalidate {
        cache.invalidate();
    }
    run(&mut machine, &copy(acquire));
    machine.cache.as_ref().expect("it is hostile").write_back();
    let out = machine.dwords(OUT);
    assert!(out.iter().enumerate().all(|(i, v)| *v == 1 || i == 5));
    out[5]
}

#[test]
fn a_load_sees_what_the_host_wrote_after_an_acquire() {
    for target in [Gfx90a, Gfx942] {
        assert_eq!(copied_twice(target, &[], false), 1, "{target:?}: nothing was acquired");
        assert_eq!(copied_twice(target, &[], true), 2, "{target:?}: the packet's acquire");
        assert_eq!(
            copied_twice(target, acquire(target), false),
            2,
            "{target:?}: the kernel's own"
        );
    }
}

/// What the first of two work-groups reads before and after the second has written, which a counter tells it.
fn met(target: Target, with_acquire: bool, seed: u64) -> [u32; 2] {
    let mut machine = hostile();
    machine.data(OUT, &[0; 64]);
    let kernel = Kernel {
        grid: [128, 1, 1],
        seed: Some(seed),
        ..Kernel::new(target, &meet(target, with_acquire))
    };
    run(&mut machine, &kernel);
    machine.cache.as_ref().expect("it is hostile").write_back();
    let out = machine.dwords(OUT);
    assert_eq!(out[..3], [1, 1, 7], "both have been there");
    [out[3], out[4]]
}

#[test]
fn work_groups_see_each_other_after_an_acquire_of_the_agents_scope() {
    for seed in 0..4 {
        for target in [Gfx90a, Gfx942] {
            assert_eq!(met(target, false, seed), [0, 0], "{target:?}, seed {seed}");
            assert_eq!(met(target, true, seed), [0, 7], "{target:?}, seed {seed}");
        }
    }
}
