//! Questions for names and our own answers to them, as bytes.

use std::net::Ipv4Addr;

/// Bytes before the question.
const HEAD: usize = 12;
/// Longest name, with its dots.
const LONGEST_NAME: usize = 255;
/// How long our own answers may be remembered, in seconds: names of ours come and go.
const LIFETIME: u32 = 1;
/// The class of the internet.
const INTERNET: u16 = 1;

/// One question.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Question {
    pub(super) name: String,
    pub(super) kind: u16,
    /// Where it ends in the packet.
    end: usize,
}

/// What a question is answered with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    /// These addresses, or none.
    Addresses(Vec<Ipv4Addr>),
    /// There is no such name.
    Unknown,
    /// It was not understood.
    Malformed,
    /// Nobody could say.
    Failed,
    /// This kind of request is not for us.
    Unsupported,
}

impl Outcome {
    fn code(&self) -> u8 {
        match self {
            Outcome::Addresses(_) => 0,
            Outcome::Malformed => 1,
            Outcome::Failed => 2,
            Outcome::Unknown => 3,
            Outcome::Unsupported => 4,
        }
    }
}

/// Reads the question of a packet.
pub(super) fn parse(packet: &[u8]) -> Result<Question, Outcome> {
    let head = packet.get(..HEAD).ok_or(Outcome::Malformed)?;
    if head[2] & 0x78 != 0 {
        return Err(Outcome::Unsupported);
    }
    if head[4..6] != [0, 1] {
        return Err(Outcome::Malformed);
    }
    let (name, end) = parse_name(packet).ok_or(Outcome::Malformed)?;
    let rest = packet.get(end..end + 4).ok_or(Outcome::Malformed)?;
    let kind = u16::from_be_bytes([rest[0], rest[1]]);
    if rest[2..] != INTERNET.to_be_bytes() {
        return Err(Outcome::Unsupported);
    }
    Ok(Question { name, kind, end: end + 4 })
}

/// The name that begins after the head, and where it ends.
fn parse_name(packet: &[u8]) -> Option<(String, usize)> {
    let (mut name, mut place) = (String::new(), HEAD);
    loop {
        let length = usize::from(*packet.get(place)?);
        place += 1;
        match length {
            0 => return Some((name, place)),
            // A question refers to nothing before it.
            64.. => return None,
            _ => {}
        }
        let label = packet.get(place..place + length)?;
        place += length;
        if !name.is_empty() {
            name.push('.');
        }
        // A dot or a byte beyond ASCII within a label belongs to no name of ours.
        name.extend(label.iter().map(|byte| {
            if byte.is_ascii() && *byte != b'.' { char::from(*byte) } else { '\u{fffd}' }
        }));
        if place - HEAD > LONGEST_NAME {
            return None;
        }
    }
}

impl Question {
    /// Our own answer to this question, which `packet` holds.
    pub(super) fn answer(&self, packet: &[u8], outcome: &Outcome) -> Vec<u8> {
        let addresses: &[Ipv4Addr] = match outcome {
            Outcome::Addresses(addresses) => addresses,
            _ => &[],
        };
        let mut answer = head(packet, outcome, 1, addresses.len() as u16);
        answer.extend_from_slice(&packet[HEAD..self.end]);
        for address in addresses {
            // The name is the one of the question.
            answer.extend_from_slice(&[0xc0, HEAD as u8, 0, 1, 0, 1]);
            answer.extend_from_slice(&LIFETIME.to_be_bytes());
            answer.extend_from_slice(&[0, 4]);
            answer.extend_from_slice(&address.octets());
        }
        answer
    }

    /// Whether a packet is somebody's answer to this question as `asked` put it.
    pub(super) fn is_answered_by(&self, asked: &[u8], packet: &[u8]) -> bool {
        let same_id = packet.len() >= HEAD && packet[..2] == asked[..2];
        let is_answer = packet.get(2).is_some_and(|flags| flags & 0x80 != 0);
        let repeated = packet.get(HEAD..self.end);
        let same = |repeated: &[u8]| repeated.eq_ignore_ascii_case(&asked[HEAD..self.end]);
        // Who refuses may leave the question out.
        same_id && is_answer && (packet[4..6] == [0, 0] || repeated.is_some_and(same))
    }
}

/// Whether an answer says that its sender could not or would not find out.
pub(super) fn is_failure(answer: &[u8]) -> bool {
    answer.get(3).is_some_and(|flags| matches!(flags & 0x0f, 2 | 4 | 5))
}

/// The answer to what is no question; none to what is itself an answer, or too short to be answered.
pub(super) fn refusal(packet: &[u8], outcome: Outcome) -> Option<Vec<u8>> {
    let is_question = packet.get(2).is_some_and(|flags| flags & 0x80 == 0);
    (packet.len() >= HEAD && is_question).then(|| head(packet, &outcome, 0, 0))
}

fn head(packet: &[u8], outcome: &Outcome, questions: u16, answers: u16) -> Vec<u8> {
    // It is an answer; operation and wish for recursion are the asker's.
    let first = 0x80 | packet[2] & 0x79;
    let second = 0x80 | outcome.code();
    let mut head = vec![packet[0], packet[1], first, second];
    for count in [questions, answers, 0, 0] {
        head.extend_from_slice(&count.to_be_bytes());
    }
    head
}

#[cfg(test)]
mod tests {
    use super::*;

    fn question(name: &str, kind: u16) -> Vec<u8> {
        let mut packet = vec![7, 9, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0];
        for label in name.split('.') {
            packet.push(label.len() as u8);
            packet.extend_from_slice(label.as_bytes());
        }
        packet.push(0);
        packet.extend_from_slice(&kind.to_be_bytes());
        packet.extend_from_slice(&[0, 1]);
        packet
    }

    #[test]
    fn a_question_is_answered_with_addresses() {
        let packet = question("Web.Example", 1);
        let parsed = parse(&packet).unwrap();
        assert_eq!((parsed.name.as_str(), parsed.kind), ("Web.Example", 1));
        let address = Ipv4Addr::new(10, 1, 2, 3);
        let answer = parsed.answer(&packet, &Outcome::Addresses(vec![address]));
        assert_eq!(answer[..4], [7, 9, 0x81, 0x80]);
        assert_eq!(answer[4..8], [0, 1, 0, 1]);
        assert!(answer.ends_with(&[0, 4, 10, 1, 2, 3]));
        assert!(parsed.is_answered_by(&packet, &answer));
        assert!(!parsed.is_answered_by(&packet, &packet));
    }

    #[test]
    fn an_answer_to_another_question_is_none() {
        let packet = question("a.example", 1);
        let parsed = parse(&packet).unwrap();
        let other = question("b.example", 1);
        let answer = parse(&other).unwrap().answer(&other, &Outcome::Failed);
        assert!(!parsed.is_answered_by(&packet, &answer));
        assert!(is_failure(&answer));
    }

    #[test]
    fn what_is_no_question_is_refused_and_never_answered_twice() {
        let mut update = question("a.example", 1);
        update[2] = 0x28;
        assert_eq!(parse(&update), Err(Outcome::Unsupported));
        let refused = refusal(&update, Outcome::Unsupported).unwrap();
        assert_eq!(refused[3] & 0x0f, 4);
        assert_eq!(refusal(&refused, Outcome::Malformed), None);
        assert_eq!(refusal(&[0; 5], Outcome::Malformed), None);
    }

    #[test]
    fn hostile_names_are_malformed() {
        let head = [0, 0, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0];
        for tail in [&[0xc0, 12, 0, 1, 0, 1][..], &[63, b'a'], &[], &[1, b'a', 0, 0]] {
            let packet = [&head[..], tail].concat();
            assert_eq!(parse(&packet), Err(Outcome::Malformed), "{tail:?}");
        }
        let long = question(&vec!["a".repeat(60); 5].join("."), 1);
        assert_eq!(parse(&long), Err(Outcome::Malformed));
    }
}
