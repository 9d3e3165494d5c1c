//! Event Management: `cuEvent*`.
