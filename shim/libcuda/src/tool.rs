//! What ROCr looks for in loaded libraries when it starts: see `regauge::hsa::tools`.

core::arch::global_asm!(
    ".globl OnLoad",
    ".type OnLoad,@function",
    "OnLoad: jmp {load}",
    ".size OnLoad, . - OnLoad",
    ".globl OnUnload",
    ".type OnUnload,@function",
    "OnUnload: jmp {unload}",
    ".size OnUnload, . - OnUnload",
    // Tools with higher numbers come later, and so see calls first: profilers are to see ours.
    ".pushsection .rodata.HSA_AMD_TOOL_PRIORITY,\"a\",@progbits",
    ".balign 4",
    ".globl HSA_AMD_TOOL_PRIORITY",
    ".type HSA_AMD_TOOL_PRIORITY,@object",
    ".size HSA_AMD_TOOL_PRIORITY,4",
    "HSA_AMD_TOOL_PRIORITY: .long 0",
    ".popsection",
    load = sym regauge::hsa::tools::on_load,
    unload = sym regauge::hsa::tools::on_unload,
);
