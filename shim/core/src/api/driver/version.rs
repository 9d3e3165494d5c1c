//! Version Management: `cuDriverGetVersion`.
