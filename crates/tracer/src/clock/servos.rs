//! Programs that steer clocks of NICs.

use serde::Serialize;
use std::fs;

/// Names of those of linuxptp and of the NTP daemons that take hardware clocks.
const PROGRAMS: [&str; 5] = ["ptp4l", "phc2sys", "ts2phc", "timemaster", "chronyd"];

/// A program that may steer a clock.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Servo {
    /// Its name.
    pub program: String,
    /// Its process.
    pub pid: u32,
    /// Arguments: which clocks it steers, and by which.
    pub arguments: Vec<String>,
}

/// The programs that run now.
#[must_use]
pub fn servos() -> Vec<Servo> {
    let processes = fs::read_dir("/proc").into_iter().flatten().flatten();
    let mut found: Vec<Servo> = processes
        .filter_map(|entry| {
            let pid = entry.file_name().to_str()?.parse().ok()?;
            let name = fs::read_to_string(entry.path().join("comm")).ok()?;
            let program = PROGRAMS.into_iter().find(|known| name.trim_end() == *known)?;
            let line = fs::read(entry.path().join("cmdline")).ok()?;
            let words = line.split(|byte| *byte == 0).skip(1).filter(|word| !word.is_empty());
            let arguments = words.map(|word| String::from_utf8_lossy(word).into_owned()).collect();
            Some(Servo { program: program.to_owned(), pid, arguments })
        })
        .collect();
    found.sort();
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::process::CommandExt as _;
    use std::process::Command;

    #[test]
    fn a_servo_is_found_with_its_arguments() {
        let folder = std::env::temp_dir().join(format!("tailtrim-servos-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let path = folder.join("phc2sys");
        std::os::unix::fs::symlink("/bin/sleep", &path).unwrap();
        let mut child = Command::new(&path).arg0("sleep").args(["60", "0"]).spawn().unwrap();
        // It has its name before its arguments.
        while fs::read(format!("/proc/{}/cmdline", child.id())).unwrap().is_empty() {
            std::thread::yield_now();
        }
        let found = servos().into_iter().find(|servo| servo.pid == child.id());
        child.kill().unwrap();
        child.wait().unwrap();
        fs::remove_dir_all(&folder).unwrap();
        let found = found.unwrap();
        assert_eq!(
            (found.program.as_str(), &found.arguments[..]),
            ("phc2sys", &["60", "0"].map(str::to_owned)[..])
        );
    }
}
