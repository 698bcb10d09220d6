//! Answers: their bodies, their headers, and errors in words.

use std::convert::Infallible;
use std::pin::Pin;
use std::sync::LazyLock;
use std::task::{Context, Poll};

use crosslens_lab::analysis::page::live_policy;
use hyper::body::{Body, Bytes, Frame, SizeHint};
use hyper::header::{self, HeaderValue};
use hyper::{Response, StatusCode};
use serde::Serialize;
use tokio::sync::mpsc;

/// What an answer holds.
#[derive(Debug)]
pub(crate) enum Content {
    /// All of it; taken when it is sent.
    Whole(Option<Bytes>),
    /// Events, as they come.
    Events(mpsc::Receiver<Bytes>),
}

impl Body for Content {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        match self.get_mut() {
            Self::Whole(bytes) => Poll::Ready(bytes.take().map(|bytes| Ok(Frame::data(bytes)))),
            Self::Events(events) => events.poll_recv(context).map(|event| event.map(|event| Ok(Frame::data(event)))),
        }
    }

    fn is_end_stream(&self) -> bool {
        matches!(self, Self::Whole(None))
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Self::Whole(bytes) => SizeHint::with_exact(bytes.as_ref().map_or(0, Bytes::len) as u64),
            Self::Events(_) => SizeHint::default(),
        }
    }
}

pub(crate) type Reply = Response<Content>;

/// Why a request is not done: a status and the reason in words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Refusal {
    pub(crate) status: StatusCode,
    pub(crate) error: String,
}

impl Refusal {
    pub(crate) fn new(status: StatusCode, error: impl Into<String>) -> Self {
        Self { status, error: error.into() }
    }

    pub(crate) fn bad(error: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, error)
    }

    pub(crate) fn forbidden(error: impl Into<String>) -> Self {
        Self::new(StatusCode::FORBIDDEN, error)
    }

    pub(crate) fn nothing(error: impl Into<String>) -> Self {
        Self::new(StatusCode::NOT_FOUND, error)
    }

    pub(crate) fn unfit(error: impl Into<String>) -> Self {
        Self::new(StatusCode::UNPROCESSABLE_ENTITY, error)
    }

    pub(crate) fn busy(error: impl Into<String>) -> Self {
        Self::new(StatusCode::SERVICE_UNAVAILABLE, error)
    }

    /// A mistake of the server's own; what it was is said on its terminal, not to the client.
    pub(crate) fn broken() -> Self {
        Self::new(StatusCode::INTERNAL_SERVER_ERROR, "the server failed at this request; it goes on with others")
    }

    pub(crate) fn reply(&self) -> Reply {
        let mut reply = json(self.status, &serde_json::json!({ "error": self.error }));
        if self.status == StatusCode::SERVICE_UNAVAILABLE {
            reply.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from_static("1"));
        }
        if self.status == StatusCode::UNAUTHORIZED {
            reply.headers_mut().insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        reply
    }
}

/// A whole answer of some media type.
pub(crate) fn whole(status: StatusCode, media_type: &'static str, bytes: Bytes) -> Reply {
    let mut reply = Response::new(Content::Whole(Some(bytes)));
    *reply.status_mut() = status;
    reply.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(media_type));
    reply
}

/// A whole answer as JSON.
pub(crate) fn json(status: StatusCode, value: &impl Serialize) -> Reply {
    match serde_json::to_vec(value) {
        Ok(text) => whole(status, "application/json", text.into()),
        Err(_) => whole(StatusCode::INTERNAL_SERVER_ERROR, "application/json", Bytes::from_static(b"{\"error\":\"no JSON\"}")),
    }
}

pub(crate) fn arrays(bytes: Bytes) -> Reply {
    whole(StatusCode::OK, "application/octet-stream", bytes)
}

/// A stream of server-sent events.
pub(crate) fn events(events: mpsc::Receiver<Bytes>) -> Reply {
    let mut reply = Response::new(Content::Events(events));
    reply.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
    reply
}

/// What a page of this server may load, and that no other page may show it within itself.
static POLICY: LazyLock<HeaderValue> = LazyLock::new(|| {
    let policy = format!("{}; frame-ancestors 'none'", live_policy());
    HeaderValue::try_from(policy).expect("a policy is plain text: tested")
});

/// Headers every answer has.
pub(crate) fn with_safe_headers(mut reply: Reply) -> Reply {
    let safe = [
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::REFERRER_POLICY, "no-referrer"),
        (header::CACHE_CONTROL, "no-store"),
        (header::HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
        (header::HeaderName::from_static("cross-origin-opener-policy"), "same-origin"),
    ];
    reply.headers_mut().insert(header::CONTENT_SECURITY_POLICY, POLICY.clone());
    for (name, value) in safe {
        reply.headers_mut().insert(name, HeaderValue::from_static(value));
    }
    reply
}
