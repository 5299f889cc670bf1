//! Names over real sockets on the loopback, with a resolver made for the test.

use super::*;
use std::net::Ipv4Addr;
use std::time::Instant;
use tokio::io::AsyncReadExt;

const HERE: (Ipv4Addr, u16) = (Ipv4Addr::LOCALHOST, 0);

fn asked(name: &str, kind: u16) -> Vec<u8> {
    let mut packet = vec![1, 2, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0];
    for label in name.split('.') {
        packet.push(label.len() as u8);
        packet.extend_from_slice(label.as_bytes());
    }
    packet.push(0);
    packet.extend_from_slice(&kind.to_be_bytes());
    packet.extend_from_slice(&[0, 1]);
    packet
}

/// A port for packets and connections, which both are free.
fn both() -> (std::net::UdpSocket, std::net::TcpListener) {
    let bind = || {
        let short = std::net::UdpSocket::bind(HERE).unwrap();
        let long = std::net::TcpListener::bind(short.local_addr().unwrap()).ok()?;
        Some((short, long))
    };
    let (short, long) = std::iter::repeat_with(bind).take(100).flatten().next().unwrap();
    short.set_nonblocking(true).unwrap();
    long.set_nonblocking(true).unwrap();
    (short, long)
}

/// A responder on the loopback, whose resolvers are at these addresses.
async fn responder(servers: &[SocketAddr]) -> (Responder, SocketAddr, Names) {
    let (short, long) = both();
    let address = short.local_addr().unwrap();
    let names = Names::default();
    let resolvers = Resolvers::fixed(servers.to_vec());
    let responder = Responder::start(short, long, names.clone(), resolvers).unwrap();
    (responder, address, names)
}

async fn ask(address: SocketAddr, packet: &[u8]) -> Vec<u8> {
    let socket = UdpSocket::bind(HERE).await.unwrap();
    socket.send_to(packet, address).await.unwrap();
    let mut buffer = vec![0; 65_535];
    let length = tokio::time::timeout(Duration::from_secs(20), socket.recv(&mut buffer));
    let length = length.await.expect("an answer comes").unwrap();
    buffer.truncate(length);
    buffer
}

async fn ask_long(address: SocketAddr, packet: &[u8]) -> Vec<u8> {
    let mut stream = TcpStream::connect(address).await.unwrap();
    write_packet(&mut stream, packet).await.unwrap();
    tokio::time::timeout(Duration::from_secs(20), read_packet(&mut stream)).await.unwrap().unwrap()
}

/// A resolver that says the same to everybody: in a packet that it is too long, over a connection all of it.
async fn resolver(address: Ipv4Addr, long: bool) -> SocketAddr {
    let (short, listener) = both();
    let (short, listener) =
        (UdpSocket::from_std(short).unwrap(), TcpListener::from_std(listener).unwrap());
    let at = short.local_addr().unwrap();
    let answer = move |packet: &[u8]| {
        let question = question::parse(packet).unwrap();
        question.answer(packet, &Outcome::Addresses(vec![address; if long { 200 } else { 1 }]))
    };
    tokio::spawn(async move {
        let mut buffer = [0; 4096];
        while let Ok((length, asker)) = short.recv_from(&mut buffer).await {
            let mut reply = answer(&buffer[..length]);
            if long {
                reply.truncate(12);
                reply[2] |= 2;
                reply[4..8].fill(0);
            }
            short.send_to(&reply, asker).await.unwrap();
        }
    });
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let packet = read_packet(&mut stream).await.unwrap();
            write_packet(&mut stream, &answer(&packet)).await.unwrap();
        }
    });
    at
}

fn count(answer: &[u8]) -> u16 {
    u16::from_be_bytes([answer[6], answer[7]])
}

#[tokio::test]
async fn names_of_ours_are_answered_and_all_else_is_passed_on() {
    let upstream = resolver(Ipv4Addr::new(9, 9, 9, 9), false).await;
    let (_responder, address, names) = responder(&[upstream]).await;
    let _asking = names.admit(Ipv4Addr::LOCALHOST, 1, &[]);
    let held = names.publish(1, "db.example", Ipv4Addr::new(10, 1, 2, 3));
    let ours = ask(address, &asked("DB.Example", ADDRESS)).await;
    assert!(ours.ends_with(&[10, 1, 2, 3]));
    let other = ask(address, &asked("www.example", ADDRESS)).await;
    assert!(other.ends_with(&[9, 9, 9, 9]));
    drop(held);
    assert!(ask(address, &asked("db.example", ADDRESS)).await.ends_with(&[9, 9, 9, 9]));
    let nobody = ask(address, &asked("db.example.ci-tool.internal", ADDRESS)).await;
    assert_eq!((nobody[3] & 0x0f, count(&nobody)), (3, 0), "what would be ours is not passed on");
}

#[tokio::test]
async fn there_is_no_ipv6_and_no_question_about_it_goes_out() {
    // Nobody listens there: whoever asked would be told of a failure.
    let nobody = SocketAddr::from((Ipv4Addr::LOCALHOST, 1));
    let (_responder, address, _) = responder(&[nobody]).await;
    for answer in [
        ask(address, &asked("www.example", ADDRESS6)).await,
        ask_long(address, &asked("www.example", ADDRESS6)).await,
    ] {
        assert_eq!((answer[3] & 0x0f, count(&answer)), (0, 0));
    }
    let failed = ask(address, &asked("www.example", ADDRESS)).await;
    assert_eq!(failed[3] & 0x0f, 2);
}

#[tokio::test]
async fn a_long_answer_comes_over_a_connection() {
    let upstream = resolver(Ipv4Addr::new(9, 9, 9, 9), true).await;
    let (_responder, address, _) = responder(&[upstream]).await;
    let packet = asked("many.example", ADDRESS);
    let short = ask(address, &packet).await;
    assert_ne!(short[2] & 2, 0, "the answer says that there is more");
    assert_eq!(count(&ask_long(address, &packet).await), 200);
}

#[tokio::test]
async fn a_resolver_that_does_not_answer_is_followed_by_the_next() {
    let silent = UdpSocket::bind(HERE).await.unwrap();
    let upstream = resolver(Ipv4Addr::new(9, 9, 9, 9), false).await;
    let servers = [silent.local_addr().unwrap(), upstream];
    let (_responder, address, _) = responder(&servers).await;
    assert!(ask(address, &asked("www.example", ADDRESS)).await.ends_with(&[9, 9, 9, 9]));
}

#[tokio::test]
async fn a_flood_and_nonsense_leave_it_answering() {
    let silent = UdpSocket::bind(HERE).await.unwrap();
    let (_responder, address, names) = responder(&[silent.local_addr().unwrap()]).await;
    let _asking = names.admit(Ipv4Addr::LOCALHOST, 1, &[]);
    let _held = names.publish(1, "db.example", Ipv4Addr::new(10, 1, 2, 3));
    let socket = UdpSocket::bind(HERE).await.unwrap();
    for number in 0..3 * MOST_QUESTIONS {
        let packet = match number % 3 {
            0 => asked(&format!("n{number}.example"), ADDRESS),
            1 => vec![number as u8; number % 40],
            _ => vec![0xff; 600],
        };
        socket.send_to(&packet, address).await.unwrap();
    }
    let mut half = TcpStream::connect(address).await.unwrap();
    half.write_all(&[255, 255, 1]).await.unwrap();
    let begun = Instant::now();
    let mut answer = Vec::new();
    while answer.is_empty() && begun.elapsed() < Duration::from_secs(20) {
        let packet = asked("db.example", ADDRESS);
        let asking = ask(address, &packet);
        if let Ok(found) = tokio::time::timeout(Duration::from_secs(1), asking).await {
            answer = found;
        }
    }
    assert!(answer.ends_with(&[10, 1, 2, 3]));
    half.shutdown().await.unwrap();
    assert_eq!(half.read(&mut [0; 8]).await.unwrap_or(0), 0);
}
