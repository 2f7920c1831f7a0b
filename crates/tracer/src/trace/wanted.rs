//! Which events are recorded, and where.

/// Interrupts of the CPU itself; each has an entry and an exit.
const VECTORS: [&str; 11] = [
    "local_timer",
    "reschedule",
    "call_function",
    "call_function_single",
    "irq_work",
    "thermal_apic",
    "threshold_apic",
    "deferred_error_apic",
    "x86_platform_ipi",
    "error_apic",
    "spurious_apic",
];

/// The others on measured CPUs.
const MEASURED: [&str; 14] = [
    "irq/irq_handler_entry",
    "irq/irq_handler_exit",
    "irq/softirq_entry",
    "irq/softirq_exit",
    "sched/sched_switch",
    "power/cpu_idle",
    "nmi/nmi_handler",
    "exceptions/page_fault_user",
    "exceptions/page_fault_kernel",
    "tlb/tlb_flush",
    "csd/csd_function_entry",
    "csd/csd_function_exit",
    "timer/hrtimer_expire_entry",
    "workqueue/workqueue_execute_start",
];

/// On the CPUs that send to measured ones.
pub(super) const SENDERS: [&str; 3] =
    ["csd/csd_queue_cpu", "ipi/ipi_send_cpu", "ipi/ipi_send_cpumask"];

/// All events of measured CPUs, as `system/name`.
pub(super) fn measured() -> Vec<String> {
    let vectors = VECTORS
        .iter()
        .flat_map(|vector| ["entry", "exit"].map(|end| format!("irq_vectors/{vector}_{end}")));
    vectors.chain(MEASURED.map(str::to_owned)).collect()
}

/// Lets only those through that concern these CPUs, in the kernel's words.
pub(super) fn filter(event: &str, cpus: &[u32]) -> String {
    let list = |between: &str, each: &dyn Fn(u32) -> String| {
        cpus.iter().map(|cpu| each(*cpu)).collect::<Vec<_>>().join(between)
    };
    if event.ends_with("cpumask") {
        // Since kernel 6.6.
        format!("cpumask & CPUS{{{}}}", list(",", &|cpu| cpu.to_string()))
    } else {
        list(" || ", &|cpu| format!("cpu == {cpu}"))
    }
}

#[cfg(test)]
mod tests {
    use super::filter;

    #[test]
    fn filters_in_the_kernels_words() {
        assert_eq!(filter("ipi/ipi_send_cpu", &[1, 3]), "cpu == 1 || cpu == 3");
        assert_eq!(filter("ipi/ipi_send_cpumask", &[1, 3]), "cpumask & CPUS{1,3}");
    }
}
