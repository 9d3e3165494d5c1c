//! Occupancy: `cudaOccupancy*`.
