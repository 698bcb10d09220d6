//! Who may ask: the right name of the server, the right origin, and, away from this machine, the token.

use std::net::{IpAddr, SocketAddr};

use hyper::header::{self, HeaderMap, HeaderName};
use hyper::http::request::Parts;
use hyper::{Method, StatusCode};
use subtle::ConstantTimeEq;

use crate::reply::Refusal;

const FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");

/// Lets requests through or refuses them.
#[derive(Clone, Debug)]
pub(crate) struct Guard {
    /// Whether only this machine can reach the server.
    is_loopback: bool,
    /// The name given on the command line, in small letters.
    name: String,
    token: Option<String>,
    /// Browsers keep cookies by host, whatever the port.
    cookie: String,
}

/// How a request came through.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Pass {
    /// It may go on.
    Open,
    /// It brought the token in its address: it gets this cookie, and an address without it.
    Token(String),
}

impl Guard {
    /// A server that was asked to listen at `name` and does at `address`; away from this machine it has a token.
    pub(crate) fn new(name: &str, address: SocketAddr) -> Result<Self, getrandom::Error> {
        let is_loopback = address.ip().is_loopback();
        let token = if is_loopback { None } else { Some(random_token()?) };
        Ok(Self { is_loopback, name: name.to_ascii_lowercase(), token, cookie: format!("crosslens-{}", address.port()) })
    }

    pub(crate) fn token(&self) -> Option<&str> {
        self.token.as_deref()
    }

    pub(crate) fn check(&self, request: &Parts) -> Result<Pass, Refusal> {
        if request.uri.authority().is_some() {
            return Err(Refusal::bad("the address must be a path"));
        }
        let host = one(&request.headers, &header::HOST)?.ok_or_else(|| Refusal::bad("the Host header is missing"))?;
        if !self.is_own_name(host) {
            return Err(Refusal::forbidden("this server does not go by the name in the Host header; use the address it printed"));
        }
        if let Some(origin) = one(&request.headers, &header::ORIGIN)?
            && origin.strip_prefix("http://") != Some(host)
        {
            return Err(Refusal::forbidden("requests from other sites are refused"));
        }
        let is_visit = request.uri.path() == "/" && request.method == Method::GET;
        if let Some(site) = one(&request.headers, &FETCH_SITE)?
            && !is_visit
            && !["same-origin", "none"].contains(&site)
        {
            return Err(Refusal::forbidden("requests from other sites are refused"));
        }
        self.check_token(request, is_visit)
    }

    fn check_token(&self, request: &Parts, is_visit: bool) -> Result<Pass, Refusal> {
        let Some(token) = &self.token else { return Ok(Pass::Open) };
        let is_it = |given: &str| bool::from(given.as_bytes().ct_eq(token.as_bytes()));
        // First of all, so that whoever has the cookie already does not keep the token in the address either.
        let in_address = request.uri.query().and_then(|query| query.strip_prefix("token="));
        if is_visit && in_address.is_some_and(is_it) {
            return Ok(Pass::Token(format!("{}={token}; HttpOnly; SameSite=Strict; Path=/", self.cookie)));
        }
        let bearer = one(&request.headers, &header::AUTHORIZATION)?.and_then(|text| text.strip_prefix("Bearer "));
        let in_cookie = |header: &str| {
            let pairs = header.split(';').filter_map(|pair| pair.trim().split_once('='));
            pairs.into_iter().any(|(name, value)| name == self.cookie && is_it(value))
        };
        let mut cookies = request.headers.get_all(header::COOKIE).iter().filter_map(|value| value.to_str().ok());
        if bearer.is_some_and(is_it) || cookies.any(in_cookie) {
            return Ok(Pass::Open);
        }
        Err(Refusal::new(
            StatusCode::UNAUTHORIZED,
            "open the address the server printed, which holds its token, or send `Authorization: Bearer TOKEN`",
        ))
    }

    /// Names that no foreign site can make its own: this machine's, and away from it also plain numbers and the name given.
    fn is_own_name(&self, host: &str) -> bool {
        let Some(name) = without_port(host) else { return false };
        if name.eq_ignore_ascii_case("localhost") {
            return true;
        }
        match name.trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>() {
            Ok(address) => !self.is_loopback || address.is_loopback(),
            Err(_) => !self.is_loopback && name.eq_ignore_ascii_case(&self.name),
        }
    }
}

/// `[::1]:80` → `[::1]`, `localhost` → itself; `None` where there is no such thing.
fn without_port(host: &str) -> Option<&str> {
    let end = if host.starts_with('[') { host.find(']')? + 1 } else { host.find(':').unwrap_or(host.len()) };
    let (name, port) = host.split_at(end);
    let is_port = port.is_empty() || port.strip_prefix(':').is_some_and(|port| port.parse::<u16>().is_ok());
    (is_port && !name.is_empty()).then_some(name)
}

/// A header that may stand once, as text.
fn one<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Result<Option<&'a str>, Refusal> {
    let bad = || Refusal::bad(format!("the header `{name}` cannot be read"));
    let mut all = headers.get_all(name).iter();
    match (all.next(), all.next()) {
        (None, _) => Ok(None),
        (Some(value), None) => value.to_str().map(Some).map_err(|_| bad()),
        _ => Err(bad()),
    }
}

/// 256 random bits as text.
fn random_token() -> Result<String, getrandom::Error> {
    let mut bytes = [0; 32];
    getrandom::fill(&mut bytes)?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_that_can_be_rebound_is_not_ours() {
        let local = Guard::new("127.0.0.1", "127.0.0.1:80".parse().expect("an address")).expect("random");
        let open = Guard::new("lab.example", "0.0.0.0:80".parse().expect("an address")).expect("random");
        for host in ["localhost", "LOCALHOST:9000", "127.0.0.1:80", "[::1]:80", "127.9.9.9"] {
            assert!(local.is_own_name(host) && open.is_own_name(host), "{host}");
        }
        for host in ["192.168.1.7:80", "[fe80::1]:80", "Lab.Example:80"] {
            assert!(!local.is_own_name(host) && open.is_own_name(host), "{host}");
        }
        for host in
            ["evil.example", "127.0.0.1.evil.example", "localhost.evil.example:80", "", ":80", "localhost:x", "[::1", "localhost:99999"]
        {
            assert!(!local.is_own_name(host) && !open.is_own_name(host), "{host}");
        }
        assert!(local.token().is_none());
        assert_eq!(open.token().map(str::len), Some(64));
    }
}
