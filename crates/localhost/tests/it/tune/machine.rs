//! A host in memory that behaves like a kernel, and a disk; both die or refuse at given operations.

use super::places::{configs, file};
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::rc::Rc;
use tailtrim_host::{Cpus, Tree, Unread};
use tailtrim_localhost::tune::{Host, Refused, StateError, Store};
use tailtrim_tune::{Command, Form, Place, Places, Value};

/// Faults, counted over the operations of host and disk together.
#[derive(Debug, Default)]
pub(crate) struct Fate {
    pub(crate) operations: u32,
    /// The operation during which the process is killed: nothing after it has any effect.
    pub(crate) dies_at: Option<u32>,
    /// Operations that the host refuses.
    pub(crate) refused: BTreeSet<u32>,
    /// Part of the last operation that was done, in 256ths.
    pub(crate) part: u8,
}

enum Turn {
    Done,
    Refused,
    /// Killed: this part of the operation was done, in 256ths.
    Killed(u8),
    Dead,
}

impl Fate {
    fn turn(&mut self) -> Turn {
        let now = self.operations;
        self.operations += 1;
        match self.dies_at {
            Some(at) if now > at => Turn::Dead,
            Some(at) if now == at => Turn::Killed(self.part),
            _ if self.refused.contains(&now) => Turn::Refused,
            _ => Turn::Done,
        }
    }
}

/// Kind of a kernel's place: accepted values and their form.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Cell {
    Number {
        value: i64,
        least: i64,
        most: i64,
    },
    Choice {
        chosen: usize,
    },
    Mask(Cpus),
    List(Cpus),
    /// Set by the kernel alone.
    Managed(Cpus),
    /// One of two watchdogs, or the switch for both.
    Watchdog,
    File(Option<Vec<u8>>),
    Folder(bool),
    Held(Option<String>),
    Service(bool),
}

const WORDS: [&str; 3] = ["always", "madvise", "never"];
const POSSIBLE: u32 = 40;
pub(crate) const FOLDER: &str = "/sys/fs/cgroup/tailtrim";

#[derive(Clone)]
pub(crate) struct Machine {
    pub(crate) cells: BTreeMap<Place, Cell>,
    /// Soft and hard.
    pub(crate) watchdogs: [bool; 2],
    pub(crate) inside: BTreeMap<String, String>,
    pub(crate) ran: u32,
    pub(crate) fate: Rc<RefCell<Fate>>,
}

fn set(bits: u64) -> Cpus {
    (0..POSSIBLE).filter(|cpu| bits >> cpu & 1 == 1).collect()
}

impl Machine {
    /// All places, with these values.
    pub(crate) fn new(seeds: &[u64; 12], fate: Rc<RefCell<Fate>>) -> Self {
        let bits = |at: usize| set(seeds[at] | 1);
        let config =
            |at: usize| (seeds[at].is_multiple_of(2)).then(|| seeds[at].to_le_bytes().to_vec());
        let drop_ins = configs();
        let cells = [
            (file("number"), Cell::Number { value: (seeds[0] % 100) as i64, least: -1, most: 60 }),
            (
                file("other"),
                Cell::Number { value: (seeds[1] % 9) as i64, least: 0, most: 1_000_000 },
            ),
            (file("choice"), Cell::Choice { chosen: (seeds[2] % 3) as usize }),
            (file("mask"), Cell::Mask(bits(3))),
            (file("list"), Cell::List(bits(4))),
            (file("managed"), Cell::Managed(bits(5))),
            (file("watchdog"), Cell::Watchdog),
            (file("soft_watchdog"), Cell::Watchdog),
            (file("nmi_watchdog"), Cell::Watchdog),
            (drop_ins[0].clone(), Cell::File(config(6))),
            (drop_ins[1].clone(), Cell::File(config(7))),
            (Place::Directory { path: FOLDER.into() }, Cell::Folder(false)),
            (Place::Latency, Cell::Held(None)),
            (
                Place::Service { name: "cron.service".into() },
                Cell::Service(seeds[9].is_multiple_of(2)),
            ),
        ];
        Self {
            cells: cells.into(),
            watchdogs: [seeds[10].is_multiple_of(2), seeds[11].is_multiple_of(2)],
            inside: BTreeMap::new(),
            ran: 0,
            fate,
        }
    }

    /// A value for a place, good or not, and how it is written.
    pub(crate) fn wish(cell: &Cell, seed: u64) -> (Form, Value) {
        let cpus = set(seed);
        match cell {
            Cell::Number { .. } => (Form::Number, (seed % 120).to_string().into()),
            Cell::Choice { .. } => {
                let word = ["always", "madvise", "never", "sometimes"][(seed % 4) as usize];
                (Form::Choice, word.into())
            }
            Cell::Mask(_) => (Form::Mask, cpus.to_mask().into()),
            Cell::List(_) | Cell::Managed(_) => (Form::List, cpus.to_string().into()),
            Cell::Watchdog => (Form::Number, (seed % 2).to_string().into()),
            Cell::File(_) => (Form::Bytes, Value(seed.to_be_bytes().to_vec())),
            Cell::Folder(_) => (Form::Bytes, "".into()),
            Cell::Held(_) => (Form::Text, "1".into()),
            Cell::Service(_) => {
                (Form::Text, if seed.is_multiple_of(2) { "active" } else { "inactive" }.into())
            }
        }
    }

    pub(crate) fn snapshot(&self) -> BTreeMap<Place, Option<Value>> {
        let mut all: BTreeMap<Place, Option<Value>> =
            self.cells.keys().map(|place| (place.clone(), self.look(place))).collect();
        for path in self.inside.keys() {
            all.insert(Place::file(path.clone()), self.look(&Place::file(path.clone())));
        }
        all
    }

    fn look(&self, place: &Place) -> Option<Value> {
        let line = |text: String| Some(Value::from(text + "\n"));
        match self.cells.get(place) {
            Some(Cell::Number { value, .. }) => line(value.to_string()),
            Some(Cell::Choice { chosen }) => line(
                WORDS
                    .iter()
                    .enumerate()
                    .map(|(at, w)| if at == *chosen { format!("[{w}]") } else { (*w).to_owned() })
                    .collect::<Vec<_>>()
                    .join(" "),
            ),
            // As kernels write it: as wide as there could be CPUs.
            Some(Cell::Mask(cpus)) => {
                let text = cpus.to_mask();
                line(if text.contains(',') { text } else { format!("00,{text:0>8}") })
            }
            Some(Cell::List(cpus) | Cell::Managed(cpus)) => line(cpus.to_string()),
            Some(Cell::Watchdog) => {
                let [soft, hard] = self.watchdogs;
                let on = match place.path().unwrap_or_default().rsplit('/').next() {
                    Some("soft_watchdog") => soft,
                    Some("nmi_watchdog") => hard,
                    _ => soft || hard,
                };
                line(u8::from(on).to_string())
            }
            Some(Cell::File(content)) => content.clone().map(Value),
            Some(Cell::Folder(there)) => there.then(Value::default),
            Some(Cell::Held(us)) => us.as_deref().map(Value::from),
            Some(Cell::Service(runs)) => Some(if *runs { "active" } else { "inactive" }.into()),
            None => {
                let text = self.inside.get(place.path()?)?;
                line(text.clone())
            }
        }
    }

    fn set(
        &mut self,
        place: &Place,
        value: Option<&[u8]>,
        share: Option<u8>,
    ) -> Result<(), Refused> {
        let refuse = |why: &str| Err(Refused(why.to_owned()));
        let text = value.map(|value| String::from_utf8_lossy(value).trim().to_owned());
        if let (None, Some(path)) = (self.cells.get(place), place.path()) {
            if self.cells.get(&Place::Directory { path: FOLDER.into() })
                != Some(&Cell::Folder(true))
            {
                return refuse("No such file");
            }
            self.inside.insert(path.to_owned(), text.unwrap_or_default());
            return Ok(());
        }
        let Some(cell) = self.cells.get_mut(place) else { return refuse("No such place") };
        match (cell, text) {
            (Cell::Number { value, least, most }, Some(text)) => match text.parse::<i64>() {
                // Values beyond the limits that were there from the start can be written back.
                Ok(new) if new > *most && new < 100 => *value = new,
                Ok(new) => *value = new.clamp(*least, *most),
                Err(_) => return refuse("Invalid argument"),
            },
            (Cell::Choice { chosen }, Some(text)) => {
                match WORDS.iter().position(|word| *word == text) {
                    Some(at) => *chosen = at,
                    None => return refuse("Invalid argument"),
                }
            }
            (Cell::Mask(cpus), Some(text)) => match Cpus::from_mask(&text) {
                Ok(new) if !new.is_empty() => *cpus = new.intersection(&set(u64::MAX)),
                _ => return refuse("Invalid argument"),
            },
            (Cell::List(cpus), Some(text)) => match text.parse::<Cpus>() {
                Ok(new) if !new.is_empty() => *cpus = new,
                _ => return refuse("Invalid argument"),
            },
            (Cell::Managed(_), _) => return refuse("Input/output error"),
            (Cell::Watchdog, Some(text)) => {
                let on = text == "1";
                match place.path().unwrap_or_default().rsplit('/').next() {
                    Some("soft_watchdog") => self.watchdogs[0] = on,
                    Some("nmi_watchdog") => self.watchdogs[1] = on,
                    _ => self.watchdogs = [on; 2],
                }
            }
            (Cell::File(content), _) => {
                *content = value.map(|value| {
                    let length =
                        share.map_or(value.len(), |share| value.len() * usize::from(share) / 256);
                    value[..length].to_vec()
                });
            }
            (Cell::Folder(there), text) => {
                if *there == text.is_some() {
                    return refuse(if *there { "File exists" } else { "No such file" });
                }
                *there = text.is_some();
                if !*there {
                    self.inside.clear();
                }
            }
            (Cell::Held(us), text) => *us = text,
            (Cell::Service(runs), Some(text)) => *runs = text == "active",
            _ => return refuse("cannot be removed"),
        }
        Ok(())
    }
}

impl Tree for Machine {
    fn read(&self, path: &str) -> Result<Vec<u8>, Unread> {
        let missing = || Unread::Missing { path: path.to_owned() };
        self.look(&Place::file(path)).map(|value| value.0).ok_or_else(missing)
    }

    fn list(&self, path: &str) -> Result<Vec<String>, Unread> {
        Err(Unread::Missing { path: path.to_owned() })
    }

    fn link(&self, path: &str) -> Result<String, Unread> {
        Err(Unread::Missing { path: path.to_owned() })
    }
}

impl Places for Machine {
    fn place(&self, place: &Place) -> Result<Option<Value>, Unread> {
        let problem = "interrupted".to_owned();
        match self.fate.borrow_mut().turn() {
            Turn::Done => Ok(self.look(place)),
            _ => Err(Unread::Broken { path: place.to_string(), problem }),
        }
    }
}

impl Host for Machine {
    fn write(&mut self, place: &Place, value: Option<&[u8]>) -> Result<(), Refused> {
        let turn = self.fate.borrow_mut().turn();
        match turn {
            Turn::Done => self.set(place, value, None),
            Turn::Killed(0..=84) | Turn::Refused | Turn::Dead => Err(Refused("interrupted".into())),
            Turn::Killed(share) => self.set(place, value, Some(share)),
        }
    }

    fn run(&mut self, _: Command) -> Result<(), Refused> {
        match self.fate.borrow_mut().turn() {
            Turn::Done => {
                self.ran += 1;
                Ok(())
            }
            _ => Err(Refused("interrupted".into())),
        }
    }
}

/// A disk with one journal.
pub(crate) struct Disk {
    pub(crate) journal: Option<Vec<u8>>,
    pub(crate) retired: Vec<String>,
    pub(crate) fate: Rc<RefCell<Fate>>,
}

impl Disk {
    pub(crate) fn new(fate: Rc<RefCell<Fate>>) -> Self {
        Self { journal: None, retired: Vec::new(), fate }
    }

    fn failed<T>() -> Result<T, StateError> {
        Err(StateError { path: "journal".into(), problem: io::Error::other("interrupted").into() })
    }

    /// Result of an operation that is done whole or not at all: whether it was done, and whether its caller lives on.
    fn whole(&self) -> (bool, bool) {
        match self.fate.borrow_mut().turn() {
            Turn::Done => (true, true),
            Turn::Killed(share) => (share > 127, false),
            Turn::Refused | Turn::Dead => (false, false),
        }
    }
}

impl Store for Disk {
    fn load(&self) -> Result<Option<Vec<u8>>, StateError> {
        match self.fate.borrow_mut().turn() {
            Turn::Done => Ok(self.journal.clone()),
            _ => Self::failed(),
        }
    }

    fn publish(&mut self, bytes: &[u8]) -> Result<(), StateError> {
        let (done, lives) = self.whole();
        if done {
            self.journal = Some(bytes.to_vec());
        }
        if lives { Ok(()) } else { Self::failed() }
    }

    fn append(&mut self, bytes: &[u8]) -> Result<(), StateError> {
        let turn = self.fate.borrow_mut().turn();
        let length = match turn {
            Turn::Done => bytes.len(),
            Turn::Killed(share) => bytes.len() * usize::from(share) / 255,
            // A full disk takes half of the bytes.
            Turn::Refused => bytes.len() / 2,
            Turn::Dead => 0,
        };
        if let Some(journal) = &mut self.journal {
            journal.extend_from_slice(&bytes[..length]);
        }
        if matches!(turn, Turn::Done) { Ok(()) } else { Self::failed() }
    }

    fn cut(&mut self, length: usize) -> Result<(), StateError> {
        let (done, lives) = self.whole();
        if let (true, Some(journal)) = (done, &mut self.journal) {
            journal.truncate(length);
        }
        if lives { Ok(()) } else { Self::failed() }
    }

    fn retire(&mut self, id: &str) -> Result<(), StateError> {
        let (done, lives) = self.whole();
        if done {
            self.retired.push(id.to_owned());
            self.journal = None;
        }
        if lives { Ok(()) } else { Self::failed() }
    }
}
