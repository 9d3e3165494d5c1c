//! Module Management: `cuModule*`, `cuLink*`.
