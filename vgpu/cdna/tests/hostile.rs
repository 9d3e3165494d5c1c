//! Random machine code is refused or executed, never a crash of the process that embeds the interpreter.

mod support;

use cdna::{
    Target::{Gfx90a, Gfx942},
    isa::decode,
};
use support::{Kernel, Machine};

/// Deterministic random words.
struct Random(u64);

impl Random {
    fn word(&mut self) -> u32 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 16) as u32
    }

    /// A first word of some encoding: all prefixes come up, not only VOP2, which owns half of all words.
    fn opcode(&mut self) -> u32 {
        let prefixes = [
            (0xbe80_0000, 9),
            (0xbf00_0000, 9),
            (0xbf80_0000, 9),
            (0xb000_0000, 4),
            (0x8000_0000, 2),
            (0x7e00_0000, 7),
            (0x7c00_0000, 7),
            (0x0000_0000, 1),
            (0xd380_0000, 9),
            (0xd000_0000, 6),
            (0xc000_0000, 6),
            (0xd800_0000, 6),
            (0xdc00_0000, 6),
            (0xe000_0000, 6),
            (0xe800_0000, 6),
        ];
        let (prefix, bits): (u32, u32) = prefixes[self.word() as usize % prefixes.len()];
        prefix | self.word() & (u32::MAX >> bits)
    }
}

#[test]
fn any_words_decode_or_are_refused_and_print() {
    let mut random = Random(0x1234_5678_9abc_def1);
    let mut decoded = 0;
    for i in 0..200_000 {
        let words = [random.opcode(), random.word(), random.word()];
        let target = if i % 2 == 0 { Gfx90a } else { Gfx942 };
        if let Ok(inst) = decode(target, &words) {
            decoded += 1;
            assert!(inst.to_string().starts_with(inst.mnemonic.name()));
            assert!(matches!(inst.size, 4 | 8 | 12));
        }
    }
    assert!(decoded > 50_000, "only {decoded} of the words were instructions");
}

#[test]
fn random_programs_end() {
    let mut random = Random(0xfeed_beef_1234_5677);
    for i in 0..4_000 {
        let code: Vec<u32> = (0..6)
            .map(|k| {
                if k % 2 == 0 {
                    random.opcode()
                } else {
                    random.word() & 0x0fff_0f0f
                }
            })
            .collect();
        // Branches back could loop for ever.
        if code
            .iter()
            .any(|w| (0xbf82_0000..0xbf8a_0000).contains(w) || w >> 28 == 0xb && w >> 23 != 0x17d)
        {
            continue;
        }
        let target = if i % 2 == 0 { Gfx90a } else { Gfx942 };
        let kernel = Kernel {
            vgprs: 8 * (1 + random.word() % 64),
            lds: random.word() % 65537,
            scratch: 64,
            ..Kernel::new(target, &code)
        };
        // Whatever comes back is fine.
        let _ = kernel.run(&mut Machine::default(), &[random.word(), random.word()]);
    }
}
