//! What to export to, how and how often: from options and `OTEL_*` variables, decided without touching anything.

use anyhow::{Context as _, Result, bail};
use clap::ValueEnum;
use std::time::Duration;

const ENDPOINT: &str = "OTEL_EXPORTER_OTLP_ENDPOINT";
const METRICS_ENDPOINT: &str = "OTEL_EXPORTER_OTLP_METRICS_ENDPOINT";
const PROTOCOL: &str = "OTEL_EXPORTER_OTLP_PROTOCOL";
const METRICS_PROTOCOL: &str = "OTEL_EXPORTER_OTLP_METRICS_PROTOCOL";
const HEADERS: &str = "OTEL_EXPORTER_OTLP_HEADERS";
const METRICS_HEADERS: &str = "OTEL_EXPORTER_OTLP_METRICS_HEADERS";
const INSECURE: &str = "OTEL_EXPORTER_OTLP_INSECURE";
const METRICS_INSECURE: &str = "OTEL_EXPORTER_OTLP_METRICS_INSECURE";
const INTERVAL: &str = "OTEL_METRIC_EXPORT_INTERVAL";
const TIMEOUT: &str = "OTEL_EXPORTER_OTLP_TIMEOUT";
const METRICS_TIMEOUT: &str = "OTEL_EXPORTER_OTLP_METRICS_TIMEOUT";

/// Variables of the specification that change what happens, and that neither we nor the official crate read.
const NOT_READ: [&str; 6] = [
    "OTEL_EXPORTER_OTLP_CERTIFICATE",
    "OTEL_EXPORTER_OTLP_METRICS_CERTIFICATE",
    "OTEL_EXPORTER_OTLP_CLIENT_KEY",
    "OTEL_EXPORTER_OTLP_METRICS_CLIENT_KEY",
    "OTEL_EXPORTER_OTLP_CLIENT_CERTIFICATE",
    "OTEL_EXPORTER_OTLP_METRICS_CLIENT_CERTIFICATE",
];
const TEMPORALITY: &str = "OTEL_EXPORTER_OTLP_METRICS_TEMPORALITY_PREFERENCE";

/// OpenTelemetry's default between two exports.
const DEFAULT_INTERVAL: Duration = Duration::from_mins(1);
/// OpenTelemetry's default for one export, its retries included.
const DEFAULT_TIMEOUT: Duration = Duration::from_secs(10);

/// How OTLP is carried.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Protocol {
    /// Protobuf over HTTP/1.1, OpenTelemetry's default; port 4318.
    #[value(name = "http/protobuf")]
    Http,
    /// gRPC; port 4317.
    #[value(name = "grpc")]
    Grpc,
}

impl Protocol {
    /// A collector's default.
    const fn port(self) -> u16 {
        match self {
            Self::Http => 4318,
            Self::Grpc => 4317,
        }
    }
}

/// What the command line says; `None` leaves it to the environment, and that to OpenTelemetry's defaults.
#[derive(Clone, Debug, Default)]
pub(crate) struct OtlpOptions {
    /// The collector's base URL, as `OTEL_EXPORTER_OTLP_ENDPOINT`.
    pub(crate) endpoint: Option<String>,
    /// As `OTEL_EXPORTER_OTLP_PROTOCOL`.
    pub(crate) protocol: Option<Protocol>,
    /// Between two exports, as `OTEL_METRIC_EXPORT_INTERVAL`.
    pub(crate) interval: Option<Duration>,
}

/// The decision.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Settings {
    pub(super) protocol: Protocol,
    /// The whole URL, path included.
    pub(super) endpoint: String,
    /// Which option or variable set it, for messages.
    pub(super) endpoint_from: &'static str,
    pub(super) interval: Duration,
    /// For one export, its retries included.
    pub(super) timeout: Duration,
    /// What was asked for and won't be done.
    pub(super) warnings: Vec<String>,
}

/// Precedence: option, the metrics' own variable, the variable of all signals, default. An empty variable is unset.
pub(super) fn resolve(
    options: &OtlpOptions,
    env: impl Fn(&str) -> Option<String>,
) -> Result<Settings> {
    let env = |name: &str| env(name).filter(|value| !value.is_empty());
    let protocol = match options.protocol {
        Some(protocol) => protocol,
        None => protocol(&env)?,
    };
    let (endpoint, endpoint_from) = endpoint(options, protocol, &env)?;
    check_headers(&env)?;
    let interval = match options.interval {
        Some(interval) if interval.is_zero() => {
            bail!("--otlp-interval is 0: give the time between two exports, such as 10s")
        }
        Some(interval) => interval,
        None => milliseconds(&env, &[INTERVAL])?.unwrap_or(DEFAULT_INTERVAL),
    };
    let timeout = milliseconds(&env, &[METRICS_TIMEOUT, TIMEOUT])?.unwrap_or(DEFAULT_TIMEOUT);
    Ok(Settings {
        protocol,
        endpoint,
        endpoint_from,
        interval,
        timeout,
        warnings: warnings(&env),
    })
}

fn protocol(env: &impl Fn(&str) -> Option<String>) -> Result<Protocol> {
    for name in [METRICS_PROTOCOL, PROTOCOL] {
        if let Some(value) = env(name) {
            return Protocol::from_str(&value, false).ok().with_context(|| {
                format!("{name} is {value:?}, which is not spoken here: set http/protobuf or grpc")
            });
        }
    }
    Ok(Protocol::Http)
}

fn endpoint(
    options: &OtlpOptions,
    protocol: Protocol,
    env: &impl Fn(&str) -> Option<String>,
) -> Result<(String, &'static str)> {
    // The base URL gets the signal's path; the metrics' own URL is used as it is.
    let (base, from) = if let Some(endpoint) = &options.endpoint {
        (endpoint.clone(), "--otlp-endpoint")
    } else if let Some(whole) = env(METRICS_ENDPOINT) {
        return Ok((
            checked(&whole, protocol, METRICS_ENDPOINT, env)?,
            METRICS_ENDPOINT,
        ));
    } else if let Some(base) = env(ENDPOINT) {
        (base, ENDPOINT)
    } else {
        (format!("http://localhost:{}", protocol.port()), ENDPOINT)
    };
    let base = checked(&base, protocol, from, env)?;
    let endpoint = match protocol {
        Protocol::Http => format!("{}/v1/metrics", base.trim_end_matches('/')),
        Protocol::Grpc => base,
    };
    Ok((endpoint, from))
}

/// The endpoint with its scheme: gRPC's can be a bare HOST:PORT, and is TLS then unless told otherwise.
fn checked(
    endpoint: &str,
    protocol: Protocol,
    from: &str,
    env: &impl Fn(&str) -> Option<String>,
) -> Result<String> {
    let whole = match endpoint.split_once("://") {
        None if protocol == Protocol::Grpc => {
            let insecure = env(METRICS_INSECURE).or_else(|| env(INSECURE));
            let insecure = insecure.is_some_and(|value| value.eq_ignore_ascii_case("true"));
            format!("{}://{endpoint}", if insecure { "http" } else { "https" })
        }
        _ => endpoint.to_owned(),
    };
    match whole.split_once("://") {
        Some(("http" | "https", rest)) if !rest.is_empty() && !rest.starts_with('/') => Ok(whole),
        _ => bail!(
            "{from} is {endpoint:?}, which is no http or https URL: set one such as http://localhost:{}",
            protocol.port()
        ),
    }
}

/// The official crate reads the headers, and drops what it can't read without a word.
fn check_headers(env: &impl Fn(&str) -> Option<String>) -> Result<()> {
    for name in [METRICS_HEADERS, HEADERS] {
        let Some(value) = env(name) else { continue };
        for pair in value.split(',').map(str::trim).filter(|p| !p.is_empty()) {
            // The value can be a secret: it isn't repeated.
            if pair.split_once('=').is_none_or(|(key, _)| key.is_empty()) {
                bail!("{name} has a part that isn't KEY=VALUE: write key1=value1,key2=value2");
            }
        }
    }
    Ok(())
}

fn milliseconds(env: &impl Fn(&str) -> Option<String>, names: &[&str]) -> Result<Option<Duration>> {
    for name in names {
        if let Some(value) = env(name) {
            return match value.parse() {
                Ok(ms) if ms > 0 => Ok(Some(Duration::from_millis(ms))),
                _ => bail!("{name} is {value:?}: set milliseconds, such as 10000"),
            };
        }
    }
    Ok(None)
}

fn warnings(env: &impl Fn(&str) -> Option<String>) -> Vec<String> {
    let mut warnings: Vec<String> = NOT_READ
        .iter()
        .filter(|name| env(name).is_some())
        .map(|name| {
            format!("{name} is not supported: certificates are taken from the system, or from SSL_CERT_FILE")
        })
        .collect();
    if env(TEMPORALITY).is_some_and(|value| !value.eq_ignore_ascii_case("cumulative")) {
        warnings.push(format!(
            "{TEMPORALITY} is ignored: numawatch exports cumulative counters only"
        ));
    }
    warnings
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with(options: &OtlpOptions, env: &[(&str, &str)]) -> Result<Settings> {
        resolve(options, |name| {
            env.iter()
                .find(|(key, _)| *key == name)
                .map(|(_, value)| (*value).to_owned())
        })
    }

    fn from_env(env: &[(&str, &str)]) -> Result<Settings> {
        with(&OtlpOptions::default(), env)
    }

    #[test]
    fn defaults_are_opentelemetrys() {
        assert_eq!(
            from_env(&[(ENDPOINT, ""), (INTERVAL, "")]).unwrap(),
            Settings {
                protocol: Protocol::Http,
                endpoint: "http://localhost:4318/v1/metrics".into(),
                endpoint_from: ENDPOINT,
                interval: Duration::from_mins(1),
                timeout: Duration::from_secs(10),
                warnings: Vec::new(),
            }
        );
    }

    #[test]
    fn the_base_url_gets_the_path_and_the_metrics_own_url_does_not() {
        for (env, want) in [
            (&[(ENDPOINT, "http://c:1")][..], "http://c:1/v1/metrics"),
            (&[(ENDPOINT, "http://c:1/")], "http://c:1/v1/metrics"),
            (
                &[(ENDPOINT, "https://c/api/v1/otlp")],
                "https://c/api/v1/otlp/v1/metrics",
            ),
            (
                &[
                    (METRICS_ENDPOINT, "http://c:1/here"),
                    (ENDPOINT, "http://d"),
                ],
                "http://c:1/here",
            ),
            (&[(PROTOCOL, "grpc")], "http://localhost:4317"),
            (
                &[(PROTOCOL, "grpc"), (ENDPOINT, "http://c:1")],
                "http://c:1",
            ),
            (
                &[(PROTOCOL, "grpc"), (ENDPOINT, "c:4317")],
                "https://c:4317",
            ),
            (
                &[(PROTOCOL, "grpc"), (ENDPOINT, "c:4317"), (INSECURE, "true")],
                "http://c:4317",
            ),
        ] {
            assert_eq!(from_env(env).unwrap().endpoint, want, "{env:?}");
        }
    }

    #[test]
    fn options_come_before_the_environment() {
        let settings = with(
            &OtlpOptions {
                endpoint: Some("http://flag:1".into()),
                protocol: Some(Protocol::Grpc),
                interval: Some(Duration::from_secs(5)),
            },
            &[
                (METRICS_ENDPOINT, "http://c:1/here"),
                (PROTOCOL, "http/protobuf"),
                (INTERVAL, "1000"),
            ],
        )
        .unwrap();
        assert_eq!(settings.endpoint, "http://flag:1");
        assert_eq!(settings.protocol, Protocol::Grpc);
        assert_eq!(settings.interval, Duration::from_secs(5));
    }

    #[test]
    fn the_metrics_own_variable_comes_before_the_one_of_all_signals() {
        let settings = from_env(&[
            (METRICS_PROTOCOL, "grpc"),
            (PROTOCOL, "http/protobuf"),
            (METRICS_TIMEOUT, "2000"),
            (TIMEOUT, "3000"),
        ])
        .unwrap();
        assert_eq!(settings.protocol, Protocol::Grpc);
        assert_eq!(settings.timeout, Duration::from_secs(2));
    }

    #[test]
    fn what_is_wrong_is_one_line_that_names_it_and_the_way_out() {
        for (env, want) in [
            (
                (PROTOCOL, "http/json"),
                "OTEL_EXPORTER_OTLP_PROTOCOL is \"http/json\", which is not spoken here: set http/protobuf or grpc",
            ),
            (
                (ENDPOINT, "localhost:4318"),
                "OTEL_EXPORTER_OTLP_ENDPOINT is \"localhost:4318\", which is no http or https URL: \
                 set one such as http://localhost:4318",
            ),
            (
                (METRICS_ENDPOINT, "http:///v1/metrics"),
                "OTEL_EXPORTER_OTLP_METRICS_ENDPOINT is \"http:///v1/metrics\", which is no http or https URL: \
                 set one such as http://localhost:4318",
            ),
            (
                (INTERVAL, "10s"),
                "OTEL_METRIC_EXPORT_INTERVAL is \"10s\": set milliseconds, such as 10000",
            ),
            (
                (INTERVAL, "0"),
                "OTEL_METRIC_EXPORT_INTERVAL is \"0\": set milliseconds, such as 10000",
            ),
            (
                (HEADERS, "authorization=Bearer%20x,secret"),
                "OTEL_EXPORTER_OTLP_HEADERS has a part that isn't KEY=VALUE: write key1=value1,key2=value2",
            ),
        ] {
            assert_eq!(from_env(&[env]).unwrap_err().to_string(), want);
        }
    }

    #[test]
    fn what_is_not_supported_is_said() {
        let settings = from_env(&[
            ("OTEL_EXPORTER_OTLP_CERTIFICATE", "/ca.pem"),
            (TEMPORALITY, "delta"),
        ])
        .unwrap();
        assert_eq!(settings.warnings.len(), 2, "{:?}", settings.warnings);
        assert!(
            from_env(&[(TEMPORALITY, "Cumulative")])
                .unwrap()
                .warnings
                .is_empty()
        );
    }
}
