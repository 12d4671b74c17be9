//! Parity with the EpiKV authors' decode loops.
