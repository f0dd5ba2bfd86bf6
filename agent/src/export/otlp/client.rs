//! The HTTP client under the official exporter, which keeps the reason of a failure: the exporter itself drops it.

use opentelemetry_http::{Bytes, HttpClient, HttpError, Request, Response};
use std::error::Error;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// Why the last request got no answer, for the log.
pub(super) type LastError = Arc<Mutex<Option<String>>>;

/// A client for one endpoint.
#[derive(Debug)]
pub(super) struct Client {
    http: reqwest::Client,
    last_error: LastError,
}

impl Client {
    /// `timeout` is for one request.
    pub(super) fn new(
        endpoint: &str,
        timeout: Duration,
        last_error: LastError,
    ) -> reqwest::Result<Self> {
        let mut builder = reqwest::Client::builder()
            .timeout(timeout)
            .user_agent(concat!("numawatch/", env!("CARGO_PKG_VERSION")));
        if endpoint.starts_with("http://") {
            // Without this, a machine that has no certificate store couldn't export at all.
            builder = builder.tls_certs_only([]);
        }
        Ok(Self {
            http: builder.build()?,
            last_error,
        })
    }
}

#[async_trait::async_trait]
impl HttpClient for Client {
    async fn send_bytes(&self, request: Request<Bytes>) -> Result<Response<Bytes>, HttpError> {
        let answer = self.http.send_bytes(request).await;
        let error = answer.as_ref().err().map(|error| chain(error.as_ref()));
        *self
            .last_error
            .lock()
            .unwrap_or_else(PoisonError::into_inner) = error;
        answer
    }
}

/// An error and its causes in one line.
fn chain(error: &dyn Error) -> String {
    let mut line = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        line = format!("{line}: {error}");
        cause = error.source();
    }
    line
}
