//! Stream Management: `cuStream*`.
