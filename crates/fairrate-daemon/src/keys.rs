//! `fairrate-allocator keys`: makes an authority and certificates for a test, or for a rack that has none.
//!
//! An authority is never overwritten, and keys of hosts are overwritten only on request: all agents depend on them.

mod dir;

use std::fmt;
use std::io;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use nix::unistd::Gid;
use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair, KeyUsagePurpose,
    PublicKeyData, SanType,
};
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use x509_parser::prelude::{FromDer, X509Certificate};

use self::dir::{KeyDir, Readers};
use crate::certificate::Certificate;

/// Largest expected difference of clocks: certificates begin that much earlier.
const SKEW: Duration = Duration::from_hours(1);

/// The request for a set of keys.
#[derive(Clone, Debug)]
pub struct Request {
    /// Addresses of the allocators, which have one certificate.
    pub allocators: Vec<IpAddr>,
    /// Addresses of agents, each of which has a certificate.
    pub agents: Vec<IpAddr>,
    /// Validity of hosts' certificates.
    pub lifetime: Duration,
    /// Validity of a new authority's certificate.
    pub authority_lifetime: Duration,
    /// `true` if existing keys of hosts are replaced. An authority is never replaced.
    pub renew: bool,
    /// A group that may read the allocator's key.
    pub group: Option<u32>,
}

impl Request {
    /// Creates a request for keys that last a year, and an authority that lasts ten.
    pub fn new(allocators: &[IpAddr], agents: &[IpAddr]) -> Self {
        let day = Duration::from_hours(24);
        Self {
            allocators: allocators.to_owned(),
            agents: agents.to_owned(),
            lifetime: 365 * day,
            authority_lifetime: 3650 * day,
            renew: false,
            group: None,
        }
    }
}

/// The outcome for a file.
#[derive(Clone, Debug)]
pub struct Done {
    /// The file.
    pub path: PathBuf,
    /// Further action besides writing the file.
    pub note: Option<String>,
}

impl fmt::Display for Done {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.note {
            None => write!(f, "{}", self.path.display()),
            Some(note) => write!(f, "{} ({note})", self.path.display()),
        }
    }
}

/// The reason why there are no keys.
#[derive(Debug, thiserror::Error)]
pub enum KeysError {
    /// A file cannot be read or written.
    #[error("{}: {cause}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// The reason.
        cause: io::Error,
    },
    /// A file or directory is not suitable for keys.
    #[error("{}: {why}", path.display())]
    Place {
        /// The file or directory.
        path: PathBuf,
        /// The reason, and the remedy.
        why: String,
    },
    /// A certificate cannot be made.
    #[error("cannot make a certificate: {0}")]
    Certificate(#[from] rcgen::Error),
}

/// Makes `ca.pem`, `allocator.pem` and a certificate named by its address for each agent, each with its `.key`, unless
/// they exist. An authority that is in `dir` already signs. Keys that others could read become readable by their owner
/// only.
///
/// # Errors
/// If a file cannot be read or written, half an authority exists, or `dir` belongs to another user.
pub fn make(dir: &Path, request: &Request) -> Result<Vec<Done>, KeysError> {
    let mut maker = Maker { dir: KeyDir::open(dir)?, done: Vec::new() };
    for name in maker.dir.names()?.iter().filter(|name| has_extension(name, "key")) {
        if let Some(mode) = maker.dir.close_to_others(name)? {
            maker.note(name, Some(format!("others could read or write it: mode {mode:o} is now 600")));
        }
    }
    let group = request.group.map(Gid::from_raw);
    if let Some(group) = group {
        maker.dir.open_to(group)?;
    }
    let authority = maker.authority(request)?;
    let server = ExtendedKeyUsagePurpose::ServerAuth;
    maker.pair("allocator", &request.allocators, server, group, &authority, request)?;
    for agent in &request.agents {
        let client = ExtendedKeyUsagePurpose::ClientAuth;
        maker.pair(&agent.to_string(), &[*agent], client, None, &authority, request)?;
    }
    Ok(maker.done)
}

fn has_extension(name: &str, extension: &str) -> bool {
    Path::new(name).extension().is_some_and(|of| of == extension)
}

/// The authority that signs certificates.
struct Authority {
    issuer: Issuer<'static, KeyPair>,
    der: CertificateDer<'static>,
    not_after: SystemTime,
}

struct Maker {
    dir: KeyDir,
    done: Vec<Done>,
}

impl Maker {
    fn note(&mut self, name: &str, note: Option<String>) {
        self.done.push(Done { path: self.dir.path_of(name), note });
    }

    fn refuse<T>(&self, name: &str, why: impl Into<String>) -> Result<T, KeysError> {
        Err(KeysError::Place { path: self.dir.path_of(name), why: why.into() })
    }

    /// Returns the existing authority, or makes one if there is no part of one.
    fn authority(&mut self, request: &Request) -> Result<Authority, KeysError> {
        let (certificate, key) = (self.dir.read("ca.pem")?, self.dir.read("ca.key")?);
        match (certificate, key) {
            (Some(certificate), Some(key)) => self.old_authority(&certificate.text, &key.text),
            (None, None) => self.new_authority(request),
            (Some(_), None) => self.refuse(
                "ca.pem",
                "there is no `ca.key` beside it, and another authority would void all certificates: bring `ca.key` back to \
                 sign with it, or name another directory for a new authority",
            ),
            (None, Some(_)) => self.refuse(
                "ca.key",
                "there is no `ca.pem` beside it: bring `ca.pem` back, or name another directory for a new authority",
            ),
        }
    }

    fn old_authority(&self, certificates: &str, key: &str) -> Result<Authority, KeysError> {
        let Ok(pair) = KeyPair::from_pem(key) else { return self.refuse("ca.key", "this is no key") };
        // While authorities are changed there are two certificates in the file.
        let all = CertificateDer::pem_slice_iter(certificates.as_bytes()).filter_map(Result::ok);
        let Some(der) = all.into_iter().find(|der| has_key(der, &pair)) else {
            return self
                .refuse("ca.key", "`ca.key` is not the key of a certificate in `ca.pem`: bring back the one that is");
        };
        let Some(read) = Certificate::read(&der) else { return self.refuse("ca.pem", "this is no certificate") };
        if read.days_left(SystemTime::now()) <= 0.0 {
            return self.refuse("ca.pem", "the authority has expired: name another directory for a new one");
        }
        Ok(Authority { issuer: Issuer::from_ca_cert_der(&der, pair)?, der, not_after: read.not_after })
    }

    fn new_authority(&mut self, request: &Request) -> Result<Authority, KeysError> {
        let now = SystemTime::now();
        let mut params = CertificateParams::default();
        params.distinguished_name.push(DnType::CommonName, "fairrate authority");
        params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
        let not_after = now + request.authority_lifetime;
        (params.not_before, params.not_after) = ((now - SKEW).into(), not_after.into());
        let pair = KeyPair::generate()?;
        let certificate = params.self_signed(&pair)?;
        self.dir.create("ca.key", &pair.serialize_pem(), Readers::Owner)?;
        self.note("ca.key", None);
        if let Err(error) = self.dir.create("ca.pem", &certificate.pem(), Readers::All) {
            self.dir.remove("ca.key");
            return Err(error);
        }
        self.note("ca.pem", None);
        let der = certificate.der().clone();
        Ok(Authority { issuer: Issuer::new(params, pair), der, not_after })
    }

    /// Ensures that a host has a certificate and a key.
    fn pair(
        &mut self,
        name: &str,
        addresses: &[IpAddr],
        purpose: ExtendedKeyUsagePurpose,
        group: Option<Gid>,
        authority: &Authority,
        request: &Request,
    ) -> Result<(), KeysError> {
        let (certificate, key) = (format!("{name}.pem"), format!("{name}.key"));
        let there = (self.dir.read(&certificate)?, self.dir.read(&key)?);
        let readers = match (&there, group) {
            (_, Some(group)) => Readers::Group(group),
            ((_, Some(key)), None) => key.readers(),
            _ => Readers::Owner,
        };
        if !request.renew {
            match &there {
                (Some(of), Some(with)) => {
                    self.keep([&certificate, &key], [&of.text, &with.text], authority)?;
                    return self.let_read(&key, with.readers(), group);
                }
                (Some(_), None) => return self.refuse(&certificate, format!("it is there without `{key}`: {RENEW}")),
                (None, Some(_)) => return self.refuse(&key, format!("it is there without `{certificate}`: {RENEW}")),
                (None, None) => {}
            }
        }
        let (pair, signed, is_shortened) = sign(name, addresses, purpose, authority, request)?;
        if request.renew {
            self.dir.replace(&key, &pair.serialize_pem(), readers)?;
            self.dir.replace(&certificate, &signed.pem(), Readers::All)?;
        } else {
            self.dir.create(&key, &pair.serialize_pem(), readers)?;
            if let Err(error) = self.dir.create(&certificate, &signed.pem(), Readers::All) {
                self.dir.remove(&key);
                return Err(error);
            }
        }
        self.note(&certificate, is_shortened.then(|| "ends with the authority".to_owned()));
        self.note(&key, None);
        Ok(())
    }

    /// Lets a group read the key `name`, which is kept and has had these readers.
    fn let_read(&mut self, name: &str, had: Readers, group: Option<Gid>) -> Result<(), KeysError> {
        let Some(group) = group.filter(|&group| had != Readers::Group(group)) else { return Ok(()) };
        self.dir.open_key_to(name, group)?;
        self.note(name, Some(format!("the group {group} may read it now")));
        Ok(())
    }

    /// Keeps a certificate and its key, if they match and are signed by this authority.
    fn keep(&mut self, names: [&str; 2], texts: [&str; 2], authority: &Authority) -> Result<(), KeysError> {
        let ([certificate, key], [certificate_text, key_text]) = (names, texts);
        let der = CertificateDer::from_pem_slice(certificate_text.as_bytes()).ok();
        let Some((der, read)) = der.and_then(|der| Certificate::read(&der).map(|read| (der, read))) else {
            return self.refuse(certificate, format!("this is no certificate: {RENEW}"));
        };
        if !is_signed_by(&der, &authority.der) {
            return self.refuse(certificate, format!("it is of another authority: {RENEW}"));
        }
        if !KeyPair::from_pem(key_text).is_ok_and(|pair| has_key(&der, &pair)) {
            return self.refuse(key, format!("it is not the key of `{certificate}`: {RENEW}"));
        }
        let days = read.days_left(SystemTime::now());
        let time = if days < 0.0 { "expired".to_owned() } else { format!("{} days left", days.floor()) };
        self.note(certificate, Some(format!("kept, {time}; `--renew` replaces it")));
        self.note(key, Some("kept".to_owned()));
        Ok(())
    }
}

const RENEW: &str = "move it away, or replace both with `--renew`";

/// Makes a key and a certificate for it; the flag is `true` if the certificate ends earlier than requested.
fn sign(
    name: &str,
    addresses: &[IpAddr],
    purpose: ExtendedKeyUsagePurpose,
    authority: &Authority,
    request: &Request,
) -> Result<(KeyPair, rcgen::Certificate, bool), KeysError> {
    let now = SystemTime::now();
    let asked_for = now + request.lifetime;
    let mut params = CertificateParams::default();
    params.distinguished_name.push(DnType::CommonName, name);
    params.subject_alt_names = addresses.iter().map(|address| SanType::IpAddress(*address)).collect();
    params.extended_key_usages = vec![purpose];
    params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
    params.use_authority_key_identifier_extension = true;
    (params.not_before, params.not_after) = ((now - SKEW).into(), asked_for.min(authority.not_after).into());
    let pair = KeyPair::generate()?;
    let certificate = params.signed_by(&pair, &authority.issuer)?;
    Ok((pair, certificate, authority.not_after < asked_for))
}

fn has_key(certificate: &CertificateDer<'_>, pair: &KeyPair) -> bool {
    let own = pair.subject_public_key_info();
    X509Certificate::from_der(certificate).is_ok_and(|(_, certificate)| certificate.public_key().raw == own)
}

fn is_signed_by(certificate: &CertificateDer<'_>, authority: &CertificateDer<'_>) -> bool {
    let read = (X509Certificate::from_der(certificate), X509Certificate::from_der(authority));
    let (Ok((_, certificate)), Ok((_, authority))) = read else { return false };
    certificate.verify_signature(Some(authority.public_key())).is_ok()
}
