//! Who is let in, and what files are refused.

use super::*;
use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
use std::fs;
use tempfile::TempDir;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

/// An authority, and certificates that it signs.
struct Authority {
    folder: TempDir,
    issuer: Issuer<'static, KeyPair>,
}

impl Authority {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let key = KeyPair::generate().unwrap();
        let mut params = CertificateParams::new(vec![]).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let certificate = params.self_signed(&key).unwrap();
        fs::write(folder.path().join("ca.pem"), certificate.pem()).unwrap();
        Self { folder, issuer: Issuer::new(params, key) }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Files of a side that shows a certificate of ours and trusts another authority.
    fn side(&self, name: &str, trusts: &Authority) -> Files {
        let key = KeyPair::generate().unwrap();
        let params = CertificateParams::new(vec![name.to_owned()]).unwrap();
        let signed = params.signed_by(&key, &self.issuer).unwrap();
        let files = Files {
            authorities: trusts.path("ca.pem"),
            certificate: self.path(&format!("{name}.pem")),
            key: self.path(&format!("{name}.key")),
        };
        fs::write(&files.certificate, signed.pem()).unwrap();
        fs::write(&files.key, key.serialize_pem()).unwrap();
        files
    }
}

/// Sends a word to and fro; the errors of both sides when that fails.
async fn talk(engine: &Files, client: &Files, host: &str) -> Result<(), (String, String)> {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let (acceptor, connector) = (Acceptor::new(engine).unwrap(), Connector::new(client).unwrap());
    let serving = async {
        let (stream, _) = listener.accept().await?;
        let mut stream = acceptor.accept(stream).await?;
        let mut word = [0; 4];
        stream.read_exact(&mut word).await?;
        stream.write_all(&word).await
    };
    let asking = async {
        let stream = TcpStream::connect(address).await?;
        let mut stream = connector.connect(host, stream).await?;
        stream.write_all(b"word").await?;
        let mut word = [0; 4];
        stream.read_exact(&mut word).await.map(|_| ())
    };
    let (served, asked) = tokio::join!(serving, asking);
    let text = |outcome: io::Result<()>| outcome.err().map_or(String::new(), |e| e.to_string());
    match (text(served), text(asked)) {
        (served, asked) if served.is_empty() && asked.is_empty() => Ok(()),
        errors => Err(errors),
    }
}

#[tokio::test]
async fn both_sides_must_know_each_other() {
    let (ours, theirs) = (Authority::new(), Authority::new());
    let engine = ours.side("engine.example", &ours);
    let client = ours.side("client", &ours);
    talk(&engine, &client, "engine.example").await.unwrap();
    let stranger = theirs.side("client", &ours);
    assert!(talk(&engine, &stranger, "engine.example").await.is_err(), "a stranger's certificate");
    let distrustful = ours.side("other", &theirs);
    assert!(talk(&engine, &distrustful, "engine.example").await.is_err(), "an engine of strangers");
    let (_, reason) = talk(&engine, &client, "other.example").await.unwrap_err();
    assert!(reason.contains("other.example"), "another name: {reason}");
}

#[test]
fn files_that_cannot_be_used_are_named() {
    let ours = Authority::new();
    let good = ours.side("engine", &ours);
    let nowhere = Files { key: ours.path("nothing.key"), ..good.clone() };
    let error = Acceptor::new(&nowhere).err().unwrap().to_string();
    assert!(error.contains("a key") && error.contains("nothing.key"), "{error}");
    fs::write(ours.path("empty.pem"), "no certificate").unwrap();
    let empty = Files { certificate: ours.path("empty.pem"), ..good.clone() };
    let error = Connector::new(&empty).err().unwrap().to_string();
    assert!(error.contains("a certificate") && error.contains("empty.pem"), "{error}");
    let other = ours.side("other", &ours);
    let mixed = Files { key: other.key, ..good };
    assert!(Acceptor::new(&mixed).is_err(), "a key of another certificate");
}
