//! `fairrate-allocator check`: describes a configuration and warns of problems that an operator has to handle.

use std::os::unix::fs::MetadataExt;
use std::time::SystemTime;

use fairrate_daemon::{KeyError, KeyFiles};

use crate::run::Loaded;

/// Number of days before a certificate's end at which warnings begin.
const SOON_DAYS: f64 = 30.0;

/// The description of a valid configuration, with warnings.
pub struct Checked {
    pub text: String,
    pub warnings: Vec<String>,
}

/// Checks a configuration and its keys.
///
/// # Errors
/// If the keys cannot be used, or have expired.
pub fn check(loaded: &Loaded) -> Result<Checked, String> {
    let warnings = loaded.config.keys.as_ref().map_or(Ok(Vec::new()), |keys| check_keys(keys, loaded))?;
    Ok(Checked { text: describe(loaded), warnings })
}

fn check_keys(files: &KeyFiles, loaded: &Loaded) -> Result<Vec<String>, String> {
    let keys = files.certificates().map_err(|e| advise(&e))?;
    let (now, mut warnings) = (SystemTime::now(), Vec::new());
    let path = files.certificate.display();
    let of_authority = keys.authorities.iter().map(|authority| (files.ca.display(), authority));
    for (path, certificate) in std::iter::once((files.certificate.display(), &keys.own)).chain(of_authority) {
        let days = certificate.days_left(now);
        if days <= 0.0 {
            return Err(format!("{path}: the certificate of `{}` has expired: {RENEW}", certificate.name));
        }
        if days < SOON_DAYS {
            let (name, days) = (&certificate.name, days.floor());
            warnings.push(format!("{path}: the certificate of `{name}` expires in {days} days: {RENEW}"));
        }
    }
    let listen = loaded.config.listen.ip();
    if !listen.is_unspecified() && !keys.own.addresses.contains(&listen) {
        warnings.push(format!("{path} does not name {listen}: agents that connect to this address will refuse it"));
    }
    if let Some(why) = files.refusal().map_err(|e| advise(&e))? {
        warnings.push(format!("{path}: agents with the same authorities will refuse it: {why}"));
    }
    if let Ok(metadata) = std::fs::metadata(&files.key)
        && metadata.mode() & 0o007 != 0
    {
        warnings.push(format!("{}: all users can read or write this key: `chmod 600` it", files.key.display()));
    }
    Ok(warnings)
}

const RENEW: &str = "make new keys with `fairrate-allocator keys DIR ... --renew`, then send SIGHUP to the allocator; a new \
                     authority needs a new directory";

/// Returns the reason why keys cannot be used, and the remedy if this user may not read them.
pub fn advise(error: &KeyError) -> String {
    if !error.is_denied() {
        return error.to_string();
    }
    let user = nix::unistd::geteuid();
    format!(
        "{error}: let user {user} read it, by a group of its own and `fairrate-allocator keys DIR ... --group GROUP`, \
         or by `chgrp` and `chmod 640`"
    )
}

fn describe(Loaded { config, network, .. }: &Loaded) -> String {
    let security = if config.insecure { "plain TCP: whoever connects may speak for everybody" } else { "TLS" };
    format!(
        "{} hosts with addresses, {} links (both directions)\nlistens on {} ({security})\niterates every {:?}, lease {:?}\n",
        network.n_hosts(),
        network.n_links(),
        config.listen,
        config.engine.interval,
        config.lease,
    )
}
