//! Eviction policies as compositions, and the decode experiment.
