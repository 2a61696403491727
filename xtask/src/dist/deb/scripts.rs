//! The scripts that dpkg runs when a package with a unit of systemd is installed and removed.
//!
//! They never fail because of the service: dpkg would leave the package half-configured, and could not remove it.
//! Instead they say on stderr what was not done and what to do about it, as the snippets of Debian's debhelper do.
//! `DPKG_ROOT`, which dpkg sets, is the root of the installation if that is not `/`.

/// Function `say`: prints a line to stderr.
const SAY: &str = "say() { echo \"PACKAGE: $1\" >&2; }\n";

/// Makes the package's group.
const USERS: &str = r#"
systemd-sysusers ${DPKG_ROOT:+--root="$DPKG_ROOT"} UNIT.conf >/dev/null 2>&1 ||
    say "no group was made: do as /usr/lib/sysusers.d/UNIT.conf says"
"#;

/// Starts a running service anew, now that a new version is there. One that does not run is not started: it may have no
/// configuration.
const AFTER_INSTALL: &str = r#"
if [ -d "$DPKG_ROOT/run/systemd/system" ]; then
    systemctl daemon-reload || say "systemd has not read the new unit: call \`systemctl daemon-reload\`"
    systemctl try-restart UNIT.service ||
        say "the service could not be restarted, and the package is installed all the same: see \`systemctl status UNIT\`"
fi
"#;

/// Stops and disables the service, unless a new version comes.
const BEFORE_REMOVAL: &str = r#"
if [ "$1" = remove ] && [ -d "$DPKG_ROOT/run/systemd/system" ]; then
    systemctl stop UNIT.service || say "the service could not be stopped: it may still run"
    systemctl disable UNIT.service || say "systemd could not disable the service"
fi
"#;

/// Removes the link by which the service was enabled, if `systemctl disable` could not. A link to an administrator's
/// own unit is kept.
const AFTER_REMOVAL: &str = r#"
if [ "$1" = remove ] || [ "$1" = purge ]; then
    link="$DPKG_ROOT/etc/systemd/system/multi-user.target.wants/UNIT.service"
    if [ -L "$link" ] && [ ! -e "$link" ]; then
        rm -f "$link"
    fi
    if [ -d "$DPKG_ROOT/run/systemd/system" ]; then
        systemctl daemon-reload || say "systemd still knows the removed unit: call \`systemctl daemon-reload\`"
    fi
fi
"#;

/// Returns the scripts of the package that brings `unit`, each with its name. With `has_users` it brings a group too.
pub fn of(unit: &str, has_users: bool) -> [(&'static str, String); 3] {
    let users = if has_users { USERS } else { "" };
    let script = |parts: &[&str]| {
        let text = format!("#!/bin/sh\nset -e\n{SAY}{}exit 0\n", parts.concat());
        text.replace("PACKAGE", unit).replace("UNIT", unit)
    };
    [
        ("postinst", script(&[users, AFTER_INSTALL])),
        ("prerm", script(&[BEFORE_REMOVAL])),
        ("postrm", script(&[AFTER_REMOVAL])),
    ]
}

#[cfg(test)]
mod tests {
    use std::path::{Path, PathBuf};
    use std::process::Command;

    use super::*;
    use crate::dist::files;

    /// A root directory in which scripts run with a `systemctl` and a `systemd-sysusers` of the test.
    struct Root(PathBuf);

    impl Root {
        fn new(name: &str) -> Self {
            let root = Self(std::env::temp_dir().join(format!("fairrate-scripts-{}-{name}", std::process::id())));
            files::empty(&root.0.join("run/systemd/system")).expect("it can be made");
            root
        }

        fn link(&self) -> PathBuf {
            self.0.join("etc/systemd/system/multi-user.target.wants/x.service")
        }

        /// Runs a script with programs that note how they were called and end with `status`. Returns the calls and
        /// stderr.
        fn run(&self, script: &str, args: &[&str], status: u8) -> (String, String) {
            let [bin, calls] = ["bin", "calls"].map(|name| self.0.join(name));
            for name in ["systemctl", "systemd-sysusers"] {
                let stub = format!("#!/bin/sh\necho {name} \"$@\" >> {}\nexit {status}\n", calls.display());
                files::write(&bin.join(name), stub.as_bytes()).expect("it can be written");
                assert!(Command::new("chmod").arg("755").arg(bin.join(name)).status().expect("it runs").success());
            }
            files::write(&calls, b"").expect("it can be written");
            let (_, text) = of("x", true).into_iter().find(|(name, _)| *name == script).expect("it is one of them");
            let mut sh = Command::new("sh");
            sh.args(["-c", &text, script]).args(args).env("DPKG_ROOT", &self.0);
            let done = sh.env("PATH", format!("{}:/usr/bin:/bin", bin.display())).output().expect("sh runs");
            let said = String::from_utf8_lossy(&done.stderr).into_owned();
            assert!(done.status.success(), "{script} {args:?}: {said}");
            (files::read(&calls).expect("it is there"), said)
        }
    }

    impl Drop for Root {
        fn drop(&mut self) {
            let _ = std::fs::remove_dir_all(&self.0);
        }
    }

    fn enable(link: &Path, unit: &str) {
        std::fs::create_dir_all(link.parent().expect("it has one")).expect("it can be made");
        std::os::unix::fs::symlink(unit, link).expect("it can be made");
    }

    #[test]
    fn an_update_restarts_a_running_service_and_a_removal_stops_it() {
        let root = Root::new("works");
        let (calls, said) = root.run("postinst", &["configure", "0.1.0"], 0);
        assert!(calls.ends_with("systemctl daemon-reload\nsystemctl try-restart x.service\n"), "{calls}");
        assert!(calls.starts_with("systemd-sysusers --root="), "{calls}");
        assert_eq!(said, "");
        assert_eq!(root.run("prerm", &["upgrade", "0.3.0"], 0), (String::new(), String::new()));
        let (calls, said) = root.run("prerm", &["remove"], 0);
        assert_eq!((calls.as_str(), said.as_str()), ("systemctl stop x.service\nsystemctl disable x.service\n", ""));
        for step in ["remove", "purge"] {
            assert_eq!(root.run("postrm", &[step], 0), ("systemctl daemon-reload\n".to_owned(), String::new()));
        }
    }

    /// A script that fails would leave the package half-configured, and its removal stuck.
    #[test]
    fn scripts_succeed_where_systemctl_fails_and_say_so() {
        let root = Root::new("fails");
        let (_, said) = root.run("postinst", &["configure", ""], 1);
        assert!(
            said.contains("x: no group was made") && said.contains("x: the service could not be restarted"),
            "{said}"
        );
        let (calls, said) = root.run("prerm", &["remove"], 1);
        assert!(calls.contains("stop") && calls.contains("disable"), "{calls}");
        assert!(said.contains("it may still run"), "{said}");
        enable(&root.link(), "/nowhere/x.service");
        for step in ["remove", "purge", "purge"] {
            let (_, said) = root.run("postrm", &[step], 1);
            assert!(said.contains("systemd still knows the removed unit"), "{said}");
            assert!(!root.link().is_symlink(), "{step}");
        }
    }

    #[test]
    fn without_systemd_no_service_is_called() {
        let root = Root::new("none");
        std::fs::remove_dir_all(root.0.join("run")).expect("it can be removed");
        for (script, step) in [("postinst", "configure"), ("prerm", "remove"), ("postrm", "purge")] {
            let (calls, _) = root.run(script, &[step], 1);
            assert!(!calls.contains("systemctl"), "{script}: {calls}");
        }
    }

    #[test]
    fn a_link_to_another_unit_is_kept() {
        let root = Root::new("own");
        let own = root.0.join("own.service");
        files::write(&own, b"[Service]\n").expect("it can be written");
        enable(&root.link(), &own.display().to_string());
        root.run("postrm", &["purge"], 0);
        assert!(root.link().is_symlink());
        let (name, text) = &of("x", false)[0];
        assert!(*name == "postinst" && !text.contains("sysusers"), "{text}");
    }
}
