//! Graphs as text for Graphviz (`cuGraphDebugDotPrint`).

use core::fmt::Write;
use std::sync::Arc;

use super::{Graph, Operation};

/// `CU_GRAPH_DEBUG_DOT_FLAGS_VERBOSE`.
const VERBOSE: u32 = 1;
/// `CU_GRAPH_DEBUG_DOT_FLAGS_HANDLES`.
const HANDLES: u32 = 1 << 10;

impl Graph {
    /// The graph as a `digraph`; nodes are numbered in the order of creation and say what they do. Children are clusters.
    pub fn dot(&self, flags: u32) -> String {
        let mut text = String::from("digraph dot {\n");
        self.cluster(&mut text, "graph_1", flags);
        text.push_str("}\n");
        text
    }

    fn cluster(&self, text: &mut String, name: &str, flags: u32) {
        let _ = writeln!(
            text,
            "subgraph cluster_{name} {{\nlabel=\"{name}\" graph[style=\"dashed\"];"
        );
        let nodes = self.nodes();
        let mut children = Vec::new();
        for (index, node) in nodes.iter().enumerate() {
            let operation = node.operation();
            let handle = if flags & (HANDLES | VERBOSE) != 0 {
                format!("\\n{:#x}", node.handle())
            } else {
                String::new()
            };
            let _ = writeln!(
                text,
                "\"{name}_node_{index}\"[style=\"solid\" shape=\"{}\" label=\"{index}\\n{}{handle}\"];",
                shape(&operation),
                describe(&operation)
            );
            match operation {
                Operation::Child(child) => children.push((format!("{name}_{index}"), child)),
                Operation::Conditional(conditional) => {
                    let bodies = conditional.bodies.iter().enumerate();
                    children.extend(bodies.map(|(body, graph)| (format!("{name}_{index}_{body}"), Arc::clone(graph))));
                }
                _ => {}
            }
        }
        let position = |handle| nodes.iter().position(|node| node.handle() == handle);
        for edge in self.edges() {
            if let (Some(from), Some(to)) = (position(edge.from), position(edge.to)) {
                let _ = writeln!(text, "\"{name}_node_{from}\" -> \"{name}_node_{to}\";");
            }
        }
        text.push_str("}\n");
        for (name, child) in children {
            child.cluster(text, &name, flags);
        }
    }
}

fn shape(operation: &Operation) -> &'static str {
    match operation {
        Operation::Kernel(_) => "octagon",
        Operation::Child(_) => "folder",
        Operation::Copy(_) | Operation::Fill(_) => "invtrapezium",
        _ => "rectangle",
    }
}

/// What a node does, in one or two lines of a label.
fn describe(operation: &Operation) -> String {
    match operation {
        Operation::Kernel(kernel) => {
            let ([x, y, z], [bx, by, bz]) = (kernel.shape.grid, kernel.shape.block);
            format!(
                "{}\\n\\<\\<\\<({x},{y},{z}),({bx},{by},{bz}),{}\\>\\>\\>",
                kernel.function.name(),
                kernel.shape.dynamic_shared
            )
        }
        Operation::Copy(copy) => format!(
            "MEMCPY\\n{:#x} from {:#x}, {}x{}x{}",
            copy.dst.start, copy.src.start, copy.extent.width, copy.extent.height, copy.extent.depth
        ),
        Operation::Fill(fill) => format!(
            "MEMSET\\n{:#x}, {}x{} of {} bytes, value {:#x}",
            fill.params.dst, fill.params.width, fill.params.height, fill.params.elementSize, fill.params.value
        ),
        Operation::Host(host) => format!("HOST\\n{:#x}({:#x})", host.function, host.data),
        Operation::Child(_) => "GRAPH".into(),
        Operation::Conditional(conditional) => format!(
            "CONDITIONAL\\n{} {:#x}, {} bodies",
            conditional.meaning.name(),
            conditional.condition.handle(),
            conditional.bodies.len()
        ),
        Operation::Empty => "EMPTY".into(),
        Operation::WaitEvent(event) => format!("EVENT_WAIT\\n{:#x}", event.handle),
        Operation::RecordEvent(event) => format!("EVENT_RECORD\\n{:#x}", event.handle),
        Operation::MemOps(batch) => format!("BATCH_MEM_OP\\n{} operations", batch.params.len()),
        Operation::Alloc(block) => format!("MEM_ALLOC\\n{:#x}, {} bytes", block.address(), block.size()),
        Operation::Free(block) => format!("MEM_FREE\\n{:#x}", block.address()),
    }
}
