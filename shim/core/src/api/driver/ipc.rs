//! Memory Management, sharing between processes: `cuIpc*`.
