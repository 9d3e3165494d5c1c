//! Context Management: `cuCtx*`.
