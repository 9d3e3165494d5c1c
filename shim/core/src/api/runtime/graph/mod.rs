//! Graph Management: `cudaGraph*`, `cudaUserObject*`. A graph is the driver API's; only the parameters' forms differ.

mod copies;
mod exec;
mod nodes;
mod structure;

pub use copies::*;
pub use exec::*;
pub use nodes::*;
pub use structure::*;
