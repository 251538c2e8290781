//! Sends the spans and metrics of a few calls to an OpenTelemetry collector, over OTLP.
//!
//! ```text
//! peri up                                     # or COSMOS_CONNECTION_STRING of a real account
//! docker run -p 4318:4318 otel/opentelemetry-collector
//! cargo run -p perihelion --example telemetry
//! RUST_LOG=perihelion=debug cargo run -p perihelion --example telemetry   # and the steps of each call
//! ```
//!
//! The exporter speaks HTTP through the product's own client, so it needs no other. `OTEL_EXPORTER_OTLP_ENDPOINT` names
//! another collector.

use std::error::Error;

use async_trait::async_trait;
use bytes::Bytes;
use futures::TryStreamExt;
use http::{Request, Response};
use opentelemetry::trace::TracerProvider;
use opentelemetry_http::{HttpClient, HttpError};
use opentelemetry_otlp::{MetricExporter, SpanExporter, WithExportConfig, WithHttpConfig};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::metrics::SdkMeterProvider;
use opentelemetry_sdk::trace::SdkTracerProvider;
use perihelion::connections::Client;
use perihelion::{Account, CosmosClient};
use shop::{Order, order};
use tokio::runtime::Handle;
use tracing::instrument::WithSubscriber;
use tracing::level_filters::LevelFilter;
use tracing::subscriber::NoSubscriber;
use tracing_subscriber::filter::{EnvFilter, Targets};
use tracing_subscriber::layer::{Layer, SubscriberExt};

mod shop;

type Result<T> = std::result::Result<T, Box<dyn Error + Send + Sync>>;

#[tokio::main]
async fn main() -> Result<()> {
    let collector = std::env::var("OTEL_EXPORTER_OTLP_ENDPOINT");
    let telemetry = Telemetry::to_collector(collector.as_deref().unwrap_or("http://localhost:4318"))?;
    tracing::subscriber::set_global_default(telemetry.subscriber())?;

    let account = Account::from_connection_string(&shop::connection_string())?;
    let client = CosmosClient::builder(account).meter_provider(&telemetry.metrics).build()?;
    run(&client).await?;
    telemetry.shut_down().await
}

/// A few calls; each of them becomes a span.
#[expect(clippy::print_stdout, reason = "an example prints its results")]
pub(crate) async fn run(client: &CosmosClient) -> Result<()> {
    let orders = shop::orders(client).await?;
    orders.upsert_item("ada", &order("o-1", "ada", 12.5)).await?;
    let read = orders.read_item::<Order>("ada", "o-1").await?;
    println!("{:?}: {}", read.value(), read.diagnostics().summary());
    let of_ada = orders.query_items::<Order>("SELECT * FROM c").partition_key("ada").stream();
    let of_ada: Vec<Order> = of_ada.try_collect().await?;
    println!("{} orders", of_ada.len());
    Ok(())
}

/// The exporters of a program. Shut it down at the end, or what was recorded last is not sent.
pub(crate) struct Telemetry {
    pub(crate) traces: SdkTracerProvider,
    pub(crate) metrics: SdkMeterProvider,
}

impl Telemetry {
    /// Exporters to the collector at an endpoint such as `http://localhost:4318`.
    pub(crate) fn to_collector(endpoint: &str) -> Result<Telemetry> {
        let endpoint = endpoint.trim_end_matches('/');
        let client = || CollectorClient { http: Client::new(), runtime: Handle::current() };
        let spans = SpanExporter::builder()
            .with_http()
            .with_http_client(client())
            .with_endpoint(format!("{endpoint}/v1/traces"))
            .build()?;
        let metrics = MetricExporter::builder()
            .with_http()
            .with_http_client(client())
            .with_endpoint(format!("{endpoint}/v1/metrics"))
            .build()?;
        let resource = Resource::builder().with_service_name("shop").build();
        Ok(Telemetry {
            traces: SdkTracerProvider::builder()
                .with_resource(resource.clone())
                .with_batch_exporter(spans)
                .build(),
            metrics: SdkMeterProvider::builder()
                .with_resource(resource)
                .with_periodic_exporter(metrics)
                .build(),
        })
    }

    /// A subscriber that exports the spans of the client, and prints what `RUST_LOG` asks for.
    pub(crate) fn subscriber(&self) -> impl tracing::Subscriber + Send + Sync + use<> {
        // INFO exports operations; DEBUG also every attempt and the HTTP requests within.
        let exported = Targets::new().with_target("perihelion", LevelFilter::DEBUG);
        let export = tracing_opentelemetry::layer().with_tracer(self.traces.tracer("perihelion"));
        let print = tracing_subscriber::fmt::layer().with_writer(std::io::stderr);
        tracing_subscriber::registry()
            .with(export.with_location(false).with_threads(false).with_filter(exported))
            .with(print.with_filter(EnvFilter::from_default_env()))
    }

    /// Sends what was recorded and not yet sent.
    pub(crate) async fn shut_down(self) -> Result<()> {
        // It blocks, and the requests that it waits for need a thread of the runtime.
        tokio::task::spawn_blocking(move || {
            self.traces.shutdown()?;
            self.metrics.shutdown()
        })
        .await??;
        Ok(())
    }
}

/// Sends the requests of the exporters with the product's HTTP client.
#[derive(Debug)]
struct CollectorClient {
    http: Client,
    runtime: Handle,
}

/// The most that is read of a collector's response.
const RESPONSE_BYTES_MAX: usize = 1 << 20;

#[async_trait]
impl HttpClient for CollectorClient {
    async fn send_bytes(&self, request: Request<Bytes>) -> std::result::Result<Response<Bytes>, HttpError> {
        let http = self.http.clone();
        let sending = async move {
            let (parts, body) = http.send(request).await?.into_parts();
            Ok(Response::from_parts(parts, body.bytes(RESPONSE_BYTES_MAX).await?))
        };
        // The exporters have threads of their own without a runtime. The requests to the collector are not spans, which
        // would be exported with further requests, for ever.
        self.runtime.spawn(sending.with_subscriber(NoSubscriber::new())).await?
    }
}
