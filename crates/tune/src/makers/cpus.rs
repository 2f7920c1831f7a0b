//! Hardware threads, frequency, idle states.

use super::{CPUS, Site, Steps, some};
use crate::change::Step;
use crate::form::Form;
use crate::place::Place;
use crate::request::Turbo;

pub(crate) fn smt(site: &Site<'_>) -> Steps {
    if !site.request.smt_off() {
        return Ok(Vec::new());
    }
    let path = format!("{CPUS}/smt/control");
    match site.text(&path).as_deref() {
        Some("on" | "off") => {}
        Some(other) => return Err(format!("{path} reads {other:?}")),
        None => return Err(format!("{path} is not there")),
    }
    some(site.file(path, Form::Text, "off").into_iter().collect(), "")
}

fn each(site: &Site<'_>, of: impl Fn(u32) -> Option<Step>, otherwise: &str) -> Steps {
    some(site.powered().iter().filter_map(of).collect(), otherwise)
}

const NO_FREQUENCY: &str = "this kernel does not set frequencies here (no cpufreq in sysfs): a virtual \
                            machine, or no driver";

pub(crate) fn governor(site: &Site<'_>) -> Steps {
    let of = |cpu: u32| {
        let folder = format!("{CPUS}/cpu{cpu}/cpufreq");
        let known = site.text(&format!("{folder}/scaling_available_governors"));
        let offered =
            known.is_none_or(|known| known.split_whitespace().any(|g| g == "performance"));
        if !offered {
            return None;
        }
        site.file(format!("{folder}/scaling_governor"), Form::Text, "performance")
    };
    let mut steps = each(site, of, NO_FREQUENCY)?;
    // The driver ties the energy preference to the governor.
    for cpu in site.powered().iter() {
        let path = format!("{CPUS}/cpu{cpu}/cpufreq/energy_performance_preference");
        if let Ok(old @ Some(_)) = site.host.place(&Place::file(path.clone())) {
            steps.push(Step::remembered(Place::file(path), Form::Text, old));
        }
    }
    Ok(steps)
}

pub(crate) fn lowest_frequency(site: &Site<'_>) -> Steps {
    let of = |cpu: u32| {
        let folder = format!("{CPUS}/cpu{cpu}/cpufreq");
        let highest = site.text(&format!("{folder}/scaling_max_freq"))?;
        site.file(format!("{folder}/scaling_min_freq"), Form::Number, &highest)
    };
    each(site, of, NO_FREQUENCY)
}

pub(crate) fn energy_preference(site: &Site<'_>) -> Steps {
    let of = |cpu: u32| {
        let path = format!("{CPUS}/cpu{cpu}/cpufreq/energy_performance_preference");
        Some(site.file(path, Form::Text, "performance")?.optional())
    };
    each(site, of, "this CPU or its driver has no energy preference")
}

pub(crate) fn energy_bias(site: &Site<'_>) -> Steps {
    let of =
        |cpu: u32| site.file(format!("{CPUS}/cpu{cpu}/power/energy_perf_bias"), Form::Number, "0");
    each(site, of, "this CPU has no energy bias")
}

pub(crate) fn turbo(site: &Site<'_>) -> Steps {
    let off = match site.request.turbo {
        Turbo::Keep => return Ok(Vec::new()),
        Turbo::Off => true,
        Turbo::On => false,
    };
    let intel = site.file(
        format!("{CPUS}/intel_pstate/no_turbo"),
        Form::Number,
        if off { "1" } else { "0" },
    );
    let generic =
        site.file(format!("{CPUS}/cpufreq/boost"), Form::Number, if off { "0" } else { "1" });
    some(intel.or(generic).into_iter().collect(), "this kernel has no switch for turbo here")
}

pub(crate) fn uncore(site: &Site<'_>) -> Steps {
    let folder = format!("{CPUS}/intel_uncore_frequency");
    let of = |name: &String| {
        let highest = site.text(&format!("{folder}/{name}/max_freq_khz"))?;
        site.file(format!("{folder}/{name}/min_freq_khz"), Form::Number, &highest)
    };
    some(site.names(&folder).iter().filter_map(of).collect(), "no uncore frequency in sysfs")
}

pub(crate) fn idle_states(site: &Site<'_>) -> Steps {
    let budget = site.request.exit_latency_us;
    let (mut steps, mut seen) = (Vec::new(), false);
    for cpu in site.powered().iter() {
        let folder = format!("{CPUS}/cpu{cpu}/cpuidle");
        for state in site.names(&folder) {
            let latency = site.text(&format!("{folder}/{state}/latency"));
            let Some(latency) = latency.and_then(|text| text.parse::<u64>().ok()) else { continue };
            seen = true;
            if latency > budget {
                steps.extend(site.file(format!("{folder}/{state}/disable"), Form::Number, "1"));
            }
        }
    }
    let otherwise = if seen {
        format!("no idle state takes longer than {budget} µs to leave")
    } else {
        "no idle states in sysfs: the CPUs poll, or no driver is loaded".to_owned()
    };
    some(steps, &otherwise)
}

pub(crate) fn dma_latency(site: &Site<'_>) -> Steps {
    let old = site.host.place(&Place::Latency).map_err(|why| why.to_string())?;
    Ok(vec![Step::new(Place::Latency, Form::Text, old, site.value)])
}
