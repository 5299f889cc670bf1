//! An upload that goes on where it stopped. Debian's registry has no such thing: it drops an upload
//! that was cut. So this one is by hand, and does what the protocol says.

use crate::world::{client, content, push, reference};
use std::sync::{Arc, Mutex};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

/// What the registry got.
#[derive(Default)]
struct Kept {
    bytes: Vec<u8>,
    ranges: Vec<String>,
    whole: bool,
}

async fn serve(mut stream: TcpStream, kept: &Mutex<Kept>) -> std::io::Result<()> {
    let head = read_head(&mut stream).await?;
    let length = kept.lock().unwrap().bytes.len();
    let range = format!("location: /upload\r\nrange: 0-{}\r\n", length.saturating_sub(1));
    let answer = match head.split(' ').next().unwrap() {
        "head" => "404 Not Found\r\n".to_owned(),
        "post" => format!("202 Accepted\r\n{range}"),
        "get" if head.starts_with("get /v2/ ") => "200 OK\r\n".to_owned(),
        "get" => format!("204 No Content\r\n{range}"),
        "patch" => {
            let range = header(&head, "content-range").unwrap_or("none").to_owned();
            kept.lock().unwrap().ranges.push(range);
            let promised: usize = header(&head, "content-length").unwrap().parse().unwrap();
            // The first time only a part is taken, and the connection is cut.
            let taken = if length == 0 { promised / 3 } else { promised };
            let mut bytes = vec![0; taken];
            stream.read_exact(&mut bytes).await?;
            kept.lock().unwrap().bytes.extend(bytes);
            if taken < promised {
                return Ok(());
            }
            "202 Accepted\r\nlocation: /upload\r\n".to_owned()
        }
        _ => {
            kept.lock().unwrap().whole = true;
            "201 Created\r\n".to_owned()
        }
    };
    let text = format!("HTTP/1.1 {answer}content-length: 0\r\nconnection: close\r\n\r\n");
    stream.write_all(text.as_bytes()).await
}

async fn read_head(stream: &mut TcpStream) -> std::io::Result<String> {
    let mut head = vec![];
    while !head.ends_with(b"\r\n\r\n") {
        head.push(stream.read_u8().await?);
    }
    Ok(String::from_utf8(head).unwrap().to_lowercase())
}

fn header<'a>(head: &'a str, name: &str) -> Option<&'a str> {
    head.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(": "))
}

#[tokio::test]
async fn an_upload_goes_on_where_it_was_cut() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let name = reference(&listener.local_addr().unwrap().to_string(), "app:1");
    let kept = Arc::new(Mutex::new(Kept::default()));
    let seen = kept.clone();
    tokio::spawn(async move {
        loop {
            let (stream, _) = listener.accept().await.unwrap();
            // The client may hang up first when it is cut.
            let _ = serve(stream, &seen).await;
        }
    });
    let layer = content(9_000_000);
    assert!(push(&client(), &name, &layer).await.unwrap());
    let kept = kept.lock().unwrap();
    assert!(kept.whole && kept.bytes == layer);
    assert_eq!(kept.ranges, ["none", "3000000-8999999"]);
}
