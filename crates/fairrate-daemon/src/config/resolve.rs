//! Names of hosts in configurations, which are resolved when the file is read.

use std::net::{IpAddr, SocketAddr, ToSocketAddrs};

/// Longest name of a host.
const MAX_NAME: usize = 253;

/// Returns the addresses of `text`, an address or the name of a host. IPv4 addresses have one form only.
///
/// # Errors
/// If it is neither, or nobody knows the name.
pub fn addresses(text: &str) -> Result<Vec<IpAddr>, String> {
    if let Ok(address) = text.parse::<IpAddr>() {
        return Ok(vec![address.to_canonical()]);
    }
    Ok(lookup(text, 0)?.into_iter().map(|address| address.ip()).collect())
}

/// Returns the first address of `text`, an address or the name of a host with a port.
///
/// # Errors
/// If it is neither, or nobody knows the name.
pub fn with_port(text: &str) -> Result<SocketAddr, String> {
    if let Ok(address) = text.parse() {
        return Ok(address);
    }
    let parts = text.rsplit_once(':').and_then(|(name, port)| Some((name, port.parse::<u16>().ok()?)));
    let Some((name, port)) = parts else {
        return Err(format!(
            "`{text}` has no port: write an address such as \"10.0.0.9:4600\" or \"[fd00::9]:4600\", or a name such as \
             \"allocator.example:4600\""
        ));
    };
    let all = lookup(name, port)?;
    all.first().copied().ok_or_else(|| no_address(name))
}

/// Asks the system for the addresses of a name, without repetitions.
fn lookup(name: &str, port: u16) -> Result<Vec<SocketAddr>, String> {
    if !is_name(name) {
        return Err(format!(
            "`{}` is neither an address nor the name of a host: write one such as \"10.0.0.1\", \"fd00::1\" or \"h1.example\"",
            crate::logging::harmless(name)
        ));
    }
    let found = (name, port).to_socket_addrs().map_err(|e| {
        format!("the name `{name}` cannot be resolved: {e}: mend it in the file or in DNS, or write the address")
    })?;
    let mut all: Vec<SocketAddr> = Vec::new();
    for address in found.map(|of| SocketAddr::new(of.ip().to_canonical(), port)) {
        if !all.contains(&address) {
            all.push(address);
        }
    }
    if all.is_empty() { Err(no_address(name)) } else { Ok(all) }
}

fn no_address(name: &str) -> String {
    format!("the name `{name}` has no address: mend it in DNS, or write the address")
}

/// Returns `true` if it may be the name of a host. The system would also take numbers such as `10.1` for addresses.
fn is_name(text: &str) -> bool {
    let is_label = |label: &str| {
        let is_of_name = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
        !label.is_empty() && label.len() <= 63 && label.chars().all(is_of_name)
    };
    let text = text.strip_suffix('.').unwrap_or(text);
    let last = text.rsplit('.').next().unwrap_or(text);
    text.len() <= MAX_NAME && text.split('.').all(is_label) && !last.starts_with(|c: char| c.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_itself_and_a_name_is_looked_up() {
        assert_eq!(addresses("10.0.0.1"), Ok(vec![[10, 0, 0, 1].into()]));
        assert_eq!(addresses("::ffff:10.0.0.1"), Ok(vec![[10, 0, 0, 1].into()]));
        assert_eq!(with_port("[fd00::9]:4600"), Ok("[fd00::9]:4600".parse().unwrap()));
        // Every Linux knows this name.
        assert!(addresses("localhost").unwrap().iter().all(IpAddr::is_loopback));
        assert_eq!(with_port("localhost:4600").unwrap().port(), 4600);
    }

    #[test]
    fn what_is_no_name_is_not_looked_up() {
        for wrong in
            ["", "a b", "10.1", "0x7f.1", "1.2.3.256", "a..b", "h1;rm", "\u{1b}[2J", &"a".repeat(64), &"a.".repeat(200)]
        {
            let error = addresses(wrong).unwrap_err();
            assert!(error.contains("neither an address nor the name") && !error.contains('\u{1b}'), "{error}");
        }
        assert!(with_port("10.0.0.9").unwrap_err().contains("has no port"));
        assert!(with_port("h1:99999").unwrap_err().contains("has no port"));
    }
}
