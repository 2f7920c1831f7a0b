//! Tracing for real, as root: a disturbance that is known shows, and nothing is left behind.
#![allow(
    clippy::disallowed_methods,
    reason = "what does not happen must not keep a test waiting for ever"
)]

mod counter;
mod mounts;
mod ring;
mod sources;

use crate::skip::skipped;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};
use tailtrim_host::Cpus;
use tailtrim_sys::placement::Placement;
use tailtrim_trace::axis::Axis;
use tailtrim_trace::blame::{Gap, Own, blame};
use tailtrim_trace::lines::Source;
use tailtrim_trace::{Event, Kind};
use tailtrim_tracer::clock::{self, Clock, Counter};
use tailtrim_tracer::noise::{self, Measuring, Mode, NoiseError};
use tailtrim_tracer::trace::{Recorder, Request, Trace};

const OWN: Own<'_> = Own { comm: noise::THREAD, polls: true };
const INSTANCES: &str = "/sys/kernel/tracing/instances";
/// Set for the process that is killed while it traces.
const VICTIM: &str = "TAILTRIM_TEST_TRACE_VICTIM";
/// A process has one trace at a time.
static ONE: Mutex<()> = Mutex::new(());

/// The CPU to measure and one to disturb it from. `None`, with a message, where tracing cannot work.
fn prepared() -> Option<(MutexGuard<'static, ()>, u32, u32)> {
    if !Path::new(INSTANCES).is_dir() {
        skipped("needs root and tracefs at /sys/kernel/tracing");
        return None;
    }
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let allowed = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:")).unwrap();
    let cpus: Vec<u32> = allowed.trim().parse::<Cpus>().unwrap().iter().collect();
    if cpus.len() < 2 {
        skipped("needs two CPUs");
        return None;
    }
    if let Err(error) = clock::check_counter() {
        skipped(error);
        return None;
    }
    let guard = ONE.lock().unwrap_or_else(PoisonError::into_inner);
    Some((guard, cpus[cpus.len() - 1], cpus[0]))
}

fn request(cpu: u32) -> Request {
    by(cpu, Source::Tracefs)
}

fn by(cpu: u32, source: Source) -> Request {
    Request { cpus: [cpu].into_iter().collect(), buffer_mb: 32, source: Some(source), device: None }
}

fn pin(cpu: u32) {
    Placement::take(Some(cpu as usize), false).unwrap();
}

fn left(pid: u32) -> Vec<String> {
    let names = std::fs::read_dir(INSTANCES).unwrap();
    let names = names.map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned());
    names.filter(|name| name.starts_with(&format!("tailtrim-{pid}"))).collect()
}

/// Records a polling loop on a CPU while something happens. With real-time priority, other work of this machine does
/// not take the CPU.
fn measured(
    source: Source,
    cpu: u32,
    fifo: bool,
    disturb: impl FnOnce() + Send,
) -> (Trace, Vec<Gap>) {
    let mut recorder = Recorder::prepare(&by(cpu, source)).unwrap();
    let before = clock::read(Clock::Realtime);
    let stopped = AtomicBool::new(false);
    let mut measured = Vec::new();
    thread::scope(|scope| {
        let (begun, begins) = std::sync::mpsc::channel();
        let stopped = &stopped;
        scope.spawn(move || {
            begins.recv().unwrap();
            disturb();
            stopped.store(true, Ordering::Release);
        });
        let during = |threads: &Measuring<'_>| {
            recorder.arm().unwrap();
            begun.send(()).unwrap();
            threads.run(None);
            Ok::<(), NoiseError>(())
        };
        let cpus = [cpu].into_iter().collect();
        let mode = Mode::Poll { threshold_ticks: 2_000 };
        measured = noise::measure(&cpus, mode, fifo, stopped, during).unwrap();
    });
    let own = Axis::fit(before, clock::read(Clock::Realtime), &[]).unwrap();
    let trace = recorder.finish().unwrap();
    let axis = if trace.counter == Counter::Tsc { trace.axis } else { own };
    let at = |ticks: u64| axis.ns(ticks);
    let gaps = measured[0].gaps.iter();
    let gaps = gaps.map(|(start, end)| Gap { cpu, start_ns: at(*start), end_ns: at(*end) });
    let gaps = gaps.collect();
    (trace, gaps)
}

fn named<'a>(events: &'a [Event], kind: Kind, name: &str) -> Vec<&'a Event> {
    events.iter().filter(|event| event.kind == kind && event.name == name).collect()
}

/// Frees memory, which has to be removed from the translations of every CPU that runs a thread of the process.
fn shoot(from: u32, calls: usize) {
    pin(from);
    for _ in 0..calls {
        // So large that the allocator gives it back at once.
        let mut memory = vec![0_u8; 64 << 20];
        memory[1 << 20] = 1;
        drop(std::hint::black_box(memory));
        thread::sleep(Duration::from_millis(1));
    }
}

/// Runs two threads on a CPU, each of which yields to the other at once, while `goes_on` returns true. Its argument is
/// the number of switches so far.
fn yield_to_each_other(cpu: u32, goes_on: impl Fn(u64) -> bool + Sync) {
    let (last, turns) = (AtomicU32::new(0), AtomicU64::new(0));
    let yielding = |me| {
        pin(cpu);
        while goes_on(turns.load(Ordering::Relaxed)) {
            if last.swap(me, Ordering::Relaxed) != me {
                turns.fetch_add(1, Ordering::Relaxed);
            }
            thread::yield_now();
        }
    };
    thread::scope(|scope| {
        for me in [1, 2] {
            let yielding = &yielding;
            scope.spawn(move || yielding(me));
        }
    });
}

/// Several times as many switches of 64 bytes as a buffer of 1 MB has room for.
fn overfill(cpu: u32) {
    yield_to_each_other(cpu, |turns| turns < 100_000);
}

/// Number of a CPU's timer interrupts, by the kernel's own count.
fn timer_interrupts(cpu: u32) -> u64 {
    let table = std::fs::read_to_string("/proc/interrupts").unwrap();
    let (head, rows) = table.split_once('\n').unwrap();
    let cpu = format!("CPU{cpu}");
    let column = head.split_whitespace().position(|name| name == cpu).unwrap();
    let local = rows.lines().find_map(|row| row.trim_start().strip_prefix("LOC:")).unwrap();
    local.split_whitespace().nth(column).unwrap().parse().unwrap()
}

/// CPU time of the calling thread, in units of 10 ms (utime and stime of proc(5)).
fn own_cpu_time() -> u64 {
    let stat = std::fs::read_to_string("/proc/thread-self/stat").unwrap();
    let (_, fields) = stat.rsplit_once(") ").unwrap();
    fields.split(' ').skip(11).take(2).map(|field| field.parse::<u64>().unwrap()).sum()
}

#[test]
fn a_shootdown_is_an_interrupt_with_its_sender() {
    let Some((_one, cpu, other)) = prepared() else { return };
    let calls = 200;
    let (trace, gaps) = measured(Source::Tracefs, cpu, true, || shoot(other, calls));
    let flush = |event: &&Event| {
        event.kind == Kind::Irq && event.detail.as_deref().is_some_and(|f| f.contains("flush_tlb"))
    };
    let flushes: Vec<_> = trace.events.iter().filter(flush).collect();
    // While another thread has the CPU, it flushes later, without an interrupt.
    assert!(flushes.len() > calls / 5, "{} of {calls}: {:?}", flushes.len(), trace.counts);
    let known = flushes.iter().filter(|event| event.sender.is_some()).count();
    assert!(known * 10 >= flushes.len() * 9, "{known} of {}", flushes.len());
    for event in &flushes {
        assert!(event.name.starts_with("call_function"), "{event:?}");
    }
    // The loop saw the interrupts, too.
    let causes = blame(&gaps, &trace.events, OWN, trace.header.error_ns);
    let of = causes.iter().filter(|c| c.detail.as_deref().is_some_and(|f| f.contains("flush_tlb")));
    let seen: u64 = of.map(|cause| cause.gaps).sum();
    assert!(seen as usize > flushes.len() / 2, "{seen} of {}: {causes:#?}", flushes.len());
    assert!(left(std::process::id()).is_empty());
}

#[test]
fn a_thread_that_competes_is_named() {
    let Some((_one, cpu, _)) = prepared() else { return };
    let (trace, gaps) = measured(Source::Tracefs, cpu, false, || {
        let hog = thread::Builder::new().name("tt-hog".to_owned());
        let hog = hog.spawn(move || {
            // With a higher priority than the loop and this machine's other work.
            drop(Placement::take(Some(cpu as usize), true).unwrap());
            let before = own_cpu_time();
            while own_cpu_time() - before < 30 {}
        });
        hog.unwrap().join().unwrap();
    });
    let hogs = named(&trace.events, Kind::Thread, "tt-hog");
    let had_ns: i64 = hogs.iter().map(|event| event.end_ns - event.start_ns).sum();
    assert!(had_ns > 20_000_000, "{had_ns} ns in {hogs:?}");
    let causes = blame(&gaps, &trace.events, OWN, trace.header.error_ns);
    let hog = causes.iter().find(|cause| cause.name == "tt-hog").unwrap();
    assert!(hog.covered_ns > had_ns / 2 && hog.covered_ns * 10 > hog.total_ns * 7, "{causes:#?}");
    // The loop itself is there with its process id.
    let own = named(&trace.events, Kind::Thread, noise::THREAD);
    assert!(own.iter().any(|event| event.detail.as_deref().unwrap().starts_with("pid ")));
}

#[test]
fn a_full_buffer_is_a_hole() {
    let Some((_one, cpu, _)) = prepared() else { return };
    let mut small = request(cpu);
    small.buffer_mb = 1;
    let mut recorder = Recorder::prepare(&small).unwrap();
    recorder.arm().unwrap();
    overfill(cpu);
    let trace = recorder.finish().unwrap();
    let holes: Vec<_> = trace.events.iter().filter(|event| event.kind == Kind::Hole).collect();
    assert!(!holes.is_empty() && trace.counts.lost > 0, "{:?}", trace.counts);
    assert_eq!(trace.header.holes, holes.len() as u64);
    // Within other holes, switches that this kernel hides, there are interrupts.
    for hole in holes.iter().filter(|hole| hole.name == "lost") {
        let within =
            |event: &&Event| event.start_ns > hole.start_ns && event.start_ns < hole.end_ns;
        assert_eq!(trace.events.iter().find(within), None);
    }
}

#[test]
fn nothing_is_left_even_of_a_killed_process() {
    if std::env::var_os(VICTIM).is_some() {
        let (_one, cpu, _) = prepared().unwrap();
        let mut recorder = Recorder::prepare(&request(cpu)).unwrap();
        recorder.arm().unwrap();
        println!("armed");
        thread::sleep(Duration::from_secs(60));
        return;
    }
    let test = "trace::nothing_is_left_even_of_a_killed_process";
    let Some((_one, cpu, _)) = prepared() else { return };
    let mut victim = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", test, "--nocapture"])
        .env(VICTIM, "1")
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    let pid = victim.id();
    let start = Instant::now();
    let armed = |name: &String| {
        let on = std::fs::read_to_string(format!("{INSTANCES}/{name}/tracing_on"));
        on.is_ok_and(|on| on.trim() == "1")
    };
    while !(left(pid).len() == 2 && left(pid).iter().all(armed)) {
        assert!(start.elapsed() < Duration::from_secs(30), "not armed: {:?}", left(pid));
        thread::sleep(Duration::from_millis(10));
    }
    // A process that lives keeps its instances.
    drop(Recorder::prepare(&request(cpu)).unwrap());
    assert_eq!(left(pid).len(), 2);
    victim.kill().unwrap();
    victim.wait().unwrap();
    assert_eq!(left(pid).len(), 2);
    let mut recorder = Recorder::prepare(&request(cpu)).unwrap();
    assert!(left(pid).is_empty());
    recorder.arm().unwrap();
    assert_eq!(left(std::process::id()).len(), 2);
    let trace = recorder.finish().unwrap();
    assert_eq!(trace.counts.leftovers_removed.len(), 2, "{:?}", trace.counts);
    assert!(left(std::process::id()).is_empty());
}
