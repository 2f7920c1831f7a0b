//! The same in the language of other tools. What a tool has no word for is named in its file.

mod files;
mod settings;
mod systemd;
mod tuned;

pub use files::{grub, grub_file, sysctl};
pub use systemd::systemd;
pub use tuned::tuned;

/// A file to write.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExportedFile {
    /// Where it belongs, below the folder that the tool reads.
    pub path: String,
    /// Text of the file.
    pub content: String,
}

impl ExportedFile {
    fn one(path: &str, content: String) -> Vec<Self> {
        vec![Self { path: path.to_owned(), content }]
    }
}
