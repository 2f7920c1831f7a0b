//! Place of a setting: a file of the kernel, a file of ours, a NIC, a service, a thread.

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::fmt;
use tailtrim_host::{Tree, Unread};

/// Something that has a value which can be read and set.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum Place {
    /// A file of the kernel, in `/proc` or `/sys`: written in place.
    File {
        /// Absolute path.
        path: String,
    },
    /// A configuration file of ours, on a disk: written whole.
    Config {
        /// Absolute path.
        path: String,
    },
    /// A directory that does not exist before: a cgroup, a resctrl group, a folder for drop-ins.
    Directory {
        /// Absolute path.
        path: String,
    },
    /// A setting of a network interface, under the name that `ethtool` gives it.
    Nic {
        /// Interface.
        interface: String,
        /// Which part of the interface.
        group: NicGroup,
        /// Name of the setting, as `ethtool` takes it.
        key: String,
    },
    /// Whether a service runs: `active` or `inactive`.
    Service {
        /// Its unit.
        name: String,
    },
    /// The CPUs that a thread may run on.
    Thread {
        /// Its number.
        pid: u32,
        /// When it was started, in ticks: numbers are used again.
        start: u64,
        /// Its name, for people.
        name: String,
    },
    /// The exit latency in µs that a process of ours asks of all CPUs, as long as it runs.
    Latency,
}

/// Parts of a network interface that `ethtool` sets apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum NicGroup {
    /// Interrupt coalescing, `-c` and `-C`.
    Coalesce,
    /// Ring sizes, `-g` and `-G`.
    Ring,
    /// Offloads, `-k` and `-K`.
    Feature,
    /// Queues, `-l` and `-L`.
    Channels,
    /// Flow control, `-a` and `-A`.
    Pause,
    /// Energy efficient Ethernet, `--show-eee` and `--set-eee`.
    Eee,
}

impl NicGroup {
    /// The name that is printed.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Coalesce => "coalesce",
            Self::Ring => "ring",
            Self::Feature => "feature",
            Self::Channels => "channels",
            Self::Pause => "pause",
            Self::Eee => "eee",
        }
    }
}

impl Place {
    /// A file of the kernel.
    #[must_use]
    pub fn file(path: impl Into<String>) -> Self {
        Self::File { path: path.into() }
    }

    /// The path, of a place that has one.
    #[must_use]
    pub fn path(&self) -> Option<&str> {
        match self {
            Self::File { path } | Self::Config { path } | Self::Directory { path } => Some(path),
            _ => None,
        }
    }

    /// Whether the value is still there after a restart of the host: only what is on a disk is.
    #[must_use]
    pub fn survives_restart(&self) -> bool {
        match self {
            Self::Config { .. } => true,
            Self::Directory { path } => !path.starts_with("/sys/"),
            _ => false,
        }
    }

    /// The name of the sysctl whose file this is.
    #[must_use]
    pub fn sysctl(&self) -> Option<String> {
        match self {
            Self::File { path } => Some(path.strip_prefix("/proc/sys/")?.replace('/', ".")),
            _ => None,
        }
    }
}

impl fmt::Display for Place {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(name) = self.sysctl() {
            return out.write_str(&name);
        }
        match self {
            Self::File { path } | Self::Config { path } | Self::Directory { path } => {
                out.write_str(path)
            }
            Self::Nic { interface, group, key } => {
                write!(out, "{interface} {} {key}", group.name())
            }
            Self::Service { name } => write!(out, "service {name}"),
            Self::Thread { pid, name, .. } => write!(out, "thread {pid} ({name})"),
            Self::Latency => out.write_str("/dev/cpu_dma_latency"),
        }
    }
}

/// The bytes of a value, exactly. In JSON a string, or `{"hex":…}` where they are not text.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Value(pub Vec<u8>);

impl Value {
    /// The value as text, without white space around it.
    #[must_use]
    pub fn shown(&self) -> String {
        String::from_utf8_lossy(&self.0).trim().to_owned()
    }
}

impl From<&str> for Value {
    fn from(text: &str) -> Self {
        Self(text.as_bytes().to_vec())
    }
}

impl From<String> for Value {
    fn from(text: String) -> Self {
        Self(text.into_bytes())
    }
}

#[derive(Serialize, Deserialize)]
#[serde(untagged)]
enum Written {
    Text(String),
    Bytes { hex: String },
}

impl Serialize for Value {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match String::from_utf8(self.0.clone()) {
            Ok(text) => Written::Text(text),
            Err(_) => Written::Bytes { hex: self.0.iter().map(|b| format!("{b:02x}")).collect() },
        }
        .serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Value {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let wrong = || serde::de::Error::custom("expected pairs of hexadecimal digits");
        match Written::deserialize(deserializer)? {
            Written::Text(text) => Ok(Self(text.into_bytes())),
            Written::Bytes { hex } => {
                let digits: Option<Vec<u8>> =
                    hex.chars().map(|digit| digit.to_digit(16).map(|value| value as u8)).collect();
                let digits = digits.filter(|digits| digits.len() % 2 == 0).ok_or_else(wrong)?;
                Ok(Self(digits.chunks(2).map(|pair| pair[0] << 4 | pair[1]).collect()))
            }
        }
    }
}

/// A host whose places can be read. `Ok(None)` is a place that is known not to be there.
pub trait Places: Tree {
    /// Return the value of a place.
    ///
    /// # Errors
    ///
    /// [`Unread`] says why it is not known.
    fn place(&self, place: &Place) -> Result<Option<Value>, Unread> {
        let Some(path) = place.path() else {
            return Err(Unread::NotCaptured { path: place.to_string() });
        };
        if matches!(place, Place::Directory { .. }) {
            return Ok(self.list(path).is_ok().then(Value::default));
        }
        match self.read(path) {
            Ok(content) => Ok(Some(Value(content))),
            Err(Unread::Missing { .. }) => Ok(None),
            Err(why) => Err(why),
        }
    }
}

impl Places for tailtrim_host::Memory {}
