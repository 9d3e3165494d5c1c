//! Streams, events, copies, callbacks.
