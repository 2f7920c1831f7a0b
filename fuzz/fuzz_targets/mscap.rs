//! Bytes as `MoonSniff` records.
#![no_main]

use libfuzzer_sys::fuzz_target;
use tailtrim_fuzz::read_in_all_ways;

fuzz_target!(|data: &[u8]| read_in_all_ways(data, true));
