//! Bytes as a pcapng: mostly with blocks of matching lengths, now and then as they come.
#![no_main]

use libfuzzer_sys::fuzz_target;
use tailtrim_fuzz::{read_in_all_ways, with_pcapng_blocks};

fuzz_target!(|data: &[u8]| {
    if data.len() % 16 == 15 {
        read_in_all_ways(data, false);
    } else {
        read_in_all_ways(&with_pcapng_blocks(data), false);
    }
});
