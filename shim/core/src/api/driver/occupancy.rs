//! Occupancy: `cuOccupancy*`.
