use super::*;
use crate::request::{Profile, Smt};
use tailtrim_host::{Memory, Topology};

/// Cores of two threads: CPU n and n + cores; nodes and caches take equal shares of them.
fn machine(cores: u32, threads: u32, nodes: u32, caches: u32) -> Topology {
    let mut tree = Memory::new(true);
    let last = cores * threads - 1;
    tree.insert("/sys/devices/system/cpu/online", format!("0-{last}\n"));
    let list = |wanted: &dyn Fn(u32) -> bool| {
        (0..=last).filter(|cpu| wanted(cpu % cores)).collect::<Cpus>().to_string()
    };
    for node in 0..nodes {
        let path = format!("/sys/devices/system/node/node{node}/cpulist");
        tree.insert(&path, list(&|core| core * nodes / cores == node));
    }
    for cpu in 0..=last {
        let place = format!("/sys/devices/system/cpu/cpu{cpu}");
        let siblings = list(&|core| core == cpu % cores);
        tree.insert(&format!("{place}/topology/thread_siblings_list"), siblings);
        let cache = cpu % cores * caches / cores;
        tree.insert(&format!("{place}/cache/index3/level"), "3");
        let shared = list(&|core| core * caches / cores == cache);
        tree.insert(&format!("{place}/cache/index3/shared_cpu_list"), shared);
    }
    Topology::read(&tree).unwrap()
}

fn cpus(text: &str) -> Option<Cpus> {
    Some(text.parse().unwrap())
}

fn shown(division: &Division) -> [String; 4] {
    [&division.housekeeping, &division.vm_os, &division.application, &division.offline]
        .map(ToString::to_string)
}

#[test]
fn three_cores_as_in_the_papers_figure() {
    let request = Request { workload: Workload::Vm, ..Request::new(Profile::LatencyPoll) };
    let division = divide(&machine(3, 2, 1, 1), &request, &[]).unwrap();
    assert_eq!(shown(&division), ["0", "1", "2", "3-5"]);
    assert_eq!(division.isolated.to_string(), "1-2");
}

#[test]
fn threads_of_a_core_stay_together() {
    let request = Request::new(Profile::NfvHost);
    let division = divide(&machine(4, 2, 1, 1), &request, &[]).unwrap();
    assert_eq!(shown(&division), ["0,4", "1,5", "2-3,6-7", ""]);
    let torn = Request { isolate: cpus("2-3"), ..request.clone() };
    let error = divide(&machine(4, 2, 1, 1), &torn, &[]).unwrap_err();
    assert!(error.to_string().contains("isolate both (2-3,6-7)"), "{error}");
    let off = Request { smt: Smt::Off, ..torn };
    assert_eq!(shown(&divide(&machine(4, 2, 1, 1), &off, &[]).unwrap()), ["0-1", "2", "3", "4-7"]);
}

#[test]
fn the_interfaces_node_comes_first() {
    let request = Request { smt: Smt::Keep, ..Request::new(Profile::LatencyPoll) };
    let division = divide(&machine(16, 1, 2, 2), &request, &[1]).unwrap();
    assert_eq!(division.application.to_string(), "8-15");
    assert_eq!(division.housekeeping.to_string(), "0-7");
    assert!(division.why.iter().any(|why| why.contains("NUMA node 1, the interfaces'")));
    let few = Request { isolate_cores: Some(2), ..request };
    assert_eq!(divide(&machine(16, 1, 2, 2), &few, &[1]).unwrap().application.to_string(), "8-9");
}

#[test]
fn caches_that_the_host_does_not_use_come_first() {
    let request = Request { isolate_cores: Some(2), ..Request::new(Profile::LatencyPoll) };
    let division = divide(&machine(8, 1, 1, 2), &request, &[]).unwrap();
    assert_eq!(division.application.to_string(), "4-5");
}

#[test]
fn what_cannot_be_is_refused_with_a_reason() {
    let refused = |isolate: &str, housekeeping: &str| {
        let request = Request {
            isolate: (!isolate.is_empty()).then(|| isolate.parse().unwrap()),
            housekeeping: (!housekeeping.is_empty()).then(|| housekeeping.parse().unwrap()),
            ..Request::new(Profile::LatencyPoll)
        };
        divide(&machine(4, 1, 1, 1), &request, &[]).unwrap_err()
    };
    assert_eq!(refused("0-1", ""), DivisionError::BootCpu);
    assert!(matches!(refused("1-7", ""), DivisionError::NotOnline { part: "isolated", .. }));
    assert!(matches!(refused("1-2", "2-3"), DivisionError::Both(_)));
    assert!(matches!(refused("", "0-3"), DivisionError::NoneIsolated(..)));
    let one = divide(&machine(1, 1, 1, 1), &Request::new(Profile::LatencyPoll), &[]);
    assert!(matches!(one, Err(DivisionError::NoneIsolated(..))));
    let vm = Request::new(Profile::NfvHost);
    assert!(matches!(divide(&machine(2, 1, 1, 1), &vm, &[]), Err(DivisionError::OneCore(_))));
}

#[test]
fn a_profile_that_needs_no_core_takes_none() {
    let division = divide(&machine(4, 1, 1, 1), &Request::new(Profile::MeasureOnly), &[]).unwrap();
    assert_eq!(shown(&division), ["0-3", "", "", ""]);
}
