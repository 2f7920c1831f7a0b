//! Bytes as records of ERF.
#![no_main]

use libfuzzer_sys::fuzz_target;
use tailtrim_fuzz::{read_in_all_ways, read_one_interface, with_erf_headers};

fuzz_target!(|data: &[u8]| {
    let bytes = with_erf_headers(data);
    read_in_all_ways(&bytes, false);
    read_one_interface(&bytes);
});
