//! [`TokenServer`]: gives tokens for a registry that asks for them, and remembers who asked.

use super::authority::Authority;
use super::proxy::read_head;
use super::{PASSWORD, USER};
use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use serde_json::{Value, json};
use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::time::{SystemTime, UNIX_EPOCH};

pub(super) const SERVICE: &str = "test-registry";
pub(super) const ISSUER: &str = "test-issuer";

/// The token that stands for the user's password.
pub const REFRESH_TOKEN: &str = "long-lived";

/// Seconds that a token lives.
const LIFE: u64 = 300;

/// A running server for tokens.
pub struct TokenServer {
    port: u16,
    asked: Arc<Mutex<Vec<String>>>,
}

impl TokenServer {
    pub(super) fn start(authority: Authority) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("there is a free port");
        let port = listener.local_addr().expect("a listener has an address").port();
        let asked = Arc::new(Mutex::new(vec![]));
        let seen = asked.clone();
        // It ends with the test program: it holds nothing but a port.
        std::thread::spawn(move || {
            for connection in listener.incoming().flatten() {
                // Who hangs up in the middle gets no token.
                let _ = serve(connection, &authority, &seen);
            }
        });
        Self { port, asked }
    }

    /// The address that registries name.
    pub fn realm(&self) -> String {
        format!("http://127.0.0.1:{}/token", self.port)
    }

    /// Who asked and for what: `<user or -> <scopes>`.
    pub fn asked(&self) -> Vec<String> {
        self.asked.lock().expect("no request panics").clone()
    }
}

fn serve(
    mut connection: TcpStream,
    authority: &Authority,
    asked: &Mutex<Vec<String>>,
) -> std::io::Result<()> {
    let head = read_head(&mut connection)?;
    let query = match head.method() {
        "POST" => {
            let mut body = vec![0; head.length().unwrap_or(0) as usize];
            connection.read_exact(&mut body)?;
            String::from_utf8_lossy(&body).into_owned()
        }
        _ => head.path().split_once('?').map_or("", |(_, query)| query).to_owned(),
    };
    let pairs = pairs(&query);
    let scopes: Vec<&str> = values(&pairs, "scope").flat_map(|scope| scope.split(' ')).collect();
    let asker = asker(head.header("authorization"), &pairs);
    let name = match asker {
        Asker::User => USER,
        Asker::Nobody => "-",
        Asker::Impostor => "!",
    };
    asked.lock().expect("no request panics").push(format!("{name} {}", scopes.join(" ")));
    let (status, body) = match asker {
        Asker::Impostor => ("401 Unauthorized", json!({ "errors": [{ "code": "UNAUTHORIZED" }] })),
        _ => {
            let token = token(authority, asker == Asker::User, &scopes);
            ("200 OK", json!({ "token": token, "expires_in": LIFE }))
        }
    };
    let body = body.to_string();
    let length = body.len();
    let head =
        format!("HTTP/1.1 {status}\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n");
    connection.write_all(head.as_bytes())?;
    connection.write_all(body.as_bytes())
}

#[derive(Clone, Copy, PartialEq)]
enum Asker {
    User,
    Nobody,
    Impostor,
}

fn asker(authorization: Option<&str>, pairs: &[(String, String)]) -> Asker {
    let right = format!("Basic {}", STANDARD.encode(format!("{USER}:{PASSWORD}")));
    let refresh = values(pairs, "refresh_token").next();
    match (authorization, refresh) {
        (None, None) => Asker::Nobody,
        (Some(shown), None) if shown == right => Asker::User,
        (None, Some(REFRESH_TOKEN)) => Asker::User,
        _ => Asker::Impostor,
    }
}

/// A signed token with those of the scopes that the asker may have.
fn token(authority: &Authority, is_user: bool, scopes: &[&str]) -> String {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_secs());
    let access: Vec<Value> = scopes.iter().filter_map(|scope| granted(scope, is_user)).collect();
    let header = json!({ "typ": "JWT", "alg": "ES256", "x5c": [authority.encoded_certificate()] });
    let claims = json!({
        "iss": ISSUER, "aud": SERVICE, "sub": if is_user { USER } else { "" }, "jti": "1",
        "iat": now, "nbf": now - 60, "exp": now + LIFE, "access": access,
    });
    let part = |value: Value| URL_SAFE_NO_PAD.encode(value.to_string());
    let signed = format!("{}.{}", part(header), part(claims));
    let signature = URL_SAFE_NO_PAD.encode(authority.sign(signed.as_bytes()));
    format!("{signed}.{signature}")
}

fn granted(scope: &str, is_user: bool) -> Option<Value> {
    let mut parts = scope.splitn(3, ':');
    let (kind, name, actions) = (parts.next()?, parts.next()?, parts.next()?);
    let may = |action: &&str| is_user || (name.starts_with("public/") && *action == "pull");
    let actions: Vec<&str> = actions.split(',').filter(may).collect();
    Some(json!({ "type": kind, "name": name, "actions": actions }))
}

fn values<'a>(pairs: &'a [(String, String)], name: &'a str) -> impl Iterator<Item = &'a str> {
    pairs.iter().filter(move |(key, _)| key == name).map(|(_, value)| value.as_str())
}

fn pairs(query: &str) -> Vec<(String, String)> {
    let pairs = query.split('&').filter_map(|pair| pair.split_once('='));
    pairs.map(|(key, value)| (decode(key), decode(value))).collect()
}

fn decode(text: &str) -> String {
    let mut bytes = vec![];
    let mut rest = text.as_bytes();
    while let Some((&first, tail)) = rest.split_first() {
        let code = tail.get(..2).and_then(|code| std::str::from_utf8(code).ok());
        let code = code.and_then(|code| u8::from_str_radix(code, 16).ok());
        let (byte, after) = match (first, code) {
            (b'%', Some(byte)) => (byte, &tail[2..]),
            (b'+', _) => (b' ', tail),
            _ => (first, tail),
        };
        bytes.push(byte);
        rest = after;
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn forms_are_read() {
        let expect = [("a".to_owned(), "b c:d".to_owned()), ("e".to_owned(), "%".to_owned())];
        assert_eq!(pairs("a=b+c%3Ad&e=%&f"), expect);
    }

    #[test]
    fn who_is_not_logged_in_may_only_read_what_is_public() {
        let actions = |scope, is_user| granted(scope, is_user).unwrap()["actions"].to_string();
        assert_eq!(actions("repository:public/a:pull,push", false), "[\"pull\"]");
        assert_eq!(actions("repository:a:pull,push", false), "[]");
        assert_eq!(actions("repository:a:pull,push", true), "[\"pull\",\"push\"]");
    }
}
