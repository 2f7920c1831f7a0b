//! `tailtrim-agent analyze`.

use crate::exit::{Exit, Failure, OrFail, Outcome};
use crate::minutes::Minutes;
use crate::options::{Matching, one_of};
use crate::output;
use serde::Deserialize;
use std::fs;
use std::io;
use std::num::NonZeroUsize;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use tailtrim_reading::analysis::{all_cores, analyze};
use tailtrim_reading::source::{self, Reading};
use tailtrim_tables::{SampleSink, write_tables};
use tailtrim_tail::analysis::{Analysis, AnalysisError, Departures, Options};
use tailtrim_tail::capture::{InterfaceDirection, Only, StampSource};
use tailtrim_tail::directions::Direction;
use tailtrim_tail::summary::Summary;

/// Match an ingress and an egress capture, and print the summary as JSON.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  \
    tailtrim-agent analyze ingress.pcap.zst egress.pcap.zst\n  \
    tailtrim-agent analyze pre.pcap post.pcap --mask nat --quantile 0.9999999\n  \
    zcat pre.pcap.gz | tailtrim-agent analyze - post.pcap.gz --signature 42:4 | jq .latency_ns")]
pub(crate) struct Analyze {
    /// Capture of the packets that enter the device under test (pcap, pcapng, ERF, mscap; .zst, .gz; - for stdin)
    ingress: PathBuf,
    /// Capture of the packets that leave it
    egress: PathBuf,
    #[command(flatten)]
    matching: Matching,
    /// Source of the time stamps
    #[arg(long, value_name = "SOURCE", value_parser = one_of(STAMPS), default_value = "header")]
    stamps: StampSource,
    /// Packets of the ingress capture to read: an interface by number, name or description, with :in or :out behind it
    #[arg(long = "ingress", value_name = "INTERFACE")]
    ingress_interface: Option<String>,
    /// The same of the egress capture, which may be the same file
    #[arg(long = "egress", value_name = "INTERFACE")]
    egress_interface: Option<String>,
    /// Of captures with packets of both directions, those that go this way
    #[arg(long, value_parser = one_of(DIRECTIONS))]
    direction: Option<Direction>,
    /// Analyse a damaged capture up to the damage
    #[arg(long)]
    salvage: bool,
    /// When the generator was not up to its schedule: JSON with stalled and late, lists of [from, to] in ns
    #[arg(long, value_name = "FILE")]
    lateness: Option<PathBuf>,
    /// Correct the clocks of the taps: steps and drift that the fastest packets show. Captures are read twice
    #[arg(long)]
    clock_fit: bool,
    /// Cores to use at most [default: all]
    #[arg(long, value_name = "N")]
    jobs: Option<NonZeroUsize>,
    /// Directory for the tables as Parquet files, and the summary; created if missing
    #[arg(short, long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// With --out, for captures of hours: results by minute as each minute ends (minute.jsonl, minute.hlog), and no
    /// sample.parquet
    #[arg(long, requires = "out")]
    by_minute: bool,
}

const STAMPS: &[(&str, &str, StampSource)] = &[
    ("header", "The record headers of the capture", StampSource::Header),
    (
        "nanoseconds",
        "The same, whose fractions of seconds are nanoseconds although a pcap says microseconds",
        StampSource::Nanoseconds,
    ),
    (
        "x552",
        "The last eight bytes of each frame, appended by an X552 NIC",
        StampSource::X552Trailer,
    ),
];

const DIRECTIONS: &[(&str, &str, Direction)] = &[
    ("forward", "From the ingress tap to the egress tap", Direction::Forward),
    ("reverse", "From the egress tap to the ingress tap", Direction::Reverse),
];

/// Runs the verb and prints its result.
pub(crate) fn run(request: &Analyze) -> Outcome {
    let departures = request.lateness.as_deref().map(departures).transpose()?;
    let summary = summary(request, departures.unwrap_or_default())?;
    output::json(&summary, if summary.is_negative() { Exit::Negative } else { Exit::Success })
}

impl From<AnalysisError> for Failure {
    fn from(error: AnalysisError) -> Self {
        match error {
            AnalysisError::Capture(error) => Self::hinted(&error, Exit::Usage),
            error => Self::usage(error),
        }
    }
}

fn summary(request: &Analyze, departures: Departures) -> Result<Summary, Failure> {
    let open = |capture: &Path, interface: Option<&String>, side: InterfaceDirection| {
        let only = interface.map(|interface| Only::named(interface, side));
        let reading = Reading { stamps: request.stamps, salvage: request.salvage, only };
        source::open(capture, reading).or_hint(Exit::Usage)
    };
    let ingress =
        open(&request.ingress, request.ingress_interface.as_ref(), InterfaceDirection::In)?;
    let egress = open(&request.egress, request.egress_interface.as_ref(), InterfaceDirection::Out)?;
    let direction = request.direction;
    let fit_clocks = request.clock_fit;
    let options = Options { departures, direction, fit_clocks, ..request.matching.options() };
    let jobs = request.jobs.unwrap_or_else(all_cores);
    let progress = |_, _| ControlFlow::Continue(());
    if let Some(directory) = &request.out {
        fs::create_dir_all(directory)
            .and_then(|()| clear(directory))
            .map_err(AnalysisError::Sink)?;
    }
    let checked = |analysis: Analysis| {
        request.matching.check_order(&analysis).or_hint(Exit::Usage).map(|()| analysis)
    };
    if let (Some(directory), true) = (&request.out, request.by_minute) {
        let mut sink = Minutes::create(directory).map_err(AnalysisError::Sink)?;
        let analysis = checked(analyze(ingress, egress, jobs, &options, &mut sink, progress)?)?;
        sink.close(analysis.summary.ingress.lost)
            .and_then(|()| write_result(directory, &analysis))
            .map_err(AnalysisError::Sink)?;
        return Ok(analysis.summary);
    }
    let mut sink = SampleSink::new(false, request.out.as_deref()).map_err(AnalysisError::Sink)?;
    let analysis = checked(analyze(ingress, egress, jobs, &options, &mut sink, progress)?)?;
    if let Some(directory) = &request.out {
        sink.close()
            .and_then(|()| write_result(directory, &analysis))
            .map_err(AnalysisError::Sink)?;
    }
    Ok(analysis.summary)
}

/// Removes files of an earlier analysis that this one may not write. The summary goes first: without it no command
/// takes a directory for a run.
pub(crate) fn clear(directory: &Path) -> io::Result<()> {
    for name in ["summary.json", "sample.parquet", "minute.jsonl", "minute.hlog"] {
        gone(fs::remove_file(directory.join(name)))?;
    }
    let around = directory.join("around");
    let Some(entries) = gone(fs::read_dir(&around))? else { return Ok(()) };
    for entry in entries {
        let entry = entry?;
        // Files that others put there stay.
        let name = entry.file_name();
        let name = name.to_string_lossy();
        if name.ends_with("-ingress.pcap.zst") || name.ends_with("-egress.pcap.zst") {
            gone(fs::remove_file(entry.path()))?;
        }
    }
    match fs::remove_dir(&around) {
        Err(error) if error.kind() == io::ErrorKind::DirectoryNotEmpty => Ok(()),
        removed => gone(removed).map(|_| ()),
    }
}

/// [`None`] where there is nothing of that name.
pub(crate) fn gone<T>(removed: io::Result<T>) -> io::Result<Option<T>> {
    match removed {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        removed => removed.map(Some),
    }
}

/// Writes the tables and, last, the summary.
pub(crate) fn write_result(directory: &Path, analysis: &Analysis) -> io::Result<()> {
    write_tables(directory, analysis)?;
    let text = serde_json::to_string_pretty(&analysis.summary)?;
    fs::write(directory.join("summary.json"), text + "\n")
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Lateness {
    stalled: Vec<(i64, i64)>,
    late: Vec<(i64, i64)>,
}

fn departures(file: &Path) -> Result<Departures, Failure> {
    let read = fs::read_to_string(file).and_then(|text| Ok(serde_json::from_str(&text)?));
    let Lateness { stalled, late } =
        read.map_err(|error| Failure::usage(format!("{}: {error}", file.display())))?;
    Ok(Departures { stalled, late })
}
