//! `fairrate-allocator keys`: an authority and certificates for a test, or for a rack that has none.

use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::net::{IpAddr, Ipv4Addr};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair, KeyUsagePurpose,
    SanType,
};

/// Why there are no keys.
#[derive(Debug, thiserror::Error)]
pub enum KeysError {
    /// A file cannot be read or written.
    #[error("{}: {cause}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// Why not.
        cause: io::Error,
    },
    /// A certificate cannot be made.
    #[error("cannot make a certificate: {0}")]
    Certificate(#[from] rcgen::Error),
}

/// Makes `ca.pem`, `allocator.pem` and a certificate called by its address for each agent, each with its `.key`, and says what
/// was written. An authority that is in the directory already signs again.
///
/// # Errors
/// If a file cannot be read or written, or the authority there is none.
pub fn make(dir: &Path, allocators: &[Ipv4Addr], agents: &[Ipv4Addr]) -> Result<Vec<PathBuf>, KeysError> {
    fs::create_dir_all(dir).map_err(|cause| KeysError::File { path: dir.to_owned(), cause })?;
    let mut written = Vec::new();
    let authority = authority(dir, &mut written)?;
    let server = [ExtendedKeyUsagePurpose::ServerAuth];
    certificate(dir, "allocator", allocators, &server, &authority, &mut written)?;
    for agent in agents {
        let client = [ExtendedKeyUsagePurpose::ClientAuth];
        certificate(dir, &agent.to_string(), &[*agent], &client, &authority, &mut written)?;
    }
    Ok(written)
}

fn authority(dir: &Path, written: &mut Vec<PathBuf>) -> Result<Issuer<'static, KeyPair>, KeysError> {
    let (certificate, key) = (dir.join("ca.pem"), dir.join("ca.key"));
    if certificate.exists() && key.exists() {
        let key = KeyPair::from_pem(&read(&key)?)?;
        return Ok(Issuer::from_ca_cert_pem(&read(&certificate)?, key)?);
    }
    let mut params = CertificateParams::default();
    params.distinguished_name.push(DnType::CommonName, "fairrate authority");
    params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
    let pair = KeyPair::generate()?;
    write(&certificate, &params.self_signed(&pair)?.pem(), written)?;
    write(&key, &pair.serialize_pem(), written)?;
    Ok(Issuer::new(params, pair))
}

fn certificate(
    dir: &Path,
    name: &str,
    addresses: &[Ipv4Addr],
    purposes: &[ExtendedKeyUsagePurpose],
    authority: &Issuer<'_, KeyPair>,
    written: &mut Vec<PathBuf>,
) -> Result<(), KeysError> {
    let mut params = CertificateParams::default();
    params.distinguished_name.push(DnType::CommonName, name);
    params.subject_alt_names = addresses.iter().map(|address| SanType::IpAddress(IpAddr::V4(*address))).collect();
    params.extended_key_usages = purposes.to_vec();
    params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
    params.use_authority_key_identifier_extension = true;
    let pair = KeyPair::generate()?;
    let certificate = params.signed_by(&pair, authority)?;
    write(&dir.join(format!("{name}.pem")), &certificate.pem(), written)?;
    write(&dir.join(format!("{name}.key")), &pair.serialize_pem(), written)
}

fn read(path: &Path) -> Result<String, KeysError> {
    fs::read_to_string(path).map_err(|cause| KeysError::File { path: path.to_owned(), cause })
}

/// Writes a file that only its owner can read.
fn write(path: &Path, text: &str, written: &mut Vec<PathBuf>) -> Result<(), KeysError> {
    let open = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(path);
    let result = open.and_then(|mut file| file.write_all(text.as_bytes()));
    result.map_err(|cause| KeysError::File { path: path.to_owned(), cause })?;
    written.push(path.to_owned());
    Ok(())
}
