//! Buffers of a kernel's trace and the formats that say how they lie: whatever is in them, intervals do not end before
//! they begin, and every record is counted.
#![no_main]

use libfuzzer_sys::fuzz_target;
use std::collections::HashMap;
use std::sync::LazyLock;
use tailtrim_trace::axis::{Axis, Reading};
use tailtrim_trace::format::Format;
use tailtrim_trace::page::{Layout, Page};
use tailtrim_trace::pairing::{Context, Pairing};
use tailtrim_trace::perf::{self, Item};
use tailtrim_trace::record::{Decoder, Record};
use tailtrim_trace::senders::Senders;
use tailtrim_trace::symbols::Symbols;

const FORMATS: &str = include_str!("../../crates/trace/tests/trace/formats.txt");
const LAYOUT: &str = include_str!("../../crates/trace/tests/trace/header_page.txt");
/// Where the data of a page begins, by [`LAYOUT`].
const DATA: usize = 16;
/// Made once: they are the same each time.
static KERNEL: LazyLock<Decoder> = LazyLock::new(|| with(Decoder::default(), FORMATS));
static SYMBOLS: LazyLock<Symbols> = LazyLock::new(|| {
    Symbols::parse("ffffffff81000000 T start\nffffffff81000100 t flush_tlb_func\n")
});

fuzz_target!(|data: &[u8]| {
    let [how, text_len, rest @ ..] = data else { return };
    let (text, buffer) = rest.split_at(rest.len().min(usize::from(*text_len) * 2));
    let text = String::from_utf8_lossy(text);
    let decoder = with(KERNEL.clone(), &text);
    let (records, lost) = match how & 3 {
        0 => from_perf(&decoder, buffer),
        1 => from_page(&decoder, &text, buffer),
        _ => from_page(&decoder, LAYOUT, &with_length(buffer)),
    };
    pair(&records, lost);
});

/// The decoder, with the formats of a text, which may replace its own.
fn with(mut decoder: Decoder, text: &str) -> Decoder {
    for format in text.split("name: ").skip(1) {
        if let Ok(format) = Format::parse(&format!("name: {format}")) {
            let _ = decoder.add(&format);
            let _ = (format.names_of("vec"), format.names_of("reason"));
        }
    }
    decoder
}

/// Mutations rarely hit a length that fits.
fn with_length(buffer: &[u8]) -> Vec<u8> {
    let mut bytes = buffer.to_vec();
    if let Some(length) = bytes.len().checked_sub(DATA) {
        bytes[8..10].copy_from_slice(&(length.min(4_080) as u16).to_le_bytes());
        bytes[10] = 0;
        bytes[11] &= 0xc0;
    }
    bytes
}

fn from_page(decoder: &Decoder, layout: &str, buffer: &[u8]) -> (Vec<Record>, bool) {
    let Ok(layout) = Layout::parse(layout) else { return (Vec::new(), false) };
    let Ok(page) = Page::new(layout, buffer) else { return (Vec::new(), false) };
    let entries: Vec<_> = page.entries().collect();
    // Each takes four bytes at least; after an error there are no more.
    assert!(entries.len() <= buffer.len() / 4 + 1);
    assert!(entries.iter().rev().skip(1).all(Result::is_ok));
    let records = entries.iter().flatten();
    let records = records.filter_map(|entry| decoder.decode(entry.stamp, entry.record));
    (records.collect(), page.missed.is_some())
}

fn from_perf(decoder: &Decoder, buffer: &[u8]) -> (Vec<Record>, bool) {
    let items: Vec<_> = perf::items(buffer).collect();
    assert!(items.len() <= buffer.len() / 8 + 1);
    assert!(items.iter().rev().skip(1).all(Result::is_ok));
    let lost = items.iter().flatten().any(|item| matches!(item, Item::Lost { .. }));
    let records = items.iter().flatten().filter_map(|item| match item {
        Item::Sample { stamp, record } => decoder.decode(*stamp, record),
        _ => None,
    });
    (records.collect(), lost)
}

/// The records as those of the measured CPU, and as those of a CPU that sends to it.
fn pair(records: &[Record], lost: bool) {
    let reading = |ticks, ns| Reading { ticks, ns, half_ticks: 10 };
    let (before, after) = (reading(1_000, 1 << 60), reading(2_501_000, (1 << 60) + 1_000_000));
    let axis = Axis::fit(before, after, &[]).unwrap();
    let symbols = &*SYMBOLS;
    let senders = Senders::new(records, symbols);
    let comms = HashMap::from([(0, "swapper".to_owned())]);
    let context = Context { axis: &axis, symbols, senders: &senders, comms: &comms };
    let mut pairing = Pairing::new(context, 1, 1_000);
    for (number, record) in records.iter().enumerate() {
        if lost && number == records.len() / 2 {
            pairing.lost(tailtrim_trace::page::Missed::Some, record.stamp);
        }
        pairing.take(record);
    }
    let paired = pairing.finish(2_501_000);
    assert!(paired.events.iter().all(|event| event.start_ns <= event.end_ns));
    assert!(paired.events.is_sorted_by_key(|event| event.start_ns));
}
