//! Clocks of the NICs that stamp at the taps: compared all along where there are several, with the programs that steer them.

use super::{Capture, Stamps, place};
use crate::exit::{Exit, Failure, OrFail};
use crate::output;
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::fs;
use tailtrim_ports::port::{HardwareStamps, PortName};
use tailtrim_reading::converted::Converted;
use tailtrim_tail::summary::Summary;
use tailtrim_tail::times;
use tailtrim_trace::phc::Method;
use tailtrim_tracer::clock::{Comparing, Conversion, PairTold, Phc, Servo, servos};

/// The tap whose clock is that of all stamps, where there are several.
const REFERENCE: &str = "ingress";

/// Stamps by NICs for as long as it is there, and the comparison of their clocks.
pub(super) struct Clocks {
    _stamps: HardwareStamps,
    /// The clock of each tap; that of the reference first.
    of_taps: Vec<(String, String)>,
    read: BTreeMap<String, Read>,
    comparing: Option<Comparing>,
    servos: Vec<Servo>,
}

/// A clock and how it is read.
struct Read {
    name: String,
    method: Method,
    frequency_ppb: Option<i64>,
}

/// Clocks of the taps, as the result has them.
#[derive(Debug, Serialize)]
pub(super) struct ClocksTold {
    /// The clock of each tap.
    taps: BTreeMap<String, String>,
    /// The clock that all stamps are of.
    reference: String,
    /// Facts of each clock, where there are several.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    clocks: BTreeMap<String, Facts>,
    /// Each other clock beside the reference.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    compared: Vec<PairTold>,
    /// Programs that may steer them, at the begin and at the end.
    servos: [Vec<Servo>; 2],
}

/// Facts of a clock.
#[derive(Debug, Serialize)]
struct Facts {
    /// Its driver's name for it.
    name: String,
    /// Method of reading it.
    method: Method,
    /// The frequency that it was set to beside its own, at the begin and at the end; nothing where this process may not ask.
    frequency_ppb: Option<[i64; 2]>,
}

impl Clocks {
    /// Turns stamps on, and begins to compare the clocks of the NICs where there are several.
    pub(super) fn begin(request: &Capture) -> Result<Option<Self>, String> {
        if request.stamps == Stamps::Kernel {
            return Ok(None);
        }
        let (names, ports): (Vec<String>, Vec<PortName>) = request.taps.iter().cloned().unzip();
        let stamps = HardwareStamps::enable(&ports, request.stamps == Stamps::Hardware)?;
        let mut of_taps: Vec<_> = names.into_iter().zip(stamps.clocks().iter().cloned()).collect();
        of_taps.sort_by_key(|(tap, _)| tap != REFERENCE);
        let mut devices: Vec<&String> = of_taps.iter().map(|(_, device)| device).collect();
        let mut seen = BTreeSet::new();
        devices.retain(|device| seen.insert(*device));
        let (mut read, mut comparing) = (BTreeMap::new(), None);
        if devices.len() > 1 {
            let clocks: Result<Vec<Phc>, String> =
                devices.iter().map(|device| opened(device)).collect();
            let clocks = clocks.map_err(|error| apart(&devices, &error))?;
            for clock in &clocks {
                let [device, name] = clock.names().map(str::to_owned);
                let frequency_ppb = clock.frequency_ppb();
                read.insert(device, Read { name, method: clock.method(), frequency_ppb });
            }
            comparing = Some(
                Comparing::start(clocks).map_err(|error| apart(&devices, &error.to_string()))?,
            );
        }
        Ok(Some(Self { _stamps: stamps, of_taps, read, comparing, servos: servos() }))
    }

    /// The conversion of the stamps of a tap to the common clock, if they need one.
    pub(super) fn conversion(&self, tap: &str) -> Option<Conversion> {
        let (_, device) = self.of_taps.iter().find(|(name, _)| name == tap)?;
        self.comparing.as_ref()?.conversion(device)
    }

    /// Writes beside the captures that their stamps are converted, and that it is not known yet how well.
    pub(super) fn begin_files(&self, request: &Capture) -> Result<(), Failure> {
        let Some((_, reference)) = self.of_taps.first() else { return Ok(()) };
        for (tap, device) in self.of_taps.iter().filter(|(_, device)| device != reference) {
            let why = format!("the capture of {tap} did not come to its end");
            write(request, tap, &Converted::new(device, reference, None, vec![why]))?;
        }
        Ok(())
    }

    /// Ends the comparison.
    pub(super) fn end(self) -> ClocksTold {
        let compared = self.comparing.map(Comparing::end).unwrap_or_default();
        let facts = |(device, read): (String, Read)| {
            let frequency_ppb = read
                .frequency_ppb
                .zip(opened(&device).ok().and_then(|clock| clock.frequency_ppb()));
            let frequency_ppb = frequency_ppb.map(|(begin, end)| [begin, end]);
            (device, Facts { name: read.name, method: read.method, frequency_ppb })
        };
        ClocksTold {
            reference: self.of_taps.first().map(|(_, device)| device.clone()).unwrap_or_default(),
            taps: self.of_taps.into_iter().collect(),
            clocks: self.read.into_iter().map(facts).collect(),
            compared,
            servos: [self.servos, servos()],
        }
    }
}

fn opened(device: &str) -> Result<Phc, String> {
    Phc::open(device).map_err(|error| format!("/dev/{device} cannot be read: {error}"))
}

fn apart(devices: &[&String], why: &str) -> String {
    let named: Vec<&str> = devices.iter().map(|device| device.as_str()).collect();
    format!("the taps have the clocks {}, which cannot be compared: {why}", named.join(" and "))
}

/// Writes the file beside the capture of a tap, if it has one.
fn write(request: &Capture, tap: &str, told: &Converted) -> Result<(), Failure> {
    let Some(path) = place(request, tap).as_deref().map(Converted::path) else { return Ok(()) };
    let text = serde_json::to_string_pretty(told).unwrap_or_default() + "\n";
    fs::write(&path, text).or_unwritable(&path, Exit::Disturbed)
}

impl ClocksTold {
    /// Writes beside the captures how well their stamps are converted.
    pub(super) fn end_files(&self, request: &Capture) -> Result<(), Failure> {
        for (tap, device) in &self.taps {
            let Some(pair) = self.compared.iter().find(|pair| pair.device == *device) else {
                continue;
            };
            let told =
                Converted::new(device, &self.reference, pair.clock_error_ns, pair.invalid.clone());
            write(request, tap, &told)?;
        }
        Ok(())
    }

    /// Largest error of a latency, and reasons why it is not known. Nothing with one clock.
    fn error(&self) -> Option<(Option<i64>, Vec<String>)> {
        if self.compared.is_empty() {
            return None;
        }
        let errors: Option<Vec<i64>> =
            self.compared.iter().map(|pair| pair.clock_error_ns).collect();
        let why = self.compared.iter().flat_map(|pair| pair.invalid.iter().cloned()).collect();
        // Two clocks that are both not the reference have the errors of both.
        Some((errors.map(|errors| errors.iter().sum()), why))
    }

    /// Tells it with the latencies.
    pub(super) fn tell(&self, summary: &mut Summary) {
        if let Some((error_ns, why)) = self.error() {
            summary.stamped_by_two_clocks(error_ns, &why);
        }
    }

    /// Warns where stamps cannot be subtracted.
    pub(super) fn warn(&self) {
        for why in self.compared.iter().flat_map(|pair| &pair.invalid) {
            output::note(
                "warning",
                &format!("{why}: latencies of this capture are wrong by an unknown time"),
            );
        }
    }

    /// A line for people on each clock.
    pub(super) fn text(&self) -> String {
        let mut text = String::new();
        for pair in &self.compared {
            if let Some(error_ns) = pair.clock_error_ns {
                let _ = writeln!(
                    text,
                    "Stamps of {} are times of {} within {}.",
                    pair.device,
                    self.reference,
                    times::text(error_ns)
                );
            }
        }
        text
    }
}
