//! Decoding of the ring buffer's records.

use super::format::{Field, Format};
use super::{Kind, Left};
use std::collections::HashMap;

/// One decoded record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Record {
    /// When, in ticks of the trace clock.
    pub stamp: u64,
    /// The process in whose context it was written.
    pub pid: u32,
    /// Whether an interrupt or softirq wrote it, in the context of the interrupted task.
    pub interrupting: bool,
    /// Whether the task was to give the CPU away.
    pub rescheduling: bool,
    /// The event.
    pub what: What,
}

/// Kinds of events with their fields.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum What {
    /// The kernel began something that takes the CPU.
    Enter {
        /// Interrupt or softirq.
        kind: Kind,
        /// Its name; for a device's handler the name of the device.
        name: String,
        /// The number of the interrupt line, where it has one.
        line: Option<i64>,
    },
    /// It ended.
    Leave {
        /// Interrupt or softirq.
        kind: Kind,
        /// Its name; `None` where the record has only the line.
        name: Option<String>,
        /// The number of the interrupt line.
        line: Option<i64>,
    },
    /// The scheduler gave the CPU to another thread.
    Switch {
        /// The thread that had it: process ID and name.
        previous: (u32, String),
        /// State in which that thread gave it up.
        left: Left,
        /// The thread that has it now.
        next: (u32, String),
    },
    /// A handler of non-maskable interrupts has ended.
    Nmi {
        /// Its address.
        handler: u64,
        /// Its duration.
        duration_ns: i64,
    },
    /// A page fault began.
    Fault {
        /// `page_fault_user` or `page_fault_kernel`.
        name: String,
        /// The instruction.
        at: u64,
    },
    /// Translations were dropped.
    Flush {
        /// The kernel's reason.
        reason: String,
    },
    /// A function that another CPU asked for begins.
    Function {
        /// Its address.
        function: u64,
        /// The request's address; 0 where this CPU asks itself.
        request: u64,
    },
    /// It has ended.
    FunctionEnd,
    /// A timer has expired, and its function begins.
    Timer {
        /// The function's address.
        function: u64,
    },
    /// The CPU goes to sleep or wakes up: the thread that had it has left.
    Idle,
    /// Work of a workqueue begins.
    Work {
        /// The function's address.
        function: u64,
    },
    /// A function was asked of another CPU.
    Queued {
        /// That CPU.
        cpu: u32,
        /// The request's address.
        request: u64,
        /// Address of the code that asked.
        callsite: u64,
    },
    /// An interrupt was sent to other CPUs.
    Sent {
        /// The receiving CPUs.
        cpus: Vec<u32>,
        /// Address of the code that sent it.
        callsite: u64,
        /// Address of the function to call; 0 for a rescheduling interrupt.
        callback: u64,
    },
}

/// An event whose format lacks a field that is needed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "the format of {event} has no field {field}; this kernel records it in another shape, leave the event out"
)]
pub struct ShapeError {
    event: String,
    field: &'static str,
}

/// Fields of one kind of record.
#[derive(Clone, Debug)]
enum Shape {
    Vector { enters: bool, name: String },
    HandlerEntry { line: Field, name: Field },
    HandlerExit { line: Field },
    Softirq { enters: bool, vector: Field, names: Vec<(i64, String)> },
    Switch { previous: (Field, Field), left: Field, next: (Field, Field) },
    Nmi { handler: Field, duration: Field },
    Fault { name: String, at: Field },
    Flush { reason: Field, names: Vec<(i64, String)> },
    Idle,
    Function { function: Field, request: Field },
    FunctionEnd,
    Timer { function: Field },
    Work { function: Field },
    Queued { cpu: Field, request: Field, callsite: Field },
    SentOne { cpu: Field, callsite: Field, callback: Field },
    SentMany { cpus: Field, callsite: Field, callback: Field },
}

/// Fields for the context in which a record was written.
#[derive(Clone, Debug)]
struct Context {
    pid: Field,
    flags: Option<Field>,
}

/// `TRACE_FLAG_HARDIRQ`, `TRACE_FLAG_SOFTIRQ` and `TRACE_FLAG_NMI` of `common_flags` (linux/trace_events.h).
const INTERRUPTING: i64 = 0x08 | 0x10 | 0x40;

/// `TRACE_FLAG_NEED_RESCHED`.
const RESCHEDULING: i64 = 0x04;

/// Reads records by the formats of this kernel.
#[derive(Clone, Debug, Default)]
pub struct Decoder {
    shapes: HashMap<u16, (Shape, Context)>,
}

impl Decoder {
    /// Takes note of an event's format; formats of events that [`What`] lacks are ignored.
    ///
    /// # Errors
    /// A field is missing.
    pub fn add(&mut self, format: &Format) -> Result<(), ShapeError> {
        if let Some(shape) = shape(format)? {
            let flags = format.field("common_flags").cloned();
            self.shapes
                .insert(format.id, (shape, Context { pid: field(format, "common_pid")?, flags }));
        }
        Ok(())
    }

    /// The decoded record; `None` where its event was not added, or where it is too short.
    #[must_use]
    pub fn decode(&self, stamp: u64, record: &[u8]) -> Option<Record> {
        let id = u16::from_le_bytes(*record.first_chunk()?);
        let (shape, context) = self.shapes.get(&id)?;
        let pid = u32::try_from(context.pid.integer(record)?).unwrap_or(0);
        let flags = context.flags.as_ref().and_then(|flags| flags.integer(record));
        let has = |flag| flags.is_some_and(|flags| flags & flag != 0);
        let (interrupting, rescheduling) = (has(INTERRUPTING), has(RESCHEDULING));
        Some(Record { stamp, pid, interrupting, rescheduling, what: shape.read(record)? })
    }
}

fn field(format: &Format, name: &'static str) -> Result<Field, ShapeError> {
    let missing = || ShapeError { event: format.name.clone(), field: name };
    format.field(name).cloned().ok_or_else(missing)
}

fn shape(format: &Format) -> Result<Option<Shape>, ShapeError> {
    let field = |name| field(format, name);
    Ok(Some(match format.name.as_str() {
        "irq_handler_entry" => Shape::HandlerEntry { line: field("irq")?, name: field("name")? },
        "irq_handler_exit" => Shape::HandlerExit { line: field("irq")? },
        name @ ("softirq_entry" | "softirq_exit") => Shape::Softirq {
            enters: name == "softirq_entry",
            vector: field("vec")?,
            names: format.names_of("vec"),
        },
        "sched_switch" => Shape::Switch {
            previous: (field("prev_pid")?, field("prev_comm")?),
            left: field("prev_state")?,
            next: (field("next_pid")?, field("next_comm")?),
        },
        "nmi_handler" => Shape::Nmi { handler: field("handler")?, duration: field("delta_ns")? },
        name @ ("page_fault_user" | "page_fault_kernel") => {
            Shape::Fault { name: name.to_owned(), at: field("ip")? }
        }
        "tlb_flush" => Shape::Flush { reason: field("reason")?, names: format.names_of("reason") },
        "csd_function_entry" => {
            Shape::Function { function: field("func")?, request: field("csd")? }
        }
        "csd_function_exit" => Shape::FunctionEnd,
        "hrtimer_expire_entry" => Shape::Timer { function: field("function")? },
        "cpu_idle" => Shape::Idle,
        "workqueue_execute_start" => Shape::Work { function: field("function")? },
        "csd_queue_cpu" => Shape::Queued {
            cpu: field("cpu")?,
            request: field("csd")?,
            callsite: field("callsite")?,
        },
        "ipi_send_cpu" => Shape::SentOne {
            cpu: field("cpu")?,
            callsite: field("callsite")?,
            callback: field("callback")?,
        },
        "ipi_send_cpumask" => Shape::SentMany {
            cpus: field("cpumask")?,
            callsite: field("callsite")?,
            callback: field("callback")?,
        },
        // Interrupts of the CPU itself, the only ones with a vector.
        name => match (format.field("vector"), name.rsplit_once('_')) {
            (Some(_), Some((name, end @ ("entry" | "exit")))) => {
                Shape::Vector { enters: end == "entry", name: name.to_owned() }
            }
            _ => return Ok(None),
        },
    }))
}

/// A number as unsigned, as for addresses.
fn address(field: &Field, record: &[u8]) -> Option<u64> {
    field.integer(record).map(i64::cast_unsigned)
}

fn thread(fields: &(Field, Field), record: &[u8]) -> Option<(u32, String)> {
    Some((u32::try_from(fields.0.integer(record)?).unwrap_or(0), fields.1.text(record)?))
}

/// The kernel's name for a number, or the number.
fn named(names: &[(i64, String)], field: &Field, record: &[u8]) -> Option<String> {
    let number = field.integer(record)?;
    let name = names.iter().find(|(value, _)| *value == number).map(|(_, name)| name.clone());
    Some(name.unwrap_or_else(|| number.to_string()))
}

/// CPUs of a mask in words.
fn mask(bytes: &[u8]) -> Vec<u32> {
    (0..)
        .zip(bytes)
        .flat_map(|(at, byte)| {
            (0..8).filter(move |bit| byte >> bit & 1 == 1).map(move |bit| at * 8 + bit)
        })
        .collect()
}

impl Shape {
    fn read(&self, record: &[u8]) -> Option<What> {
        Some(match self {
            Self::Vector { enters, name } => boundary(*enters, Kind::Irq, name.clone()),
            Self::HandlerEntry { line, name } => What::Enter {
                kind: Kind::Irq,
                name: name.text(record)?,
                line: Some(line.integer(record)?),
            },
            Self::HandlerExit { line } => {
                What::Leave { kind: Kind::Irq, name: None, line: Some(line.integer(record)?) }
            }
            Self::Softirq { enters, vector, names } => {
                boundary(*enters, Kind::Softirq, named(names, vector, record)?)
            }
            Self::Switch { previous, left, next } => What::Switch {
                previous: thread(previous, record)?,
                left: Left::of(left.integer(record)?),
                next: thread(next, record)?,
            },
            Self::Nmi { handler, duration } => What::Nmi {
                handler: address(handler, record)?,
                duration_ns: duration.integer(record)?,
            },
            Self::Fault { name, at } => {
                What::Fault { name: name.clone(), at: address(at, record)? }
            }
            Self::Flush { reason, names } => What::Flush { reason: named(names, reason, record)? },
            Self::Function { function, request } => What::Function {
                function: address(function, record)?,
                request: address(request, record)?,
            },
            Self::FunctionEnd => What::FunctionEnd,
            Self::Idle => What::Idle,
            Self::Timer { function } => What::Timer { function: address(function, record)? },
            Self::Work { function } => What::Work { function: address(function, record)? },
            Self::Queued { cpu, request, callsite } => What::Queued {
                cpu: u32::try_from(cpu.integer(record)?).ok()?,
                request: address(request, record)?,
                callsite: address(callsite, record)?,
            },
            Self::SentOne { cpu, callsite, callback } => What::Sent {
                cpus: vec![u32::try_from(cpu.integer(record)?).ok()?],
                callsite: address(callsite, record)?,
                callback: address(callback, record)?,
            },
            Self::SentMany { cpus, callsite, callback } => What::Sent {
                cpus: mask(cpus.bytes(record)?),
                callsite: address(callsite, record)?,
                callback: address(callback, record)?,
            },
        })
    }
}

fn boundary(enters: bool, kind: Kind, name: String) -> What {
    if enters {
        What::Enter { kind, name, line: None }
    } else {
        What::Leave { kind, name: Some(name), line: None }
    }
}
