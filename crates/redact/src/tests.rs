//! Every text is given whole and in pieces of every size.

use super::*;

/// What a redactor makes of a text that is cut into pieces of one size, in every size.
fn check(redactor: &Redactor, text: &str, expect: &str) {
    assert_eq!(redactor.text(text), expect, "{text:?} whole");
    for size in 1..=text.len() {
        let (mut stream, mut clean) = (redactor.stream(), vec![]);
        for piece in text.as_bytes().chunks(size) {
            stream.push(piece, &mut clean);
        }
        stream.finish(&mut clean);
        assert_eq!(String::from_utf8_lossy(&clean), expect, "{text:?} in pieces of {size}");
    }
}

fn plain(secrets: &[&str]) -> Redactor {
    Redactor::plain(secrets.iter().map(|secret| secret.as_bytes()))
}

fn shown(secret: &str) -> Redactor {
    Redactor::shown([secret.as_bytes()])
}

#[test]
fn secrets_are_replaced_wherever_the_text_is_cut() {
    check(&plain(&["hunter2"]), "the password is hunter2.\n", "the password is ***.\n");
    check(&plain(&["hunter2"]), "hunter2hunter2", "******");
    check(&plain(&["hunter2"]), "hunhunter2ter2 hunter", "hun***ter2 hunter");
    check(&plain(&["hunter2", "hunter22"]), "hunter2 hunter22 hunter3", "*** *** hunter3");
    check(&plain(&["token-a", "n-abc"]), "token-abc", "***");
    check(&plain(&["aaaa"]), "aaaaaa b aaa", "*** b aaa");
    check(&plain(&["abcdef", "bcde", "cdeX"]), "abcdeX abcdeY", "a*** a***Y");
    check(&Redactor::none(), "anything", "anything");
}

#[test]
fn white_space_around_a_secret_stays() {
    check(&plain(&["  hunter2\n"]), "x hunter2\ny", "x ***\ny");
    check(&shown("\thunter2\r\n"), "x hunter2\r\ny", "x ***\r\ny");
}

#[test]
fn short_secrets_are_left_alone() {
    for short in ["", "a", "abc", " \n  \t", " abc\n"] {
        assert!(is_too_short(short.as_bytes()) && plain(&[short]).is_empty(), "{short:?}");
        assert!(shown(short).is_empty(), "{short:?}");
    }
    assert!(!is_too_short(b"abcd"));
    check(&plain(&["abcd"]), "abcd", "***");
}

#[test]
fn what_programs_read_keeps_other_forms_and_single_lines() {
    let secret = "first line of it\nsecond line of it";
    let text = "first line of it / second line of it";
    check(&plain(&[secret]), text, text);
    check(&shown(secret), text, "*** / ***");
    check(&plain(&["hunter2"]), "aHVudGVyMg== 68756e74657232", "aHVudGVyMg== 68756e74657232");
}

#[test]
fn a_secret_of_several_lines_is_one_mark() {
    let secret = "-----BEGIN KEY-----\nMIIEpAIBAAKC\nshort\n-----END KEY-----\n";
    check(&shown(secret), &format!("a\n{secret}b"), "a\n***\nb");
    check(&shown(secret), "log: MIIEpAIBAAKC\nshort", "log: ***\nshort");
}

#[test]
fn forms_that_people_see_are_replaced() {
    let secret = "p\u{e4}ss w/rd\"<1>";
    for form in [
        secret,
        // Alone, and after one and two bytes.
        "cMOkc3Mgdy9yZCI8MT4=",
        "70c3a47373207 72f7264223c313e".replace(' ', "").as_str(),
        "70C3A4737320772F7264223C313E",
        "p%C3%A4ss%20w%2Frd%22%3C1%3E",
        "p%c3%a4ss+w%2frd%22%3c1%3e",
        "p%C3%A4ss%20w/rd%22%3C1%3E",
        "p\u{e4}ss w/rd\\\"<1>",
        "p\\u00e4ss w/rd\\\"\\u003c1\\u003e",
        "p\\u00e4ss w/rd\\\"<1>",
        "p\u{e4}ss w\\/rd\\\"<1>",
        "p\u{e4}ss w/rd\\\\\\\"<1>",
    ] {
        check(&shown(secret), &format!("[{form}]"), "[***]");
    }
}

#[test]
fn base64_is_found_at_every_place_in_a_longer_text() {
    let secret = "correct horse battery";
    for before in ["", "a", "ab", "abc", "user:"] {
        for after in ["", "\n", "zz", "zzz"] {
            let text = format!("{before}{secret}{after}");
            let encoded = base64(text.as_bytes());
            let clean = shown(secret).text(&encoded).into_owned();
            let (start, end) = clean.split_once(MARK).unwrap_or_else(|| panic!("{text}: {clean}"));
            // What is left is made of what stands around it, and of a few bits.
            assert!(start.len() <= before.len() * 4 / 3 + 2, "{text}: {clean}");
            assert!(end.len() <= after.len() * 4 / 3 + 4, "{text}: {clean}");
        }
    }
}

/// An encoder that is not the one under test.
fn base64(bytes: &[u8]) -> String {
    let alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/".as_bytes();
    let bits: String = bytes.iter().map(|byte| format!("{byte:08b}")).collect();
    let mut text = String::new();
    for six in bits.as_bytes().chunks(6) {
        let digits = format!("{:0<6}", String::from_utf8_lossy(six));
        text.push(alphabet[usize::from_str_radix(&digits, 2).unwrap()].into());
    }
    text + &"=".repeat((4 - bits.len().div_ceil(6) % 4) % 4)
}

#[test]
fn wrapped_base64_is_found() {
    let secret = "0123456789 abcdefghij ".repeat(12);
    let encoded = base64(secret.trim().as_bytes());
    for length in [64, 76] {
        let lines: Vec<&str> =
            encoded.as_bytes().chunks(length).map(|l| std::str::from_utf8(l).unwrap()).collect();
        check(&shown(&secret), &format!("> {}\n", lines.join("\n")), "> ***\n");
    }
}

#[test]
fn long_secrets_are_found_and_cost_little() {
    let secret = "0123456789abcdef".repeat(32_000);
    let redactor = shown(&secret);
    let text = format!("a {secret} b {} c", &secret[..secret.len() - 1]);
    let (mut stream, mut clean) = (redactor.stream(), vec![]);
    for piece in text.as_bytes().chunks(4096) {
        stream.push(piece, &mut clean);
    }
    stream.finish(&mut clean);
    let clean = String::from_utf8(clean).unwrap();
    assert_eq!(clean, format!("a *** b {} c", &secret[..secret.len() - 1]));
}

#[test]
fn a_text_is_not_held_back_without_reason() {
    let redactor = plain(&["hunter2"]);
    let mut stream = redactor.stream();
    for (piece, expect) in [
        ("ready\n", "ready\n"),
        ("h", ""),
        ("ello", "hello"),
        ("hunt", ""),
        ("er2", "***"),
        (" hu", " "),
    ] {
        let mut clean = vec![];
        stream.push(piece.as_bytes(), &mut clean);
        assert_eq!(String::from_utf8_lossy(&clean), expect, "{piece}");
    }
    let mut rest = vec![];
    stream.finish(&mut rest);
    assert_eq!(rest, b"hu");
}

#[test]
fn random_texts_lose_exactly_the_secrets() {
    let mut seed = 0x9e37_79b9_7f4a_7c15_u64;
    let mut below = |limit: u64| {
        seed ^= seed << 13;
        seed ^= seed >> 7;
        seed ^= seed << 17;
        seed % limit
    };
    for _ in 0..400 {
        let mut word = |length: u64| -> String {
            (0..length).map(|_| char::from(b'a' + below(2) as u8)).collect()
        };
        let secrets: Vec<String> = (4..8).map(&mut word).collect();
        let text = word(60);
        let redactor = plain(&secrets.iter().map(String::as_str).collect::<Vec<_>>());
        check(&redactor, &text, &by_hand(&secrets, &text));
    }
}

/// The same, looked up place by place.
fn by_hand(secrets: &[String], text: &str) -> String {
    let mut places: Vec<(usize, usize)> = vec![];
    for start in 0..text.len() {
        for secret in secrets.iter().filter(|secret| text[start..].starts_with(secret.as_str())) {
            places.push((start, start + secret.len()));
        }
    }
    let mut merged: Vec<(usize, usize)> = vec![];
    for (start, end) in places {
        match merged.last_mut() {
            Some(last) if start < last.1 => last.1 = last.1.max(end),
            _ => merged.push((start, end)),
        }
    }
    let (mut clean, mut at) = (String::new(), 0);
    for (start, end) in merged {
        clean += &text[at..start];
        clean += MARK;
        at = end;
    }
    clean + &text[at..]
}

#[test]
fn a_set_grows_and_what_lies_in_it_goes_with_its_owner() {
    let engine = Arc::new(Known::default());
    assert!(engine.redactor().is_empty());
    let (one, two) = (Known::within(engine.clone()), Known::within(engine.clone()));
    one.add(b"hunter2");
    one.add(b"hunter2");
    two.add(b"hunter2");
    two.add(b"tango");
    two.add(b"abc");
    assert_eq!(one.redactor().text("hunter2 tango"), "*** tango");
    assert_eq!(engine.redactor().text("hunter2 tango abc"), "*** *** abc");
    drop(two);
    assert_eq!(engine.redactor().text("hunter2 tango"), "*** tango");
    drop(one);
    assert!(engine.redactor().is_empty());
}
