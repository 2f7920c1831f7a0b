//! Settings of interfaces, under the names that the program `ethtool` gives them.

use std::io;
use tailtrim_sys::ethtool::{self, Channels, Coalescing, Eee, Pause, Rings, Settings};
use tailtrim_tune::{NicGroup, Value};

/// One setting within those that are read and set together.
enum Field<'a> {
    Switch(&'a mut u32),
    Number(&'a mut u32),
}

/// Finds a setting by its name; `None` where the driver has none.
type Find<S> = for<'a> fn(&'a mut S, &str) -> Option<Field<'a>>;

/// A setting; `None` where the driver does not have it, or it cannot be changed.
pub(super) fn read(interface: &str, group: NicGroup, key: &str) -> io::Result<Option<Value>> {
    let value = match group {
        NicGroup::Coalesce => get(interface, key, coalescing),
        NicGroup::Ring => get(interface, key, ring),
        NicGroup::Channels => get(interface, key, channels),
        NicGroup::Pause => get(interface, key, pause),
        NicGroup::Eee => get(interface, key, eee),
        NicGroup::Feature => feature(interface, key),
    };
    match value {
        Err(error) if matches!(error.raw_os_error(), Some(libc::EOPNOTSUPP | libc::ENODEV)) => {
            Ok(None)
        }
        other => Ok(other?.map(Value::from)),
    }
}

/// Sets it.
pub(super) fn write(interface: &str, group: NicGroup, key: &str, value: &str) -> io::Result<()> {
    match group {
        NicGroup::Coalesce => set(interface, key, value, coalescing),
        NicGroup::Ring => set(interface, key, value, ring),
        NicGroup::Channels => set(interface, key, value, channels),
        NicGroup::Pause => set(interface, key, value, pause),
        NicGroup::Eee => set(interface, key, value, eee),
        NicGroup::Feature => ethtool::set_feature(interface, kernel_name(key), switch(value)?),
    }
}

fn get<S: Settings>(interface: &str, key: &str, find: Find<S>) -> io::Result<Option<String>> {
    let mut settings = ethtool::get::<S>(interface)?;
    Ok(find(&mut settings, key).map(|field| field.shown()))
}

fn set<S: Settings>(interface: &str, key: &str, value: &str, find: Find<S>) -> io::Result<()> {
    let mut settings = ethtool::get::<S>(interface)?;
    let field = find(&mut settings, key).ok_or(io::ErrorKind::Unsupported)?;
    field.set(value)?;
    ethtool::set(interface, &settings)
}

fn coalescing<'a>(told: &'a mut Coalescing, key: &str) -> Option<Field<'a>> {
    match key {
        "adaptive-rx" => Some(Field::Switch(&mut told.adaptive_rx)),
        "adaptive-tx" => Some(Field::Switch(&mut told.adaptive_tx)),
        "rx-usecs" => Some(Field::Number(&mut told.rx_usecs)),
        "tx-usecs" => Some(Field::Number(&mut told.tx_usecs)),
        _ => None,
    }
}

fn ring<'a>(told: &'a mut Rings, key: &str) -> Option<Field<'a>> {
    match key {
        "rx" if told.rx_max > 0 => Some(Field::Number(&mut told.rx)),
        "tx" if told.tx_max > 0 => Some(Field::Number(&mut told.tx)),
        _ => None,
    }
}

fn channels<'a>(told: &'a mut Channels, key: &str) -> Option<Field<'a>> {
    match key {
        "combined" if told.combined_max > 0 => Some(Field::Number(&mut told.combined)),
        _ => None,
    }
}

fn pause<'a>(told: &'a mut Pause, key: &str) -> Option<Field<'a>> {
    match key {
        "autoneg" => Some(Field::Switch(&mut told.autoneg)),
        "rx" => Some(Field::Switch(&mut told.rx)),
        "tx" => Some(Field::Switch(&mut told.tx)),
        _ => None,
    }
}

fn eee<'a>(told: &'a mut Eee, key: &str) -> Option<Field<'a>> {
    match key {
        "eee" if told.supported != 0 => Some(Field::Switch(&mut told.enabled)),
        _ => None,
    }
}

fn feature(interface: &str, key: &str) -> io::Result<Option<String>> {
    let name = kernel_name(key);
    let found = ethtool::features(interface)?.into_iter().find(|feature| feature.name == name);
    Ok(found.filter(|feature| !feature.fixed).map(|feature| on_off(feature.active).to_owned()))
}

/// Two features have short names in addition to the kernel's.
fn kernel_name(key: &str) -> &str {
    match key {
        "lro" => "rx-lro",
        "gro" => "rx-gro",
        key => key,
    }
}

fn on_off(on: bool) -> &'static str {
    if on { "on" } else { "off" }
}

fn switch(value: &str) -> io::Result<bool> {
    match value {
        "on" => Ok(true),
        "off" => Ok(false),
        _ => Err(io::ErrorKind::InvalidInput.into()),
    }
}

impl Field<'_> {
    fn shown(&self) -> String {
        match self {
            Self::Switch(word) => on_off(**word != 0).to_owned(),
            Self::Number(word) => word.to_string(),
        }
    }

    fn set(self, value: &str) -> io::Result<()> {
        match self {
            Self::Switch(word) => *word = switch(value)?.into(),
            Self::Number(word) => {
                *word = value.parse().map_err(|_| io::ErrorKind::InvalidInput)?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_by_their_names() {
        let mut told = Coalescing::default();
        (told.adaptive_rx, told.rx_usecs) = (1, 3);
        let mut shown = |key| coalescing(&mut told, key).map(|field| field.shown());
        assert_eq!(shown("adaptive-rx").as_deref(), Some("on"));
        assert_eq!(shown("adaptive-tx").as_deref(), Some("off"));
        assert_eq!(shown("rx-usecs").as_deref(), Some("3"));
        assert_eq!(shown("no-such"), None);
        coalescing(&mut told, "adaptive-rx").unwrap().set("off").unwrap();
        coalescing(&mut told, "rx-usecs").unwrap().set("0").unwrap();
        assert_eq!((told.adaptive_rx, told.rx_usecs), (0, 0));
        let refused = coalescing(&mut told, "rx-usecs").unwrap().set("fast");
        assert_eq!(refused.map_err(|error| error.kind()), Err(io::ErrorKind::InvalidInput));
    }

    #[test]
    fn what_a_driver_does_not_have_is_not_there() {
        let mut rings = Rings::default();
        (rings.rx_max, rings.rx) = (4_096, 256);
        assert_eq!(ring(&mut rings, "rx").map(|field| field.shown()).as_deref(), Some("256"));
        assert!(ring(&mut rings, "tx").is_none());
        assert!(channels(&mut Channels::default(), "combined").is_none());
        let mut link = Eee::default();
        (link.active, link.enabled) = (1, 1);
        assert!(eee(&mut link, "eee").is_none());
        link.supported = 32;
        assert_eq!(eee(&mut link, "eee").map(|field| field.shown()).as_deref(), Some("on"));
    }

    #[test]
    fn settings_of_the_loopback() {
        assert_eq!(read("lo", NicGroup::Ring, "rx").unwrap(), None);
        assert_eq!(read("no-such", NicGroup::Feature, "gro").unwrap(), None);
        // Fixed.
        assert_eq!(read("lo", NicGroup::Feature, "loopback").unwrap(), None);
        assert!(read("lo", NicGroup::Feature, "gro").unwrap().is_some());
    }
}
