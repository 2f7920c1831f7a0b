//! Journals in a folder on a disk: journals that others may have written are refused before they are read.

use super::{change, plan, started};
use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;
use tailtrim_localhost::tune::{Folder, Live, Problem, StateError, Store, apply, revert};
use tailtrim_tune::{Form, Place, Places, Step};
use tempfile::TempDir;

/// A tree with files as kernels show them, and a folder for the journal with a plan applied.
struct Applied {
    folder: TempDir,
    before: Vec<(String, Vec<u8>)>,
}

const FILES: [(&str, &str, &str, Form); 4] = [
    (
        "sys/kernel/mm/transparent_hugepage/enabled",
        "always [madvise] never\n",
        "never",
        Form::Choice,
    ),
    (
        "sys/module/pcie_aspm/parameters/policy",
        "[default] performance powersave \n",
        "performance",
        Form::Choice,
    ),
    ("proc/sys/vm/stat_interval", "1\n", "3600", Form::Number),
    ("proc/irq/default_smp_affinity", "00,0000000f\n", "1", Form::Mask),
];

impl Applied {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().join("root");
        for (path, content, ..) in FILES {
            fs::create_dir_all(root.join(path).parent().unwrap()).unwrap();
            fs::write(root.join(path), content).unwrap();
        }
        let applied = Self { folder, before: Vec::new() };
        let before = applied.files();
        let steps = FILES.map(|(path, _, new, form)| {
            let place = Place::file(format!("/{path}"));
            let old = applied.host().place(&place).unwrap();
            Step::new(place, form, old, new)
        });
        let mut store = Folder::locked(&applied.state()).unwrap();
        let plan = plan(vec![change("x", steps.into())]);
        let told = apply(&mut applied.host(), &mut store, &plan, started()).unwrap();
        assert_eq!(told.took, FILES.len());
        Self { before, ..applied }
    }

    fn state(&self) -> std::path::PathBuf {
        self.folder.path().join("state")
    }

    fn host(&self) -> Live {
        Live::new(&self.folder.path().join("root"), &self.state())
    }

    fn files(&self) -> Vec<(String, Vec<u8>)> {
        let read = |path: &str| fs::read(self.folder.path().join("root").join(path)).unwrap();
        FILES.iter().map(|(path, ..)| ((*path).to_owned(), read(path))).collect()
    }
}

fn refused(state: &Path) -> String {
    let told = |error: &StateError| {
        assert!(matches!(error.problem, Problem::Untrusted(_)), "{error}");
        error.to_string()
    };
    let read = Folder::reading(state).and_then(|folder| folder.load()).unwrap_err();
    told(&read)
}

#[test]
fn a_tree_reads_as_before_byte_for_byte() {
    let applied = Applied::new();
    assert_ne!(applied.files(), applied.before);
    let mut store = Folder::locked(&applied.state()).unwrap();
    let told = revert(&mut applied.host(), &mut store, "boot").unwrap().unwrap();
    assert_eq!((told.restored, told.left), (FILES.len(), Vec::new()));
    assert_eq!(applied.files(), applied.before);
}

#[test]
fn folder_and_files_are_for_their_owner_alone() {
    let applied = Applied::new();
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o7777;
    assert_eq!(mode(&applied.state()), 0o700);
    for name in ["journal", "lock"] {
        assert_eq!(mode(&applied.state().join(name)), 0o600, "{name}");
    }
}

#[test]
fn what_others_can_write_to_is_refused() {
    let applied = Applied::new();
    let set = |path: &Path, mode| fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
    set(&applied.state(), 0o777);
    assert!(refused(&applied.state()).contains("may write to it (mode 0777)"));
    assert!(Folder::locked(&applied.state()).is_err());
    set(&applied.state(), 0o755);
    set(&applied.state().join("journal"), 0o620);
    assert!(refused(&applied.state()).contains("may write to it (mode 0620)"));
    set(&applied.state().join("journal"), 0o644);
    assert!(Folder::reading(&applied.state()).unwrap().load().unwrap().is_some());
}

#[test]
fn no_symbolic_link_is_followed() {
    let applied = Applied::new();
    let state = applied.state();
    let elsewhere = applied.folder.path().join("elsewhere");
    fs::rename(&state, &elsewhere).unwrap();
    symlink(&elsewhere, &state).unwrap();
    assert!(refused(&state).contains("symbolic link, expected a folder"));
    fs::remove_file(&state).unwrap();
    fs::rename(&elsewhere, &state).unwrap();
    for name in ["journal", "lock", "journal.new"] {
        let target = applied.folder.path().join("target");
        fs::write(&target, "of another program").unwrap();
        let kept = fs::read(state.join("journal")).unwrap();
        if state.join(name).exists() {
            fs::remove_file(state.join(name)).unwrap();
        }
        symlink(&target, state.join(name)).unwrap();
        let error = match Folder::locked(&state) {
            Err(error) => error.to_string(),
            Ok(mut folder) if name == "journal" => folder.append(b"x").unwrap_err().to_string(),
            Ok(mut folder) => folder.publish(b"x").unwrap_err().to_string(),
        };
        assert!(error.contains("symbolic link, expected a file"), "{name}: {error}");
        assert_eq!(fs::read(&target).unwrap(), b"of another program");
        fs::remove_file(state.join(name)).unwrap();
        fs::write(state.join("journal"), kept).unwrap();
    }
    assert!(Folder::locked(&state).unwrap().load().unwrap().is_some());
}

#[test]
fn a_pipe_in_place_of_the_journal_does_not_block() {
    let applied = Applied::new();
    let journal = applied.state().join("journal");
    fs::remove_file(&journal).unwrap();
    let mode = rustix::fs::Mode::from(0o600);
    rustix::fs::mknodat(rustix::fs::CWD, &journal, rustix::fs::FileType::Fifo, mode, 0).unwrap();
    assert!(refused(&applied.state()).contains("expected a file"));
}

#[test]
fn what_a_killed_process_left_is_written_over() {
    let applied = Applied::new();
    let left = applied.state().join("journal.new");
    fs::write(&left, "half a journal").unwrap();
    let mut folder = Folder::locked(&applied.state()).unwrap();
    folder.publish(b"whole").unwrap();
    assert_eq!(folder.load().unwrap().unwrap(), b"whole");
    assert!(!left.exists());
}
