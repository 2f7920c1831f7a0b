//! Metrics of changes.

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Label {
    target: String,
    of: &'static str,
    against: &'static str,
}

/// Whether each quantity of each target has changed.
#[derive(Debug)]
pub(crate) struct Gauges(Family<Label, Gauge>);

impl Gauges {
    pub(crate) fn register(registry: &mut Registry) -> Self {
        let states = Family::default();
        let help =
            "Whether a percentile, or loss, has changed: 1 for worse, -1 for better, 0 for neither";
        registry.register("change_state", help, Family::clone(&states));
        Self(states)
    }

    /// Sets the state of a quantity of a target. `None` where that is not judged.
    pub(crate) fn set(
        &self,
        target: String,
        of: &'static str,
        against: &'static str,
        state: Option<i64>,
    ) {
        let label = Label { target, of, against };
        match state {
            Some(state) => {
                self.0.get_or_create(&label).set(state);
            }
            None => {
                self.0.remove(&label);
            }
        }
    }
}
