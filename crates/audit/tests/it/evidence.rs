//! Nothing is ok that was not read, and nothing is read that disturbs.

use super::hosts::{changed, reference, untuned};
use super::wish;
use CheckStatus::{NotApplicable, Ok as Good, Unknown};
use proptest::prelude::*;
use std::cell::RefCell;
use std::collections::BTreeSet;
use tailtrim_audit::{self as audit, Check, CheckStatus, Facts, Finding, Intent, Wish, Workload};
use tailtrim_host::{Memory, Tree, Unread, paths};

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
        (changed(super::hosts::TUNED), wish("2-3", Workload::Poll)),
        (changed(super::hosts::TYPOS), wish("1-3", Workload::Interrupt)),
        (changed(super::hosts::GUEST), wish("2-3", Workload::Guest)),
        (changed(super::hosts::AMD), wish("2-3", Workload::Vm)),
        (changed(super::hosts::LAPTOP), wish("1", Workload::Interrupt)),
        (changed(super::hosts::EQUIPPED), wish("2-3", Workload::Vm)),
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

/// A check that no host can answer is of no use.
#[test]
fn every_check_is_answered_on_some_host() {
    let mut open: BTreeSet<&str> = audit::all().map(|check| check.id).collect();
    for (tree, wish) in all_hosts() {
        let intent = Intent::complete(wish, &tree).unwrap();
        open.retain(|id| {
            let found = audit::ask(audit::find(id).unwrap(), &Facts::new(&tree, &intent));
            matches!(found.verdict, Unknown | NotApplicable)
        });
    }
    assert_eq!(open, BTreeSet::new());
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
    fn a_check_is_ok_only_by_what_it_read(host in 0_usize..8, seed in any::<u64>(), share in 1_u64..60) {
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
