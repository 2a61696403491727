//! The checks that every request must pass before anything else is done for it.
//!
//! Other users of the machine and pages of other sites can reach the loopback. The former do not know the token in the
//! address, which is compared in constant time. The latter, if they learn it, send another `Origin`, or, after their
//! name has been pointed to the loopback, another `Host`.

use axum::http::{HeaderMap, Method, header};
use subtle::ConstantTimeEq as _;

/// Length of a token, in bytes; in addresses it has twice as many digits.
const TOKEN_BYTES: usize = 32;

/// The secret part of the address, and the names under which the page may be asked for.
#[derive(Clone, Debug)]
pub struct Guard {
    token: String,
    hosts: [String; 2],
}

impl Guard {
    /// Returns a guard with a new token for the port `port` of the loopback.
    ///
    /// # Errors
    /// If the system gives no random bytes.
    pub fn new(port: u16) -> Result<Self, getrandom::Error> {
        let mut bytes = [0; TOKEN_BYTES];
        getrandom::fill(&mut bytes)?;
        let digit = |n: u8| char::from_digit(n.into(), 16).unwrap_or('0');
        let token = bytes.iter().flat_map(|byte| [digit(byte >> 4), digit(byte & 15)]).collect();
        Ok(Self { token, hosts: ["127.0.0.1", "localhost"].map(|name| format!("{name}:{port}")) })
    }

    /// Returns the address of the page.
    pub fn address(&self) -> String {
        format!("http://{}/{}/", self.hosts[0], self.token)
    }

    /// Returns the path of a request below the token, as `/app.js`; `None` if the request is refused.
    pub fn admit<'a>(&self, method: &Method, path: &'a str, headers: &HeaderMap) -> Option<&'a str> {
        let (token, rest) = path.strip_prefix('/')?.split_at_checked(self.token.len())?;
        let is_known = bool::from(token.as_bytes().ct_eq(self.token.as_bytes()));
        let rest = rest.strip_prefix('/')?;
        let is_admitted = is_known && self.is_our_host(headers) && self.is_our_origin(method, headers);
        is_admitted.then_some(rest)
    }

    /// Returns `true` if the only `Host` is one of ours.
    fn is_our_host(&self, headers: &HeaderMap) -> bool {
        let mut hosts = headers.get_all(header::HOST).iter();
        let host = hosts.next().and_then(|host| host.to_str().ok());
        hosts.next().is_none() && host.is_some_and(|host| self.hosts.iter().any(|ours| ours == host))
    }

    /// Returns `true` if the `Origin` is one of ours, or a request that changes nothing has none.
    fn is_our_origin(&self, method: &Method, headers: &HeaderMap) -> bool {
        let is_from_elsewhere =
            headers.get("sec-fetch-site").is_some_and(|site| site != "same-origin" && site != "none");
        let mut origins = headers.get_all(header::ORIGIN).iter();
        let is_ours =
            |origin: &str| origin.strip_prefix("http://").is_some_and(|host| self.hosts.iter().any(|h| h == host));
        let has_right_origin = match (origins.next(), origins.next()) {
            (None, _) => method == Method::GET || method == Method::HEAD,
            (Some(origin), None) => origin.to_str().is_ok_and(is_ours),
            (Some(_), Some(_)) => false,
        };
        has_right_origin && !is_from_elsewhere
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(pairs: &[(&'static str, &'static str)]) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for (name, value) in pairs {
            headers.append(*name, value.parse().expect("a value"));
        }
        headers
    }

    #[test]
    fn tokens_are_long_and_differ() {
        let [a, b] = [1, 1].map(|port| Guard::new(port).expect("random bytes"));
        assert_eq!((a.token.len(), a.token == b.token), (64, false));
    }

    #[test]
    fn only_the_token_host_and_origin_of_the_page_pass() {
        let guard = Guard::new(8080).expect("random bytes");
        let path = format!("/{}/api/runs", guard.token);
        let host = ("host", "127.0.0.1:8080");
        let get = |path: &str, pairs: &[_]| guard.admit(&Method::GET, path, &headers(pairs)).map(str::to_owned);
        assert_eq!(get(&path, &[host]).as_deref(), Some("api/runs"));
        assert!(get(&path, &[("host", "localhost:8080"), ("origin", "http://localhost:8080")]).is_some());
        let shorter = format!("/{}/api/runs", &guard.token[1..]);
        let wrong = format!("/{}/api/runs", "0".repeat(64));
        for path in ["/", "", "/api/runs", "//", &shorter, &wrong, &path[..64], &path.replace("/api", "x/api")] {
            assert_eq!(get(path, &[host]), None, "{path}");
        }
        for pairs in [
            &[][..],
            &[("host", "evil.example:8080")],
            &[("host", "127.0.0.1")],
            &[("host", "127.0.0.1:8081")],
            &[host, host],
            &[host, ("origin", "http://evil.example")],
            &[host, ("origin", "null")],
            &[host, ("origin", "https://127.0.0.1:8080")],
            &[host, ("sec-fetch-site", "cross-site")],
        ] {
            assert_eq!(get(&path, pairs), None, "{pairs:?}");
        }
        let post = |pairs: &[_]| guard.admit(&Method::POST, &path, &headers(pairs)).is_some();
        assert!(!post(&[host]) && post(&[host, ("origin", "http://127.0.0.1:8080")]));
    }
}
