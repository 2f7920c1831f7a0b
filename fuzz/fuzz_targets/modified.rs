//! Bytes as a modified pcap.
#![no_main]

use libfuzzer_sys::fuzz_target;
use tailtrim_fuzz::{read_in_all_ways, read_one_interface, with_modified_magic};

fuzz_target!(|data: &[u8]| {
    let bytes = with_modified_magic(data);
    read_in_all_ways(&bytes, false);
    read_one_interface(&bytes);
});
