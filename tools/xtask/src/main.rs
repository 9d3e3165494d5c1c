//! The test bench as commands.

fn main() {}
