//! Identification of peers: TLS with certificates on both sides.

use std::cell::RefCell;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerifier};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, UnixTime};
use rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use rustls::server::{NoServerSessionStorage, WebPkiClientVerifier};
use rustls::{
    CertificateError, ClientConfig, DigitallySignedStruct, DistinguishedName, RootCertStore, ServerConfig,
    SignatureScheme,
};
use serde::Deserialize;

use crate::certificate::Certificate;

/// The security of a connection.
#[derive(Clone, Debug)]
pub enum Security {
    /// Plain TCP: any peer that can connect may report the flows of all hosts. For tests.
    Insecure,
    /// TLS, with certificates on both sides.
    Tls(KeyFiles),
}

/// The PEM files of a side. A client reads them again for every connection, and the server on request.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct KeyFiles {
    /// The certificate that signs those of the other side.
    pub ca: PathBuf,
    /// This side's certificate, which names its addresses.
    pub certificate: PathBuf,
    /// The certificate's key.
    pub key: PathBuf,
}

/// The reason why keys cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum KeyError {
    /// A file does not contain the key or certificate.
    #[error("{}: {cause}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// The reason.
        cause: rustls::pki_types::pem::Error,
    },
    /// The keys do not match.
    #[error("the keys do not fit: {0}")]
    Tls(#[from] rustls::Error),
    /// The other side's certificates cannot be checked.
    #[error("the certificate authority cannot be used: {0}")]
    Verifier(#[from] rustls::server::VerifierBuilderError),
}

impl KeyError {
    /// Returns `true` if this user has no permission to read a file.
    pub fn is_denied(&self) -> bool {
        use rustls::pki_types::pem::Error;
        matches!(self, Self::File { cause: Error::Io(e), .. } if e.kind() == std::io::ErrorKind::PermissionDenied)
    }
}

/// The contents of a side's certificates.
#[derive(Clone, Debug)]
pub struct Certificates {
    /// This side's certificate.
    pub own: Certificate,
    /// Certificates that sign the other side's.
    pub authorities: Vec<Certificate>,
}

impl KeyFiles {
    /// Resolves relative paths against `dir`.
    pub fn resolve(&mut self, dir: &Path) {
        for file in [&mut self.ca, &mut self.certificate, &mut self.key] {
            *file = dir.join(&*file);
        }
    }

    /// Reads the contents of a server's certificates, after a check that all files match.
    ///
    /// # Errors
    /// If a server cannot use them.
    pub fn certificates(&self) -> Result<Certificates, KeyError> {
        self.server()?;
        let read = |path: &Path| {
            let read = |der: CertificateDer<'_>| Certificate::read(&der).ok_or(rustls::CertificateError::BadEncoding);
            let all: Result<Vec<_>, _> = certificates(path)?.into_iter().map(read).collect();
            all.map_err(|e| KeyError::Tls(e.into()))
        };
        let own = read(&self.certificate)?.into_iter().next();
        let own = own.ok_or(KeyError::Tls(rustls::CertificateError::BadEncoding.into()))?;
        Ok(Certificates { own, authorities: read(&self.ca)? })
    }

    /// Returns the reason for which agents that trust this file's authorities will refuse the certificate, whatever
    /// address they connect to; `None` if they will not, or the certificate names no address.
    ///
    /// # Errors
    /// If a file cannot be read.
    pub fn refusal(&self) -> Result<Option<String>, KeyError> {
        let (chain, own) = (certificates(&self.certificate)?, self.certificates()?.own);
        let (Some(&address), [end, more @ ..]) = (own.addresses.first(), chain.as_slice()) else { return Ok(None) };
        let verifier = WebPkiServerVerifier::builder_with_provider(self.roots()?.into(), provider()).build()?;
        let verified = verifier.verify_server_cert(end, more, &server_name(address), &[], UnixTime::now());
        Ok(verified.err().map(|error| match error {
            rustls::Error::InvalidCertificate(CertificateError::UnknownIssuer | CertificateError::BadSignature) => {
                format!("it is not signed by an authority of {}", self.ca.display())
            }
            rustls::Error::InvalidCertificate(
                CertificateError::InvalidPurpose | CertificateError::InvalidPurposeContext { .. },
            ) => "it is not for servers".to_owned(),
            other => other.to_string(),
        }))
    }

    /// Returns the bytes of the three files, to find out if they have changed; `None` if one cannot be read.
    pub fn contents(&self) -> Option<[Vec<u8>; 3]> {
        let read = |path: &Path| std::fs::read(path).ok();
        Some([read(&self.ca)?, read(&self.certificate)?, read(&self.key)?])
    }

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

    /// Builds the TLS configuration of a client.
    pub(crate) fn client(&self) -> Result<Arc<ClientConfig>, KeyError> {
        let builder = ClientConfig::builder_with_provider(provider()).with_safe_default_protocol_versions()?;
        let builder = builder.with_root_certificates(self.roots()?);
        Ok(Arc::new(builder.with_client_auth_cert(certificates(&self.certificate)?, self.key()?)?))
    }

    /// Builds the TLS configuration of a server, which requests clients' certificates.
    pub(crate) fn server(&self) -> Result<Arc<ServerConfig>, KeyError> {
        let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(self.roots()?), provider()).build()?;
        let builder = ServerConfig::builder_with_provider(provider()).with_safe_default_protocol_versions()?;
        let builder = builder.with_client_cert_verifier(Arc::new(Named(verifier)));
        let mut config = builder.with_single_cert(certificates(&self.certificate)?, self.key()?)?;
        // A resumed session would rely on a certificate that was checked when the session began.
        config.session_storage = Arc::new(NoServerSessionStorage {});
        config.send_tls13_tickets = 0;
        Ok(Arc::new(config))
    }
}

tokio::task_local! {
    /// The label of the certificate that the other side of this task's connection has shown.
    static SHOWN: RefCell<Option<String>>;
}

/// Runs a handshake, and returns with its result the label of the certificate that the client has shown, valid or not.
pub(crate) async fn with_name<T>(handshake: impl Future<Output = T>) -> (T, Option<String>) {
    let both = async { (handshake.await, SHOWN.with(RefCell::take)) };
    SHOWN.scope(RefCell::default(), both).await
}

/// A verifier that records the label of each certificate it is shown, so that an invalid one can be logged by name.
#[derive(Debug)]
struct Named(Arc<dyn ClientCertVerifier>);

impl ClientCertVerifier for Named {
    fn offer_client_auth(&self) -> bool {
        self.0.offer_client_auth()
    }

    fn client_auth_mandatory(&self) -> bool {
        self.0.client_auth_mandatory()
    }

    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        self.0.root_hint_subjects()
    }

    fn verify_client_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        now: UnixTime,
    ) -> Result<ClientCertVerified, rustls::Error> {
        // Outside of `with_name` the label is not needed.
        let _ = SHOWN.try_with(|shown| *shown.borrow_mut() = Certificate::read(end_entity).map(|of| of.label()));
        self.0.verify_client_cert(end_entity, intermediates, now)
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        self.0.verify_tls12_signature(message, cert, dss)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        self.0.verify_tls13_signature(message, cert, dss)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.supported_verify_schemes()
    }

    fn requires_raw_public_keys(&self) -> bool {
        self.0.requires_raw_public_keys()
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

/// Returns the name that a server's certificate must have.
pub(crate) fn server_name(address: IpAddr) -> rustls::pki_types::ServerName<'static> {
    rustls::pki_types::ServerName::IpAddress(address.into())
}
