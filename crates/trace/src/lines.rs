//! `events.jsonl`: a header, then one event a line.

use super::Event;
use super::phc::Chain;
use serde::{Deserialize, Serialize};

/// Name of the format in the first line.
pub const SCHEMA: &str = "tailtrim.events/1";

/// The first line.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Header {
    /// [`SCHEMA`].
    pub schema: String,
    /// Error bound of an event's time against a packet stamp, either way.
    pub error_ns: i64,
    /// Number of events of kind `hole`.
    pub holes: u64,
    /// The CPUs that were watched, as a list such as `1,3-5`.
    pub cpus: String,
    /// Events that this kernel does not have.
    pub missing: Vec<String>,
    /// Source of the events; older files, without it, are all of tracefs.
    #[serde(default)]
    pub source: Source,
    /// The clocks of NICs, where there are any.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub clocks: Vec<Chain>,
    /// When recording began.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub armed_ns: Option<i64>,
    /// When it ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub disarmed_ns: Option<i64>,
    /// Intervals between looks in which the device was throttled, if it was and its process is known.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub throttled: Vec<Throttled>,
}

/// Time for which the control group of the device had used its quota of CPU time up, between two looks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Throttled {
    /// The look before.
    pub from_ns: i64,
    /// The look that found it: the quota had been renewed by then.
    pub until_ns: i64,
    /// Throttled time.
    pub throttled_ns: i64,
}

/// Source of the events, from the most to the least informative.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Source {
    /// An instance of tracefs, stamped by the time-stamp counter.
    #[default]
    Tracefs,
    /// The same events by `perf_event_open`, stamped by `CLOCK_MONOTONIC_RAW`.
    Perf,
    /// No source of events: only the counters of interrupts, ten times a second. They show causes
    /// for many packets together, never for a single one.
    Counters,
}

impl Source {
    /// As in the file.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Tracefs => "tracefs",
            Self::Perf => "perf",
            Self::Counters => "counters",
        }
    }
}

/// Why a line is not a header or an event.
#[derive(Debug, thiserror::Error)]
pub enum LineError {
    /// It has another shape.
    #[error(
        "line {number}: {source}; expected the header or an event of {SCHEMA}; record the trace again or \
         remove what follows line {}", number.saturating_sub(1)
    )]
    Json {
        /// Lines before it, plus one.
        number: usize,
        /// The error of serde.
        source: serde_json::Error,
    },
    /// The first line names another schema.
    #[error(
        "line 1: the schema is {0:?}; expected {SCHEMA:?} as written by `tailtrim-agent trace`"
    )]
    Schema(String),
    /// An event that ends before it starts.
    #[error("line {number}: the event ends {by_ns} ns before it starts; record the trace again")]
    Backwards {
        /// Lines before it, plus one.
        number: usize,
        /// Difference.
        by_ns: i64,
    },
}

impl Header {
    /// Reads the first line.
    ///
    /// # Errors
    /// It is not a header of this schema.
    pub fn parse(line: &str) -> Result<Self, LineError> {
        let header: Self =
            serde_json::from_str(line).map_err(|source| LineError::Json { number: 1, source })?;
        if header.schema == SCHEMA { Ok(header) } else { Err(LineError::Schema(header.schema)) }
    }
}

/// Reads a line that is not the first one.
///
/// # Errors
/// It is not an event.
pub fn parse(number: usize, line: &str) -> Result<Event, LineError> {
    let event: Event =
        serde_json::from_str(line).map_err(|source| LineError::Json { number, source })?;
    let by_ns = event.start_ns.saturating_sub(event.end_ns);
    if by_ns > 0 { Err(LineError::Backwards { number, by_ns }) } else { Ok(event) }
}

/// Appends a line: the header or an event.
///
/// # Errors
/// Those of serde; there are none for the types of this module.
pub fn append<T: Serialize>(text: &mut Vec<u8>, line: &T) -> serde_json::Result<()> {
    serde_json::to_writer(&mut *text, line)?;
    text.push(b'\n');
    Ok(())
}

/// Reads a whole file.
///
/// # Errors
/// The first line that is wrong.
pub fn read(text: &str) -> Result<(Header, Vec<Event>), LineError> {
    let mut lines = text.lines().enumerate();
    let header = Header::parse(lines.next().map_or("", |(_, line)| line))?;
    let events =
        lines.map(|(before, line)| parse(before + 1, line)).collect::<Result<_, LineError>>()?;
    Ok((header, events))
}

#[cfg(test)]
mod tests {
    use super::super::{Kind, Sender};
    use super::*;
    use proptest::prelude::*;

    fn header() -> Header {
        Header {
            schema: SCHEMA.into(),
            error_ns: 120,
            holes: 0,
            cpus: "1".into(),
            missing: vec!["csd:csd_function_entry".into()],
            source: Source::Perf,
            clocks: Vec::new(),
            armed_ns: Some(1),
            disarmed_ns: Some(9),
            throttled: vec![Throttled { from_ns: 2, until_ns: 8, throttled_ns: 3 }],
        }
    }

    #[test]
    fn the_shape_on_disk() {
        let event = Event {
            cpu: 1,
            start_ns: 5,
            end_ns: 7,
            kind: Kind::Irq,
            name: "call_function_single".into(),
            detail: Some("flush_tlb_func".into()),
            sender: Some(Sender { pid: 812, comm: "a\"b".into(), function: None, sent_ns: None }),
            left: None,
        };
        let mut text = Vec::new();
        append(&mut text, &header()).unwrap();
        append(&mut text, &event).unwrap();
        let text = String::from_utf8(text).unwrap();
        assert!(text.starts_with(r#"{"schema":"tailtrim.events/1","error_ns":120,"holes":0,"cpus":"1","missing":["csd:csd_function_entry"],"source":"perf","armed_ns":1"#));
        assert!(text.ends_with(
            "{\"cpu\":1,\"start_ns\":5,\"end_ns\":7,\"kind\":\"irq\",\"name\":\"call_function_single\",\
             \"detail\":\"flush_tlb_func\",\"sender\":{\"pid\":812,\"comm\":\"a\\\"b\"}}\n"
        ));
        assert_eq!(read(&text).unwrap(), (header(), vec![event]));
    }

    #[test]
    fn older_files_are_of_tracefs() {
        let old =
            r#"{"schema":"tailtrim.events/1","error_ns":0,"holes":0,"cpus":"1","missing":[]}"#;
        let header = Header::parse(old).unwrap();
        assert_eq!((header.source, header.clocks), (Source::Tracefs, vec![]));
    }

    #[test]
    fn what_is_wrong_is_told_with_its_line() {
        let error = read(
            "{\"schema\":\"other/1\",\"error_ns\":0,\"holes\":0,\"cpus\":\"\",\"missing\":[]}",
        );
        assert!(error.unwrap_err().to_string().contains("other/1"));
        let event = r#"{"cpu":0,"start_ns":9,"end_ns":5,"kind":"gap","name":""}"#;
        assert!(
            parse(7, event).unwrap_err().to_string().starts_with("line 7: the event ends 4 ns")
        );
        assert!(parse(8, "{}").unwrap_err().to_string().starts_with("line 8: missing field"));
    }

    proptest! {
        #[test]
        fn any_text_is_read_or_refused(text in "\\PC*") {
            let _ = read(&text);
            let _ = parse(1, &text);
        }
    }
}
