//! Records made by hand, on an axis where a tick is a nanosecond.

use super::super::axis::Reading;
use super::*;
use proptest::prelude::*;

fn axis() -> Axis {
    let at = |ticks: u64| Reading { ticks, ns: ticks as i64, half_ticks: 0 };
    Axis::fit(at(0), at(1_000_000), &[]).unwrap()
}

const SYMBOLS: &str = "10 T flush_tlb_func\n20 T on_each_cpu_cond_mask\n30 T vmstat_update\n\
    40 T generic_smp_call_function_single_interrupt\n50 T nmi_cpu_backtrace_handler";

fn at(stamp: u64, pid: u32, what: What) -> Record {
    Record { stamp, pid, interrupting: false, rescheduling: false, what }
}

fn enter(name: &str, kind: Kind) -> What {
    What::Enter { kind, name: name.into(), line: None }
}

fn leave(name: &str, kind: Kind) -> What {
    What::Leave { kind, name: Some(name.into()), line: None }
}

fn switch(previous: (u32, &str), next: (u32, &str)) -> What {
    What::Switch {
        previous: (previous.0, previous.1.into()),
        left: Left::Runnable,
        next: (next.0, next.1.into()),
    }
}

enum Step {
    Take(Record),
    Lost(u64, u64),
}

fn paired(sent: &[Record], steps: &[Step], armed: u64, disarmed: u64) -> Paired {
    let symbols = Symbols::parse(SYMBOLS);
    let senders = Senders::new(sent, &symbols);
    let comms = HashMap::from([(812, "redis".to_owned()), (7, "dut".to_owned())]);
    let axis = axis();
    let context = Context { axis: &axis, symbols: &symbols, senders: &senders, comms: &comms };
    let mut pairing = Pairing::new(context, 1, armed);
    for step in steps {
        match step {
            Step::Take(record) => pairing.take(record),
            Step::Lost(count, next) => pairing.lost(Missed::Count(*count), *next),
        }
    }
    pairing.finish(disarmed)
}

fn told(paired: &Paired) -> Vec<String> {
    let tell = |event: &Event| {
        let detail = event.detail.as_deref().unwrap_or("-");
        format!("{}..{} {:?} {} {detail}", event.start_ns, event.end_ns, event.kind, event.name)
    };
    paired.events.iter().map(tell).collect()
}

#[test]
fn a_shootdown_with_its_sender() {
    let sent = [
        at(90, 812, What::Queued { cpu: 1, request: 5, callsite: 0x21 }),
        at(91, 3, What::Sent { cpus: vec![1], callsite: 0x99, callback: 0x40 }),
    ];
    let name = "call_function_single";
    let steps = [
        at(100, 7, enter(name, Kind::Irq)),
        at(110, 7, What::Function { function: 0x10, request: 5 }),
        at(115, 7, What::Flush { reason: "remote shootdown".into() }),
        at(120, 7, What::FunctionEnd),
        at(130, 7, leave(name, Kind::Irq)),
    ];
    let paired = paired(&sent, &steps.map(Step::Take), 50, 200);
    assert_eq!(
        told(&paired),
        ["50..200 Thread dut pid 7", "100..130 Irq call_function_single flush_tlb_func"]
    );
    let function = Some("on_each_cpu_cond_mask".to_owned());
    let sender = Sender { pid: 812, comm: "redis".into(), function, sent_ns: Some(90) };
    assert_eq!(paired.events[1].sender, Some(sender));
    assert_eq!(paired.flushes["remote shootdown"], 1);
    assert_eq!(paired.unpaired, 0);
}

#[test]
fn threads_with_what_nests_in_them() {
    let line = |enters| match enters {
        true => What::Enter { kind: Kind::Irq, name: "eth0".into(), line: Some(41) },
        false => What::Leave { kind: Kind::Irq, name: None, line: Some(41) },
    };
    let steps = [
        at(100, 7, switch((7, "dut"), (30, "kworker/1:0"))),
        at(105, 30, What::Work { function: 0x30 }),
        at(106, 30, line(true)),
        at(108, 30, line(false)),
        at(109, 30, enter("TIMER", Kind::Softirq)),
        at(111, 30, enter("reschedule", Kind::Irq)),
        at(112, 30, leave("reschedule", Kind::Irq)),
        at(113, 30, leave("TIMER", Kind::Softirq)),
        at(120, 30, switch((30, "kworker/1:0"), (0, "swapper/1"))),
        at(125, 0, What::Nmi { handler: 0x50, duration_ns: 4 }),
        at(126, 0, What::Fault { name: "page_fault_user".into(), at: 9 }),
        at(130, 0, switch((0, "swapper/1"), (7, "dut"))),
    ];
    assert_eq!(
        told(&paired(&[], &steps.map(Step::Take), 50, 200)),
        [
            "50..100 Thread dut pid 7",
            "100..120 Thread kworker/1:0 vmstat_update",
            "106..108 Irq eth0 irq 41",
            "109..113 Softirq TIMER -",
            "111..112 Irq reschedule -",
            "121..125 Nmi nmi_cpu_backtrace_handler -",
            "126..126 Fault page_fault_user -",
            "130..200 Thread dut pid 7",
        ]
    );
}

#[test]
fn a_hole_ends_what_was_open() {
    let steps = [
        Step::Lost(14_045, 80),
        Step::Take(at(90, 7, enter("local_timer", Kind::Irq))),
        Step::Lost(3, 150),
        Step::Take(at(160, 7, leave("local_timer", Kind::Irq))),
    ];
    let paired = paired(&[], &steps, 50, 200);
    assert_eq!(
        told(&paired),
        [
            "50..80 Hole lost 14045 events",
            "80..90 Thread dut pid 7",
            "90..150 Hole lost 3 events",
            "150..200 Thread dut pid 7",
        ]
    );
    assert_eq!(paired.unpaired, 2);
}

#[test]
fn a_switch_that_was_hidden_is_found_by_who_runs_afterwards() {
    let steps = [
        at(10, 7, switch((7, "dut"), (75, "supervisor"))),
        // Amid a switch the thread before is still the current one.
        at(11, 7, What::Flush { reason: "flush on task switch".into() }),
        // Nothing says when it gave the CPU back.
        at(40, 7, enter("NET_RX", Kind::Softirq)),
        at(45, 7, leave("NET_RX", Kind::Softirq)),
        at(60, 7, switch((7, "dut"), (75, "supervisor"))),
        at(90, 8, switch((8, "other"), (7, "dut"))),
    ];
    let paired = paired(&[], &steps.map(Step::Take), 0, 100);
    assert_eq!(
        told(&paired),
        [
            "0..10 Thread dut pid 7",
            "10..40 Thread supervisor pid 75",
            "40..45 Softirq NET_RX -",
            "40..60 Thread dut pid 7",
            "60..90 Hole switch supervisor or other",
            "90..100 Thread dut pid 7",
        ]
    );
    assert_eq!((paired.hidden_switches, paired.unpaired), (2, 0));
}

#[test]
fn what_has_no_partner_is_counted() {
    let steps = [
        at(60, 7, leave("local_timer", Kind::Irq)),
        at(70, 7, enter("local_timer", Kind::Irq)),
        at(75, 7, enter("TIMER", Kind::Softirq)),
        at(80, 7, leave("local_timer", Kind::Irq)),
        at(90, 7, enter("reschedule", Kind::Irq)),
        at(91, 7, What::Function { function: 0x10, request: 0 }),
    ];
    let paired = paired(&[], &steps.map(Step::Take), 50, 100);
    assert_eq!(
        told(&paired)[1..],
        ["70..80 Irq local_timer -", "75..80 Softirq TIMER -", "90..100 Irq reschedule -"]
    );
    assert_eq!((paired.unpaired, paired.functions_without_interrupt), (3, 1));
}

fn any_what() -> impl Strategy<Value = What> {
    let kind = || prop_oneof![Just(Kind::Irq), Just(Kind::Softirq)];
    let name = || prop_oneof![Just("a"), Just("reschedule")];
    prop_oneof![
        (kind(), name()).prop_map(|(kind, name)| enter(name, kind)),
        (kind(), name()).prop_map(|(kind, name)| leave(name, kind)),
        (0_u32..4, 0_u32..4).prop_map(|(a, b)| switch((a, "x"), (b, "y"))),
        (0_i64..1_000).prop_map(|duration_ns| What::Nmi { handler: 0, duration_ns }),
        Just(What::Function { function: 0x10, request: 3 }),
        Just(What::Work { function: 0x30 }),
    ]
}

proptest! {
    /// Threads never overlap, every entry is an event or counted, and nothing ends before it starts.
    #[test]
    fn any_records(whats in proptest::collection::vec(any_what(), 0..60), hole in 0_usize..60) {
        let mut steps = Vec::new();
        for (number, what) in whats.iter().enumerate() {
            let stamp = 2_000 + number as u64 * 10;
            if number == hole {
                steps.push(Step::Lost(1, stamp));
            }
            steps.push(Step::Take(at(stamp, 1, what.clone())));
        }
        let paired = paired(&[], &steps, 1_000, 9_000);
        prop_assert!(paired.events.iter().all(|event| event.start_ns <= event.end_ns));
        let threads: Vec<_> = paired.events.iter().filter(|event| event.kind == Kind::Thread).collect();
        prop_assert!(threads.windows(2).all(|pair| pair[0].end_ns <= pair[1].start_ns));
        let entered = whats.iter().filter(|what| matches!(what, What::Enter { .. })).count() as u64;
        let closed = paired.events.iter().filter(|event| matches!(event.kind, Kind::Irq | Kind::Softirq)).count() as u64;
        prop_assert!(closed <= entered && entered <= closed + paired.unpaired);
    }
}

#[test]
fn a_hidden_switch_from_idle_is_dated_by_the_interrupt_that_asked_for_it() {
    // As Linux 6.18 tells it in a guest: the idle task gives the CPU away, and no switch says so.
    let wakes = |stamp, what| Record { rescheduling: true, ..at(stamp, 0, what) };
    let steps = [
        at(60, 7, switch((7, "dut"), (0, "swapper/1"))),
        at(80, 0, enter("local_timer", Kind::Irq)),
        wakes(90, leave("local_timer", Kind::Irq)),
        at(120, 7, switch((7, "dut"), (0, "swapper/1"))),
        // A thread that was not seen had the CPU, and left it.
        wakes(125, What::Idle),
        at(135, 0, What::Idle),
        wakes(140, What::Idle),
        at(150, 7, enter("NET_RX", Kind::Softirq)),
        at(160, 7, leave("NET_RX", Kind::Softirq)),
        at(170, 7, switch((7, "dut"), (0, "swapper/1"))),
    ];
    let paired = paired(&[], &steps.map(Step::Take), 50, 200);
    let threads: Vec<_> = told(&paired).into_iter().filter(|line| line.contains("dut")).collect();
    assert_eq!(
        threads,
        ["50..60 Thread dut pid 7", "90..120 Thread dut pid 7", "140..170 Thread dut pid 7"]
    );
    assert_eq!(paired.hidden_switches, 2);
}

#[test]
fn a_cpu_that_sleeps_has_been_left() {
    // The switch to the idle task was not recorded.
    let steps = [
        at(60, 7, switch((7, "dut"), (9, "hidden"))),
        at(80, 0, What::Idle),
        at(120, 0, What::Idle),
        at(130, 0, switch((0, "swapper/1"), (7, "dut"))),
    ];
    let paired = paired(&[], &steps.map(Step::Take), 50, 200);
    assert_eq!(
        told(&paired),
        ["50..60 Thread dut pid 7", "60..80 Thread hidden pid 9", "130..200 Thread dut pid 7"]
    );
    assert_eq!(paired.hidden_switches, 1);
}
