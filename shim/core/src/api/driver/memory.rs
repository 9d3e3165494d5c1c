//! Memory Management: allocation, copies, memset, arrays: `cuMem*`, `cuArray*`.
