//! Who is who: TLS with certificates on both sides.

use std::net::{IpAddr, Ipv4Addr};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::WebPkiClientVerifier;
use rustls::{ClientConfig, RootCertStore, ServerConfig};
use serde::Deserialize;
use x509_parser::prelude::{FromDer, GeneralName, X509Certificate};

use crate::desk::Identity;

/// How a connection is secured.
#[derive(Clone, Debug)]
pub enum Security {
    /// Plain TCP: whoever can connect may speak for everybody. For tests.
    Insecure,
    /// TLS, with certificates on both sides.
    Tls(KeyFiles),
}

/// PEM files of a side. They are read again for every connection of a client, and when the server is told to.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct KeyFiles {
    /// The certificate that signs those of the other side.
    pub ca: PathBuf,
    /// This side's own, which names its addresses.
    pub certificate: PathBuf,
    /// Its key.
    pub key: PathBuf,
}

/// Why keys cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum KeyError {
    /// A file has no such thing.
    #[error("{}: {cause}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// Why not.
        cause: rustls::pki_types::pem::Error,
    },
    /// They do not fit.
    #[error("the keys do not fit: {0}")]
    Tls(#[from] rustls::Error),
    /// The other side's certificates cannot be checked.
    #[error("the certificate authority cannot be used: {0}")]
    Verifier(#[from] rustls::server::VerifierBuilderError),
}

impl KeyFiles {
    fn roots(&self) -> Result<RootCertStore, KeyError> {
        let mut roots = RootCertStore::empty();
        for certificate in certificates(&self.ca)? {
            roots.add(certificate)?;
        }
        Ok(roots)
    }

    fn key(&self) -> Result<PrivateKeyDer<'static>, KeyError> {
        PrivateKeyDer::from_pem_file(&self.key).map_err(|cause| KeyError::File { path: self.key.clone(), cause })
    }

    /// For a client.
    pub(crate) fn client(&self) -> Result<Arc<ClientConfig>, KeyError> {
        let builder = ClientConfig::builder_with_provider(provider()).with_safe_default_protocol_versions()?;
        let builder = builder.with_root_certificates(self.roots()?);
        Ok(Arc::new(builder.with_client_auth_cert(certificates(&self.certificate)?, self.key()?)?))
    }

    /// For a server, which asks clients for their certificates.
    pub(crate) fn server(&self) -> Result<Arc<ServerConfig>, KeyError> {
        let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(self.roots()?), provider()).build()?;
        let builder = ServerConfig::builder_with_provider(provider()).with_safe_default_protocol_versions()?;
        let builder = builder.with_client_cert_verifier(verifier);
        Ok(Arc::new(builder.with_single_cert(certificates(&self.certificate)?, self.key()?)?))
    }
}

fn provider() -> Arc<rustls::crypto::CryptoProvider> {
    Arc::new(rustls::crypto::ring::default_provider())
}

fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, KeyError> {
    let wrong = |cause| KeyError::File { path: path.to_owned(), cause };
    let all: Vec<_> = CertificateDer::pem_file_iter(path).map_err(wrong)?.collect::<Result<_, _>>().map_err(wrong)?;
    if all.is_empty() { Err(wrong(rustls::pki_types::pem::Error::NoItemsFound)) } else { Ok(all) }
}

/// Whom a certificate names: its IPv4 addresses.
pub(crate) fn identity(certificate: &CertificateDer<'_>) -> Identity {
    let mut addresses: Vec<Ipv4Addr> = Vec::new();
    if let Ok((_, certificate)) = X509Certificate::from_der(certificate)
        && let Ok(Some(names)) = certificate.subject_alternative_name()
    {
        addresses.extend(names.value.general_names.iter().filter_map(|name| match name {
            GeneralName::IPAddress(bytes) => <[u8; 4]>::try_from(*bytes).ok().map(Ipv4Addr::from),
            _ => None,
        }));
    }
    addresses.sort_unstable();
    addresses.dedup();
    Identity::Addresses(addresses)
}

/// The name that a server's certificate has to have.
pub(crate) fn server_name(address: IpAddr) -> rustls::pki_types::ServerName<'static> {
    rustls::pki_types::ServerName::IpAddress(address.into())
}
