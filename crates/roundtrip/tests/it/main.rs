//! Reflectors, through their public interface.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that panics has failed")]

mod reflect;
mod reflect_echo;
mod reflect_frame;
mod reflect_rest;
mod reflect_tlvs;
