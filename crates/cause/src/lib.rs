//! Causes of late packets.
//!
//! From a capture alone: [`periodic`] finds causes that recur, [`rows`] attributes each late packet to one of them or to
//! none, [`phase`] tells clocks of one frequency apart, [`sampling`] computes the share of a cause that a schedule samples,
//! and [`simulate`] simulates what a schedule would observe.
//!
//! With a trace of the host:
//!
//! 1. [`timeline`] makes a timeline of the CPU: the event that had it at each moment,
//! 2. [`queue`] infers the device's service process from its stamps,
//! 3. [`replay`] lets the packets pass once more without some of the stalls,
//! 4. [`explanation`] names the causes of each late packet with their shares, and for each cause the tail without it,
//! 5. [`known`] recognises causes and names the checks of the audit that concern them.
//!
//! Without packets, [`occupation`] sums up who had the CPU.
//!
//! Overlap alone misleads: a packet behind a stalled one has no event in its own window, and on a busy
//! host any window has one by chance. Hence the replay, and in the explanation the same computation with the
//! trace shifted in time. Between stamps and results all is integers.
#![forbid(unsafe_code)]

mod absence;
mod alone;
mod backlog;
mod batch;
pub mod explanation;
mod groups;
mod hidden;
pub mod known;
pub mod occupation;
pub mod periodic;
pub mod phase;
pub mod queue;
pub mod replay;
pub mod rows;
pub mod sampling;
mod serving;
pub mod simulate;
mod split;
pub mod timeline;
mod usual;
