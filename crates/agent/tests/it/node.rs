//! `tailtrim-agent node`: commands that end with another process, and the end of one that is silent.

use std::io::{Read, Write};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

fn agent(words: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tailtrim-agent"));
    command.arg("node").args(words);
    command
}

fn other() -> Child {
    Command::new("sleep").arg("100").spawn().expect("sleep is there")
}

#[test]
fn a_held_command_has_its_own_exit_code_and_number() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("pid");
    let with = std::process::id().to_string();
    let ended = agent(&["hold", "--with", &with, "--pid-file", file.to_str().unwrap(), "--"])
        .args(["sh", "-c", "echo $$; exit 7"])
        .output()
        .unwrap();
    assert_eq!(ended.status.code(), Some(7));
    assert_eq!(
        String::from_utf8(ended.stdout).unwrap().trim(),
        std::fs::read_to_string(file).unwrap()
    );
    let killed =
        agent(&["hold", "--with", &with, "--", "sh", "-c", "kill -KILL $$"]).status().unwrap();
    assert_eq!(killed.code(), Some(128 + 9));
}

#[test]
fn a_held_command_ends_with_the_other_process() {
    let mut with = other();
    let mut held = agent(&["hold", "--with", &with.id().to_string(), "--"])
        .args(["sh", "-c", "echo started; exec sleep 100"])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut told = [0; 8];
    held.stdout.take().unwrap().read_exact(&mut told).unwrap();
    assert_eq!(&told, b"started\n");
    assert!(held.try_wait().unwrap().is_none());
    with.kill().unwrap();
    assert_eq!(held.wait().unwrap().code(), Some(128 + 9));
    with.wait().unwrap();
}

#[test]
fn nothing_is_started_beside_a_process_that_is_gone() {
    let mut with = other();
    with.kill().unwrap();
    with.wait().unwrap();
    let ended = agent(&["hold", "--with", &with.id().to_string(), "--", "echo", "started"])
        .output()
        .unwrap();
    assert_eq!(ended.status.code(), Some(3));
    assert_eq!(ended.stdout, b"");
}

#[test]
#[allow(clippy::disallowed_methods, reason = "how long nothing came is what is tested")]
fn a_process_is_ended_when_the_input_falls_silent_or_ends_and_not_before() {
    let silence = Duration::from_millis(500);
    for ends in [false, true] {
        let mut with = other();
        let mut last = Instant::now();
        let mut watch = agent(&["watch", "--with", &with.id().to_string(), "--silence", "500ms"])
            .stdin(Stdio::piped())
            .spawn()
            .unwrap();
        let mut input = watch.stdin.take().unwrap();
        for _ in 0..10 {
            thread::sleep(Duration::from_millis(100));
            let next = Instant::now();
            // Fails where this process was kept from its CPU for so long that the other has ended.
            let written = input.write_all(b"\n");
            let lives = with.try_wait().unwrap().is_none();
            if last.elapsed() >= silence {
                break;
            }
            assert!(lives && written.is_ok(), "ended {:?} after a line", last.elapsed());
            last = next;
        }
        let kept = (!ends).then_some(input);
        assert!(!with.wait().unwrap().success());
        assert!(ends || last.elapsed() >= silence);
        assert!(watch.wait().unwrap().success());
        drop(kept);
    }
}

#[test]
fn the_watch_ends_with_the_process() {
    let mut with = other();
    let mut watch = agent(&["watch", "--with", &with.id().to_string(), "--silence", "60s"])
        .stdin(Stdio::piped())
        .spawn()
        .unwrap();
    with.kill().unwrap();
    with.wait().unwrap();
    assert!(watch.wait().unwrap().success());
}
