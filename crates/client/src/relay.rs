//! [`relay`]: joins this process's input and output to one's own engine, which is started when it does
//! not run. A client on another machine is at the other end: it starts us by ssh.

use crate::address::Address;
use crate::environment::ClientEnvironment;
use crate::route::{Route, socket};
use crate::{Error, start};
use tokio::io::{AsyncWriteExt, copy, stdin, stdout};

/// Passes bytes on until the engine closes the connection.
pub async fn relay(environment: &ClientEnvironment) -> Result<(), Error> {
    let stream = match start::address(environment)? {
        Address::Own(files) => {
            let attempt = || {
                let path = files.socket();
                async move { socket(&path).await }
            };
            start::attempt_or_start(environment, &files, attempt).await?
        }
        Address::Other(Route::Socket(path)) => socket(&path).await?,
        Address::Other(route) => return Err(route.unreachable("a relay ends on its own machine")),
    };
    let (mut from_engine, mut to_engine) = stream.into_split();
    let inward = async {
        // A client that says no more may still wait for an answer.
        let copied = copy(&mut stdin(), &mut to_engine).await;
        let _ = to_engine.shutdown().await;
        match copied {
            Ok(_) => std::future::pending().await,
            Err(error) => error,
        }
    };
    let outward = async {
        let mut output = stdout();
        copy(&mut from_engine, &mut output).await?;
        output.flush().await
    };
    let passed = tokio::select! {
        passed = outward => passed,
        error = inward => Err(error),
    };
    passed.map_err(|error| Error::Lost(error.to_string()))
}
