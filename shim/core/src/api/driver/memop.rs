//! Stream Memory Operations: `cuStreamWaitValue*`, `cuStreamWriteValue*`, `cuStreamBatchMemOp`.
