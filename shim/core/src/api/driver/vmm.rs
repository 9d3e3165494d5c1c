//! Virtual Memory Management: `cuMemCreate`, `cuMemMap`, `cuMemAddress*`.
