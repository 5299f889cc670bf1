//! [`Session`]: an open session with an engine, and all that can be asked on it.
//!
//! A session is two connections: on one the client asks, on the other it serves its files. To another
//! machine the second is a stream within the first. It ends with [`Session::close`], which waits until
//! everything it made is safe, or by being dropped, which makes the engine cancel what still runs for it.

mod events;
mod reply;
mod requests;

pub use events::Events;
use requests::lost;
pub(crate) use requests::{Body, Requests, empty, full};

use crate::connect::{Connection, dial};
use crate::files;
use crate::task::{Spawned, Task};
use crate::terminal::Terminals;
use crate::{Error, Notices};
use bytes::Bytes;
use http::{Method, Request, StatusCode};
use http_body_util::BodyExt;
use hyper_util::rt::TokioIo;
use link::Stream;
use protocol::schema::Schema;
use protocol::session::{
    ATTACH_AUTHORITY, CLOSE_PATH, ClientSettings, ERROR_KINDS_HEADER, EVENTS_PATH, EngineStatus,
    LockMode, Purpose, QUERY_PATH, SCHEMA_PATH, STATUS_PATH, Welcome,
};
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};

/// What a session is to be like.
#[derive(Clone, Debug, Default)]
pub struct SessionOptions {
    /// Labels, e.g. name and version of a client library.
    pub labels: Vec<(String, String)>,
    /// Version of the API whose behaviour is expected; empty means the newest.
    pub compat: String,
    /// Where words for the user go while the engine is reached.
    pub notices: Notices,
    /// What runs on the terminal in a container whose command failed; empty is nothing.
    pub interactive: Vec<String>,
    /// What becomes of look-ups.
    pub lock: LockMode,
    /// The way to the user's terminal, for who has one to lend.
    pub terminals: Terminals,
}

/// An open session.
#[derive(Debug)]
pub struct Session {
    requests: Requests,
    engine_version: String,
    /// Keeps the connection we ask on. None when the session was joined.
    connection: Option<Spawned>,
    /// Serves our files. None when the session was joined: whoever opened it does.
    _attachables: Option<Task>,
}

impl Session {
    /// Opens a session on a greeted connection and begins to serve files on a second one, which is
    /// opened while the first requests are already on their way.
    pub(crate) async fn open(
        connection: Connection,
        welcome: Welcome,
        settings: ClientSettings,
        engine: files::Engine,
    ) -> Result<Self, Error> {
        let (requests, connection) = Requests::over(connection).await?;
        let asking = requests.clone();
        let attachables = Task::spawn(async move {
            match attach(&asking, &engine).await {
                Ok(connection) => files::serve(connection, &settings, engine).await,
                Err(error) => tracing::warn!(%error, "cannot serve files to the engine"),
            }
        });
        let engine_version = welcome.version;
        Ok(Self {
            requests,
            engine_version,
            connection: Some(connection),
            _attachables: Some(attachables),
        })
    }

    /// Joins the session behind an endpoint. It can be queried and nothing else.
    pub fn join(port: &str, token: &str) -> Result<Self, Error> {
        let number = port.parse().ok().filter(|port: &u16| *port > 0);
        let port = number.ok_or_else(|| Error::Join(format!("`{port}` is no port")))?;
        if token.is_empty() {
            return Err(Error::Join("the port is set and the token is not".into()));
        }
        let requests = Requests::joined(port, token);
        Ok(Self { requests, engine_version: String::new(), connection: None, _attachables: None })
    }

    /// Version of the engine; empty when the session was joined.
    pub fn engine_version(&self) -> &str {
        &self.engine_version
    }

    /// Whether this session belongs to somebody else, who shows its progress and ends it.
    pub fn is_joined(&self) -> bool {
        self.connection.is_none()
    }

    /// Runs a GraphQL document and gives its `data`.
    pub async fn query(
        &self,
        document: &str,
        variables: Option<Map<String, Value>>,
        operation: Option<&str>,
    ) -> Result<Value, protocol::Error> {
        let request =
            json!({ "query": document, "variables": variables, "operationName": operation });
        let (status, body) = self.query_raw(request.to_string().into(), true).await?;
        reply::data(status, &body)
    }

    /// Sends the body of a GraphQL request as it is and gives the answer as it is. With `kinds` every
    /// error carries whose it is, which published clients do not expect.
    pub async fn query_raw(&self, body: Bytes, kinds: bool) -> Result<(StatusCode, Bytes), Error> {
        let mut request = Request::post(QUERY_PATH).header("content-type", "application/json");
        if kinds {
            request = request.header(ERROR_KINDS_HEADER, "1");
        }
        let request = request.body(full(body)).expect("a fixed head is valid");
        let response = self.requests.send(request).await?;
        let status = response.status();
        Ok((status, collect(response.into_body()).await?))
    }

    /// The API as our command line sees it.
    pub async fn schema(&self) -> Result<Schema, Error> {
        self.get(SCHEMA_PATH).await
    }

    /// What the engine says about itself.
    pub async fn status(&self) -> Result<EngineStatus, Error> {
        self.get(STATUS_PATH).await
    }

    /// What happens in the session from now on. The stream ends with the session; a joined session
    /// has none, because who opened it shows them.
    pub fn events(&self) -> Events {
        if self.is_joined() {
            Events::none()
        } else {
            Events::read(self.requests.clone(), EVENTS_PATH)
        }
    }

    /// Ends the session when everything it made is safe. Its events are complete once their stream
    /// has ended.
    pub async fn close(mut self) -> Result<(), Error> {
        let Some(connection) = self.connection.take() else { return Ok(()) };
        let request = Request::post(CLOSE_PATH).body(empty()).expect("a fixed head is valid");
        let response = self.requests.send(request).await?;
        let status = response.status();
        let body = collect(response.into_body()).await?;
        // The engine closes the connection once the events are read.
        connection.detach();
        if status.is_success() {
            return Ok(());
        }
        Err(Error::BadAnswer(format!("{status}: {}", String::from_utf8_lossy(&body))))
    }

    pub(crate) fn requests(&self) -> Requests {
        self.requests.clone()
    }

    async fn get<T: DeserializeOwned>(&self, path: &str) -> Result<T, Error> {
        let request =
            Request::builder().method(Method::GET).uri(path).body(empty()).expect("a fixed head");
        let response = self.requests.send(request).await?;
        let status = response.status();
        let body = collect(response.into_body()).await?;
        if !status.is_success() {
            return Err(Error::BadAnswer(format!("{path}: {status}")));
        }
        serde_json::from_slice(&body).map_err(|error| Error::BadAnswer(format!("{path}: {error}")))
    }
}

/// Opens the connection on which the engine asks.
async fn attach(requests: &Requests, engine: &files::Engine) -> Result<Connection, Error> {
    if engine.route.is_local() {
        let purpose = Purpose::Attach { session: engine.session.clone() };
        let (connection, _) = dial(&engine.route, purpose).await?;
        return Ok(connection);
    }
    let request = Request::connect(ATTACH_AUTHORITY).body(empty()).expect("a fixed head is valid");
    let response = requests.send(request).await?;
    if !response.status().is_success() {
        return Err(Error::BadAnswer(format!("{ATTACH_AUTHORITY}: {}", response.status())));
    }
    let stream = hyper::upgrade::on(response).await.map_err(|error| lost(&error))?;
    Ok(Connection::new(Stream::Within(Box::new(TokioIo::new(stream)))))
}

async fn collect(body: hyper::body::Incoming) -> Result<Bytes, Error> {
    let whole = body.collect().await.map_err(|error| lost(&error))?;
    Ok(whole.to_bytes())
}
