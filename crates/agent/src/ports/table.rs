//! Results of `ports`, for people: tables of at most 80 columns.

use std::fmt::Write as _;
use tailtrim_ports::claims::{Claims, Coalesced, Etf, Flow, Queues, Stamps};

/// The driver does not have it; neither driver nor kernel tell.
const NO: &str = "–";
const UNKNOWN: &str = "?";
/// Columns of the longest name that is shown whole.
const NAME: usize = 15;

/// Claims, a row for each interface.
pub(super) fn listed(ports: &[Claims]) -> String {
    if ports.is_empty() {
        return "no interface but the loopback\n".to_owned();
    }
    let mut rows = vec![words(["interface", "driver", "queues", "PAUSE", "coalescing"])];
    rows.extend(ports.iter().map(interface_row));
    let mut text = aligned(&rows);
    let titles = ["interface", "receive", "transmit", "PHC", "zero copy", "hints", "launch", "ETF"];
    let mut rows = vec![words(titles)];
    rows.extend(ports.iter().map(stamps_row));
    let _ = write!(text, "\n{}", aligned(&rows));
    text + "\nWhat drivers claim is not proven: ports --prove measures it over a cable.\n"
}

pub(super) fn words<const N: usize>(texts: [&str; N]) -> Vec<String> {
    texts.map(str::to_owned).into()
}

fn interface_row(port: &Claims) -> Vec<String> {
    let unknown = || UNKNOWN.to_owned();
    vec![
        port.interface.clone(),
        port.driver.as_ref().map_or_else(unknown, |name| name.chars().take(NAME).collect()),
        port.queues.map_or_else(unknown, queues),
        port.pause.map_or_else(|| NO.to_owned(), pause),
        port.coalescing.map_or_else(|| NO.to_owned(), coalescing),
    ]
}

/// Numbers of queues that receive and that send.
fn queues(Queues { rx, tx, combined }: Queues) -> String {
    let (rx, tx) = (rx + combined, tx + combined);
    if rx == tx { rx.to_string() } else { format!("{rx} rx {tx} tx") }
}

fn pause(Flow { autoneg, rx, tx }: Flow) -> String {
    let ways = match (rx, tx) {
        (true, true) => "rx tx",
        (true, false) => "rx",
        (false, true) => "tx",
        (false, false) => "off",
    };
    format!("{ways}{}", if autoneg { " auto" } else { "" })
}

fn coalescing(told: Coalesced) -> String {
    let way = |adaptive: bool, usecs: u32| match adaptive {
        true => "adaptive".to_owned(),
        false => usecs.to_string(),
    };
    let rx = way(told.adaptive_rx, told.rx_usecs);
    let tx = way(told.adaptive_tx, told.tx_usecs);
    let both = if rx == tx { rx } else { format!("{rx}/{tx}") };
    both + if told.adaptive_rx && told.adaptive_tx { "" } else { " µs" }
}

fn stamps_row(port: &Claims) -> Vec<String> {
    let yes = |has: bool| if has { "yes" } else { NO };
    let of_xdp = |has: fn(&tailtrim_ports::claims::AfXdp) -> bool| {
        port.af_xdp.as_ref().map_or(UNKNOWN, |told| yes(has(told))).to_owned()
    };
    vec![
        port.interface.clone(),
        stamps(&port.receive_stamps),
        stamps(&port.transmit_stamps),
        port.phc.clone().unwrap_or_else(|| NO.to_owned()),
        of_xdp(|told| told.zero_copy),
        of_xdp(tailtrim_ports::claims::AfXdp::hints_stamps),
        of_xdp(|told| told.launch_time),
        match port.etf {
            None => NO.to_owned(),
            Some(Etf::Software) => "software".to_owned(),
            Some(Etf::Offload) => "offload".to_owned(),
        },
    ]
}

/// The best that there is.
fn stamps(told: &Stamps) -> String {
    let every = ["all", "on"].iter().any(|all| told.nic.contains(all));
    match (told.nic.is_empty(), every, told.kernel) {
        (false, true, _) => "NIC",
        (false, false, _) => "NIC PTP",
        (true, _, true) => "kernel",
        (true, _, false) => NO,
    }
    .to_owned()
}

/// Columns, each as wide as its widest cell.
pub(super) fn aligned(rows: &[Vec<String>]) -> String {
    let columns = rows.first().map_or(0, Vec::len);
    let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max();
    let widths: Vec<usize> = (0..columns).filter_map(width).collect();
    let line = |row: &Vec<String>| {
        let cells = row.iter().zip(&widths).map(|(cell, width)| format!("{cell:width$}"));
        cells.collect::<Vec<_>>().join("  ").trim_end().to_owned() + "\n"
    };
    rows.iter().map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use tailtrim_ports::claims::AfXdp;

    fn widest() -> Claims {
        Claims {
            interface: "sixteen-letters".to_owned(),
            driver: Some("a-driver-with-a-long-name".to_owned()),
            queues: Some(Queues { rx: 0, tx: 128, combined: 128 }),
            af_xdp: Some(AfXdp {
                zero_copy: true,
                receive_hints: vec!["timestamp"],
                transmit_metadata: vec!["tx-launch-time-fifo"],
                launch_time: true,
            }),
            receive_stamps: Stamps { kernel: true, nic: vec!["ptpv2-event"] },
            transmit_stamps: Stamps { kernel: true, nic: vec!["onestep-sync"] },
            stamping: None,
            etf: Some(Etf::Software),
            phc: Some("ptp128".to_owned()),
            pause: Some(Flow { autoneg: true, rx: true, tx: true }),
            coalescing: Some(Coalesced {
                adaptive_rx: true,
                adaptive_tx: false,
                rx_usecs: 0,
                rx_frames: 0,
                tx_usecs: 8_160,
                tx_frames: 0,
            }),
        }
    }

    #[test]
    fn rows_fit_80_columns() {
        let text = listed(&[widest()]);
        let longest = text.lines().map(|line| line.chars().count()).max();
        assert!(longest <= Some(80), "{text}");
        assert!(text.contains("sixteen-letters  a-driver-with-a  128 rx 256 tx"), "{text}");
        assert!(text.contains("NIC PTP  NIC PTP   ptp128  yes"), "{text}");
    }

    #[test]
    fn what_is_not_told_is_unknown() {
        let port = Claims {
            driver: None,
            queues: None,
            af_xdp: None,
            receive_stamps: Stamps { kernel: true, nic: Vec::new() },
            transmit_stamps: Stamps::default(),
            etf: None,
            phc: None,
            pause: None,
            coalescing: None,
            ..widest()
        };
        let text = listed(&[port]);
        let lines: Vec<Vec<&str>> = text.lines().map(|l| l.split_whitespace().collect()).collect();
        assert_eq!(lines[1], ["sixteen-letters", "?", "?", "–", "–"]);
        assert_eq!(lines[4], ["sixteen-letters", "kernel", "–", "–", "?", "?", "?", "–"]);
        assert_eq!(listed(&[]), "no interface but the loopback\n");
    }
}
