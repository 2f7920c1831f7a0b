//! Watching: targets are probed without end, and each minute is kept.
//!
//! 1. [`Plan`] is read from a file, [`Departures`] is one schedule for all of its targets,
//! 2. a thread sends and receives ([`watch`]), and tells what became of each probe,
//! 3. another one counts by minute and writes each minute that is over: an exact histogram, each probe in one outcome,
//! 4. packets of a device are taken at both of its sides and matched, in threads of their own: their minutes are those of a
//!    target,
//! 5. each minute is compared with those of a baseline ([`change`]),
//! 6. metrics and the state of each objective are served over HTTP, with a page that shows them.
#![forbid(unsafe_code)]

mod book;
mod catch;
mod change;
mod departures;
mod entry;
mod exemplar;
mod frames;
mod heart;
mod keeping;
mod links;
mod metrics;
mod minute;
mod objective;
mod otlp;
mod otlp_form;
mod page;
mod plan;
mod probing;
mod raw;
mod report;
mod resolving;
mod serving;
#[cfg(test)]
mod simulated;
mod state;
mod steal;
mod store;
mod subject;
mod tapped;
mod taps;
mod values;
mod watching;

pub use catch::CatchPlan;
pub use change::Asked;
pub use departures::Departures;
pub use keeping::Keep;
pub use minute::{Arrivals, Counts, Health, Minute, Outcome, Sample};
pub use objective::{Objective, ObjectiveError};
pub use otlp::{Endpoint, EndpointError};
pub use page::AccessError;
pub use plan::{Plan, PlanError, TargetPlan};
pub use store::{Store, StoreError};
pub use tapped::{Egress, Tapped};
pub use taps::TapPlan;
pub use values::Values;
pub use watching::{Request, WatchError, watch};
