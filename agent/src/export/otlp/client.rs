//! The HTTP client under the official exporter, which keeps the reason of a failure: the exporter itself drops it.

use anyhow::{Result, bail};
use opentelemetry_http::{Bytes, HttpClient, HttpError, Request, Response};
use reqwest::Certificate;
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
    ///
    /// # Errors
    /// For https without a certificate authority on this system.
    pub(super) fn new(endpoint: &str, timeout: Duration, last_error: LastError) -> Result<Self> {
        // The client's own verifier logs each refusal by itself. Over plain http it would want certificates, too.
        let authorities = if endpoint.starts_with("https://") {
            authorities()?
        } else {
            Vec::new()
        };
        let http = reqwest::Client::builder()
            .timeout(timeout)
            .tls_certs_only(authorities)
            .build()?;
        Ok(Self { http, last_error })
    }
}

/// The system's certificate authorities, or those that `SSL_CERT_FILE` or `SSL_CERT_DIR` name.
fn authorities() -> Result<Vec<Certificate>> {
    let found = rustls_native_certs::load_native_certs();
    let usable: Vec<_> = found
        .certs
        .iter()
        .filter_map(|der| Certificate::from_der(der).ok())
        .collect();
    if usable.is_empty() {
        bail!(
            "https needs certificate authorities and there are none: install ca-certificates or set SSL_CERT_FILE"
        );
    }
    Ok(usable)
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

/// An error's causes in one line; the error itself only repeats the URL.
fn chain(error: &dyn Error) -> String {
    let mut causes = Vec::new();
    let mut cause = error.source();
    while let Some(error) = cause {
        causes.push(error.to_string());
        cause = error.source();
    }
    if causes.is_empty() {
        error.to_string()
    } else {
        causes.join(": ")
    }
}
