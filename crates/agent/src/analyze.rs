//! `tailtrim-agent analyze`.

use crate::args::{Analyze, Stamps};
use crate::exit::Exit;
use crate::hints::Hint;
use crate::minutes::Minutes;
use crate::output::{self, failed};
use serde::Deserialize;
use std::fs;
use std::io;
use std::ops::ControlFlow;
use std::path::Path;
use tailtrim_reading::analysis::{all_cores, analyze};
use tailtrim_reading::source::{self, Reading};
use tailtrim_tables::{SampleSink, write_tables};
use tailtrim_tail::analysis::{Analysis, AnalysisError, Departures, Options, OrderError};
use tailtrim_tail::capture::{CaptureError, StampSource};
use tailtrim_tail::summary::Summary;

/// Runs the verb and prints its result.
pub(crate) fn run(request: &Analyze) -> Exit {
    let departures = match request.departures.as_deref().map(departures).transpose() {
        Ok(known) => known.unwrap_or_default(),
        Err(error) => return failed(&error, Exit::Usage),
    };
    match summary(request, departures) {
        Ok(summary) => {
            let none = summary.samples == 0;
            output::json(&summary, if none { Exit::Negative } else { Exit::Success })
        }
        Err(Refused::Order(error)) => failed(&error.told(), Exit::Usage),
        Err(Refused::Analysis(AnalysisError::Capture(error))) => failed(&error.told(), Exit::Usage),
        Err(Refused::Analysis(error)) => failed(&error.to_string(), Exit::Usage),
    }
}

/// Why captures are not analysed.
enum Refused {
    Analysis(AnalysisError),
    Order(OrderError),
}

impl From<AnalysisError> for Refused {
    fn from(error: AnalysisError) -> Self {
        Self::Analysis(error)
    }
}

impl From<CaptureError> for Refused {
    fn from(error: CaptureError) -> Self {
        Self::Analysis(error.into())
    }
}

fn summary(request: &Analyze, departures: Departures) -> Result<Summary, Refused> {
    let reading = Reading {
        stamps: match request.stamps {
            Stamps::Header => StampSource::Header,
            Stamps::X552 => StampSource::X552Trailer,
        },
        salvage: request.salvage,
    };
    let ingress = source::open(&request.ingress, reading)?;
    let egress = source::open(&request.egress, reading)?;
    let options = Options { departures, ..request.matching.options() };
    let progress = |_, _| ControlFlow::Continue(());
    if let Some(directory) = &request.out {
        fs::create_dir_all(directory)
            .and_then(|()| clear(directory))
            .map_err(AnalysisError::Sink)?;
    }
    let checked = |analysis: Analysis| match request.matching.check_order(&analysis.summary) {
        Err(error) => Err(Refused::Order(error)),
        Ok(()) => Ok(analysis),
    };
    let jobs = request.jobs.unwrap_or_else(all_cores);
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

fn departures(file: &Path) -> Result<Departures, String> {
    let read =
        fs::read_to_string(file).and_then(|text| Ok(serde_json::from_str::<Lateness>(&text)?));
    let Lateness { stalled, late } =
        read.map_err(|error| format!("{}: {error}", file.display()))?;
    Ok(Departures { stalled, late })
}
