//! Sub-buffers that a kernel 6.18 recorded, compared with the text that the same kernel printed of them.
#![allow(clippy::unwrap_used, reason = "a failure here is the test's result")]

use std::collections::HashMap;
use tailtrim_trace::axis::{Axis, Reading};
use tailtrim_trace::format::Format;
use tailtrim_trace::page::{Layout, Missed, Page};
use tailtrim_trace::pairing::{Context, Pairing};
use tailtrim_trace::record::{Decoder, Record, What};
use tailtrim_trace::senders::Senders;
use tailtrim_trace::symbols::Symbols;
use tailtrim_trace::{Kind, Left};

const FORMATS: &str = include_str!("trace/formats.txt");
const HEADER_PAGE: &str = include_str!("trace/header_page.txt");
const MISSED: (&[u8], &str) =
    (include_bytes!("trace/missed.bin"), include_str!("trace/missed.txt"));
const SWITCHES: (&[u8], &str) =
    (include_bytes!("trace/switches.bin"), include_str!("trace/switches.txt"));

fn formats() -> HashMap<u16, Format> {
    let texts = FORMATS.split("name: ").skip(1);
    let formats = texts.map(|text| Format::parse(&format!("name: {text}")).unwrap());
    formats.map(|format| (format.id, format)).collect()
}

fn layout() -> Layout {
    Layout::parse(HEADER_PAGE).unwrap()
}

fn records(page: &[u8]) -> Vec<Record> {
    let mut decoder = Decoder::default();
    formats().values().for_each(|format| decoder.add(format).unwrap());
    let page = Page::new(layout(), page).unwrap();
    let read = page.entries().map(|entry| entry.unwrap());
    read.map(|entry| decoder.decode(entry.stamp, entry.record).unwrap()).collect()
}

#[test]
fn stamps_processes_and_kinds_are_those_that_the_kernel_prints() {
    let formats = formats();
    for (page, printed) in [MISSED, SWITCHES] {
        let page = Page::new(layout(), page).unwrap();
        let entries: Vec<_> = page.entries().map(|entry| entry.unwrap()).collect();
        assert_eq!(entries.len(), printed.lines().count());
        for (entry, line) in entries.iter().zip(printed.lines()) {
            let words: Vec<&str> = line.split(' ').collect();
            let format = &formats[&u16::from_le_bytes([entry.record[0], entry.record[1]])];
            let pid = format.field("common_pid").unwrap().integer(entry.record).unwrap();
            let read = [entry.stamp.to_string(), pid.to_string(), format.name.clone()];
            assert_eq!(read[..], words[..3], "{line}");
        }
    }
}

#[test]
fn lost_events_are_those_that_the_kernel_counted() {
    assert_eq!(Page::new(layout(), MISSED.0).unwrap().missed, Some(Missed::Count(14_045)));
    assert_eq!(Page::new(layout(), SWITCHES.0).unwrap().missed, None);
}

#[test]
fn records_say_what_the_kernel_prints() {
    for (page, printed) in [MISSED, SWITCHES] {
        for (record, line) in records(page).iter().zip(printed.lines()) {
            match &record.what {
                What::Switch { previous, left, next } => {
                    assert!(
                        line.contains(&format!(
                            "prev_comm={} prev_pid={} ",
                            previous.1, previous.0
                        )),
                        "{line}"
                    );
                    let state = line.split_once("prev_state=").unwrap().1;
                    let letter = match left {
                        Left::Runnable => "R",
                        Left::Sleeping => "SDIP",
                        Left::Stopped => "Tt",
                        Left::Ended => "XZ",
                    };
                    assert!(letter.contains(&state[..1]), "{line}");
                    assert!(
                        line.contains(&format!("next_comm={} next_pid={} ", next.1, next.0)),
                        "{line}"
                    );
                }
                What::Flush { reason } => {
                    assert!(line.contains(&format!("reason:{reason} (")), "{line}")
                }
                What::Enter { kind: Kind::Softirq, name, .. } => {
                    assert!(line.contains(&format!("[action={name}]")), "{line}")
                }
                What::Queued { cpu, .. } => {
                    assert!(line.contains(&format!("cpu={cpu} ")), "{line}")
                }
                What::Sent { cpus, .. } => {
                    assert!(line.contains(&format!("cpu={} ", cpus[0])), "{line}")
                }
                _ => {}
            }
        }
    }
}

#[test]
fn intervals_of_a_recorded_page() {
    let records = records(SWITCHES.0);
    let (first, last) = (records[0].stamp, records[records.len() - 1].stamp);
    let reading = |ticks, ns| Reading { ticks, ns, half_ticks: 1 };
    let axis = Axis::fit(reading(first, 0), reading(last, (last - first) as i64), &[]).unwrap();
    let (symbols, comms) = (Symbols::default(), HashMap::new());
    let senders = Senders::new(&[], &symbols);
    let context = Context { axis: &axis, symbols: &symbols, senders: &senders, comms: &comms };
    let mut pairing = Pairing::new(context, 1, first);
    records.iter().for_each(|record| pairing.take(record));
    let paired = pairing.finish(last);
    let count = |kind| paired.events.iter().filter(|event| event.kind == kind).count();
    let printed = |name: &str| SWITCHES.1.lines().filter(|line| line.contains(name)).count();
    assert_eq!(count(Kind::Softirq), printed(" softirq_entry "));
    assert_eq!(count(Kind::Irq), printed("_entry vector="));
    assert_eq!(count(Kind::Fault), printed(" page_fault_user "));
    assert_eq!(count(Kind::Thread), printed(" sched_switch ") + 1);
    assert_eq!(paired.unpaired, 0);
}

/// The page with one byte changed is read or refused, and never looked beyond.
#[test]
fn damaged_pages() {
    for at in 0..4_096 {
        for byte in [0x00, 0x1d, 0x1e, 0x1f, 0x80, 0xff] {
            let mut page = SWITCHES.0.to_vec();
            page[at] = byte;
            if let Ok(page) = Page::new(layout(), &page) {
                assert!(page.entries().count() <= 1_100);
            }
        }
    }
}
