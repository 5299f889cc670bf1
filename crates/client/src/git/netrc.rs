//! `.netrc`: logins by machine, in words.

use protocol::attach::GitCredential;

/// The login for a host, of this user if one is named.
pub(super) fn find(text: &str, host: &str, username: Option<&str>) -> Option<GitCredential> {
    let mut words = words(text).into_iter();
    let (mut here, mut login, mut password) = (false, None, None);
    let done = |login: &Option<String>, password: &Option<String>| {
        let username = login.clone()?;
        Some(GitCredential { username, password: password.clone()? })
    };
    let wanted = |found: &GitCredential| username.is_none_or(|name| name == found.username);
    while let Some(word) = words.next() {
        match word.as_str() {
            "machine" | "default" => {
                if let Some(found) = done(&login, &password).filter(|found| here && wanted(found)) {
                    return Some(found);
                }
                here = word == "default" || words.next().is_some_and(|name| name == host);
                (login, password) = (None, None);
            }
            "login" => login = words.next(),
            "password" => password = words.next(),
            "account" => drop(words.next()),
            _ => {}
        }
    }
    done(&login, &password).filter(|found| here && wanted(found))
}

/// The words of all lines but comments; what a `macdef` defines is left out, to the empty line that ends it.
fn words(text: &str) -> Vec<String> {
    let mut words = vec![];
    let mut in_macro = false;
    for line in text.lines() {
        if in_macro {
            in_macro = !line.trim().is_empty();
            continue;
        }
        for word in line.split_whitespace() {
            if word.starts_with('#') {
                break;
            }
            if word == "macdef" {
                in_macro = true;
                break;
            }
            words.push(word.trim_matches('"').to_owned());
        }
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_login_of_the_host_is_found() {
        let text = "# a comment\nmachine a login u1 password p1\nmacdef x\nlogin nobody\n\n\
                    machine b\n  login \"u2\"\n  password p2\nmachine b login u3 password p3\n\
                    default login anyone password none";
        let found = |host: &str, user: Option<&str>| {
            find(text, host, user).map(|found| (found.username, found.password))
        };
        let pair = |user: &str, password: &str| Some((user.to_owned(), password.to_owned()));
        assert_eq!(found("a", None), pair("u1", "p1"));
        assert_eq!(found("b", None), pair("u2", "p2"));
        assert_eq!(found("b", Some("u3")), pair("u3", "p3"));
        assert_eq!(found("c", None), pair("anyone", "none"));
        assert_eq!(find("machine a login u", "a", None), None);
    }
}
