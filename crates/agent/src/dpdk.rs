//! `tailtrim-agent generate --interface dpdk:DEVICE`.

use crate::events;
use crate::exit::{Exit, Failure, OrFail, Outcome};
use crate::forward::create;
use crate::generate::{Asked, Generate, builder, check_length, schedule};
use serde::Serialize;
use std::io::Write;
use std::str::FromStr;
use tailtrim_ports::dpdk::{Device, DpdkError, Sent};
use tailtrim_ports::generate::Load;
use tailtrim_ports::port::{PortName, PortNameError};
use tailtrim_probes::departures::Class;
use tailtrim_sys::placement::Placement;

/// Interface that sends the probes.
#[derive(Debug, Clone)]
pub(crate) enum Interface {
    /// An interface of the kernel.
    Port(PortName),
    /// A device as DPDK names it: an address of the PCI bus, or a virtual one with its arguments.
    Dpdk(String),
}

impl FromStr for Interface {
    type Err = PortNameError;

    fn from_str(text: &str) -> Result<Self, PortNameError> {
        match text.strip_prefix("dpdk:") {
            Some(device) if !device.is_empty() => Ok(Self::Dpdk(device.to_owned())),
            _ => text.parse().map(Self::Port),
        }
    }
}

impl From<DpdkError> for Failure {
    fn from(error: DpdkError) -> Self {
        let exit = match &error {
            DpdkError::Start(_) => Exit::Impossible,
            DpdkError::Ended { code: 2, .. } => Exit::Usage,
            DpdkError::Ended { code: 3, .. } => Exit::Impossible,
            _ => Exit::Disturbed,
        };
        Self::new(error, exit)
    }
}

#[derive(Serialize)]
struct Report {
    #[serde(flatten)]
    asked: Asked,
    #[serde(flatten)]
    sent: Sent,
    host: Placement,
}

/// Has `tailtrim-dpdk` send the load.
pub(crate) fn run(request: &Generate, device: &str) -> Outcome {
    if request.fifo || request.stall_log.is_some() {
        let option = if request.fifo { "--fifo" } else { "--stall-log" };
        return Err(Failure::usage(format!("{option} is not there with dpdk:DEVICE")));
    }
    if request.departures != Class::Software {
        let why =
            "expected software: what drivers claim (send on timestamp) is not proven, and not used";
        return Err(Failure::usage(format!("--departures: {why}")));
    }
    let schedule = schedule(request)?;
    // Before the device is opened, whose MAC address is the source's.
    builder(request, [0; 6])?;
    let mut log = request.log.as_deref().map(create).transpose()?;
    let stopped = request.ending.watch()?;
    // The program inherits it.
    let host = Placement::take(None, false).or_fail(Exit::Usage)?;
    let device = Device::open(device, &request.cpu)?;
    check_length(request, device.longest)?;
    let load = Load {
        schedule,
        sizes: request.frame_bytes.clone(),
        builder: builder(request, request.src_mac.unwrap_or(device.mac))?,
        stop: request.sending.stop(),
    };
    let log = log.as_mut().map(|log| log as &mut (dyn Write + Send));
    let sent = device.send(load, log, &stopped, events::ready)?;
    events::result("tailtrim.generator-dpdk/1", &Report { asked: request.into(), sent, host })
}
