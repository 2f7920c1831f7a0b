//! Audits of hosts that are a few lines of text each.
#![allow(clippy::unwrap_used, reason = "a failure here is the test's result")]

mod hosts;

use hosts::{changed, reference, untuned};
use proptest::prelude::*;
use std::cell::RefCell;
use std::collections::BTreeSet;
use tailtrim_model::audit::{
    self, Check, Facts, Finding, Intent, IntentError, Report, Selection, Verdict, Waiver, Wish,
    Workload, paths,
};
use tailtrim_model::host::{Memory, Tree, Unread};

fn wish(isolate: &str, workload: Workload) -> Wish {
    let nics = Some(vec!["eth1".to_owned()]);
    Wish {
        isolate: Some(isolate.parse().unwrap()),
        nics,
        workload: Some(workload),
        housekeeping: None,
    }
}

fn report(tree: &Memory, wish: Wish) -> Report {
    let intent = Intent::complete(wish, tree).unwrap();
    let checks: Vec<&Check> = audit::all().collect();
    audit::run(tree, &intent, &checks)
}

/// Compare with lines of an id and a verdict; other checks are of no concern.
fn expect(report: &Report, wanted: &[(&str, Verdict)]) {
    let differ: Vec<String> = wanted
        .iter()
        .filter_map(|(id, verdict)| {
            let found = report.answer(id).unwrap();
            (found.verdict != *verdict).then(|| {
                format!(
                    "{id}: {} instead of {}: {}",
                    found.verdict.word(),
                    verdict.word(),
                    found.said
                )
            })
        })
        .collect();
    assert!(differ.is_empty(), "{}", differ.join("\n"));
}

use Verdict::{Fail, NotApplicable, Ok as Good, Unknown, Warn};

#[test]
fn a_server_as_it_comes() {
    let report = report(&untuned(), wish("2-3,6-7", Workload::Poll));
    expect(
        &report,
        &[
            ("BOOT-001", Good),
            ("BOOT-003", NotApplicable),
            ("ISO-001", Fail),
            ("ISO-003", Fail),
            ("ISO-006", Fail),
            ("ISO-012", Fail),
            ("ISO-018", Warn),
            ("ISO-021", Warn),
            ("ISO-022", Good),
            ("ISO-024", Unknown),
            ("SCH-001", Warn),
            ("SCH-002", NotApplicable),
            ("WD-001", Fail),
            ("WD-002", Fail),
            ("WD-003", Fail),
            ("AUD-003", Warn),
            ("AUD-004", Warn),
            ("AUD-005", Warn),
            ("IRQ-001", Fail),
            ("IRQ-002", Warn),
            ("IRQ-003", Fail),
            ("IRQ-004", Unknown),
            ("IRQ-005", Unknown),
            ("IRQ-006", Fail),
            ("MEM-001", Warn),
            ("MEM-002", Unknown),
            ("MEM-003", Good),
            ("MEM-005", Fail),
            ("MEM-006", Warn),
            ("MEM-007", Warn),
            ("MEM-009", Warn),
            ("MEM-010", Warn),
            ("MEM-015", Warn),
            ("PWR-003", Fail),
            ("PWR-004", Warn),
            ("PWR-008", Fail),
            ("PWR-009", Warn),
            ("PWR-010", Warn),
            ("PWR-013", Warn),
            ("PWR-016", Unknown),
            ("CLK-001", Good),
            ("CLK-003", Warn),
            ("FW-001", Unknown),
            ("SEC-001", Good),
            ("NET-001", Fail),
            ("NET-002", Warn),
            ("NET-003", Warn),
            ("NET-007", Good),
            ("NET-012", Good),
            ("NET-015", Warn),
            ("NET-019", Good),
            ("CAT-001", Warn),
            ("VM-001", NotApplicable),
            ("DPK-001", Warn),
            ("SVC-001", Warn),
            ("SVC-006", Good),
            ("SVC-007", Good),
        ],
    );
    let said = &report.answer("PWR-003").unwrap().said;
    assert!(said.contains("C6 (170 µs) on CPUs 2-3,6-7") && !said.contains("C1E"), "{said}");
    assert!(report.answer("IRQ-003").unwrap().said.contains("40 (nvme0q3) to 3"));
}

#[test]
fn the_papers_host_done_right_fails_nothing() {
    let report = report(&changed(hosts::TUNED), wish("2-3", Workload::Poll));
    let failed: Vec<String> =
        report.of(Fail).map(|one| format!("{} {}", one.check.id, one.finding.said)).collect();
    assert!(failed.is_empty(), "{}", failed.join("\n"));
    expect(
        &report,
        &[
            ("BOOT-001", Good),
            ("BOOT-002", Good),
            ("BOOT-003", Good),
            ("BOOT-004", Good),
            ("BOOT-005", Good),
            ("ISO-001", Good),
            ("ISO-002", Good),
            ("ISO-003", Good),
            ("ISO-006", Good),
            ("ISO-007", Good),
            ("ISO-014", Good),
            ("ISO-016", Good),
            ("ISO-018", Good),
            ("ISO-021", Good),
            ("ISO-024", Good),
            ("IRQ-005", Good),
            ("IRQ-008", Good),
            ("IRQ-010", Good),
            ("MEM-013", Good),
            ("MEM-008", Warn),
            ("PWR-003", Good),
            ("PWR-016", Good),
            ("NET-013", Good),
            ("DPK-002", Good),
            ("DPK-003", Good),
            ("SCH-003", Good),
            ("WD-002", Good),
        ],
    );
    let level = report.answer("ISO-024").unwrap().level.unwrap();
    assert_eq!(level.word(), "seen");
}

#[test]
fn the_papers_boot_line_as_printed() {
    let report = report(&changed(hosts::TYPOS), wish("1-3", Workload::Poll));
    expect(
        &report,
        &[
            ("BOOT-001", Fail),
            ("BOOT-002", Fail),
            ("BOOT-003", Good),
            ("ISO-001", Good),
            ("ISO-002", Warn),
            ("ISO-003", Fail),
            ("ISO-006", Fail),
            ("ISO-008", Warn),
            ("WD-002", Fail),
            ("PWR-001", Warn),
            ("PWR-006", Warn),
            ("CLK-003", Good),
            ("IRQ-001", Good),
        ],
    );
    let words = &report.answer("BOOT-001").unwrap().said;
    assert!(
        words.contains("nosoftlookup (write nosoftlockup)")
            && words.contains("pcie_asmp=off (write pcie_aspm=off)"),
        "{words}"
    );
    let swallowed = report.answer("BOOT-002").unwrap();
    assert!(swallowed.said.contains("write rcu_nocb_poll"));
    assert!(swallowed.evidence.iter().any(|known| known.value.contains("(none)")));
    assert!(
        report.answer("ISO-006").unwrap().said.contains("CPUs 1-3 run RCU callbacks themselves")
    );
}

#[test]
fn a_guest() {
    let report = report(&changed(hosts::GUEST), wish("2-3", Workload::Guest));
    expect(
        &report,
        &[
            ("VM-001", Fail),
            ("VM-005", Good),
            ("VM-008", Warn),
            ("VM-009", Warn),
            ("CLK-001", Good),
            ("CLK-002", Warn),
            ("FW-001", NotApplicable),
            ("AUD-003", NotApplicable),
            ("CAT-001", NotApplicable),
            ("NET-009", Warn),
            ("ISO-021", Good),
            ("PWR-011", NotApplicable),
        ],
    );
    assert!(report.answer("VM-001").unwrap().said.contains("40 ms stolen"));
}

#[test]
fn a_server_of_amd_with_the_interface_at_the_other_socket() {
    let report = report(&changed(hosts::AMD), wish("2-3", Workload::Poll));
    expect(
        &report,
        &[
            ("BOOT-003", Fail),
            ("ISO-003", Fail),
            ("ISO-004", Warn),
            ("NET-012", Fail),
            ("MEM-009", Warn),
            ("SCH-001", Fail),
            ("SCH-002", Fail),
            ("PWR-007", Good),
            ("PWR-011", Warn),
            ("VM-011", Good),
            ("NET-020", Warn),
            ("ISO-021", Fail),
        ],
    );
    assert!(report.answer("BOOT-003").unwrap().said.contains("nohz_full=2-3,16 gives none"));
}

#[test]
fn a_laptop_of_which_nothing_is_said() {
    let tree = changed(hosts::LAPTOP);
    let report = report(&tree, Wish::default());
    assert_eq!(report.intent.isolate.to_string(), "1");
    assert_eq!(report.intent.workload, Workload::Interrupt);
    assert_eq!(report.intent.inferred.len(), 3);
    expect(
        &report,
        &[
            ("CLK-001", Fail),
            ("SEC-002", Warn),
            ("PWR-015", Warn),
            ("NET-009", Warn),
            ("VM-002", NotApplicable),
            ("SCH-003", NotApplicable),
        ],
    );
}

#[test]
fn the_reference_machine() {
    let report = report(&reference(), Wish::default());
    expect(
        &report,
        &[
            ("ISO-001", Fail),
            ("ISO-003", Fail),
            ("SVC-007", Fail),
            ("IRQ-001", Fail),
            ("MEM-005", Good),
            ("CLK-001", Good),
            ("FW-001", NotApplicable),
            ("BOOT-001", Warn),
            ("VM-001", Good),
            ("SCH-007", Warn),
            ("NET-024", Unknown),
        ],
    );
    assert_eq!(report.guest, Some(true));
    assert_eq!(report.counts().total(), audit::all().count());
}

/// Whether a file is closed, and in which way.
type Way<'a> = dyn Fn(&str) -> Option<Unread> + 'a;

/// A tree that refuses some files and remembers what it refused and what it was asked.
struct Refusing<'a> {
    tree: &'a dyn Tree,
    closed: Box<Way<'a>>,
    asked: RefCell<BTreeSet<String>>,
    refused: RefCell<BTreeSet<String>>,
}

impl<'a> Refusing<'a> {
    fn new(tree: &'a dyn Tree, closed: impl Fn(&str) -> Option<Unread> + 'a) -> Self {
        Self {
            tree,
            closed: Box::new(closed),
            asked: RefCell::default(),
            refused: RefCell::default(),
        }
    }

    fn open(&self, path: &str) -> Result<(), Unread> {
        self.asked.borrow_mut().insert(path.to_owned());
        let Some(why) = (self.closed)(path) else { return Ok(()) };
        self.refused.borrow_mut().insert(path.to_owned());
        Err(why)
    }
}

impl Tree for Refusing<'_> {
    fn read(&self, path: &str) -> Result<Vec<u8>, Unread> {
        self.open(path)?;
        self.tree.read(path)
    }

    fn list(&self, path: &str) -> Result<Vec<String>, Unread> {
        self.open(path)?;
        self.tree.list(path)
    }

    fn link(&self, path: &str) -> Result<String, Unread> {
        self.open(path)?;
        self.tree.link(path)
    }
}

fn all_hosts() -> Vec<(Memory, Wish)> {
    vec![
        (untuned(), wish("2-3", Workload::Poll)),
        (changed(hosts::TUNED), wish("2-3", Workload::Poll)),
        (changed(hosts::TYPOS), wish("1-3", Workload::Interrupt)),
        (changed(hosts::GUEST), wish("2-3", Workload::Guest)),
        (changed(hosts::AMD), wish("2-3", Workload::Vm)),
        (changed(hosts::LAPTOP), wish("1", Workload::Interrupt)),
        (reference(), Wish::default()),
    ]
}

type Closed = fn(&str) -> Option<Unread>;

#[test]
fn no_check_is_ok_where_nothing_can_be_read() {
    let ways: [Closed; 4] = [
        |path| Some(Unread::Denied { path: path.to_owned() }),
        |path| Some(Unread::NotCaptured { path: path.to_owned() }),
        |path| Some(Unread::Missing { path: path.to_owned() }),
        |path| {
            Some(Unread::Broken { path: path.to_owned(), problem: "Input/output error".to_owned() })
        },
    ];
    for (tree, wish) in all_hosts() {
        let intent = Intent::complete(wish, &tree).unwrap();
        for (way, closed) in ways.iter().enumerate() {
            let closed = Refusing::new(&tree, closed);
            for check in audit::all() {
                let found = audit::ask(check, &Facts::new(&closed, &intent));
                assert_ne!(found.verdict, Good, "{} ({way}): {}", check.id, found.said);
                assert!(
                    way == 2
                        || found.verdict != NotApplicable
                        || !check.needs.is_empty()
                        || check.read_from.is_empty(),
                    "{} ({way}) does not arise, without having looked: {}",
                    check.id,
                    found.said
                );
                assert!(
                    found.verdict != Unknown || !found.said.is_empty(),
                    "{} has no reason",
                    check.id
                );
            }
        }
    }
}

#[test]
fn files_without_content_are_no_evidence() {
    struct Empty<'a>(&'a dyn Tree);
    impl Tree for Empty<'_> {
        fn read(&self, path: &str) -> Result<Vec<u8>, Unread> {
            self.0.read(path).map(|_| Vec::new())
        }
        fn list(&self, path: &str) -> Result<Vec<String>, Unread> {
            self.0.list(path)
        }
        fn link(&self, path: &str) -> Result<String, Unread> {
            self.0.link(path)
        }
    }
    // Empty lists mean something; an empty number, mask or word does not.
    let tree = untuned();
    let intent = Intent::complete(wish("2-3", Workload::Poll), &tree).unwrap();
    let empty = Empty(&tree);
    for id in
        ["MEM-005", "WD-001", "IRQ-001", "PWR-008", "CLK-001", "SCH-001", "MEM-006", "ISO-012"]
    {
        let found = audit::ask(audit::find(id).unwrap(), &Facts::new(&empty, &intent));
        assert_ne!(found.verdict, Good, "{id}: {}", found.said);
    }
}

#[test]
fn everything_that_is_read_may_be_captured() {
    for (tree, wish) in all_hosts() {
        let recorder = Refusing::new(&tree, |_| None);
        let intent = Intent::complete(wish, &recorder).unwrap();
        let checks: Vec<&Check> = audit::all().collect();
        let _ = audit::run(&recorder, &intent, &checks);
        let strange: Vec<String> =
            recorder.asked.borrow().iter().filter(|path| !paths::known(path)).cloned().collect();
        assert!(strange.is_empty(), "not in paths::FILES: {strange:?}");
    }
}

#[test]
fn nothing_that_disturbs_is_read() {
    let disturbing = ["/dev/", "cur_freq", "/environ", "/proc/kcore", "/msr", "llc_occupancy"];
    for pattern in paths::patterns() {
        assert!(!disturbing.iter().any(|part| pattern.contains(part)), "{pattern}");
    }
    let (tree, wish) = all_hosts().remove(0);
    let intent = Intent::complete(wish, &tree).unwrap();
    let count = RefCell::new(0);
    let recorder = Refusing::new(&tree, |path| {
        *count.borrow_mut() += usize::from(path == "/proc/cpuinfo");
        None
    });
    let checks: Vec<&Check> = audit::all().collect();
    let _ = audit::run(&recorder, &intent, &checks);
    assert_eq!(
        *count.borrow(),
        1,
        "/proc/cpuinfo makes each CPU tell its frequency: once is enough"
    );
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Whatever is closed: who answers ok was refused nothing, and no answer gets better.
    #[test]
    fn a_check_is_ok_only_by_what_it_read(host in 0_usize..7, seed in any::<u64>(), share in 1_u64..60) {
        let (tree, wish) = all_hosts().remove(host);
        let intent = Intent::complete(wish, &tree).unwrap();
        let hash = |path: &str| path.bytes().fold(seed | 1, |hash, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3).rotate_left(7)
        });
        for check in audit::all() {
            let whole: Finding = audit::ask(check, &Facts::new(&tree, &intent));
            let partly = Refusing::new(&tree, |path| {
                let path = path.to_owned();
                match hash(&path) % 100 < share {
                    false => None,
                    true if hash(&path) & 1 << 40 == 0 => Some(Unread::Denied { path }),
                    true => Some(Unread::NotCaptured { path }),
                }
            });
            let found = audit::ask(check, &Facts::new(&partly, &intent));
            if found.verdict == Good {
                let refused = partly.refused.borrow();
                prop_assert!(refused.is_empty(), "{} is ok without {:?}: {}", check.id, refused, found.said);
                prop_assert_eq!(whole.verdict, Good, "{} got better: {}", check.id, found.said);
            }
        }
    }
}

#[test]
fn each_check_says_all_that_is_needed() {
    let ids: BTreeSet<&str> = audit::all().map(|check| check.id).collect();
    assert_eq!((ids.len(), audit::all().count()), (166, 166));
    for check in audit::all() {
        for (name, text) in [
            ("title", check.title),
            ("why", check.why),
            ("wanted", check.wanted),
            ("source", check.source),
        ] {
            assert!(!text.is_empty(), "{} has no {name}", check.id);
        }
        assert!(check.title.chars().count() <= 62, "{}: the title does not fit a line", check.id);
        let silent = ["NET-024"];
        assert!(
            !(check.set_now.is_empty() && check.set_boot.is_empty()) || silent.contains(&check.id),
            "{}: how?",
            check.id
        );
        for path in check.read_from {
            assert!(path.starts_with('/'), "{}: {path}", check.id);
        }
    }
}

#[test]
fn families_and_ids_select() {
    let select = |only: &[&str], skip: &[&str]| {
        let owned = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
        Selection { only: owned(only), skip: owned(skip) }.checks().map(|checks| checks.len())
    };
    assert_eq!(select(&[], &[]), Ok(166));
    assert_eq!(select(&["iso"], &["ISO-001"]), Ok(23));
    assert_eq!(select(&["MEM-001", "SEC"], &[]), Ok(4));
    assert!(select(&["ISO-999"], &[]).unwrap_err().to_string().contains("--list"));
}

#[test]
fn wishes_that_contradict() {
    let tree = untuned();
    let both = Wish { housekeeping: Some("0-2".parse().unwrap()), ..wish("2-3", Workload::Poll) };
    assert!(matches!(Intent::complete(both, &tree), Err(IntentError::Both(_))));
    let absent = Intent::complete(wish("6-9", Workload::Poll), &tree);
    assert!(matches!(absent, Err(IntentError::NoSuchCpus(..))));
    let nothing = Intent::complete(wish("0-7", Workload::Poll), &tree);
    assert!(matches!(nothing, Err(IntentError::NothingLeft(_))));
}

#[test]
fn waivers_hold_until_their_day_and_are_told_when_they_do_not() {
    let waiver = |id: &str, until: &str| Waiver {
        id: id.to_owned(),
        reason: "known".to_owned(),
        until: until.to_owned(),
    };
    let mut report = report(&untuned(), wish("2-3", Workload::Poll));
    let before = report.counts();
    report.waive(
        vec![
            waiver("ISO-001", "2026-11-21"),
            waiver("ISO-003", "2026-11-20"),
            waiver("MEM-003", "2027-01-01"),
            waiver("XXX-1", "2027-01-01"),
        ],
        "2026-11-21",
    );
    let after = report.counts();
    assert_eq!((after.fail, after.waived, after.total()), (before.fail - 1, 1, before.total()));
    let notes: Vec<String> = report.waivers.iter().map(ToString::to_string).collect();
    assert!(notes[0].contains("ISO-003 expired on 2026-11-20"), "{notes:?}");
    assert!(notes[1].contains("MEM-003 is not needed"), "{notes:?}");
    assert!(notes[2].contains("not asked"), "{notes:?}");
}

/// The page about all checks, from their data.
fn page() -> String {
    let mut text = String::from(include_str!("hosts/page.md"));
    let mut family = "";
    let mut checks: Vec<&Check> = audit::all().collect();
    // Families in their order, each by number.
    let mut families: Vec<&str> = Vec::new();
    for check in &checks {
        if !families.contains(&check.family()) {
            families.push(check.family());
        }
    }
    checks
        .sort_by_key(|check| (families.iter().position(|name| *name == check.family()), check.id));
    for check in checks {
        if check.family() != family {
            family = check.family();
            text += &format!("\n## {family}\n");
        }
        text += &format!("\n### {}: {}\n\n{}\n\n", check.id, check.title, check.why);
        let since = check
            .since
            .map(|(major, minor)| format!("Linux {major}.{minor} and later"))
            .unwrap_or_default();
        let read =
            check.read_from.iter().map(|path| format!("`{path}`")).collect::<Vec<_>>().join(", ");
        for (name, value) in [
            ("importance", check.importance.word()),
            ("read from", &read),
            ("wanted", check.wanted),
            ("cost", check.cost),
            ("now", check.set_now),
            ("at boot", check.set_boot),
            ("undo", check.undo),
            ("kernels", &since),
            ("source", check.source),
        ] {
            if !value.is_empty() {
                text += &format!("* {name}: {value}\n");
            }
        }
    }
    text
}

#[test]
fn the_page_about_the_checks_is_theirs() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/audit.md");
    if std::env::var_os("TAILTRIM_WRITE_DOCS").is_some() {
        std::fs::write(path, page()).unwrap();
    }
    let written = std::fs::read_to_string(path).unwrap_or_default();
    assert!(
        written == page(),
        "docs/audit.md differs from the checks: TAILTRIM_WRITE_DOCS=1 cargo test -p tailtrim-model --test audit"
    );
}
