//! The tables of an analysis (`schema/`): Arrow record batches, and the Parquet files of a run directory.
//!
//! The native module and the agent share it: captures that are matched on another host leave the same bytes
//! as those that are matched here.
#![forbid(unsafe_code)]

pub mod batches;
mod files;

pub use files::{SampleSink, write_tables};
