//! Graph Management: `cuGraph*`.
