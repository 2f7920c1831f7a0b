//! The same in the language of other tools.

/// A drop-in for GRUB.
#[must_use]
pub fn grub_file(words: &[&str]) -> String {
    format!(
        "# Written by tailtrim-agent tune; `tailtrim-agent tune revert` removes it.\n\
         GRUB_CMDLINE_LINUX_DEFAULT=\"${{GRUB_CMDLINE_LINUX_DEFAULT}} {}\"\n",
        words.join(" ")
    )
}
