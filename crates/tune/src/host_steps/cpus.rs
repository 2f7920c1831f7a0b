//! Hardware threads, frequency, idle states.

use super::{CPUS, HostContext, Steps, some};
use crate::change::Step;
use crate::form::Form;
use crate::place::Place;
use crate::request::Turbo;

pub(crate) fn smt(context: &HostContext<'_>) -> Steps {
    if !context.request.smt_off() {
        return Ok(Vec::new());
    }
    let path = format!("{CPUS}/smt/control");
    match context.text(&path).as_deref() {
        Some("on" | "off") => {}
        Some(other) => return Err(format!("{path} reads {other:?}")),
        None => return Err(format!("{path} is not there")),
    }
    some(context.file(path, Form::Text, "off").into_iter().collect(), "")
}

fn each(context: &HostContext<'_>, of: impl Fn(u32) -> Option<Step>, otherwise: &str) -> Steps {
    some(context.power_managed().iter().filter_map(of).collect(), otherwise)
}

const NO_FREQUENCY: &str = "this kernel does not set frequencies here (no cpufreq in sysfs): a virtual \
                            machine, or no driver";

pub(crate) fn governor(context: &HostContext<'_>) -> Steps {
    let of = |cpu: u32| {
        let folder = format!("{CPUS}/cpu{cpu}/cpufreq");
        let known = context.text(&format!("{folder}/scaling_available_governors"));
        let offered =
            known.is_none_or(|known| known.split_whitespace().any(|g| g == "performance"));
        if !offered {
            return None;
        }
        context.file(format!("{folder}/scaling_governor"), Form::Text, "performance")
    };
    let mut steps = each(context, of, NO_FREQUENCY)?;
    // The driver ties the energy preference to the governor.
    for cpu in context.power_managed().iter() {
        let path = format!("{CPUS}/cpu{cpu}/cpufreq/energy_performance_preference");
        if let Ok(old @ Some(_)) = context.host.place(&Place::file(path.clone())) {
            steps.push(Step::remembered(Place::file(path), Form::Text, old));
        }
    }
    Ok(steps)
}

pub(crate) fn lowest_frequency(context: &HostContext<'_>) -> Steps {
    let of = |cpu: u32| {
        let folder = format!("{CPUS}/cpu{cpu}/cpufreq");
        let highest = context.text(&format!("{folder}/scaling_max_freq"))?;
        context.file(format!("{folder}/scaling_min_freq"), Form::Number, &highest)
    };
    each(context, of, NO_FREQUENCY)
}

pub(crate) fn energy_preference(context: &HostContext<'_>) -> Steps {
    let of = |cpu: u32| {
        let path = format!("{CPUS}/cpu{cpu}/cpufreq/energy_performance_preference");
        Some(context.file(path, Form::Text, "performance")?.optional())
    };
    each(context, of, "this CPU or its driver has no energy preference")
}

pub(crate) fn energy_bias(context: &HostContext<'_>) -> Steps {
    let of = |cpu: u32| {
        context.file(format!("{CPUS}/cpu{cpu}/power/energy_perf_bias"), Form::Number, "0")
    };
    each(context, of, "this CPU has no energy bias")
}

pub(crate) fn turbo(context: &HostContext<'_>) -> Steps {
    let off = match context.request.turbo {
        Turbo::Keep => return Ok(Vec::new()),
        Turbo::Off => true,
        Turbo::On => false,
    };
    let intel = context.file(
        format!("{CPUS}/intel_pstate/no_turbo"),
        Form::Number,
        if off { "1" } else { "0" },
    );
    let generic =
        context.file(format!("{CPUS}/cpufreq/boost"), Form::Number, if off { "0" } else { "1" });
    some(intel.or(generic).into_iter().collect(), "this kernel has no switch for turbo here")
}

pub(crate) fn uncore(context: &HostContext<'_>) -> Steps {
    let folder = format!("{CPUS}/intel_uncore_frequency");
    let of = |name: &String| {
        let highest = context.text(&format!("{folder}/{name}/max_freq_khz"))?;
        context.file(format!("{folder}/{name}/min_freq_khz"), Form::Number, &highest)
    };
    some(context.names(&folder).iter().filter_map(of).collect(), "no uncore frequency in sysfs")
}

pub(crate) fn idle_states(context: &HostContext<'_>) -> Steps {
    let budget = context.request.exit_latency_us;
    let (mut steps, mut seen) = (Vec::new(), false);
    for cpu in context.power_managed().iter() {
        let folder = format!("{CPUS}/cpu{cpu}/cpuidle");
        for state in context.names(&folder) {
            let latency = context.text(&format!("{folder}/{state}/latency"));
            let Some(latency) = latency.and_then(|text| text.parse::<u64>().ok()) else { continue };
            seen = true;
            if latency > budget {
                steps.extend(context.file(format!("{folder}/{state}/disable"), Form::Number, "1"));
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

pub(crate) fn dma_latency(context: &HostContext<'_>) -> Steps {
    let old = context.host.place(&Place::Latency).map_err(|why| why.to_string())?;
    Ok(vec![Step::new(Place::Latency, Form::Text, old, context.value)])
}
