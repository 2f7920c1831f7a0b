//! The trace of the last seconds.

use super::*;
use tailtrim_tracer::trace::{RING_BYTES, Ring};

const MS: i64 = 1_000_000;

fn now_ns() -> i64 {
    clock::of_the_kernel().0
}

/// Looks at the ring for so long, as its user does.
fn followed(ring: &mut Ring, ms: i64) {
    let until_ns = now_ns() + ms * MS;
    while now_ns() < until_ns {
        ring.look().unwrap();
        thread::sleep(Duration::from_millis(100));
    }
}

/// Has a CPU for 20 ms, whatever else it has to do; returns from when to when.
fn taken(cpu: u32) -> (i64, i64) {
    let taking = move || {
        pin(cpu);
        let begin_ns = now_ns();
        let before = own_cpu_time();
        while own_cpu_time() - before < 3 {}
        (begin_ns, now_ns())
    };
    thread::Builder::new().name("tt-taken".into()).spawn(taking).unwrap().join().unwrap()
}

fn of_the_thread(events: &[Event]) -> Vec<&Event> {
    let ours = |event: &&Event| event.kind == Kind::Thread && event.name == "tt-taken";
    events.iter().filter(ours).collect()
}

#[test]
fn what_happened_is_there_for_as_long_as_it_is_kept() {
    let Some((_guard, cpu, other)) = prepared() else { return };
    pin(other);
    let mut ring = Ring::prepare(&request(cpu), 3_000 * MS, RING_BYTES).unwrap();
    ring.arm().unwrap();
    followed(&mut ring, 1_500);
    let (begin_ns, end_ns) = taken(cpu);
    followed(&mut ring, 1_500);

    let around = ring.around(begin_ns - 5 * MS, end_ns + 5 * MS).unwrap();
    assert!(around.complete);
    assert_eq!(around.header.cpus, cpu.to_string());
    assert!(around.header.error_ns < MS, "{}", around.header.error_ns);
    let ours = of_the_thread(&around.events);
    let has_ns: i64 =
        ours.iter().map(|event| event.end_ns.min(end_ns) - event.start_ns.max(begin_ns)).sum();
    assert!(has_ns > 10 * MS, "{has_ns} of {:?}", around.events);
    for event in &around.events {
        assert!(event.end_ns >= begin_ns - 5 * MS && event.start_ns <= end_ns + 5 * MS);
    }
    // It had no part of what came later.
    let later = ring.around(end_ns + 500 * MS, end_ns + 600 * MS).unwrap();
    assert!(later.complete);
    assert_eq!(of_the_thread(&later.events), Vec::<&Event>::new());
    // Nor is there what will come.
    assert!(!ring.around(end_ns, now_ns() + 10_000 * MS).unwrap().complete);

    followed(&mut ring, 3_000);
    let gone = ring.around(begin_ns - 5 * MS, end_ns + 5 * MS).unwrap();
    assert!(!gone.complete);
    drop(ring);
    assert_eq!(left(std::process::id()), Vec::<String>::new());
}
