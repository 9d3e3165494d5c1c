//! Devices, contexts, properties, visibility.
