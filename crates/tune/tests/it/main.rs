//! Plans for hosts of many kinds, and what is written for other tools: golden files.
//!
//! `UPDATE_GOLDEN=1 cargo test -p tailtrim-tune --test it` writes them anew; look at the difference.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that panics has failed")]

#[allow(dead_code, reason = "the golden files of the agent use the rest")]
mod hosts;

use hosts::{amd_server, guest, laptop, server};
use std::path::Path;
use tailtrim_host::{Cpus, Memory, Tree};
use tailtrim_tune::export::{self, ExportedFile};
use tailtrim_tune::{
    Begin, Boot, Command, FORMAT, Journal, JournalStep, Plan, PlanError, Profile, Request, Smt,
    StepState, When, Workload, plan,
};

fn golden(name: &str, content: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden").join(name);
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        std::fs::write(&path, content).unwrap();
    }
    let known = std::fs::read_to_string(&path).unwrap_or_default();
    assert_eq!(content, known, "{} differs", path.display());
}

fn one(files: Vec<ExportedFile>) -> String {
    assert_eq!(files.len(), 1);
    files.into_iter().next().unwrap().content
}

fn on_server(change: impl FnOnce(&mut Request)) -> (Memory, Plan) {
    let mut request = Request {
        nics: vec!["eth1".into()],
        huge_pages: Some("1G:4".parse().unwrap()),
        ..Request::new(Profile::LatencyPoll)
    };
    change(&mut request);
    let host = server();
    let plan = plan(&host, &request).unwrap();
    (host, plan)
}

#[test]
fn what_other_tools_read() {
    let (_, poll) = on_server(|_| {});
    golden("tuned.conf", &one(export::tuned(&poll)));
    golden("99-tailtrim.conf", &one(export::sysctl(&poll)));
    golden("99-tailtrim.cfg", &one(export::grub(&poll)));
    let (_, nfv) = on_server(|request| {
        request.profile = Profile::NfvHost;
        request.workload = Workload::Vm;
    });
    let units = export::systemd(&nfv);
    assert_eq!(units.len(), 2);
    golden("tailtrim-tune.service", &units[0].content);
}

/// A profile of the changes that a search kept had lines about isolation, whatever was kept.
#[test]
fn what_is_left_out_is_not_exported() {
    let only = |names: &[&str]| {
        on_server(|request| request.only = names.iter().map(|name| (*name).to_owned()).collect()).1
    };
    let one_setting = only(&["vm.stat_interval"]);
    golden("only-tuned.conf", &one(export::tuned(&one_setting)));
    assert_eq!(export::systemd(&one_setting).len(), 1);
    golden("only-interrupts-tuned.conf", &one(export::tuned(&only(&["IRQ-002"]))));
    golden("only-default-tuned.conf", &one(export::tuned(&only(&["irq.default"]))));
    let services = only(&["isolation.systemd"]);
    golden("only-services-tuned.conf", &one(export::tuned(&services)));
    assert_eq!(export::systemd(&services).len(), 2);
}

#[test]
fn the_papers_words_by_their_true_names() {
    let (_, poll) = on_server(|_| {});
    let line = poll.boot_words().join(" ");
    for wrong in ["rcu_nocbs_poll", "nosoftlookup", "isolcpu=", "pcie_asmp"] {
        assert!(!line.contains(wrong), "{line}");
    }
    for right in [
        "isolcpus=managed_irq,domain,",
        "nohz_full=",
        "rcu_nocbs=",
        "rcu_nocb_poll",
        "irqaffinity=",
        "nosmt",
        "idle=poll",
        "intel_idle.max_cstate=0",
        "intel_pstate=disable",
        "tsc=reliable",
        "mce=ignore_ce",
        "audit=0",
        "nmi_watchdog=0",
        "skew_tick=1",
        "nosoftlockup",
    ] {
        assert!(line.contains(right), "{right}: {line}");
    }
}

#[test]
fn words_that_a_host_does_not_know_are_left_out() {
    let amd = plan(&amd_server(), &Request::new(Profile::NfvHost)).unwrap();
    let line = amd.boot_words().join(" ");
    assert!(!line.contains("intel") && line.contains("iommu=pt"), "{line}");
    let small = plan(&laptop(), &Request::new(Profile::LatencyPoll)).unwrap();
    let absent: Vec<&str> = small.absent.iter().map(|absent| absent.id.as_str()).collect();
    assert!(absent.contains(&"boot.nohz_full") && absent.contains(&"boot.rcu_nocbs"), "{absent:?}");
}

#[test]
fn idle_states_are_chosen_by_latency() {
    let (_, poll) = on_server(|request| request.exit_latency_us = 20);
    let idle = poll.changes.iter().find(|change| change.id == "cpu.idle-states").unwrap();
    let places: Vec<String> = idle.steps.iter().map(|step| step.place.to_string()).collect();
    assert!(places.iter().all(|place| place.contains("/state3/")), "{places:?}");
    assert_eq!(places.len(), poll.division.isolated.len());
}

#[test]
fn a_manager_that_runs_stands_against_it() {
    let host = server().with("/proc/812/comm", "irqbalance\n");
    let refused = plan(&host, &Request::new(Profile::LatencyPoll)).unwrap();
    let against = refused.refused_by();
    assert_eq!(against.len(), 1);
    assert_eq!(against[0].1, ["irq.default", "irq.affinity"]);
    let without = Request {
        without: vec!["irq.default".into(), "IRQ-002".into()],
        ..Request::new(Profile::LatencyPoll)
    };
    assert!(plan(&host, &without).unwrap().refused_by().is_empty());
}

#[test]
fn a_file_that_sets_it_back_is_named() {
    let host = server().with("/etc/sysctl.d/10-context.conf", "vm.stat_interval = 1\n");
    let noted = plan(&host, &Request::new(Profile::LatencyPoll)).unwrap();
    let change = noted.changes.iter().find(|change| change.id == "vm.stat_interval").unwrap();
    assert!(change.notes[0].starts_with("/etc/sysctl.d/10-context.conf sets vm.stat_interval = 1"));
}

#[test]
fn a_session_is_not_cut() {
    let (_, poll) = on_server(|_| {});
    let on = |cpus: &str| vec![(77, "sshd".to_owned(), cpus.parse::<Cpus>().unwrap())];
    assert!(poll.cuts(&on("0-3")).is_none());
    let isolated = poll.division.isolated.to_string();
    let message = poll.cuts(&on(&isolated)).unwrap().to_string();
    assert!(
        message.contains("process 77 (sshd)") && message.contains("isolation.cpuset"),
        "{message}"
    );
}

#[test]
fn grub_gets_what_is_missing() {
    let (_, poll) = on_server(|request| request.boot = Boot::Grub);
    let grub = poll.changes.iter().find(|change| change.id == "boot.grub").unwrap();
    let step = grub.steps.last().unwrap();
    assert_eq!(step.then, Some(Command::UpdateGrub));
    let content = step.new.as_ref().unwrap().shown();
    // On the running line already.
    assert!(!content.contains("audit=0") && content.contains("nohz_full="), "{content}");
    let entries = server().with("/boot/loader/entries/a.conf", "options x\n");
    let request = Request { boot: Boot::Grub, ..Request::new(Profile::LatencyPoll) };
    assert!(matches!(plan(&entries, &request), Err(PlanError::NoGrub(_))));
}

#[test]
fn without_drop_ins_nothing_is_written_to_a_disk() {
    let (_, poll) = on_server(|_| {});
    let next: Vec<_> = poll.changes.iter().filter(|change| change.when == When::NextBoot).collect();
    assert!(
        next.iter().flat_map(|change| &change.steps).all(|step| step.state == StepState::Printed)
    );
    assert!(poll.steps().all(|(_, step)| !step.place.survives_restart()));
}

#[test]
fn names_that_mean_nothing_are_refused() {
    let named = |change: fn(&mut Request)| {
        let mut request = Request::new(Profile::LatencyPoll);
        change(&mut request);
        plan(&server(), &request).unwrap_err().to_string()
    };
    let nic = named(|request| request.nics = vec!["eth9".into()]);
    assert!(nic.contains("eth9: no such interface") && nic.contains("eth0, eth1"), "{nic}");
    let without = named(|request| request.without = vec!["mm.tph".into()]);
    assert!(without.contains("mm.tph: no change"), "{without}");
    let over = named(|request| request.take_over = vec!["tuned".into()]);
    assert!(over.contains("tuned cannot be taken over"), "{over}");
    let torn = named(|request| {
        request.isolate = Some("2".parse().unwrap());
        request.smt = Smt::Keep;
    });
    assert!(torn.contains("isolate both (2,6)"), "{torn}");
}

#[test]
fn json_has_every_value() {
    let (_, poll) = on_server(|_| {});
    let json = serde_json::to_value(&poll).unwrap();
    assert_eq!(json["division"]["housekeeping"], "0");
    let changes = json["changes"].as_array().unwrap();
    let thp = changes.iter().find(|change| change["id"] == "mm.thp").unwrap();
    assert_eq!(thp["steps"][0]["old"], "always [madvise] never\n");
    assert_eq!(thp["steps"][0]["new"], "never");
}

/// A place that a plan writes must be one that a journal may name, or it could not be taken back.
#[test]
fn the_journal_of_every_plan_can_be_read() {
    let profiles = [
        Profile::LatencyPoll,
        Profile::LatencyKernel,
        Profile::NfvHost,
        Profile::NfvGuest,
        Profile::MeasureOnly,
    ];
    let services =
        ["tuned", "irqbalance", "bpftune", "power-profiles-", "thermald", "tlp", "ksmtuned"];
    let mut recorded = 0;
    for profile in profiles {
        for host in [server(), amd_server(), laptop(), guest()] {
            let host = services.iter().zip(800_u32..).fold(host, |host, (name, pid)| {
                host.with(&format!("/proc/{pid}/comm"), format!("{name}\n"))
            });
            let nics = host.list("/sys/class/net").unwrap_or_default();
            let request = Request {
                nics,
                boot: Boot::Grub,
                huge_pages: Some("2M:4".parse().unwrap()),
                ..Request::new(profile)
            };
            let made = plan(&host, &request)
                .or_else(|_| plan(&host, &Request { boot: Boot::Print, ..request.clone() }));
            let Ok(made) = made else { continue };
            let steps = made.changes.iter().flat_map(|change| &change.steps).zip(0..);
            let steps: Vec<JournalStep> = steps
                .map(|(step, number)| JournalStep {
                    number,
                    change: "x".into(),
                    place: step.place.clone(),
                    form: step.form.clone(),
                    old: step.old.clone(),
                    new: step.new.clone(),
                    optional: step.optional,
                    then: step.then,
                })
                .collect();
            recorded += steps.len();
            let begin = Begin {
                format: FORMAT,
                id: "1".into(),
                at_unix_s: 1,
                boot_id: String::new(),
                profile: profile.name().into(),
                arguments: Vec::new(),
            };
            let read = Journal::parse(&Journal::begun(&begin, &steps).unwrap());
            assert_eq!(read.unwrap().steps, steps);
        }
    }
    // Guests and laptops have few to change, servers many.
    assert!(recorded > 500, "{recorded}");
}
