//! The translator worker process.

fn main() {}
