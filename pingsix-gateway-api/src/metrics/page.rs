//! Metrics that are read at each scrape.

use std::fmt;

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric};
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;

/// A function that writes metrics.
pub(super) struct CallbackCollector<F>(F);

impl<F> CallbackCollector<F>
where
    F: Fn(&mut Page<'_>) -> fmt::Result + Send + Sync + 'static,
{
    pub(super) fn boxed(write: F) -> Box<dyn Collector> {
        Box::new(Self(write))
    }
}

impl<F> fmt::Debug for CallbackCollector<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("CallbackCollector")
    }
}

impl<F> Collector for CallbackCollector<F>
where
    F: Fn(&mut Page<'_>) -> fmt::Result + Send + Sync + 'static,
{
    fn encode(&self, encoder: DescriptorEncoder<'_>) -> fmt::Result {
        (self.0)(&mut Page(encoder))
    }
}

/// The encoder of the page.
pub(super) struct Page<'a>(DescriptorEncoder<'a>);

impl Page<'_> {
    pub(super) fn counter(&mut self, name: &str, help: &str, value: u64) -> fmt::Result {
        self.metric(name, help, &ConstCounter::new(value))
    }

    pub(super) fn gauge(&mut self, name: &str, help: &str, value: i64) -> fmt::Result {
        self.metric(name, help, &ConstGauge::new(value))
    }

    /// A gauge with a fraction.
    pub(super) fn fraction(&mut self, name: &str, help: &str, value: f64) -> fmt::Result {
        self.metric(name, help, &ConstGauge::new(value))
    }

    pub(super) fn counters<'a, const LABELS: usize>(
        &mut self,
        name: &str,
        help: &str,
        values: impl IntoIterator<Item = ([(&'a str, &'a str); LABELS], u64)>,
    ) -> fmt::Result {
        self.family(name, help, values.into_iter().map(|(labels, value)| (labels, ConstCounter::new(value))))
    }

    pub(super) fn gauges<'a, const LABELS: usize>(
        &mut self,
        name: &str,
        help: &str,
        values: impl IntoIterator<Item = ([(&'a str, &'a str); LABELS], i64)>,
    ) -> fmt::Result {
        self.family(name, help, values.into_iter().map(|(labels, value)| (labels, ConstGauge::new(value))))
    }

    fn metric(&mut self, name: &str, help: &str, metric: &impl EncodeMetric) -> fmt::Result {
        metric.encode(self.0.encode_descriptor(name, help, None, metric.metric_type())?)
    }

    fn family<'a, M: EncodeMetric, const LABELS: usize>(
        &mut self,
        name: &str,
        help: &str,
        metrics: impl IntoIterator<Item = ([(&'a str, &'a str); LABELS], M)>,
    ) -> fmt::Result {
        let mut metrics = metrics.into_iter().peekable();
        let Some((_, first)) = metrics.peek() else { return Ok(()) };
        let mut encoder = self.0.encode_descriptor(name, help, None, first.metric_type())?;
        for (labels, metric) in metrics {
            metric.encode(encoder.encode_family(&labels)?)?;
        }
        Ok(())
    }
}
