//! Files of the system: sysctl.d and a drop-in for GRUB.

use super::ExportedFile;
use super::settings::{Settings, left_out};
use crate::plan::Plan;
use std::fmt::Write;

/// A drop-in for GRUB.
#[must_use]
pub fn grub_file(words: &[&str]) -> String {
    format!(
        "# Written by tailtrim-agent tune; `tailtrim-agent tune revert` removes it.\n\
         GRUB_CMDLINE_LINUX_DEFAULT=\"${{GRUB_CMDLINE_LINUX_DEFAULT}} {}\"\n",
        words.join(" ")
    )
}

/// For `/etc/default/grub.d`.
#[must_use]
pub fn grub(plan: &Plan) -> Vec<ExportedFile> {
    ExportedFile::one("99-tailtrim.cfg", grub_file(&plan.boot_words()))
}

/// For `/etc/sysctl.d`.
#[must_use]
pub fn sysctl(plan: &Plan) -> Vec<ExportedFile> {
    let settings = Settings::of(plan);
    let mut others = settings.others.clone();
    let with_more = plan.changes.iter().filter(|change| {
        change.when == crate::When::Now
            && change.steps.iter().any(|step| step.new.is_some() && step.place.sysctl().is_none())
    });
    others.extend(with_more.map(|change| change.id.as_str()));
    others.sort_unstable();
    others.dedup();
    let mut text = format!("# tailtrim profile {}\n", plan.request.profile.name());
    text += &left_out(&others, "sysctl.d");
    for (name, value, title) in &settings.sysctls {
        let _ = write!(text, "\n# {title}\n{name} = {value}\n");
    }
    ExportedFile::one("99-tailtrim.conf", text)
}
