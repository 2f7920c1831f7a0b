//! The pure data path of tailtrim, in the order in which the data flows:
//!
//! 1. [`capture`] reads the records of an ingress and an egress capture,
//! 2. [`frame`] finds the layers of a frame and [`signature`] takes the bytes that identify it,
//!    [`label`] is what it says of itself,
//! 3. [`matching`] pairs ingress with egress and counts what became of every packet,
//! 4. [`stats`] keeps the exact histogram and says how sure each quantile is,
//! 5. [`analysis`] drives the four over two captures and [`summary`] is its result.
//!
//! [`compare`] says whether the tails of two sides differ.
//!
//! [`traffic`] is what a generator sends and [`host`] what a host says of itself; [`lint`] tells what a kernel
//! makes of its boot line, [`audit`] whether a host is fit for low latency, and [`tune`] what to change there.
//!
//! [`trace`] is what took the CPUs meanwhile, [`noise`] how quiet they are by other tools, [`explain`] says what made
//! packets late.
//!
//! [`roundtrip`] is what probes and their replies look like on the wire, and how one becomes the other.
//!
//! Nothing in here makes a system call, reads a clock, starts a thread or uses `unsafe`: bytes and times
//! are passed in, so that everything can be tested anywhere.

pub mod analysis;
pub mod audit;
pub mod capture;
pub mod compare;
pub mod explain;
pub mod frame;
pub mod host;
pub mod label;
pub mod lint;
pub mod matching;
pub mod noise;
pub mod roundtrip;
pub mod signature;
pub mod stats;
pub mod summary;
pub mod trace;
pub mod traffic;
pub mod tune;
