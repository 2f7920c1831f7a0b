//! `explain` and its result.

use crate::errors::{TailtrimError, invalid};
use crate::probabilities::{probabilities, probability};
use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use arrow_pyarrow::{PyArrowType, Table};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use serde::Serialize;
use tailtrim_audit::advice::{Advice, advice};
use tailtrim_cause::explanation::{Explanation, ExplanationOptions, Late, Trace, explain};
use tailtrim_cause::periodic;
use tailtrim_cause::simulate::{Interrupt, Simulation};
use tailtrim_trace::Event;
use tailtrim_trace::lines::Throttled;
use tailtrim_wire::traffic::{Fraction, Pattern, Rate, Schedule, Sizes, phases};

/// The result as JSON.
pub(crate) fn json(value: &impl Serialize) -> PyResult<String> {
    serde_json::to_string(value).map_err(|error| TailtrimError::new_err(error.to_string()))
}

/// An explanation with what can be done about its causes. Causes name checks of the audit; what these look at, the host's
/// crate knows.
#[derive(Serialize)]
struct Explained {
    #[serde(flatten)]
    explanation: Explanation,
    advice: Vec<Advice>,
    late: Vec<Late>,
}

impl Explained {
    fn of(mut explanation: Explanation, cpu: u32) -> Self {
        let late = std::mem::take(&mut explanation.late);
        Self { advice: advice(explanation.checks(), [cpu]), late, explanation }
    }
}

/// Stamps of the samples (ingress, egress) from the table `sample` of a run directory.
pub(crate) fn stamps(samples: PyArrowType<Table>) -> PyResult<Vec<(i64, i64)>> {
    let (batches, _) = samples.0.into_inner();
    let mut pairs = Vec::with_capacity(batches.iter().map(|batch| batch.num_rows()).sum());
    for batch in &batches {
        let column = |name: &str| {
            batch
                .column_by_name(name)
                .and_then(|column| column.as_primitive_opt::<Int64Type>())
                .ok_or_else(|| PyValueError::new_err(format!("no column {name} of int64")))
        };
        let (ingress, egress) = (column("ingress_ns")?, column("egress_ns")?);
        pairs.extend(ingress.values().iter().copied().zip(egress.values().iter().copied()));
    }
    Ok(pairs)
}

/// Periodic causes of the late packets among these samples, as JSON.
#[pyfunction]
pub(crate) fn periodic_causes(py: Python<'_>, samples: PyArrowType<Table>) -> PyResult<String> {
    let samples = stamps(samples)?;
    let found = py.detach(|| periodic::explain(&samples));
    json(&found)
}

/// Simulates the latencies that packets would observe with periodic interrupts; the result as JSON. Intervals and
/// periods are fractions (numerator, denominator) of ns; an interrupt is (period, start, durations).
#[pyfunction]
#[pyo3(signature = (*, schedule, interval_ns, drift_ppb, latency_ns, run_ns, interrupts))]
#[allow(clippy::type_complexity, reason = "plain tuples across the language border")]
pub(crate) fn simulate_interrupts(
    py: Python<'_>,
    schedule: &str,
    interval_ns: (u64, u64),
    drift_ppb: i64,
    latency_ns: u64,
    run_ns: u64,
    interrupts: Vec<((u64, u64), u64, Vec<u64>)>,
) -> PyResult<String> {
    let fraction = |(numerator, denominator): (u64, u64)| {
        if numerator == 0 || denominator == 0 {
            return Err(PyValueError::new_err("invalid interval, expected more than 0"));
        }
        Ok(Fraction { numerator: numerator.into(), denominator: denominator.into() })
    };
    let interrupts = interrupts
        .into_iter()
        .map(|(period, start_ns, durations_ns)| {
            let period_ns = fraction(period)?;
            let longest_ns = durations_ns.iter().copied().max().unwrap_or(0);
            if longest_ns as f64 >= period_ns.as_f64() {
                return Err(PyValueError::new_err("an interrupt takes longer than its period"));
            }
            Ok(Interrupt { period_ns, start_ns, durations_ns })
        })
        .collect::<PyResult<Vec<_>>>()?;
    let busy: f64 = interrupts.iter().map(load).sum();
    if busy >= 1.0 {
        return Err(PyValueError::new_err("the interrupts together take all of the CPU"));
    }
    let simulation = Simulation {
        pattern: schedule.parse().map_err(invalid)?,
        interval_ns: fraction(interval_ns)?,
        drift_ppb,
        latency_ns,
        run_ns,
        interrupts,
    };
    json(&py.detach(|| simulation.run()))
}

/// Clocks that a schedule would not cover: pairs of the frequency in Hz and the share of its phases that packets would
/// meet, where the clocks of the generator and the device differ by `drift_ppb`.
#[pyfunction]
#[pyo3(signature = (*, schedule, rate, frame_bytes, run_ns, seed, drift_ppb))]
pub(crate) fn phases_covered(
    py: Python<'_>,
    schedule: &str,
    rate: &str,
    frame_bytes: &str,
    run_ns: u64,
    seed: u64,
    drift_ppb: u64,
) -> PyResult<Vec<(u64, f64)>> {
    let pattern: Pattern = schedule.parse().map_err(invalid)?;
    let rate: Rate = rate.parse().map_err(invalid)?;
    let sizes: Sizes = frame_bytes.parse().map_err(invalid)?;
    let interval_ns = rate.interval_ns(sizes.mean());
    let drift_ns = u128::from(run_ns) * u128::from(drift_ppb) / 1_000_000_000;
    let reach_ns = phases::REACH_NS + u64::try_from(drift_ns).unwrap_or(u64::MAX >> 1);
    let of_clock = |hz| {
        let times = Schedule::new(&pattern, interval_ns, seed).take(phases::LOOKED_AT);
        let share = phases::lacking(times.take_while(|at_ns| *at_ns < run_ns), hz, reach_ns)?;
        Some((hz, share))
    };
    Ok(py.detach(|| phases::clocks(run_ns).filter_map(of_clock).collect()))
}

/// Share of the CPU that an interrupt takes.
fn load(interrupt: &Interrupt) -> f64 {
    let sum: u64 = interrupt.durations_ns.iter().sum();
    sum as f64 / interrupt.durations_ns.len().max(1) as f64 / interrupt.period_ns.as_f64()
}

/// The causes of the late packets among these samples, as JSON. `events` are lines of JSON, one an event, `throttled` a
/// list as in their header.
#[pyfunction]
#[pyo3(signature = (samples, events, *, cpu, error_ns, throttled, late_from, quantiles, shifts_ns))]
#[allow(clippy::too_many_arguments, reason = "keyword-only, called by one typed wrapper")]
pub(crate) fn explain_late(
    py: Python<'_>,
    samples: PyArrowType<Table>,
    events: &str,
    cpu: u32,
    error_ns: i64,
    throttled: &str,
    late_from: &str,
    quantiles: Vec<String>,
    shifts_ns: Vec<i64>,
) -> PyResult<String> {
    let samples = stamps(samples)?;
    let events = events
        .lines()
        .enumerate()
        .filter(|(_, line)| !line.trim().is_empty())
        .map(|(number, line)| {
            serde_json::from_str(line)
                .map_err(|error| PyValueError::new_err(format!("event {}: {error}", number + 1)))
        })
        .collect::<PyResult<Vec<Event>>>()?;
    let asked = ExplanationOptions {
        late_from: probability(late_from)?,
        quantiles: probabilities(&quantiles)?,
        shifts_ns,
    };
    let throttled: Vec<Throttled> = serde_json::from_str(throttled).map_err(invalid)?;
    let trace = Trace { events: &events, cpu, error_ns, throttled: &throttled };
    json(&py.detach(|| Explained::of(explain(&samples, trace, &asked), cpu)))
}
