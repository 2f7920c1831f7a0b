//! A role of Ansible, by builtin modules only.

use super::ExportedFile;
use super::files::{grub, sysctl};
use super::settings::{Settings, left_out};
use super::systemd::{cpu_affinity, tmpfiles};
use crate::tune::plan::Plan;
use std::fmt::Write;

/// The tasks of a role, for a folder of roles.
#[must_use]
pub fn ansible(plan: &Plan) -> Vec<ExportedFile> {
    let settings = Settings::of(plan);
    let mut others = settings.others.clone();
    if !settings.nics.is_empty() {
        others.push("interfaces");
    }
    if settings.latency.is_some() {
        others.push("cpu.dma-latency");
    }
    let mut text = format!("---\n# tailtrim profile {}\n", plan.request.profile.name());
    text += &left_out(&others, "a file of builtin tasks");
    if !settings.sysctls.is_empty() {
        copy(
            &mut text,
            "Kernel settings",
            "/etc/sysctl.d/99-tailtrim.conf",
            &sysctl(plan)[0].content,
        );
        after(&mut text, "Load kernel settings", "sysctl --load /etc/sysctl.d/99-tailtrim.conf");
    }
    if !settings.files.is_empty() {
        copy(&mut text, "Settings in /sys", "/etc/tmpfiles.d/tailtrim.conf", &tmpfiles(&settings));
        after(
            &mut text,
            "Write settings in /sys",
            "systemd-tmpfiles --create /etc/tmpfiles.d/tailtrim.conf",
        );
    }
    if let Some(content) = cpu_affinity(plan) {
        let folder = "/etc/systemd/system.conf.d";
        let _ = write!(
            text,
            "\n- name: Folder for drop-ins of systemd\n  ansible.builtin.file:\n    path: {folder}\n    \
             state: directory\n    mode: \"0755\"\n"
        );
        copy(&mut text, "CPUs of services", &format!("{folder}/50-tailtrim.conf"), &content);
    }
    for name in &settings.stopped {
        let _ = write!(
            text,
            "\n- name: Stop {name}\n  ansible.builtin.service:\n    name: {name}\n    state: stopped\n"
        );
    }
    if !plan.boot_words().is_empty() {
        copy(&mut text, "Boot line", "/etc/default/grub.d/99-tailtrim.cfg", &grub(plan)[0].content);
        after(&mut text, "Write the boot menu (takes effect at the next start)", "update-grub");
    }
    if !text.contains("\n- name:") {
        text += "[]\n";
    }
    ExportedFile::one("tailtrim/tasks/main.yml", text)
}

fn copy(text: &mut String, name: &str, path: &str, content: &str) {
    let _ = write!(
        text,
        "\n- name: {name}\n  ansible.builtin.copy:\n    dest: {path}\n    mode: \"0644\"\n    content: |\n"
    );
    for line in content.lines() {
        let line = format!("      {line}");
        let _ = writeln!(text, "{}", line.trim_end());
    }
    let _ = writeln!(text, "  register: tailtrim_file");
}

fn after(text: &mut String, name: &str, command: &str) {
    let _ = write!(
        text,
        "\n- name: {name}\n  ansible.builtin.command: {command}\n  when: tailtrim_file is changed\n"
    );
}
