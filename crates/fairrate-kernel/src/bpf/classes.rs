//! Classes at ports: `tc` lays them out and removes them.

use std::io::Write as _;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use super::netns::Namespace;
use super::pins;
use super::ports::{device, json_of};
use crate::classes::{Classes, Dscp, Port, Root};
use crate::error::Error;

/// Lays classes out at ports. Classes of this program that are there are replaced. If one port is refused, those before
/// it lose the classes again.
///
/// # Errors
/// If there is no such device, a device has a root of somebody else's, or `tc` refuses; or another process has the lock
/// for longer than `wait`.
pub fn set_classes(classes: &Classes, ports: &[Port], wait: Duration) -> Result<(), Error> {
    let texts = ports.iter().map(|port| classes.tc(port)).collect::<Result<Vec<_>, _>>()?;
    let _alone = pins::one_at_a_time(Instant::now() + wait)?;
    let places = ports.iter().map(open).collect::<Result<Vec<_>, _>>()?;
    for (done, (place, text)) in places.iter().zip(&texts).enumerate() {
        let laid_out = remove(place).and_then(|()| place.run(text));
        if let Err(error) = laid_out {
            for place in &places[..=done] {
                // The first error is returned.
                let _ = remove(place);
            }
            return Err(error);
        }
    }
    Ok(())
}

/// Removes the classes of ports; the kernel's default comes back.
///
/// # Errors
/// If there is no such device, it has no classes of this program, or `tc` refuses; or another process has the lock for
/// longer than `wait`.
pub fn clear_classes(ports: &[Port], wait: Duration) -> Result<(), Error> {
    let _alone = pins::one_at_a_time(Instant::now() + wait)?;
    let places = ports.iter().map(open).collect::<Result<Vec<_>, _>>()?;
    if let Some(place) = places.iter().find(|place| place.root == Root::Default) {
        let message = format!("`{}` has no classes", place.port);
        return Err(Error::refused(message, "`tc qdisc show` lists the queues of a network namespace"));
    }
    places.iter().try_for_each(remove)
}

/// Checks that a port has a class of `dscp`.
///
/// # Errors
/// If it has none.
pub(super) fn has_class(namespace: &Namespace, device: &str, dscp: Dscp) -> Result<(), Error> {
    let handle = format!("{:x}:", dscp.queue() >> 16);
    let qdiscs = namespace.inside(|| json_of("tc", &["-j", "qdisc", "show", "dev", device]))?;
    if qdiscs.as_array().into_iter().flatten().any(|qdisc| qdisc["handle"] == handle.as_str()) {
        return Ok(());
    }
    let message = format!("`{device}` has no class of DSCP {dscp}");
    Err(Error::refused(message, "`fairrate-kernel classes set` lays classes out"))
}

/// A port that exists, and the root of its queues.
struct Place<'a> {
    port: &'a Port,
    namespace: Namespace,
    root: Root,
}

impl Place<'_> {
    /// Runs `tc -batch` with this input in the port's namespace.
    fn run(&self, text: &str) -> Result<(), Error> {
        let said = self.namespace.inside(|| batch(text))?;
        let help = "its queues are as the kernel makes them: mend the cause and try again";
        said.map_or(Ok(()), |said| {
            Err(Error::refused(format!("`tc` refuses the classes of `{}`: {said}", self.port), help))
        })
    }
}

/// Opens a port whose root is the kernel's default or this program's.
fn open(port: &Port) -> Result<Place<'_>, Error> {
    let namespace = port.namespace.as_deref().map_or_else(Namespace::here, Namespace::named)?;
    let name = &port.device;
    namespace.inside(|| device(name)).map_err(|_| {
        let message = format!("there is no device `{port}`");
        Error::refused(message, "`ip link` lists the devices of a network namespace")
    })?;
    let qdiscs = namespace.inside(|| json_of("tc", &["-j", "qdisc", "show", "dev", name]))?;
    let root = qdiscs.as_array().into_iter().flatten().find(|qdisc| qdisc["root"] == true);
    let root = root.map_or(Root::Default, |root| {
        Root::of(root["kind"].as_str().unwrap_or_default(), root["handle"].as_str().unwrap_or_default())
    });
    if let Root::Foreign(queue) = &root {
        let message = format!("`{port}` has a queue that somebody else has made, `{queue}`");
        return Err(Error::refused(message, format!("`tc qdisc del dev {name} root` removes it, if it is not needed")));
    }
    Ok(Place { port, namespace, root })
}

/// Removes the classes of a port, if it has any.
fn remove(place: &Place<'_>) -> Result<(), Error> {
    let port = place.port;
    let now = Place { root: open(port)?.root, namespace: place.namespace.clone(), port };
    if now.root == Root::Default { Ok(()) } else { now.run(&format!("qdisc del dev {} root\n", port.device)) }
}

/// Runs `tc -batch` in the present namespace; returns its words if it refuses a line.
fn batch(text: &str) -> std::io::Result<Option<String>> {
    let mut command = Command::new("tc");
    command.args(["-batch", "-"]).stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::piped());
    let mut child = command.spawn()?;
    if let Some(mut input) = child.stdin.take() {
        // A `tc` that stops reading prints the reason.
        let _ = input.write_all(text.as_bytes());
    }
    let output = child.wait_with_output()?;
    let said = String::from_utf8_lossy(&output.stderr);
    Ok((!output.status.success()).then(|| said.trim().to_owned()))
}
