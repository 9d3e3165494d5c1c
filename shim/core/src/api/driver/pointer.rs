//! Unified Addressing: `cuPointer*`, `cuMemPrefetchAsync`, `cuMemAdvise`, `cuMemRangeGetAttribute`.
