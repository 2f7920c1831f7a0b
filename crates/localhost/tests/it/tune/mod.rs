//! Plans on a host in memory: whatever fails and wherever the process is killed, reverting restores the same bytes.

mod folder;
mod machine;
mod places;

use machine::{Cell, Disk, FOLDER, Fate, Machine};
use places::{configs, file};
use proptest::collection::{btree_set, vec};
use proptest::option;
use proptest::prelude::*;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;
use tailtrim_host::Cpus;
use tailtrim_localhost::tune::{ApplyError, Standing, apply, begin, inspect, revert};
use tailtrim_tune::{
    Begin, Change, Command, Division, Form, Journal, Outcome, Place, Places, Plan, Profile,
    Request, Step, StepState, Value, When,
};

fn started() -> Begin {
    begin("boot".into(), "latency-poll", vec!["apply".into()])
}

fn change(id: &str, steps: Vec<Step>) -> Change {
    Change {
        id: id.into(),
        checks: Vec::new(),
        title: String::new(),
        reason: String::new(),
        cost: String::new(),
        source: String::new(),
        when: When::Now,
        steps,
        words: Vec::new(),
        notes: Vec::new(),
        takes: Cpus::none(),
    }
}

fn plan(changes: Vec<Change>) -> Plan {
    Plan {
        request: Request::new(Profile::LatencyPoll),
        kernel: None,
        division: Division::default(),
        changes,
        absent: Vec::new(),
        managers: Vec::new(),
    }
}

/// Wishes for places that are chosen by number; a folder comes with files in it.
fn wishes(machine: &Machine, chosen: &[(usize, u64, bool)]) -> Plan {
    let mut changes: Vec<Change> = Vec::new();
    for (at, seed, optional) in chosen {
        let (place, cell) = machine.cells.iter().nth(at % machine.cells.len()).unwrap();
        if changes.iter().any(|change| change.steps[0].place == *place) {
            continue;
        }
        let (form, new) = Machine::wish(cell, *seed);
        let mut step = Step::new(place.clone(), form, None, new);
        step.state = StepState::Needed;
        step.optional = *optional || matches!(cell, Cell::Managed(_));
        if matches!(cell, Cell::File(_)) && seed.is_multiple_of(3) {
            step.then = Some(Command::UpdateGrub);
        }
        let mut steps = vec![step];
        if matches!(cell, Cell::Folder(_)) {
            for name in ["cpuset.cpus", "cpuset.cpus.partition"] {
                let place = Place::file(format!("{FOLDER}/{name}"));
                steps.push(Step::new(place, Form::Text, None, "1"));
            }
        }
        if matches!(cell, Cell::Watchdog) {
            let all = machine.cells.iter().filter(|(_, cell)| matches!(cell, Cell::Watchdog));
            for (other, _) in all.filter(|(other, _)| *other != place) {
                steps.push(Step::remembered(other.clone(), Form::Number, None));
            }
        }
        let id = if matches!(cell, Cell::Service(_)) { "take-over.cron" } else { "change" };
        changes.push(change(id, steps));
    }
    plan(changes)
}

fn quiet(fate: &Rc<RefCell<Fate>>) {
    *fate.borrow_mut() = Fate::default();
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(10_000))]

    #[test]
    fn the_way_back_leads_to_the_same_bytes(
        seeds in any::<[u64; 12]>(),
        chosen in vec((0_usize..14, any::<u64>(), any::<bool>()), 1..12),
        dies_at in option::weighted(0.8, 0_u32..100),
        refused in btree_set(0_u32..100, 0..3),
        part in any::<u8>(),
        ways_back in vec((0_u32..60, any::<u8>(), btree_set(0_u32..60, 0..2)), 0..4),
    ) {
        let fate = Rc::new(RefCell::new(Fate::default()));
        let mut machine = Machine::new(&seeds, Rc::clone(&fate));
        let mut disk = Disk::new(Rc::clone(&fate));
        let before = machine.snapshot();
        let plan = wishes(&machine, &chosen);
        *fate.borrow_mut() = Fate { dies_at, refused, part, operations: 0 };
        let _ = apply(&mut machine, &mut disk, &plan, started());
        for (dies_at, part, refused) in ways_back {
            *fate.borrow_mut() = Fate { dies_at: Some(dies_at), refused, part, operations: 0 };
            let _ = revert(&mut machine, &mut disk, "boot");
        }
        quiet(&fate);
        let told = revert(&mut machine, &mut disk, "boot").unwrap();
        prop_assert_eq!(&told.map(|told| told.left).unwrap_or_default(), &[]);
        prop_assert_eq!(machine.snapshot(), before);
        prop_assert!(disk.journal.is_none());
        prop_assert!(revert(&mut machine, &mut disk, "boot").unwrap().is_none());
    }
}

/// Asserts that after damage to the journal of an applied plan either all is restored, or nothing is changed.
fn restores_all_or_nothing(
    bench: &mut Bench,
    before: &BTreeMap<Place, Option<Value>>,
    bytes: Vec<u8>,
) {
    let now = bench.machine.snapshot();
    let mut machine = bench.machine.clone();
    bench.disk.journal = Some(bytes.clone());
    match revert(&mut machine, &mut bench.disk, "boot") {
        Ok(told) => {
            let told = told.unwrap();
            assert_eq!((machine.snapshot(), told.left), (before.clone(), Vec::new()));
            assert_eq!(bench.disk.journal, None);
        }
        Err(error) => {
            assert_eq!(machine.snapshot(), now, "{error}");
            assert_eq!(bench.disk.journal, Some(bytes), "{error}");
            assert!(error.to_string().contains("nothing was restored"));
        }
    }
}

#[test]
fn a_journal_cut_or_changed_at_any_byte_restores_all_or_nothing() {
    let mut b = bench();
    let before = b.machine.snapshot();
    let chosen: Vec<(usize, u64, bool)> = (0..14).map(|at| (at, 6, true)).collect();
    let plan = wishes(&b.machine, &chosen);
    apply(&mut b.machine, &mut b.disk, &plan, started()).unwrap();
    assert_ne!(b.machine.snapshot(), before);
    let journal = b.disk.journal.clone().unwrap();
    for at in 0..journal.len() {
        restores_all_or_nothing(&mut b, &before, journal[..at].to_vec());
        let mut changed = journal.clone();
        changed[at] = changed[at].wrapping_add(1);
        restores_all_or_nothing(&mut b, &before, changed);
    }
    // Cut off amid its steps.
    let half = journal[..journal.len() / 3].to_vec();
    b.disk.journal = Some(half);
    let error = revert(&mut b.machine, &mut b.disk, "boot").unwrap_err().to_string();
    assert!(
        error.starts_with("it ends after ") && error.contains("may still be changed"),
        "{error}"
    );
}

struct Bench {
    machine: Machine,
    disk: Disk,
    fate: Rc<RefCell<Fate>>,
}

fn bench() -> Bench {
    let fate = Rc::new(RefCell::new(Fate::default()));
    let seeds = [7, 3, 1, 0xff, 0xff, 0xff, 1, 2, 0, 0, 0, 1];
    Bench {
        machine: Machine::new(&seeds, Rc::clone(&fate)),
        disk: Disk::new(Rc::clone(&fate)),
        fate,
    }
}

fn to(bench: &Bench, name: &str, form: Form, new: &str) -> Step {
    let place = file(name);
    let old = bench.machine.place(&place).unwrap();
    Step::new(place, form, old, new)
}

#[test]
fn killed_at_every_single_operation() {
    let whole = {
        let mut b = bench();
        let chosen: Vec<(usize, u64, bool)> = (0..14).map(|at| (at, 5, true)).collect();
        let plan = wishes(&b.machine, &chosen);
        quiet(&b.fate);
        apply(&mut b.machine, &mut b.disk, &plan, started()).unwrap();
        b.fate.borrow().operations
    };
    assert!(whole > 60, "{whole}");
    for dies_at in 0..whole {
        for part in [0, 100, 200, 255] {
            let mut b = bench();
            let before = b.machine.snapshot();
            let chosen: Vec<(usize, u64, bool)> = (0..14).map(|at| (at, 5, true)).collect();
            let plan = wishes(&b.machine, &chosen);
            *b.fate.borrow_mut() = Fate { dies_at: Some(dies_at), part, ..Fate::default() };
            assert!(apply(&mut b.machine, &mut b.disk, &plan, started()).is_err());
            quiet(&b.fate);
            revert(&mut b.machine, &mut b.disk, "boot").unwrap();
            assert_eq!(b.machine.snapshot(), before, "killed at operation {dies_at}, part {part}");
        }
    }
}

#[test]
fn what_is_applied_is_told_and_a_second_plan_is_refused() {
    let mut b = bench();
    let steps = vec![
        to(&b, "number", Form::Number, "100"),
        to(&b, "choice", Form::Choice, "never"),
        to(&b, "managed", Form::List, "1").optional(),
        to(&b, "list", Form::List, "0-1"),
    ];
    let plan = plan(vec![change("x", steps)]);
    let applied = apply(&mut b.machine, &mut b.disk, &plan, started()).unwrap();
    assert_eq!((applied.took, applied.differs.len(), applied.cannot.len()), (2, 1, 1));
    assert!(applied.differs[0].why.contains("wanted 100, reads 60"), "{}", applied.differs[0].why);
    assert!(matches!(
        apply(&mut b.machine, &mut b.disk, &plan, started()),
        Err(ApplyError::Pending { .. })
    ));
    let journal = Journal::parse(b.disk.journal.as_ref().unwrap()).unwrap();
    assert_eq!(journal.outcomes[&2], Outcome::Cannot("Input/output error".into()));
    // Another program writes one of them.
    b.machine.cells.insert(file("list"), Cell::List("5".parse().unwrap()));
    let standing: Vec<Standing> =
        inspect(&b.machine, &journal, "boot").iter().map(|found| found.standing).collect();
    assert_eq!(
        standing,
        [Standing::Differs, Standing::InPlace, Standing::Cannot, Standing::Differs]
    );
    let told = revert(&mut b.machine, &mut b.disk, "boot").unwrap().unwrap();
    assert_eq!((told.restored, told.drifted.len(), told.left.len()), (3, 1, 0));
    assert_eq!(b.disk.retired.len(), 1);
}

#[test]
fn the_first_failure_ends_it_and_can_be_taken_back() {
    let mut b = bench();
    let before = b.machine.snapshot();
    let steps = vec![
        to(&b, "number", Form::Number, "5"),
        to(&b, "choice", Form::Choice, "sometimes"),
        to(&b, "list", Form::List, "0-1"),
    ];
    let plan = plan(vec![change("x", steps)]);
    let error = apply(&mut b.machine, &mut b.disk, &plan, started()).unwrap_err();
    assert!(error.to_string().contains("enabled: Invalid argument; 1 values"), "{error}");
    assert_eq!(b.machine.snapshot()[&file("list")], before[&file("list")]);
    revert(&mut b.machine, &mut b.disk, "boot").unwrap();
    assert_eq!(b.machine.snapshot(), before);
}

#[test]
fn after_a_restart_only_what_is_on_a_disk_is_restored() {
    let mut b = bench();
    let config = configs()[1].clone();
    let steps = vec![
        to(&b, "number", Form::Number, "5"),
        Step::new(config.clone(), Form::Bytes, None, "drop-in"),
    ];
    apply(&mut b.machine, &mut b.disk, &plan(vec![change("x", steps)]), started()).unwrap();
    let number = file("number");
    let set = b.machine.place(&number).unwrap();
    let told = revert(&mut b.machine, &mut b.disk, "another boot").unwrap().unwrap();
    assert_eq!((told.restored, told.gone.len()), (1, 1));
    assert_eq!(b.machine.place(&number).unwrap(), set);
    assert_ne!(b.machine.place(&config).unwrap(), Some(Value::from("drop-in")));
}
