//! One table per library: symbol, version node, status, class; and what is rendered from it.
