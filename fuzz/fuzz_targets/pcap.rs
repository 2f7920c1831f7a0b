//! Bytes as a classic pcap.
#![no_main]

use libfuzzer_sys::fuzz_target;
use tailtrim_fuzz::{read_in_all_ways, with_pcap_magic};

fuzz_target!(|data: &[u8]| read_in_all_ways(&with_pcap_magic(data), false));
