//! Packets that are matched while they are captured.

use super::around::{Around, One};
use super::clocks::ClocksTold;
use super::{Capture, CaptureReport, locked, made};
use crate::analyze::{clear, write_result};
use crate::events;
use crate::exit::{Exit, Failure, OrFail};
use crate::minutes::{Minutes, Worst};
use crate::output;
use crate::stop::OnEnd;
use serde::Serialize;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::{self, IsTerminal as _};
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};
use tailtrim_ports::capture::{Feed, Online, online};
use tailtrim_stats::{Histogram, Probability, Ranked};
use tailtrim_tables::SampleSink;
use tailtrim_tail::analysis::{Analysis, AnalysisError, Options, Sample, Sink, Tally, analyze};
use tailtrim_tail::summary::{Summary, grouped};
use tailtrim_tail::times;

/// The taps of the device.
const TAPS: [&str; 2] = ["ingress", "egress"];

/// An analysis that is to begin.
pub(super) struct Analysing {
    sources: [Online; 2],
    sink: Watched,
    options: Options,
}

/// An analysis that runs.
pub(super) struct Running {
    thread: JoinHandle<Result<Matched, AnalysisError>>,
    second: Arc<Mutex<Second>>,
}

/// Packets that are matched to the end of both taps.
pub(super) struct Matched {
    analysis: Analysis,
    sink: Watched,
}

/// The feeds of the taps, and the analysis that is to begin.
type Begun = (BTreeMap<String, Feed>, Analysing);

/// Result of the analysis.
pub(super) struct Analysed {
    pub(super) summary: Summary,
    pub(super) around: Option<Vec<One>>,
}

/// Packets that were matched since the last line.
#[derive(Default)]
struct Second {
    latencies: Histogram,
    worst: Option<Sample>,
    /// Samples and lost packets since the begin.
    samples: u64,
    lost: u64,
    /// The lost packets were counted since the last line.
    told: bool,
}

/// A line of [`Second`].
#[derive(Serialize)]
struct Line {
    seconds: u64,
    /// Packets at each tap since the begin.
    packets: BTreeMap<String, u64>,
    /// Samples and lost packets since the begin, the trim left out.
    samples: u64,
    lost: u64,
    /// Of the samples of this second; quantiles without a sample are left out.
    latency_ns: BTreeMap<&'static str, i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    worst: Option<Worst>,
}

impl Analysing {
    /// The feeds and the analysis for a request; `None` where it asks for captures only.
    pub(super) fn of(request: &Capture) -> Result<Option<Begun>, Failure> {
        if request.analyze.is_none() && !request.live {
            return Ok(None);
        }
        let mut names: Vec<&str> = request.taps.iter().map(|(name, _)| name.as_str()).collect();
        names.sort_unstable_by(|one, other| other.cmp(one));
        if names != TAPS {
            return Err(Failure::usage(format!(
                "--analyze and --live match what passes two taps, found {}, expected \
                 --tap ingress=PORT --tap egress=PORT",
                names.join(" and ")
            )));
        }
        if let Some(folder) = &request.analyze {
            made(folder)?;
        }
        let open = |name: &str| online(name, request.snap, name == TAPS[1]).or_fail(Exit::Usage);
        let ((into, mut ingress), (out_of, mut egress)) = (open(TAPS[0])?, open(TAPS[1])?);
        let feeds = TAPS.map(str::to_owned).into_iter().zip([into, out_of]).collect();
        if let Some(folder) = &request.analyze {
            let told =
                |error| format!("{}: earlier results cannot be removed: {error}", folder.display());
            clear(folder).map_err(told).or_fail(Exit::Usage)?;
        }
        let kept = match &request.analyze {
            Some(folder) if request.by_minute => {
                let keep_ns = Around::keep_ns(request.matching.window);
                let taps = [&mut ingress, &mut egress].map(|tap| tap.keep(request.snap, keep_ns));
                let [one, other] = taps;
                Minutes::create(folder).and_then(|minutes| {
                    let taps = [(TAPS[0], one), (TAPS[1], other)];
                    let around = Around::create(folder, taps, !Self::tells_people(request))?;
                    Ok(Kept::Minutes(Box::new(minutes), around))
                })
            }
            folder => SampleSink::new(false, folder.as_deref())
                .map(|files| Kept::Samples(Box::new(files))),
        };
        let told = |error| format!("results cannot be written: {error}");
        let kept = kept.map_err(told).or_fail(Exit::Usage)?;
        let sink = Watched { kept, second: Arc::default(), passed: Vec::new(), failed: None };
        let options = request.matching.options();
        Ok(Some((feeds, Self { sources: [ingress, egress], sink, options })))
    }

    /// Whether people read the output.
    pub(super) fn tells_people(request: &Capture) -> bool {
        request.live && io::stdout().is_terminal()
    }

    /// Begins to match. An analysis that fails ends captures that are not kept as files.
    pub(super) fn start(self, request: &Capture, stopped: &Arc<AtomicBool>) -> Running {
        let second = Arc::clone(&self.sink.second);
        let ends = request.out.is_none().then(|| OnEnd(Arc::clone(stopped)));
        let thread = thread::spawn(move || {
            let _ends = ends;
            self.run()
        });
        Running { thread, second }
    }

    fn run(mut self) -> Result<Matched, AnalysisError> {
        let [ingress, egress] = &mut self.sources;
        let go_on = |_, _| ControlFlow::Continue(());
        let analysis = analyze(ingress, egress, &self.options, &mut self.sink, go_on)?;
        Ok(Matched { analysis, sink: self.sink })
    }
}

impl Matched {
    /// Writes the last minute of a run by minute whose tap failed. No summary is written: the analysis cannot tell a tap
    /// that failed from one that ended.
    pub(super) fn broken_off(self) -> io::Result<()> {
        match self.sink.kept {
            Kept::Samples(_) => Ok(()),
            Kept::Minutes(mut minutes, _) => minutes.close(self.analysis.summary.ingress.lost),
        }
    }

    /// Writes the result, once all taps have ended as they should.
    pub(super) fn written(
        self,
        request: &Capture,
        clocks: Option<&ClocksTold>,
    ) -> Result<Analysed, Failure> {
        let Self { mut analysis, sink } = self;
        if let Some(clocks) = clocks {
            clocks.tell(&mut analysis.summary);
        }
        request.matching.check_order(&analysis).or_hint(Exit::Usage)?;
        let Some(folder) = &request.analyze else {
            return Ok(Analysed { summary: analysis.summary, around: None });
        };
        let around = sink.close(&analysis.summary).and_then(|around| {
            write_result(folder, &analysis)?;
            Ok(around)
        });
        let around = around.or_unwritable(folder, Exit::Disturbed)?;
        Ok(Analysed { summary: analysis.summary, around })
    }
}

impl Running {
    /// A function that prints the line of a second.
    pub(super) fn lines(
        &self,
        request: &Capture,
        seen: &[Arc<AtomicU64>],
    ) -> impl Fn(u64) + Send + use<> {
        let names = request.taps.iter().map(|(name, _)| name.clone());
        let taps: Vec<(String, Arc<AtomicU64>)> = names.zip(seen.iter().cloned()).collect();
        let second = Arc::clone(&self.second);
        let to_people = Analysing::tells_people(request);
        move |seconds| {
            let line = Line::of(&mut locked(&second), seconds, &taps);
            if to_people {
                // An error means that the reader has closed the terminal.
                let _ = output::try_write(&line.text());
            } else {
                events::live(&line);
            }
        }
    }

    /// Waits until all packets are matched.
    pub(super) fn end(self) -> Result<Matched, Failure> {
        let ended = self.thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        ended.map_err(|error| Failure::disturbed(format!("the packets cannot be matched: {error}")))
    }
}

impl Line {
    /// Makes a line of the packets since the last one, and empties the counts.
    fn of(second: &mut Second, seconds: u64, taps: &[(String, Arc<AtomicU64>)]) -> Self {
        let latencies = Ranked::new(&std::mem::take(&mut second.latencies));
        let quantiles =
            [("p50", Probability::P50), ("p99", Probability::P99), ("p99.9", Probability::P99_9)];
        let told = quantiles.map(|(name, p)| (name, latencies.quantile(p)));
        let most = [("max", latencies.entries().last().map(|(ns, _)| *ns))];
        let worst = second.worst.take();
        second.told = false;
        Self {
            seconds,
            packets: taps
                .iter()
                .map(|(name, seen)| (name.clone(), seen.load(Ordering::Relaxed)))
                .collect(),
            samples: second.samples,
            lost: second.lost,
            latency_ns: told
                .into_iter()
                .chain(most)
                .filter_map(|(name, ns)| Some((name, ns?)))
                .collect(),
            worst: worst.map(Worst::from),
        }
    }

    fn text(&self) -> String {
        let mut text = format!("{} s:", self.seconds);
        for name in TAPS {
            let _ = write!(
                text,
                " {} at {name},",
                grouped(self.packets.get(name).copied().unwrap_or(0))
            );
        }
        let _ = write!(text, " {} lost; last second", grouped(self.lost));
        let known = ["p50", "p99", "p99.9", "max"]
            .into_iter()
            .filter_map(|name| Some((name, *self.latency_ns.get(name)?)));
        let known: Vec<(&str, i64)> = known.collect();
        let told = if known.is_empty() { "–".to_owned() } else { times::listed(&known) };
        text + " " + &told + "\n"
    }
}

/// The last lines, for people.
pub(super) fn ended(report: &CaptureReport) -> String {
    let mut text = String::new();
    if let Some(analysis) = &report.analysis {
        let _ = write!(
            text,
            "{} entered, {} left, {} matched, {} lost, {} samples.",
            grouped(analysis.ingress.packets),
            grouped(analysis.egress.packets),
            grouped(analysis.ingress.matched),
            grouped(analysis.ingress.lost),
            grouped(analysis.samples),
        );
        let quantiles = &analysis.latency_ns.quantiles;
        let names: Vec<String> =
            quantiles.iter().map(|quantile| format!("p{}", quantile.p.percent_text())).collect();
        let named = names.iter().zip(quantiles);
        let known: Vec<(&str, i64)> =
            named.filter_map(|(name, quantile)| Some((name.as_str(), quantile.value?))).collect();
        let told = if known.is_empty() {
            String::new()
        } else {
            format!(" Latency {}.", times::listed(&known))
        };
        let _ = writeln!(text, "{told}");
    }
    for (name, tapped) in &report.taps {
        if tapped.dropped > 0 {
            let _ = writeln!(
                text,
                "The tap {name} dropped {} frames{}. Give it more memory with --buffer.",
                grouped(tapped.dropped),
                if name == "egress" { ": their packets count as lost" } else { "" },
            );
        }
    }
    for (name, tapped) in &report.taps {
        if tapped.dropped > 0
            && let Some(waited_ns) = tapped.disk_waited_ns.filter(|ns| *ns > 0)
        {
            let waited_ms = grouped(waited_ns.unsigned_abs() / 1_000_000);
            let _ = writeln!(text, "The tap {name} waited {waited_ms} ms for its disk.");
        }
    }
    text += &report.clocks.as_ref().map_or_else(String::new, ClocksTold::text);
    for step in &report.clock_steps {
        let _ = writeln!(
            text,
            "The clock was set {} ms {}: latencies across that are wrong by as much.",
            grouped(step.by_ns.unsigned_abs() / 1_000_000),
            if step.by_ns < 0 { "back" } else { "ahead" },
        );
    }
    if let Some(cpu_s) = report.cpu_s {
        let _ = writeln!(text, "Taps and analysis took {cpu_s:.1} s of CPU time.");
    }
    text
}

/// Takes samples: for the files, and for the line of each second.
struct Watched {
    kept: Kept,
    second: Arc<Mutex<Second>>,
    /// Samples since the lock was taken last.
    passed: Vec<Sample>,
    /// The error at which the files could not be written.
    failed: Option<io::Error>,
}

/// Content of the files.
enum Kept {
    /// Each sample, or nothing.
    Samples(Box<SampleSink>),
    /// Minutes and the surroundings of the worst packets: little, however long it takes.
    Minutes(Box<Minutes>, Around),
}

impl Watched {
    fn close(self, summary: &Summary) -> io::Result<Option<Vec<One>>> {
        if let Some(error) = self.failed {
            return Err(error);
        }
        match self.kept {
            Kept::Samples(mut files) => files.close().map(|()| None),
            Kept::Minutes(mut minutes, around) => {
                minutes.close(summary.ingress.lost)?;
                around.finish().map(Some)
            }
        }
    }
}

impl Sink for Watched {
    fn sample(&mut self, sample: &Sample) -> io::Result<()> {
        if let Some(error) = self.failed.take() {
            return Err(error);
        }
        self.passed.push(*sample);
        match &mut self.kept {
            Kept::Samples(files) => files.sample(sample),
            Kept::Minutes(minutes, _) => minutes.sample(sample),
        }
    }

    fn decided(&mut self, now_ns: i64, counts: &Tally, overdue: &dyn Fn() -> u64) {
        let worst = self.passed.iter().copied().max_by_key(Sample::latency_ns);
        if let Kept::Minutes(minutes, around) = &mut self.kept {
            minutes.decided(now_ns, counts, overdue);
            self.failed = self.failed.take().or(around.take(worst).err());
        }
        let mut second = locked(&self.second);
        if !second.told {
            second.lost = counts.lost() + overdue();
            second.told = true;
        }
        second.samples += self.passed.len() as u64;
        second.latencies.record_all(self.passed.iter().map(Sample::latency_ns));
        second.worst = worst.into_iter().chain(second.worst).max_by_key(Sample::latency_ns);
        self.passed.clear();
    }
}
