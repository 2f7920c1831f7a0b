//! A page beside the metrics: how targets are now, and how they were in the last hour, day and week.
//!
//! 1. the book tells the [`Board`] how targets are,
//! 2. the [`History`] reads minutes from disk when somebody asks for them, and remembers what it made of them,
//! 3. the [`Access`] lets readers in that may,
//! 4. [`routes`] answer with static files and JSON.

mod access;
mod answers;
mod block;
mod board;
mod catches;
mod connections;
mod files;
mod history;
mod reading;
mod span;
#[cfg(test)]
mod tests;

pub use access::AccessError;
pub(crate) use access::{Access, guard};
pub(crate) use answers::{Pages, routes};
pub(crate) use board::{About, Board};
pub(crate) use connections::Connections;
pub(crate) use history::History;
