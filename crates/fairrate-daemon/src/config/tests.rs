use super::*;

const LEAST: &str =
    "listen = \"127.0.0.1:0\"\ninsecure = true\nhosts = \"10.0.0.1+\"\n[topology]\nkind = \"star\"\nhosts = 4\n";

fn read(text: &str) -> Result<(Config, Network), String> {
    Config::from_toml(text, Path::new("allocator.toml")).map_err(|error| match &error {
        ConfigError::Topology(scenario) => {
            format!("{error}, line {:?}: {}", scenario.first_line(), scenario.first_help())
        }
        _ => error.to_string(),
    })
}

#[test]
fn little_is_needed_and_the_rest_has_defaults() {
    let (config, network) = read(LEAST).unwrap();
    assert_eq!((config.lease, config.engine.interval), (Duration::from_millis(500), Duration::from_micros(10)));
    assert_eq!((network.n_hosts(), network.n_links()), (4, 8));
    let (paths, mut path) = (network.into_paths(), Vec::new());
    paths("10.0.0.1".parse().unwrap(), "10.0.0.4".parse().unwrap(), &mut path);
    assert_eq!(path.len(), 2);
    path.clear();
    paths("10.0.0.1".parse().unwrap(), "10.0.0.5".parse().unwrap(), &mut path);
    assert_eq!(path, [], "there is no such host");
}

#[test]
fn a_port_alone_is_of_this_machine() {
    let metrics = |value: &str| read(&format!("metrics = {value}\n{LEAST}")).map(|(config, _)| config.metrics.unwrap());
    assert_eq!(metrics("9460").unwrap(), "127.0.0.1:9460".parse().unwrap());
    assert_eq!(metrics("\"10.0.0.9:9460\"").unwrap(), "10.0.0.9:9460".parse().unwrap());
    for wrong in ["\"9460\"", "\"localhost:9460\"", "94600", "true"] {
        let error = metrics(wrong).unwrap_err();
        assert!(error.contains("line 1") && error.contains("write a port such as 9460"), "{error}");
    }
}

#[test]
fn hosts_have_addresses_of_both_kinds() {
    let (_, network) = read(&LEAST.replace("\"10.0.0.1+\"", "[\"10.0.0.1+\", \"fd00::1+\"]")).unwrap();
    assert_eq!(network.n_hosts(), 4, "each with two addresses");
    let path = |src: &str, dst: &str| {
        let mut path = Vec::new();
        network.clone().into_paths()(src.parse().unwrap(), dst.parse().unwrap(), &mut path);
        path
    };
    assert!(!path("10.0.0.1", "10.0.0.4").is_empty());
    assert_eq!(path("10.0.0.1", "10.0.0.4"), path("fd00::1", "fd00::4"));
    let twice = LEAST.replace("\"10.0.0.1+\"", "[\"10.0.0.1+\", \"10.0.0.3+\"]");
    assert!(read(&twice).unwrap_err().contains("4 hosts and 2 addresses from 10.0.0.3 on that no other has"));
}

#[test]
fn names_are_resolved_when_the_file_is_read() {
    let by_name = LEAST.replace("hosts = \"10.0.0.1+\"\n", "") + "[[host]]\nname = \"h1\"\naddress = \"localhost\"\n";
    let (config, network) = read(&by_name).unwrap();
    assert!(config.host[0].addresses.iter().all(IpAddr::is_loopback) && 0 < network.n_hosts());
    let error = read(&by_name.replace("localhost", "10.1")).unwrap_err();
    assert!(
        error.contains("line 8") && error.contains("`10.1` is neither an address nor the name of a host"),
        "{error}"
    );
    assert_eq!(read(&LEAST.replace("127.0.0.1:0", "localhost:0")).unwrap().0.listen.port(), 0);
    let error = read(&LEAST.replace("127.0.0.1:0", "localhost")).unwrap_err();
    assert!(error.contains("line 1") && error.contains("has no port"), "{error}");
}

#[test]
fn hosts_have_addresses_by_name() {
    let by_name = LEAST.replace("hosts = \"10.0.0.1+\"\n", "") + "[[host]]\nname = \"h1\"\naddress = \"10.9.0.1\"\n";
    assert_eq!(read(&by_name).unwrap().1.n_hosts(), 1);
    assert!(read(&by_name.replace("h1", "h11")).unwrap_err().contains("no host `h11`: did you mean `h1`?"));
}

#[test]
fn a_value_that_cannot_be_is_shown_with_its_line_and_a_caret() {
    let with = |from: &str, to: &str| read(&LEAST.replacen(from, to, 1)).map(|_| ()).unwrap_err();
    let engine = "hosts = 4\n[engine]\ngamma = 3.0\n";
    assert_eq!(
        with("hosts = 4\n", engine),
        "allocator.toml: error at line 8, column 9\n  |\n8 | gamma = 3.0\n  |         ^^^\n\
         NED does not converge with `engine.gamma = 3`: write 0.2 to 1.5"
    );
    for (from, to, place, shown) in [
        ("insecure = true", "insecure = true\nlease = \"1ms\"", "line 3, column 9", "lease = \"1ms\""),
        ("10.0.0.1+", "10.0.0.1", "line 3, column 9", "hosts = \"10.0.0.1\""),
        ("10.0.0.1+", "255.255.255.254+", "line 3, column 9", "there are 4 hosts and 2 addresses"),
        ("hosts = 4\n", "hosts = 4\n[engine]\ninterval = \"0s\"\n", "line 8, column 12", "`engine.interval` is 0"),
        ("hosts = 4\n", "hosts = 4\n[engine]\nalpha = 0.1\n", "line 8, column 9", "0.25 to 8"),
        ("hosts = 4\n", "hosts = 4\n[engine]\nthreshold = 0.6\n", "line 8, column 13", "0 to 0.5"),
        ("hosts = 4\n", "hosts = 4\n[engine]\nbatch = \"1s\"\n", "line 8, column 9", "an eighth of `lease`"),
        ("hosts = 4\n", "hosts = 4\n[engine]\ninterval = \"1h\"\n", "line 8, column 12", "an eighth of `lease`"),
        ("hosts = 4\n", "hosts = 4\n[engine]\nrest_after = 0\n", "line 8, column 14", "nothing is ever computed"),
        ("insecure = true", "insecure = true\nlease = \"2h\"", "line 3, column 9", "above an hour"),
        ("insecure = true", "insecure = true\nlease = \"500000000000years\"", "line 3, column 9", "above an hour"),
        ("hosts = 4\n", "hosts = 4\n[limits]\nagents = 0\n", "line 8, column 10", "a limit of 0"),
        ("hosts = 4\n", "hosts = 4\n[limits]\nupdates_per_second = 63\n", "line 8, column 22", "write at least 64"),
        ("hosts = 4\n", "hosts = 4\n[limits]\nsessions_per_agent = 0\n", "line 8, column 22", "a limit of 0"),
        ("insecure = true", "insecure = true\nscenario = \"a.toml\"", "line 3, column 12", "name the network once"),
    ] {
        let error = with(from, to);
        assert!(error.contains(place) && error.contains(shown) && error.contains('^'), "{place}, {shown}: {error}");
    }
    let twice =
        "hosts = 4\n[[link]]\nname = \"h0->sw0\"\nrate = \"1Gbps\"\n[[link]]\nname = \"h0 -> sw0\"\nrate = \"2Gbps\"\n";
    let error = with("hosts = 4\n", twice);
    assert!(error.contains("line 11, column 8") && error.contains("`h0->sw0` is there twice"), "{error}");
    let by_name = LEAST.replace("hosts = \"10.0.0.1+\"\n", "");
    let host = |name: &str, address: &str| format!("[[host]]\nname = \"{name}\"\naddress = \"{address}\"\n");
    let error = read(&(by_name.clone() + &host("h1", "10.0.0.1") + &host("h12", "10.0.0.2"))).map(|_| ()).unwrap_err();
    assert!(error.contains("line 10, column 8") && error.contains("no host `h12`: did you mean"), "{error}");
    let error = read(&(by_name + &host("h1", "10.0.0.1") + &host("h2", "10.0.0.1"))).map(|_| ()).unwrap_err();
    assert!(error.contains("line 11, column 11") && error.contains("is of two hosts"), "{error}");
}

#[test]
fn a_topology_that_is_no_section_is_named() {
    let inline =
        LEAST.replace("[topology]\nkind = \"star\"\nhosts = 4\n", "topology = { kind = \"star\", hosts = 4 }\n");
    let error = read(&inline).map(|_| ()).unwrap_err();
    assert!(error.contains("line 4, column 12") && error.contains("write it as a section: `[topology]`"), "{error}");
}

#[test]
fn plain_tcp_stays_on_this_machine_unless_two_keys_say_otherwise() {
    for listen in ["0.0.0.0:4600", "10.0.0.9:4600", "[::]:4600"] {
        let open = LEAST.replace("127.0.0.1:0", listen);
        let error = read(&open).map(|_| ()).unwrap_err();
        assert!(error.contains("line 1, column 10") && error.contains("insecure_beyond_loopback = true"), "{error}");
        read(&("insecure_beyond_loopback = true\n".to_owned() + &open)).unwrap();
    }
    read(&LEAST.replace("127.0.0.1:0", "[::1]:0")).unwrap();
    let alone = LEAST.replace(
        "insecure = true",
        "insecure_beyond_loopback = true\nkeys = { ca = \"a\", certificate = \"b\", key = \"c\" }",
    );
    assert!(read(&alone).map(|_| ()).unwrap_err().contains("without `insecure = true`"));
}

#[test]
fn what_is_wrong_is_said_with_its_line() {
    for (from, to, expected) in [
        ("insecure = true", "insecure = false", "there is no `[keys]`"),
        ("hosts = \"10.0.0.1+\"", "hosts = \"10.0.0.1\"", "write \"10.0.0.1+\""),
        ("hosts = \"10.0.0.1+\"", "", "name the hosts' addresses once"),
        ("hosts = 4", "hosts = 4\nrat = \"10Gbps\"", "line Some((\"allocator.toml\", 7)): did you mean `rate`"),
        ("kind = \"star\"", "kind = \"stair\"", "line Some((\"allocator.toml\", 5))"),
        ("hosts = 4\n", "hosts = 4\n[engine]\ngamma = 3.0\n", "write 0.2 to 1.5"),
        ("hosts = 4\n", "hosts = 4\n[engine]\ninterval = \"10 parsecs\"\n", "line 8"),
        ("hosts = 4\n", "hosts = 4\n[limits]\nflow = 3\n", "expected one of `agents`"),
        ("hosts = 4\n", "hosts = 4\n[limits]\nagents = 0\n", "a limit of 0"),
        ("insecure = true", "insecure = true\nlease = \"1ms\"", "`lease` is below 10 ms"),
    ] {
        let error = read(&LEAST.replacen(from, to, 1)).map(|_| ()).unwrap_err();
        assert!(error.contains(expected), "{expected}: {error}");
    }
}
