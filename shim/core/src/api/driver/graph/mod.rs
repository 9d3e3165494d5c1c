//! Graph Management: `cuGraph*`, `cuUserObject*`.
//!
//! A graph is the same thing in both APIs, so what does not depend on the form of the parameters is shared with the runtime's
//! chapter: functions here that it may use are `pub(in crate::api)`.

pub(in crate::api) mod exec;
pub(in crate::api) mod memory;
pub(in crate::api) mod nodes;
pub(in crate::api) mod params;
pub(in crate::api) mod structure;

pub use exec::*;
pub use memory::*;
pub use nodes::*;
pub use structure::*;
