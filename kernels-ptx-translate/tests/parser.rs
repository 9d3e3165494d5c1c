//! The parser over the whole grammar, over damaged text and over text that wants too much.

use std::time::Duration;

use kernels_ptx_translate::protocol::{ModuleInfo, TranslateError};
use kernels_ptx_translate::ptx::ast::{
    AddressBase, Immediate, Instruction, LabelKind, Module, Operand, ScalarType, Statement, Symbol,
};
use kernels_ptx_translate::ptx::{layout, parse};
use proptest::prelude::*;

const GRAMMAR: &str = include_str!("ptx/grammar.ptx");
const HEAD: &str = ".version 8.0\n.target sm_80\n.address_size 64\n";

fn kernel(body: &str) -> String {
    format!(
        "{HEAD}.visible .entry k(.param .u64 p) {{ .reg .b32 %r<9>; .reg .pred %p<3>; .reg .b64 %rd<5>;\n{body}\nret; }}"
    )
}

/// Processor time of this thread: what a busy machine does not change.
fn cpu_time() -> Duration {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: a valid structure to fill.
    unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &mut time) };
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

fn error(text: &str) -> (u32, String) {
    match parse(text).map(|_| ()) {
        Err(TranslateError::InvalidPtx { line, message, more }) => {
            let rest = more.iter().map(|(line, message)| format!("\n{line}: {message}"));
            (line, message + &rest.collect::<String>())
        }
        other => panic!("{other:?} for {}", &text[..text.len().min(300)]),
    }
}

fn inspect(text: &str) -> Result<ModuleInfo, TranslateError> {
    layout::inspect(&parse(text)?)
}

/// Instructions of the only body of a function, by position.
fn instructions<'m, 'a>(module: &'m Module<'a>, name: &str) -> Vec<&'m Instruction<'a>> {
    let function = module.functions.iter().find(|f| f.name == name).unwrap();
    let statements = function.body.as_ref().unwrap().statements.iter();
    statements
        .filter_map(|s| {
            if let Statement::Instruction(i) = s {
                Some(i)
            } else {
                None
            }
        })
        .collect()
}

#[test]
fn the_whole_grammar_parses() {
    let module = parse(GRAMMAR).unwrap();
    assert_eq!(
        (module.version, module.target.as_slice()),
        ((8, 6), &["sm_90a", "texmode_independent", "debug"][..])
    );
    let kernel = module.function(module.entry("kernel").unwrap());
    let d = &kernel.directives;
    assert_eq!(
        (d.max_ntid, d.min_ncta_per_sm, d.max_nreg),
        (Some([32, 4, 1]), Some(2), Some(64))
    );
    assert_eq!(
        (d.req_ncta_per_cluster, d.max_cluster_rank, d.explicit_cluster),
        (Some([2, 1, 1]), Some(8), true)
    );
    let body = kernel.body.as_ref().unwrap();
    // A range costs what is used of it.
    assert!(body.registers.len() < 100);
    // The innermost scope that defines a label wins, and both `inner` are labels of their own.
    assert_eq!(body.labels.iter().filter(|l| l.name == "inner").count(), 2);
    let table = body.labels.iter().find(|l| l.name == "$table").unwrap();
    let LabelKind::BranchTargets(targets) = &table.kind else {
        panic!("{table:?}")
    };
    assert_eq!(targets.len(), 3);
    assert_eq!(targets[0], targets[2]);
    for target in targets {
        assert!(
            body.statements
                .iter()
                .any(|s| matches!(s, Statement::Label(l) if l == target))
        );
    }
    // Every branch leads to a label that stands somewhere.
    for instruction in instructions(&module, "kernel") {
        if let ("bra", [Operand::Label(label)]) = (instruction.opcode, instruction.operands.as_slice()) {
            assert!(
                body.statements
                    .iter()
                    .any(|s| matches!(s, Statement::Label(l) if l == label))
            );
        }
    }
    let twin = module.functions.iter().find(|f| f.name == "twin").unwrap();
    assert_eq!(module.function(twin.alias.unwrap()).name, "stand_in");
}

#[test]
fn scopes_shadow_and_ranges_resolve() {
    let text =
        kernel("{ .reg .f32 %r1; mov.f32 %r1, 0f00000000; { .reg .b64 %r<2>; mov.b64 %r1, 1; } } mov.b32 %r1, 2;");
    let module = parse(&text).unwrap();
    let body = module.functions[0].body.as_ref().unwrap();
    let types: Vec<_> = instructions(&module, "k")
        .iter()
        .filter(|i| i.opcode == "mov")
        .map(|i| match i.operands[0] {
            Operand::Register(id) => body.register(id).ty,
            ref other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(types, [ScalarType::F32, ScalarType::B64, ScalarType::B32]);
    // %r12 of the grammar sample belongs to %r12<3>, not to %r<..>: one digit more.
    let (line, message) = error(&kernel("mov.b32 %r9, 1;"));
    let wanted = "arguments mismatch for instruction 'mov'\n5: unknown symbol '%r9'";
    assert_eq!((line, message.as_str()), (5, wanted));
}

#[test]
fn operands_are_what_they_say() {
    let text = kernel(
        "ld.global.b32 %r1, [%rd1+-8]; mov.b32 %r2, -(3 - 5) * 4 << 1; add.s32 %r3, %r1, -1; setp.eq.s32 %p1, %r1, 0;",
    );
    let module = parse(&text).unwrap();
    let list = instructions(&module, "k");
    match &list[0].operands[1] {
        Operand::Address(a) => assert!(matches!(a.base, AddressBase::Register(_)) && a.offset == -8),
        other => panic!("{other:?}"),
    }
    assert_eq!(list[1].operands[1], Operand::Immediate(Immediate::Int(16)));
    assert_eq!(list[2].operands[2], Operand::Immediate(Immediate::Int(u64::MAX)));
    assert_eq!((list[0].name().as_str(), list[0].line), ("ld.global.b32", 5));
    assert_eq!(list[3].types().collect::<Vec<_>>(), [ScalarType::S32]);
}

#[test]
fn the_layout_is_the_one_of_the_ptx_rules() {
    let module = parse(GRAMMAR).unwrap();
    let info = layout::inspect(&module).unwrap();
    let kernel = &info.entries[0];
    let offsets: Vec<_> = kernel.params.iter().map(|p| (p.offset, p.size, p.align)).collect();
    assert_eq!(offsets, [(0, 8, 8), (8, 4, 4), (16, 48, 16), (64, 1, 1)]);
    assert_eq!(
        (kernel.param_size, kernel.local, kernel.max_ntid),
        (65, 24, Some([32, 4, 1]))
    );
    assert_eq!(kernel.static_shared, 8 + 1024);
    assert_eq!(info.entries[1].req_ntid, Some([64, 1, 1]));

    let global = |name: &str| info.globals.iter().find(|g| g.name == name).unwrap();
    let bytes = |name: &str| {
        let g = global(name);
        let (start, end) = (g.offset as usize, (g.offset + g.size) as usize);
        let mut all = info.data.clone();
        all.resize(info.data_size as usize, 0);
        all[start..end].to_vec()
    };
    assert_eq!(bytes("bytes"), [1, 2, 3, 4, 5]);
    let words = |name: &str| {
        bytes(name)
            .chunks(4)
            .map(|c| i32::from_le_bytes(c.try_into().unwrap()))
            .collect::<Vec<_>>()
    };
    assert_eq!(words("matrix"), [1, -2, 0, 18, 7, -1]);
    assert_eq!(
        words("floats"),
        [0x3f80_0000, 0x3fc0_0000, 0xc000_0000u32 as i32, 0xbf80_0000u32 as i32]
    );
    assert_eq!(words("later_still"), [128]);
    assert_eq!(bytes("halves"), [0, 0x3c, 0, 0xc0]);
    assert_eq!(bytes("quad"), [1, 0, 2, 0, 3, 0, 4, 0]);
    assert_eq!(bytes("doubles")[8..], 0.25f64.to_le_bytes());
    assert!(global("managed_value").managed && global("outside").external && global("outside").constant);

    // Pointers hold the target's offset and are listed for relocation; a function's number is not.
    let word = |name: &str, at: usize| u64::from_le_bytes(bytes(name)[at..at + 8].try_into().unwrap());
    assert_eq!(word("pointers", 0), global("bytes").offset);
    assert_eq!(word("pointers", 8), global("matrix").offset + 8);
    assert_eq!(word("pointers", 16), global("later").offset - 4);
    let function = module.functions.iter().position(|f| f.name == "function").unwrap() as u64;
    assert_eq!(word("pointers", 24), (function + 1) << 4);
    assert_eq!(
        (word("split", 1), word("split", 9)),
        (global("bytes").offset, global("floats").offset + 4)
    );
    let (pointers, split) = (global("pointers").offset, global("split").offset);
    let at: Vec<_> = info.relocations.iter().map(|r| r.at).collect();
    assert_eq!(at, [pointers, pointers + 8, pointers + 16, split + 1, split + 9]);
}

#[test]
fn addresses_in_initial_values_name_their_targets() {
    let module = parse(GRAMMAR).unwrap();
    let pointers = module.variables.iter().find(|v| v.name == "pointers").unwrap();
    let addresses = &pointers.init.as_ref().unwrap().addresses;
    assert_eq!(
        addresses
            .iter()
            .map(|a| (a.at, a.addend, a.generic))
            .collect::<Vec<_>>(),
        [(0, 0, false), (8, 8, true), (16, -4, true), (24, 0, false)]
    );
    assert!(matches!(addresses[3].target, Symbol::Function(_)));
}

#[test]
fn errors_name_the_line_and_the_cause() {
    let cases = [
        // As NVIDIA's assembler tells it: first what is wrong with instructions, then unknown names, function by function; a syntax
        // error ends it.
        (
            kernel("add.s32 %r1, %r2, %r77;\nfrobnicate.u32 %r1, %r78;") + "\nxyz",
            5,
            "arguments mismatch for instruction 'add'\n6: not a name of any known instruction: 'frobnicate'\n\
             5: unknown symbol '%r77'\n6: unknown symbol '%r78'\n8: parsing error near 'xyz': syntax error",
        ),
        (
            kernel("ld.global.u32 %r1, [x]; @y ret; call z;"),
            5,
            "illegal operand type to instruction 'ld'\n5: predicate expression expected\n5: call to 'z' requires call prototype\n\
             5: unknown symbol 'x'\n5: unknown symbol 'y'\n5: unknown symbol 'z'",
        ),
        (kernel("mov.u32 r0, ;"), 5, "parsing error near ';': syntax error"),
        (
            kernel("elect.sync %r1|%r2, 0;").replace("8.0", "7.8"),
            5,
            "feature 'elect' requires PTX ISA .version 8.0 or later\n5: feature 'elect' requires .target sm_90 or higher",
        ),
        (kernel("\n\nbra nowhere;"), 7, "unknown symbol 'nowhere'"),
        (kernel("L: L: ret;"), 5, "label L is defined twice"),
        (kernel("mov.b32 %r1 %r2;"), 5, "parsing error near '%r2': syntax error"),
        (kernel("@%r1 ret;"), 5, "%r1 is no predicate"),
        (
            kernel(".reg .b32 %r1; .reg .b32 %r1;"),
            5,
            "duplicate definition of variable '%r1'",
        ),
        (
            format!("{HEAD}.entry k() {{ ret; }}\n.entry k() {{ ret; }}"),
            5,
            "duplicate definition of function 'k'",
        ),
        (format!("{HEAD}.entry k() {{ ret; "), 4, "a body is not closed"),
        (
            format!("{HEAD}.global .u32 x; .global .f32 x;"),
            4,
            "duplicate definition of variable 'x'",
        ),
        (format!("{HEAD}.global .u64 x = y;"), 4, "unknown symbol 'y'"),
        (
            format!("{HEAD}.global .u32 x[2] = {{1, 2, 3}};"),
            4,
            "too many initial values",
        ),
        (format!("{HEAD}.global .u32 x = {{1}};"), 4, "too many braces"),
        (format!("{HEAD}xyz"), 4, "parsing error near 'xyz': syntax error"),
        (".version 7.0\n.target sm_71x".into(), 2, "unsupported .target 'sm_71x'"),
        (".version 7.0\n.target sm_70\n.address_size 32".into(), 3, "32-bit"),
        (".version 8\n".into(), 1, "parsing error near '8'"),
        (
            format!("{HEAD}.entry k(.param .b8 x[40000]) {{ ret; }}"),
            4,
            "too much parameter space (0x9c40 bytes, 0x1100 max).\n4: feature 'Kernel parameter size",
        ),
    ];
    for (text, line, part) in cases {
        let (at, message) = error(&text);
        assert!(
            message.contains(part) && at == line,
            "line {at}: {message}\nwanted line {line}: {part}"
        );
    }
    assert_eq!(parse("hello world").err(), Some(TranslateError::NotPtx));
    assert_eq!(parse("").err(), Some(TranslateError::NotPtx));
    let version = TranslateError::UnsupportedVersion {
        line: 1,
        major: 99,
        minor: 0,
    };
    assert_eq!(parse(".version 99.0\n").err(), Some(version));
}

#[test]
fn an_undefined_function_fails_the_module_and_an_undefined_variable_does_not() {
    let call = |name: &str| format!("{HEAD}.extern .func {name}();\n.entry k() {{ call {name}; ret; }}");
    match inspect(&call("foo")) {
        Err(TranslateError::InvalidPtx { message, .. }) => assert_eq!(message, "unresolved extern function 'foo'"),
        other => panic!("{other:?}"),
    }
    // What NVIDIA's driver offers to kernels fails no module, also where we do not offer it.
    let refused = ["cudaLaunchDeviceV2", "__cudaCDP2LaunchDeviceV2"];
    for provided in layout::PROVIDED_FUNCTIONS.iter().chain(&refused) {
        assert!(inspect(&call(provided)).is_ok(), "{provided}");
    }
    assert!(inspect(&call("cudaMalloc")).is_err());
    let info = inspect(&format!("{HEAD}.extern .global .u32 x;\n.entry k() {{ ret; }}")).unwrap();
    assert_eq!((info.globals[0].external, info.data_size), (true, 4));
    // Declared, then defined: one variable.
    let info = inspect(&format!("{HEAD}.extern .global .u32 x;\n.visible .global .u32 x = 5;")).unwrap();
    assert_eq!(
        (info.globals.len(), info.globals[0].external, info.data),
        (1, false, vec![5])
    );
}

#[test]
fn text_that_wants_too_much_is_refused_quickly() {
    let deep = "(".repeat(100_000);
    let cases = [
        kernel(&"{".repeat(1_000_000)),
        kernel(&format!("mov.b32 %r1, {deep}1;")),
        kernel(&format!("mov.b32 %r1, {}1;", "-".repeat(100_000))),
        kernel(&format!("mov.b32 %r1, {};", "1 ? 2 : ".repeat(100_000))),
        kernel(&format!("mov.b32 %r1, {};", "{".repeat(100_000))),
        kernel(&format!("ld.b32 %r1, {};", "[".repeat(100_000))),
        kernel(&format!("mov.b32 {{{}}};", "_,".repeat(1_000_000))),
        format!("{HEAD}.global .align 1073741824 .u32 x;"),
        format!("{HEAD}.global .align 3 .u32 x;"),
        format!("{HEAD}.global .u32 x[99999999999];"),
        format!("{HEAD}.global .u32 x[4294967296][4294967296][4294967296];"),
        format!("{HEAD}.global .u32 x{};", "[1]".repeat(100_000)),
        format!("{HEAD}.global .u32 x[2][536870912] = {{{{1}}, {{1}}}};"),
        format!("{HEAD}.global .u32 x = {};", "{".repeat(1_000_000)),
        format!("{HEAD}.entry k({}) {{ ret; }}", ".param .b8 x[1048576],".repeat(10_000)),
        format!("{HEAD}.entry k() .maxntid 99999999999 {{ ret; }}"),
        format!("{HEAD}.section .debug {}", "{".repeat(1_000_000)),
    ];
    for text in cases {
        let start = cpu_time();
        assert!(parse(&text).is_err(), "{}", &text[..text.len().min(200)]);
        assert!(
            cpu_time() - start < Duration::from_secs(2),
            "{}",
            &text[..text.len().min(200)]
        );
    }
    // Only together are these too large.
    let many = ".global .b8 x?[2147483648];".repeat(4);
    let numbered: String = many
        .split('?')
        .enumerate()
        .map(|(n, part)| format!("{part}{n}"))
        .collect();
    assert!(
        inspect(&format!(
            "{HEAD}{}",
            numbered.trim_end_matches(|c: char| c.is_ascii_digit())
        ))
        .is_err()
    );
}

#[test]
fn work_grows_with_the_text_and_not_faster() {
    let time = |count: usize| {
        let mut body = String::new();
        for n in 0..count {
            body += &format!(
                "L{n}: {{ .reg .b32 %x; add.s32 %x, %r1, {n}; @%p1 bra L{}; }}\n",
                (n * 7919) % count
            );
        }
        let text = kernel(&body);
        let start = cpu_time();
        parse(&text).unwrap();
        cpu_time() - start
    };
    time(1000);
    let (small, large) = (time(10_000), time(80_000));
    assert!(
        large < small * 8 * 4 + Duration::from_millis(200),
        "{small:?} for 1, {large:?} for 8"
    );
}

/// What the worker does with any text.
fn use_text(text: &str) {
    if let Ok(module) = parse(text) {
        let _ = layout::inspect(&module);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 600, ..ProptestConfig::default() })]

    #[test]
    fn damaged_text_never_panics(cuts in prop::collection::vec((0usize..9000, 0usize..40, "[ -~\n]{0,6}"), 1..6)) {
        let mut text = GRAMMAR.to_owned();
        for (at, length, insert) in cuts {
            let at = at % text.len();
            let end = (at + length).min(text.len());
            if text.is_char_boundary(at) && text.is_char_boundary(end) {
                text.replace_range(at..end, &insert);
            }
        }
        use_text(&text);
    }

    #[test]
    fn shuffled_words_never_panic(picks in prop::collection::vec(0usize..4000, 1..200)) {
        let words: Vec<&str> = GRAMMAR.split_inclusive([' ', ',', ';', '\n', '{', '}', '[', ']', '.', '(']).collect();
        let body: String = picks.iter().map(|&p| words[p % words.len()]).collect();
        use_text(&format!("{HEAD}{body}"));
        use_text(&kernel(&body));
    }

    #[test]
    fn any_text_never_panics(text in "\\PC{0,200}") {
        use_text(&text);
        use_text(&kernel(&text));
    }
}
