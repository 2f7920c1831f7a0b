//! Metrics in the form of OTLP: native histograms become exponential ones, with the same buckets.

use opentelemetry_proto::tonic::collector::metrics::v1::ExportMetricsServiceRequest;
use opentelemetry_proto::tonic::common::v1::any_value::Value;
use opentelemetry_proto::tonic::common::v1::{AnyValue, InstrumentationScope, KeyValue};
use opentelemetry_proto::tonic::metrics::v1::exponential_histogram_data_point::Buckets;
use opentelemetry_proto::tonic::metrics::v1::metric::Data;
use opentelemetry_proto::tonic::metrics::v1::{
    AggregationTemporality, Exemplar, ExponentialHistogram, ExponentialHistogramDataPoint, Gauge,
    Metric, NumberDataPoint, ResourceMetrics, ScopeMetrics, Sum, exemplar, number_data_point,
};
use opentelemetry_proto::tonic::resource::v1::Resource;
use prometheus_client::encoding::prometheus_protobuf::prometheus_data_model as prometheus;

/// Since when metrics are counted, and now, in ns since 1970.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Times {
    pub(crate) start_ns: u64,
    pub(crate) now_ns: u64,
}

/// All metrics of this process on a host.
pub(crate) fn request(
    families: Vec<prometheus::MetricFamily>,
    host: &str,
    times: Times,
) -> ExportMetricsServiceRequest {
    let metrics = families.into_iter().filter_map(|family| metric(family, times)).collect();
    let scope = InstrumentationScope {
        name: "tailtrim-watch".to_owned(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        ..InstrumentationScope::default()
    };
    let attributes =
        vec![attribute("service.name", "tailtrim-watch"), attribute("host.name", host)];
    ExportMetricsServiceRequest {
        resource_metrics: vec![ResourceMetrics {
            resource: Some(Resource { attributes, ..Resource::default() }),
            scope_metrics: vec![ScopeMetrics {
                scope: Some(scope),
                metrics,
                ..ScopeMetrics::default()
            }],
            ..ResourceMetrics::default()
        }],
    }
}

fn attribute(key: &str, value: &str) -> KeyValue {
    let value = Some(AnyValue { value: Some(Value::StringValue(value.to_owned())) });
    KeyValue { key: key.to_owned(), value, ..KeyValue::default() }
}

fn attributes(labels: &[prometheus::LabelPair]) -> Vec<KeyValue> {
    labels.iter().map(|label| attribute(&label.name, &label.value)).collect()
}

/// One metric; `None` if it has no series yet.
fn metric(family: prometheus::MetricFamily, times: Times) -> Option<Metric> {
    let cumulative = AggregationTemporality::Cumulative.into();
    let first = family.metric.first()?;
    let data = if first.histogram.is_some() {
        let points = family.metric.iter().filter_map(|metric| {
            Some(distribution(metric.histogram.as_ref()?, attributes(&metric.label), times))
        });
        Data::ExponentialHistogram(ExponentialHistogram {
            data_points: points.collect(),
            aggregation_temporality: cumulative,
        })
    } else if first.counter.is_some() {
        let points = family.metric.iter().filter_map(|metric| {
            let counter = metric.counter.as_ref()?;
            Some(NumberDataPoint {
                exemplars: counter.exemplar.iter().map(example).collect(),
                start_time_unix_nano: times.start_ns,
                ..number(counter.value, metric, times)
            })
        });
        Data::Sum(Sum {
            data_points: points.collect(),
            aggregation_temporality: cumulative,
            is_monotonic: true,
        })
    } else {
        let points = family
            .metric
            .iter()
            .filter_map(|metric| Some(number(metric.gauge.as_ref()?.value, metric, times)));
        Data::Gauge(Gauge { data_points: points.collect() })
    };
    let name = family.name.strip_suffix("_total").unwrap_or(&family.name);
    Some(Metric {
        unit: if name.ends_with("_seconds") { "s" } else { "1" }.to_owned(),
        name: name.to_owned(),
        description: family.help,
        data: Some(data),
        ..Metric::default()
    })
}

fn number(value: f64, metric: &prometheus::Metric, times: Times) -> NumberDataPoint {
    NumberDataPoint {
        attributes: attributes(&metric.label),
        time_unix_nano: times.now_ns,
        value: Some(number_data_point::Value::AsDouble(value)),
        ..NumberDataPoint::default()
    }
}

fn example(exemplar: &prometheus::Exemplar) -> Exemplar {
    let ns = exemplar.timestamp.as_ref().map_or(0, |time| {
        time.seconds.cast_unsigned() * 1_000_000_000 + u64::from(time.nanos.cast_unsigned())
    });
    Exemplar {
        filtered_attributes: attributes(&exemplar.label),
        time_unix_nano: ns,
        value: Some(exemplar::Value::AsDouble(exemplar.value)),
        ..Exemplar::default()
    }
}

fn distribution(
    histogram: &prometheus::Histogram,
    attributes: Vec<KeyValue>,
    times: Times,
) -> ExponentialHistogramDataPoint {
    ExponentialHistogramDataPoint {
        attributes,
        start_time_unix_nano: times.start_ns,
        time_unix_nano: times.now_ns,
        count: histogram.sample_count,
        sum: Some(histogram.sample_sum),
        scale: histogram.schema,
        zero_count: histogram.zero_count,
        zero_threshold: histogram.zero_threshold,
        positive: Some(buckets(&histogram.positive_span, &histogram.positive_delta)),
        negative: Some(buckets(&histogram.negative_span, &histogram.negative_delta)),
        ..ExponentialHistogramDataPoint::default()
    }
}

/// Counts of all buckets from the first one on that is not empty. Prometheus' bucket i ends at base^i, that of OTLP begins there.
fn buckets(spans: &[prometheus::BucketSpan], deltas: &[i64]) -> Buckets {
    let mut deltas = deltas.iter();
    let (mut count, mut counts) = (0_i64, Vec::new());
    for (number, span) in spans.iter().enumerate() {
        if number > 0 {
            counts.resize(counts.len() + usize::try_from(span.offset).unwrap_or(0), 0);
        }
        for delta in deltas.by_ref().take(span.length as usize) {
            count += delta;
            counts.push(count.cast_unsigned());
        }
    }
    Buckets { offset: spans.first().map_or(0, |span| span.offset - 1), bucket_counts: counts }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metrics::Metrics;
    use crate::minute::{Outcome, Sample};
    use crate::plan::Plan;
    use crate::state::Share;

    #[test]
    fn buckets_hold_the_round_trips_that_were_counted() {
        let latencies_ns = [10_000, 11_000, 11_001, 250_000, 2_000_000_000];
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("watch.yml");
        std::fs::write(&path, "targets: [{address: a, objectives: [loss < 1%]}]").unwrap();
        let metrics = Metrics::new(Vec::new());
        let plan = &Plan::read(&path).unwrap().targets[0];
        let target = metrics.target(&plan.name, &plan.objectives);
        let share = [Share { bad: 0, packets: 1 }];
        for latency_ns in latencies_ns {
            let sample = Sample { begin_ns: 0, latency_ns, residence_ns: None, own_host_ns: None };
            target.decided(0, 7, Outcome::Answered(sample), &share);
        }
        target.decided(0, 8, Outcome::Lost, &[Share { bad: 1, packets: 1 }]);
        let times = Times { start_ns: 1, now_ns: 2 };
        let request = request(metrics.families().unwrap(), "host", times);
        let metrics = &request.resource_metrics[0].scope_metrics[0].metrics;
        let data = |name: &str| {
            metrics.iter().find(|metric| metric.name == name).unwrap().data.as_ref().unwrap()
        };
        let Data::ExponentialHistogram(histogram) = data("tailtrim_watch_round_trip_seconds")
        else {
            panic!("no exponential histogram")
        };
        let point = &histogram.data_points[0];
        assert_eq!((point.count, point.scale, point.zero_count), (5, 8, 0));
        let buckets = point.positive.as_ref().unwrap();
        assert_eq!(buckets.bucket_counts.iter().sum::<u64>(), 5);
        let of = |latency_ns: i64| {
            // As OTLP defines it: base^index < value <= base^(index + 1).
            let index = ((latency_ns as f64 / 1e9).log2() * 256.0).ceil() as i32 - 1;
            buckets.bucket_counts[usize::try_from(index - buckets.offset).unwrap()]
        };
        assert_eq!(latencies_ns.map(of), [1, 2, 2, 1, 1]);
        let Data::Sum(bad) = data("tailtrim_watch_slo_bad") else { panic!("no sum") };
        assert!(bad.is_monotonic);
        let exemplar = &bad.data_points[0].exemplars[0];
        assert_eq!(exemplar.time_unix_nano, 8_000);
        assert_eq!(exemplar.value, Some(exemplar::Value::AsDouble(f64::INFINITY)));
    }
}
