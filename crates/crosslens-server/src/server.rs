//! Listens, answers, and stops when it is told to.

use std::convert::Infallible;
use std::io;
use std::net::{SocketAddr, TcpListener, ToSocketAddrs};
use std::sync::Arc;
use std::time::Duration;

use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::GracefulShutdown;
use tokio::net::TcpStream;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::api::{State, answer};
use crate::guard::Guard;
use crate::impatient::Impatient;
use crate::{Library, Limits, Preparing};

/// How often it is asked whether to stop.
const STOP_EVERY: Duration = Duration::from_millis(50);
/// Headers of a request.
const MOST_HEADERS: usize = 64;
/// Bytes of a request's head.
const HEAD_BYTES: usize = 32 * 1024;
/// What a client gets for which there is no connection left.
const FULL: &[u8] = b"HTTP/1.1 503 Service Unavailable\r\ncontent-type: application/json\r\ncontent-length: 48\r\nretry-after: 1\r\nconnection: close\r\n\r\n{\"error\":\"too many connections; come back soon\"}";

/// Why there is no server.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ServerError {
    /// No such address.
    #[error("`{host}` is no address of this machine")]
    Address {
        /// What was asked for.
        host: String,
        /// Why.
        source: io::Error,
    },
    /// Another program listens there, or it is not allowed.
    #[error("cannot listen at {address}")]
    Listen {
        /// Where.
        address: SocketAddr,
        /// Why.
        source: io::Error,
    },
    /// No random numbers for the token.
    #[error("the system gives no random numbers for a token")]
    Random(#[from] getrandom::Error),
    /// No threads or no timers.
    #[error("the server cannot be started")]
    Start(#[source] io::Error),
}

/// A server that listens already; nobody is answered before [`Server::run`].
pub struct Server {
    listener: TcpListener,
    host: String,
    address: SocketAddr,
    state: Arc<State>,
}

impl Server {
    /// Listens at a host and port; port 0 takes a free one. Away from this machine's own addresses a token is required of everybody.
    pub fn bind(library: Library, host: &str, port: u16, limits: Limits) -> Result<Self, ServerError> {
        let none = |source| ServerError::Address { host: host.to_owned(), source };
        let mut addresses = (host, port).to_socket_addrs().map_err(none)?;
        let address = addresses.next().ok_or_else(|| none(io::ErrorKind::AddrNotAvailable.into()))?;
        let cannot = |source| ServerError::Listen { address, source };
        let listener = TcpListener::bind(address).map_err(cannot)?;
        listener.set_nonblocking(true).map_err(cannot)?;
        let address = listener.local_addr().map_err(cannot)?;
        let state = Arc::new(State::new(Arc::new(library), Guard::new(host, address)?, limits));
        Ok(Self { listener, host: host.to_owned(), address, state })
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// What to open in a browser, with the token if there is one.
    pub fn url(&self) -> String {
        let host = match self.address {
            address if address.ip().is_unspecified() => "localhost".to_owned(),
            _ if self.host.contains(':') => format!("[{}]", self.host.trim_matches(['[', ']'])),
            _ => self.host.clone(),
        };
        let token = self.token().map(|token| format!("?token={token}")).unwrap_or_default();
        format!("http://{host}:{}/{token}", self.address.port())
    }

    /// What everybody must bring, away from this machine.
    pub fn token(&self) -> Option<&str> {
        self.state.guard.token()
    }

    /// What it serves.
    pub fn library(&self) -> &Library {
        &self.state.library
    }

    #[cfg(test)]
    pub(crate) fn state(&self) -> Arc<State> {
        Arc::clone(&self.state)
    }

    /// Answers until `should_stop`; then ends jobs, lets open requests finish for a while, and returns. What is served is explained
    /// meanwhile, and `told` hears how that goes.
    ///
    /// An explanation that goes on when the server stops ends after its batch of sentences, or with the program, and leaves nothing behind.
    pub fn run(self, should_stop: impl Fn() -> bool, mut told: impl FnMut(Preparing<'_>) + Send + 'static) -> Result<(), ServerError> {
        let limits = self.state.limits.clone();
        let (library, stopping) = (Arc::clone(&self.state.library), self.state.stopping.subscribe());
        let prepare = move || library.prepare(&|| *stopping.borrow(), &mut told);
        std::thread::Builder::new().name("preparing".to_owned()).spawn(prepare).map_err(ServerError::Start)?;
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .max_blocking_threads(limits.working + limits.jobs + 1)
            .enable_all()
            .build()
            .map_err(ServerError::Start)?;
        let done = runtime.block_on(self.listen(should_stop));
        runtime.shutdown_timeout(limits.grace_time);
        done
    }

    async fn listen(self, should_stop: impl Fn() -> bool) -> Result<(), ServerError> {
        let listener = tokio::net::TcpListener::from_std(self.listener).map_err(ServerError::Start)?;
        let places = Arc::new(Semaphore::new(self.state.limits.connections));
        let graceful = GracefulShutdown::new();
        let mut clock = tokio::time::interval(STOP_EVERY);
        loop {
            let stream = tokio::select! {
                _ = clock.tick() => if should_stop() { break } else { continue },
                accepted = listener.accept() => match accepted {
                    Ok((stream, _)) => stream,
                    // No file handle left, or a client gone at once: both pass.
                    Err(_) => {
                        tokio::time::sleep(STOP_EVERY).await;
                        continue;
                    }
                },
            };
            match Arc::clone(&places).try_acquire_owned() {
                Ok(place) => serve(stream, place, &self.state, &graceful),
                Err(_) => {
                    stream.try_write(FULL).ok();
                }
            }
        }
        drop(listener);
        self.state.stopping.send_replace(true);
        self.state.jobs.cancel_all();
        self.state.library.stop();
        tokio::time::timeout(self.state.limits.grace_time, graceful.shutdown()).await.ok();
        Ok(())
    }
}

/// Answers one connection until it ends.
fn serve(stream: TcpStream, place: OwnedSemaphorePermit, state: &Arc<State>, graceful: &GracefulShutdown) {
    stream.set_nodelay(true).ok();
    let for_requests = Arc::clone(state);
    let service = service_fn(move |request| {
        let state = Arc::clone(&for_requests);
        async move { Ok::<_, Infallible>(answer(state, request).await) }
    });
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(state.limits.head_time)
        .max_headers(MOST_HEADERS)
        .max_buf_size(HEAD_BYTES)
        .serve_connection(TokioIo::new(Impatient::new(stream, state.limits.write_time)), service);
    let watched = graceful.watch(connection);
    tokio::spawn(async move {
        // What a client does wrong with its connection is its own affair.
        watched.await.ok();
        drop(place);
    });
}
