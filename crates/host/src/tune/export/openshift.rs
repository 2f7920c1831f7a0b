//! A PerformanceProfile of OpenShift: its operator makes tuned profile, kubelet and boot line of it.

use super::ExportedFile;
use super::settings::left_out;
use crate::tune::plan::Plan;
use crate::tune::request::Profile;
use std::fmt::Write;

/// Words that the operator adds itself.
const OPERATORS: [&str; 12] = [
    "isolcpus",
    "nohz_full",
    "rcu_nocbs",
    "irqaffinity",
    "hugepages",
    "hugepagesz",
    "default_hugepagesz",
    "tsc",
    "nmi_watchdog",
    "skew_tick",
    "intel_pstate",
    "intel_iommu",
];

/// A custom resource.
#[must_use]
pub fn openshift(plan: &Plan) -> Vec<ExportedFile> {
    let division = &plan.division;
    let mut text = String::from("---\n# Written by tailtrim-agent tune export.\n");
    if division.isolated.is_empty() {
        text += "# No CPU is isolated: this profile reserves all of them.\n";
    }
    if !plan.request.only.is_empty() {
        text += "# A PerformanceProfile always isolates CPUs, which is more than the changes that were named.\n";
    }
    text += &left_out(&["irq.affinity", "settings of interfaces"], "a PerformanceProfile");
    let _ = write!(
        text,
        "apiVersion: performance.openshift.io/v2\n\
         kind: PerformanceProfile\n\
         metadata:\n  name: tailtrim-{profile}\n\
         spec:\n  cpu:\n    isolated: \"{isolated}\"\n    reserved: \"{reserved}\"\n",
        profile = plan.request.profile.name(),
        isolated = division.isolated,
        reserved = division.housekeeping,
    );
    if !division.offline.is_empty() {
        let _ = writeln!(text, "    offlined: \"{}\"", division.offline);
    }
    if let Some(pages) = plan.request.huge_pages {
        let _ = write!(
            text,
            "  hugepages:\n    defaultHugepagesSize: {size}\n    pages:\n      - size: {size}\n        count: {count}\n",
            size = pages.size(),
            count = pages.count,
        );
        if let Some(node) = division.node {
            let _ = writeln!(text, "        node: {node}");
        }
    }
    let polls = matches!(plan.request.profile, Profile::LatencyPoll | Profile::NfvHost);
    let _ = write!(
        text,
        "  numa:\n    topologyPolicy: single-numa-node\n\
         \x20 globallyDisableIrqLoadBalancing: true\n\
         \x20 realTimeKernel:\n    enabled: false\n\
         \x20 workloadHints:\n    realTime: true\n    highPowerConsumption: {polls}\n    perPodPowerManagement: false\n\
         \x20 nodeSelector:\n    node-role.kubernetes.io/worker-cnf: \"\"\n"
    );
    if !plan.request.nics.is_empty() {
        text += "  net:\n    userLevelNetworking: true\n    devices:\n";
        for nic in &plan.request.nics {
            let _ = writeln!(text, "      - interfaceName: \"{nic}\"");
        }
    }
    let words = plan.boot_words();
    let own = |word: &&&str| !OPERATORS.contains(&word.split('=').next().unwrap_or(word));
    let own: Vec<&&str> = words.iter().filter(own).collect();
    if !own.is_empty() {
        text += "  additionalKernelArgs:\n";
        for word in own {
            let _ = writeln!(text, "    - \"{word}\"");
        }
    }
    ExportedFile::one("performance-profile.yaml", text)
}
