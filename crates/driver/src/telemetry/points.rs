//! The metrics of a driver as points, for exporters of programs.

use super::names;
use crate::diagnostics::metrics::{BreakerGauge, MetricsSnapshot};

/// One number under OpenTelemetry's name for it.
#[derive(Clone, Debug, PartialEq)]
pub struct MetricPoint {
    /// The name of the metric.
    pub name: &'static str,
    /// What it is about.
    pub attributes: Vec<(&'static str, String)>,
    /// The value of the metric.
    pub value: f64,
}

impl MetricsSnapshot {
    /// The snapshot as points under OpenTelemetry's names, for an exporter. Durations are in seconds, as quantiles.
    pub fn points(&self) -> Vec<MetricPoint> {
        let mut points = Vec::new();
        for (key, series) in &self.series {
            let mut attributes = vec![(names::REGION, key.region.to_string())];
            if let Some(container) = &key.container {
                attributes.push((names::DB_NAMESPACE, container.database().to_owned()));
                attributes.push((names::DB_COLLECTION_NAME, container.container().to_owned()));
            }
            if let Some(range) = key.range {
                attributes.push((names::PARTITION_RANGE, range.to_string()));
            }
            let mut push = |name, extra: Option<(&'static str, &str)>, value: f64| {
                let mut attributes = attributes.clone();
                attributes.extend(extra.map(|(name, value)| (name, value.to_owned())));
                points.push(MetricPoint { name, attributes, value });
            };
            push(names::METRIC_OPERATIONS, None, series.operations as f64);
            push(names::METRIC_FAILURES, None, series.failures as f64);
            push(names::METRIC_REQUEST_CHARGE, None, series.charge);
            push(names::METRIC_THROTTLED, None, series.throttled as f64);
            push(names::METRIC_HEDGES, None, series.hedges as f64);
            push(names::METRIC_FAILOVERS, None, series.failovers as f64);
            let open = series.breaker == BreakerGauge::Open;
            push(names::METRIC_BREAKER_OPEN, None, f64::from(u8::from(open)));
            for (quantile, latency) in [("0.5", series.latency_p50), ("0.99", series.latency_p99)] {
                let extra = Some(("quantile", quantile));
                push(names::METRIC_OPERATION_DURATION, extra, latency.as_secs_f64());
            }
        }
        points
    }
}

#[cfg(test)]
mod tests {
    use protocol::partition_range::RangeId;

    use super::*;
    use crate::diagnostics::metrics::{SeriesKey, SeriesSnapshot};
    use crate::operation::ContainerName;
    use crate::region::Region;

    #[test]
    fn points_say_what_they_are_about() {
        let key = SeriesKey {
            container: Some(ContainerName::new("d", "c")),
            region: Region::new("East US"),
            range: Some(RangeId(3)),
        };
        let series = SeriesSnapshot { breaker: BreakerGauge::Open, charge: 2.5, ..SeriesSnapshot::default() };
        let points = MetricsSnapshot { series: vec![(key, series)], ..MetricsSnapshot::default() }.points();
        let value = |name| points.iter().find(|point| point.name == name).map(|point| point.value);
        assert_eq!(value(names::METRIC_BREAKER_OPEN), Some(1.0));
        assert_eq!(value(names::METRIC_REQUEST_CHARGE), Some(2.5));
        let about = [
            (names::REGION, "East US".to_owned()),
            (names::DB_NAMESPACE, "d".to_owned()),
            (names::DB_COLLECTION_NAME, "c".to_owned()),
            (names::PARTITION_RANGE, "3".to_owned()),
        ];
        assert_eq!(points[0].attributes, about);
    }
}
