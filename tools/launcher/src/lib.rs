//! Starts programs with Regauge's libraries and, if asked, a virtual GPU.
