//! The other sources record the same, or report that they cannot.

use super::*;

/// perf records the same as tracefs: interrupts with their senders, and threads.
#[test]
fn perf_records_the_same_events() {
    let Some((_one, cpu, other)) = prepared() else { return };
    if let Err(error) = Recorder::prepare(&by(cpu, Source::Perf)) {
        return skipped(error);
    }
    let calls = 200;
    for source in [Source::Tracefs, Source::Perf] {
        let (all_before, mut within) = (timer_interrupts(cpu), 0);
        let (trace, gaps) = measured(source, cpu, true, || {
            let before = timer_interrupts(cpu);
            shoot(other, calls);
            within = timer_interrupts(cpu) - before;
        });
        let all = timer_interrupts(cpu) - all_before;
        assert_eq!(trace.header.source, source);
        // Other holes are switches that this kernel hides.
        let lost = named(&trace.events, Kind::Hole, "lost");
        assert_eq!((trace.counts.lost, lost.len()), (0, 0), "{:?}", trace.counts);
        let flush = |event: &&Event| {
            event.kind == Kind::Irq
                && event.detail.as_deref().is_some_and(|f| f.contains("flush_tlb"))
        };
        let flushes: Vec<_> = trace.events.iter().filter(flush).collect();
        assert!(
            flushes.len() > calls / 5,
            "{source:?}: {} of {calls}: {:?}",
            flushes.len(),
            trace.counts
        );
        let known = flushes.iter().filter(|event| event.sender.is_some()).count();
        assert!(known * 10 >= flushes.len() * 9, "{source:?}: {known} of {}", flushes.len());
        let causes = blame(&gaps, &trace.events, OWN, trace.header.error_ns);
        let of =
            causes.iter().filter(|c| c.detail.as_deref().is_some_and(|f| f.contains("flush_tlb")));
        let seen: u64 = of.map(|cause| cause.gaps).sum();
        assert!(seen as usize > flushes.len() / 2, "{source:?}: {seen}: {causes:#?}");
        // Both see the tick that the kernel counts; one may be under way when the count is read.
        let timers = named(&trace.events, Kind::Irq, "local_timer").len() as u64;
        assert!(within <= timers + 1 && timers <= all, "{source:?}: {within}, {timers}, {all}");
        assert!(trace.events.iter().all(|event| event.end_ns >= event.start_ns));
    }
}

/// Records for which there was no room are a hole at the end, where the newest would be.
#[test]
fn a_full_buffer_of_perf_is_a_hole_at_the_end() {
    let Some((_one, cpu, _)) = prepared() else { return };
    let small = Request { buffer_mb: 1, ..by(cpu, Source::Perf) };
    let mut recorder = match Recorder::prepare(&small) {
        Ok(recorder) => recorder,
        Err(error) => return skipped(error),
    };
    recorder.arm().unwrap();
    overfill(cpu);
    let trace = recorder.finish().unwrap();
    let holes: Vec<_> = trace.events.iter().filter(|event| event.kind == Kind::Hole).collect();
    assert!(!holes.is_empty() && trace.counts.lost > 0, "{:?}", trace.counts);
    let last = holes.last().unwrap();
    assert_eq!(Some(last.end_ns), trace.header.disarmed_ns);
}

#[test]
fn counters_alone_have_no_events() {
    let Some((_one, cpu, _)) = prepared() else { return };
    let mut recorder = Recorder::prepare(&by(cpu, Source::Counters)).unwrap();
    recorder.arm().unwrap();
    // A CPU that sleeps has no timer interrupts.
    let before = timer_interrupts(cpu);
    yield_to_each_other(cpu, |_| timer_interrupts(cpu) < before + 100);
    let trace = recorder.finish().unwrap();
    assert_eq!((trace.header.source, trace.events.len()), (Source::Counters, 0));
    let rows: Vec<&str> = trace.interrupts_csv.lines().collect();
    // The header, and at least the samples at the start and at the end.
    assert!(rows.len() >= 3, "{rows:?}");
    let local = format!("LOC_Local_timer_interrupts_CPU{cpu}");
    let at = rows[0].split(';').position(|name| name == local).unwrap();
    let count = |row: &str| row.split(';').nth(at).unwrap().parse::<u64>().unwrap();
    assert!(count(rows[rows.len() - 1]) > count(rows[1]), "{rows:?}");
}

/// Where the first source cannot be used, the next one is taken, and the reason reported.
#[test]
fn the_next_source_is_taken() {
    let Some((_one, cpu, _)) = prepared() else { return };
    let any = Request { source: None, ..request(cpu) };
    // This process has its instances already.
    let mut first = Recorder::prepare(&any).unwrap();
    assert_eq!(first.source(), Source::Tracefs);
    let mut second = Recorder::prepare(&any).unwrap();
    assert_ne!(second.source(), Source::Tracefs);
    second.arm().unwrap();
    first.arm().unwrap();
    drop(first);
    let trace = second.finish().unwrap();
    let told = &trace.counts.sources_refused;
    assert!(told[0].starts_with("tracefs: "), "{told:?}");
    let expected = if trace.header.source == Source::Perf { 1 } else { 2 };
    assert_eq!(told.len(), expected, "{told:?}");
    assert!(told[0].contains("one trace at a time"), "{told:?}");
}
