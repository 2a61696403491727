//! The life of a Debian package on a machine whose systemd fails: dpkg installs, updates, removes and purges it all the
//! same.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::dist::{files, output};

/// Programs that dpkg wants in `PATH`.
const PATH: &str = "/usr/sbin:/usr/bin:/sbin:/bin";
/// A `systemctl` of a machine with `/run/systemd/system`, and without systemd.
const SYSTEMCTL: &str = "#!/bin/sh\necho 'Failed to connect to bus' >&2\nexit 1\n";

/// Installs, updates, removes and purges the package `name` in the file `package`, in a root directory below `home`.
/// Returns `false` if this user may not: dpkg gives files to root.
///
/// # Errors
/// If a step fails, or something is left.
pub fn live(package: &Path, name: &str, home: &Path) -> Result<bool, String> {
    let user = output(Command::new("id").arg("--user"))?;
    if user != b"0\n" {
        return Ok(false);
    }
    let root = Root::new(home.join(format!("root-of-{name}")))?;
    let file = package.to_string_lossy();
    for step in [&["--install", &file][..], &["--install", &file], &["--remove", name], &["--purge", name]] {
        let said = root.dpkg(step)?;
        let failed = [("--install", "could not be restarted"), ("--remove", "could not be stopped")];
        if let Some((_, words)) = failed.iter().find(|(of, words)| *of == step[0] && !said.contains(words)) {
            return Err(format!("dpkg {} {name} does not say that the service {words}: {said}", step[0]));
        }
    }
    let left = root.left()?;
    if left.is_empty() { Ok(true) } else { Err(format!("{name} leaves after purge: {left:?}")) }
}

/// A root directory with a database of dpkg, and a `systemctl` that fails.
struct Root {
    dir: PathBuf,
    bin: PathBuf,
}

impl Root {
    fn new(dir: PathBuf) -> Result<Self, String> {
        for part in ["info", "updates", "triggers"] {
            files::empty(&dir.join("var/lib/dpkg").join(part))?;
        }
        for file in ["status", "available"] {
            files::write(&dir.join("var/lib/dpkg").join(file), b"")?;
        }
        files::empty(&dir.join("run/systemd/system"))?;
        let root = Self { bin: dir.with_extension("bin"), dir };
        let stub = root.bin.join("systemctl");
        files::write(&stub, SYSTEMCTL.as_bytes())?;
        output(Command::new("chmod").arg("755").arg(stub))?;
        Ok(root)
    }

    /// Runs dpkg in the root, without a change of root for its scripts. Returns all that it prints.
    fn dpkg(&self, args: &[&str]) -> Result<String, String> {
        let mut dpkg = Command::new("dpkg");
        dpkg.arg("--root").arg(&self.dir).args(["--force-script-chrootless", "--force-depends"]).args(args);
        dpkg.env_clear().env("PATH", format!("{}:{PATH}", self.bin.display()));
        let done = dpkg.output().map_err(|e| format!("cannot run dpkg: {e}"))?;
        let said = [done.stdout, done.stderr].map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).concat();
        if done.status.success() { Ok(said) } else { Err(format!("dpkg {} failed: {said}", args.join(" "))) }
    }

    /// Returns what dpkg still knows, and the files in `/usr` and `/etc/systemd`.
    fn left(&self) -> Result<Vec<String>, String> {
        let mut query = Command::new("dpkg-query");
        query.arg("--admindir").arg(self.dir.join("var/lib/dpkg")).args(["--show", "--showformat", "${Package} "]);
        let known = query.output().map_err(|e| format!("cannot run dpkg-query: {e}"))?;
        let mut left: Vec<String> =
            String::from_utf8_lossy(&known.stdout).split_whitespace().map(str::to_owned).collect();
        for dir in ["usr", "etc/systemd"].map(|dir| self.dir.join(dir)).iter().filter(|dir| dir.is_dir()) {
            left.extend(files::all_below(dir)?.iter().map(|path| path.display().to_string()));
        }
        Ok(left)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dist::deb;

    #[test]
    fn a_package_comes_and_goes_where_systemd_fails() {
        let home = std::env::temp_dir().join(format!("fairrate-life-{}", std::process::id()));
        files::empty(&home).expect("it can be made");
        let lived = deb::small(&home).and_then(|package| live(&package, "fairrate-test", &home));
        std::fs::remove_dir_all(&home).expect("it can be removed");
        match lived {
            Ok(true) => {}
            Ok(false) => println!("not run: dpkg needs root"),
            Err(why) if why.contains("cannot run") => println!("not run: {why}"),
            Err(why) => panic!("{why}"),
        }
    }
}
