//! Formats in which metrics are served.

/// Format of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Format {
    /// Prometheus' text, 0.0.4.
    Text,
    /// `OpenMetrics` 1.0 text.
    OpenMetrics,
    /// Prometheus' protocol buffers, which have the native histograms.
    Protobuf,
}

impl Format {
    /// The best one that a client accepts.
    pub(crate) fn accepted(accept: &str) -> Self {
        if accept.contains("application/vnd.google.protobuf") {
            Self::Protobuf
        } else if accept.contains("application/openmetrics-text") {
            Self::OpenMetrics
        } else {
            Self::Text
        }
    }

    pub(crate) fn content_type(self) -> &'static str {
        match self {
            Self::Text => "text/plain; version=0.0.4; charset=utf-8",
            Self::OpenMetrics => "application/openmetrics-text; version=1.0.0; charset=utf-8",
            Self::Protobuf => {
                "application/vnd.google.protobuf; proto=io.prometheus.client.MetricFamily; encoding=delimited"
            }
        }
    }
}
