//! From what is wanted and what a host says of itself to a list of changes.

use super::catalogue::{self, CatalogueChange, Method};
use super::change::{Change, Step, StepState, When};
use super::division::{Division, DivisionError, divide};
use super::form::Form;
use super::host_steps::{HostContext, is_guest};
use super::managers::{self, Manager};
use super::place::{Place, Places, Value};
use super::request::{Boot, Request};
use serde::Serialize;
use tailtrim_host::{BootLine, Cpus, Topology, Unread};
use thiserror::Error;

/// Plan: the changes to one host.
#[derive(Debug, Clone, Serialize)]
pub struct Plan {
    /// Request.
    pub request: Request,
    /// Release of the running kernel.
    pub kernel: Option<String>,
    /// Division of the CPUs.
    pub division: Division,
    /// Changes, in the order in which they are carried out.
    pub changes: Vec<Change>,
    /// Changes of the profile that do not apply to this host, or were taken out.
    pub absent: Vec<Absent>,
    /// Daemons that set some of these values themselves.
    #[serde(rename = "owners")]
    pub managers: Vec<Manager>,
}

/// A change of the profile that does not apply here.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Absent {
    /// Its name.
    pub id: String,
    /// Checks of the audit.
    pub checks: Vec<String>,
    /// Effect that it would have.
    pub title: String,
    /// Why it does not apply.
    pub why: String,
}

/// A process that a plan would leave without any CPU.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error(
    "{change}: takes {} away, but process {pid} ({name}), which this session depends on, may run on \
     {allowed} only: start it on {kept} (taskset), or take the change out",
    .takes.named()
)]
pub struct Cut {
    /// The change that takes CPUs away.
    pub change: String,
    /// Those CPUs.
    pub takes: Cpus,
    /// The process.
    pub pid: u32,
    /// Its name.
    pub name: String,
    /// The CPUs that it may run on.
    pub allowed: Cpus,
    /// The CPUs that stay.
    pub kept: Cpus,
}

/// No plan is possible.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum PlanError {
    /// The CPUs are not known.
    #[error("the CPUs of this host are not known: {0}")]
    NoCpus(Unread),
    /// They cannot be divided as asked.
    #[error(transparent)]
    Division(#[from] DivisionError),
    /// No such interface.
    #[error("{name}: no such interface (there are: {known})")]
    NoInterface {
        /// Request.
        name: String,
        /// Interfaces of the host.
        known: String,
    },
    /// A name that means no change.
    #[error("{0}: no change and no check of this profile has that name")]
    NoChange(String),
    /// No drop-in for GRUB can be written.
    #[error("no drop-in for GRUB can be written: {0}")]
    NoGrub(String),
    /// A manager cannot be taken over.
    #[error("{service} cannot be taken over: {why}")]
    TakeOver {
        /// The manager.
        service: String,
        /// The reason.
        why: String,
    },
}

/// Plan the changes of a host.
///
/// # Errors
///
/// [`PlanError`] says what stands against it.
pub fn plan<H: Places>(host: &H, request: &Request) -> Result<Plan, PlanError> {
    let topology = Topology::read(host).map_err(PlanError::NoCpus)?;
    let nodes = interfaces(host, request)?;
    let division = divide(&topology, request, &nodes)?;
    let kernel = host.text("/proc/sys/kernel/osrelease").ok();
    let config = kernel.as_ref().and_then(|r| host.text(&format!("/boot/config-{r}")).ok());
    let mut plan = Plan {
        request: request.clone(),
        kernel,
        division: division.clone(),
        changes: Vec::new(),
        absent: Vec::new(),
        managers: managers::running(host),
    };
    take_over(host, &mut plan)?;
    for item in catalogue::all() {
        let Some(value) = item.value(request.profile) else { continue };
        let context = HostContext {
            host,
            topology: &topology,
            division: &division,
            request,
            value,
            config: config.clone(),
        };
        plan.add(item, &context);
    }
    plan.choose()?;
    note(host, &mut plan);
    if request.boot == Boot::Grub {
        super::grub::add(host, &mut plan)?;
    }
    Ok(plan)
}

impl Plan {
    fn add(&mut self, item: &CatalogueChange, context: &HostContext<'_>) {
        let mut change = empty(item);
        let made = match &item.method {
            Method::File => {
                let step = context.file(item.file, item.form.clone(), context.value);
                step.map(|step| change.steps.push(step))
                    .ok_or_else(|| format!("{} is not there", item.file))
            }
            Method::Steps(make) | Method::DropIn(make) => {
                make(context).map(|steps| change.steps = steps)
            }
            Method::Words(make) => make(context).map(|words| change.words = words),
            Method::ByHand if item.id.starts_with("firmware.") && is_guest(context) => {
                Err("this is a virtual machine: look at its host".to_owned())
            }
            Method::ByHand => Ok(()),
        };
        match made {
            Err(why) => self.absent.push(absent(&change, why)),
            Ok(())
                if change.steps.is_empty()
                    && change.words.is_empty()
                    && change.when != When::ByHand => {}
            Ok(()) => {
                match item.id {
                    "cpu.smt" => change.takes = context.division.offline.clone(),
                    "isolation.cpuset" => change.takes = context.division.isolated.clone(),
                    _ => {}
                }
                self.changes.push(change);
            }
        }
    }

    /// Keep what the operator wants of the profile.
    fn choose(&mut self) -> Result<(), PlanError> {
        let request = self.request.clone();
        let known = |name: &String| {
            let checks = |item: &CatalogueChange| {
                item.checks.iter().any(|check| check.eq_ignore_ascii_case(name))
            };
            catalogue::all().any(|item| {
                item.value(request.profile).is_some() && (item.id == name || checks(item))
            })
        };
        if let Some(name) = request.without.iter().chain(&request.only).find(|name| !known(name)) {
            return Err(PlanError::NoChange(name.clone()));
        }
        let mut kept = Vec::new();
        for change in std::mem::take(&mut self.changes) {
            if let Some(name) = request.without.iter().find(|name| change.is(name)) {
                self.absent.push(absent(&change, format!("taken out: --without {name}")));
            } else if !request.only.is_empty()
                && !change.id.starts_with("take-over.")
                && !request.only.iter().any(|name| change.is(name))
            {
                self.absent.push(absent(&change, "not named by --only".to_owned()));
            } else {
                kept.push(change);
            }
        }
        self.changes = kept;
        Ok(())
    }

    /// Whether this change is wanted: the profile has it, and `--only` and `--without` leave it in. It may
    /// have nothing to do on this host today.
    #[must_use]
    pub fn wants(&self, id: &str) -> bool {
        let absent = || self.absent.iter().find(|absent| absent.id == id);
        let checks = match self.changes.iter().find(|change| change.id == id) {
            Some(change) => &change.checks,
            None => match absent() {
                Some(absent) => &absent.checks,
                None => return false,
            },
        };
        let named = |names: &[String]| {
            names.iter().any(|name| {
                name == id || checks.iter().any(|check| check.eq_ignore_ascii_case(name))
            })
        };
        let Request { only, without, .. } = &self.request;
        !named(without) && (only.is_empty() || named(only))
    }

    /// All words for the boot line, in order.
    #[must_use]
    pub fn boot_words(&self) -> Vec<&str> {
        self.changes.iter().flat_map(|change| &change.words).map(String::as_str).collect()
    }

    /// Daemons that stand against this plan, with the changes that they would undo.
    #[must_use]
    pub fn refused_by(&self) -> Vec<(&Manager, Vec<&str>)> {
        let of = |manager: &Manager| -> Vec<&str> {
            let mine = self.changes.iter().filter(|change| {
                change.when == When::Now
                    && change.needed()
                    && managers::owns(&manager.service, &change.id)
            });
            mine.map(|change| change.id.as_str())
                .filter(|id| !id.starts_with("take-over."))
                .collect()
        };
        self.managers
            .iter()
            .filter(|manager| !self.request.take_over.contains(&manager.service))
            .map(|manager| (manager, of(manager)))
            .filter(|(_, changes)| !changes.is_empty())
            .collect()
    }

    /// The change that would leave a process without any CPU: one that is needed for the way back.
    /// `allowed` is what this process and those above it may run on.
    #[must_use]
    pub fn cuts(&self, allowed: &[(u32, String, Cpus)]) -> Option<Cut> {
        for change in
            self.changes.iter().filter(|change| change.needed() && !change.takes.is_empty())
        {
            for (pid, name, cpus) in allowed {
                if cpus.minus(&change.takes).is_empty() {
                    return Some(Cut {
                        change: change.id.clone(),
                        takes: change.takes.clone(),
                        pid: *pid,
                        name: name.clone(),
                        allowed: cpus.clone(),
                        kept: self.division.housekeeping.clone(),
                    });
                }
            }
        }
        None
    }

    /// The steps that applying records, with the changes that they belong to: those that it carries out,
    /// and those whose values may change with them. When CPUs go away the kernel sets many values anew.
    pub fn steps(&self) -> impl Iterator<Item = (&Change, &Step)> {
        let takes = self.changes.iter().any(|change| change.needed() && !change.takes.is_empty());
        self.changes
            .iter()
            .flat_map(|change| change.steps.iter().map(move |step| (change, step)))
            .filter(move |(change, step)| match step.state {
                StepState::Needed => true,
                StepState::Remembered => change.needed(),
                StepState::Already => takes,
                StepState::Printed | StepState::Unknown(_) => false,
            })
    }
}

fn empty(item: &CatalogueChange) -> Change {
    Change {
        id: item.id.to_owned(),
        checks: item.checks.iter().map(|check| (*check).to_owned()).collect(),
        title: item.title.to_owned(),
        reason: item.reason.to_owned(),
        cost: item.cost.to_owned(),
        source: item.source.to_owned(),
        when: item.method.when(),
        steps: Vec::new(),
        words: Vec::new(),
        notes: Vec::new(),
        takes: Cpus::none(),
    }
}

fn absent(change: &Change, why: String) -> Absent {
    Absent {
        id: change.id.clone(),
        checks: change.checks.clone(),
        title: change.title.clone(),
        why,
    }
}

/// NUMA nodes of the interfaces that were named.
fn interfaces(host: &impl Places, request: &Request) -> Result<Vec<u32>, PlanError> {
    let known = host.list("/sys/class/net").unwrap_or_default();
    let mut nodes = Vec::new();
    for name in &request.nics {
        if !known.contains(name) {
            return Err(PlanError::NoInterface { name: name.clone(), known: known.join(", ") });
        }
        // -1 where the platform does not tell.
        let node = host.text(&format!("/sys/class/net/{name}/device/numa_node"));
        nodes.extend(node.ok().and_then(|text| text.parse::<u32>().ok()));
    }
    Ok(nodes)
}

fn take_over(host: &impl Places, plan: &mut Plan) -> Result<(), PlanError> {
    for service in plan.request.take_over.clone() {
        let place = Place::Service { name: service.clone() };
        let refused = |why: String| PlanError::TakeOver { service: service.clone(), why };
        if !plan.managers.iter().any(|manager| manager.service == service) {
            return Err(refused("it does not run here".to_owned()));
        }
        let old = host.place(&place).map_err(|why| refused(why.to_string()))?;
        plan.changes.push(Change {
            id: format!("take-over.{service}"),
            checks: vec!["SVC-004".to_owned(), "PWR-015".to_owned(), "IRQ-006".to_owned()],
            title: format!("stop {service}"),
            reason: "it sets some of these values itself, and would overwrite them".to_owned(),
            cost: "it does not run until revert, which starts it again".to_owned(),
            source: "tuned#518; Irqbalance#90".to_owned(),
            when: When::Now,
            steps: vec![Step::new(place, Form::Text, old, "inactive")],
            words: Vec::new(),
            notes: Vec::new(),
            takes: Cpus::none(),
        });
    }
    Ok(())
}

/// Note the files and words of the running boot line that contradict a change.
fn note(host: &impl Places, plan: &mut Plan) {
    let files = managers::sysctl_files(host);
    let line = BootLine::parse(&host.text("/proc/cmdline").unwrap_or_default());
    for change in &mut plan.changes {
        for step in &change.steps {
            let Some(name) = step.place.sysctl() else { continue };
            let Some((path, value)) = files.get(&name) else { continue };
            let wanted = step.new.as_ref();
            if wanted.is_some_and(|wanted| !step.form.same(&Value::from(value.as_str()), wanted)) {
                let text = format!(
                    "{path} sets {name} = {value} whenever the host starts: it comes back then"
                );
                change.notes.push(text);
            }
        }
        for word in &change.words {
            let (name, value) =
                word.split_once('=').map_or((word.as_str(), None), |(n, v)| (n, Some(v)));
            let others: Vec<&str> =
                line.all(name).map(|known| known.value.as_deref().unwrap_or("")).collect();
            match others.last() {
                None => {}
                Some(known) if *known == value.unwrap_or("") => {
                    change.notes.push(format!("{word} is on the running boot line already"));
                }
                Some(known) => change.notes.push(format!(
                    "the running boot line has {name}={known}: take that out where it stands, or the two \
                     contradict each other"
                )),
            }
        }
    }
}
