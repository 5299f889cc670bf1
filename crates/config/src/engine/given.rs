//! A value of `engine.toml` together with the key it was given for: the checks of every form.

use super::keys::Key;
use super::space::Amount;
use super::{Error, Network};
use crate::quantity::{QuantityError, parse_duration, parse_size};
use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;
use toml::Value;

/// A value together with the key it was given for.
pub(super) struct Given<'a> {
    pub(super) key: &'static Key,
    /// The key as it was written, with the names of the tables around it.
    pub(super) written: String,
    pub(super) value: &'a Value,
}

impl<'a> Given<'a> {
    /// A value of this key of the table, if the table has it.
    pub(super) fn of(keys: &'static [Key], name: &str, value: &'a Value) -> Option<Self> {
        let key = keys.iter().find(|key| key.name == name)?;
        Some(Self { key, written: name.to_owned(), value })
    }

    pub(super) fn text(&self) -> Result<&str, Error> {
        self.value.as_str().ok_or_else(|| self.wrong_form())
    }

    pub(super) fn duration(&self) -> Result<Duration, Error> {
        parse_duration(self.text()?).map_err(|error| self.quantity(&error))
    }

    pub(super) fn size(&self) -> Result<u64, Error> {
        match parse_size(self.text()?).map_err(|error| self.quantity(&error))? {
            0 => Err(self.bad("must be more than nothing")),
            bytes => Ok(bytes),
        }
    }

    /// A size, or a share of the disk.
    pub(super) fn space(&self) -> Result<Amount, Error> {
        match self.text()?.trim().strip_suffix('%') {
            None => self.size().map(Amount::Bytes),
            Some(number) => match number.trim().parse::<f64>() {
                Ok(share) if share > 0.0 && share <= 100.0 => Ok(Amount::Share(share)),
                _ => Err(self.bad("a share is more than 0% and at most 100%")),
            },
        }
    }

    pub(super) fn flag(&self) -> Result<bool, Error> {
        self.value.as_bool().ok_or_else(|| self.wrong_form())
    }

    pub(super) fn texts(&self) -> Result<Vec<String>, Error> {
        let list = self.value.as_array().ok_or_else(|| self.wrong_form())?;
        let texts = list.iter().map(|value| value.as_str().map(str::to_owned));
        texts.collect::<Option<_>>().ok_or_else(|| self.wrong_form())
    }

    pub(super) fn count(&self) -> Result<u64, Error> {
        let number = self.value.as_integer().ok_or_else(|| self.wrong_form())?;
        u64::try_from(number).ok().filter(|n| *n > 0).ok_or_else(|| self.bad("must be at least 1"))
    }

    pub(super) fn processors(&self) -> Result<f64, Error> {
        let whole = self.value.as_integer().map(|number| number as f64);
        let number = self.value.as_float().or(whole).ok_or_else(|| self.wrong_form())?;
        let sound = number.is_finite() && number >= 0.01;
        if sound { Ok(number) } else { Err(self.bad("must be at least 0.01")) }
    }

    /// A word, or an absolute path.
    pub(super) fn runtime(&self) -> Result<String, Error> {
        let text = self.text()?;
        let sound = text.starts_with('/') || (!text.is_empty() && !text.contains('/'));
        match sound {
            true => Ok(text.to_owned()),
            false => Err(self.bad("must be `own`, the name of a program or its absolute path")),
        }
    }

    pub(super) fn network(&self) -> Result<Network, Error> {
        match self.text()? {
            "bridge" => Ok(Network::Bridge),
            "none" => Ok(Network::None),
            "host" => Ok(Network::Host),
            other => Err(self.bad(&format!("`{other}` is none of `bridge`, `none` and `host`"))),
        }
    }

    /// A private range of addresses that containers fit into.
    pub(super) fn subnet(&self) -> Result<(Ipv4Addr, u8), Error> {
        let text = self.text()?;
        let parts = text.split_once('/');
        let read = |(first, prefix): (&str, &str)| {
            Some((first.parse::<Ipv4Addr>().ok()?, prefix.parse::<u8>().ok()?))
        };
        let parts = parts.and_then(read);
        let Some((first, prefix)) = parts.filter(|(_, prefix)| (8..=24).contains(prefix)) else {
            return Err(self.bad(&format!("`{text}` is no range such as `10.50.0.0/16`")));
        };
        let last = u32::from(first) | (u32::MAX >> prefix);
        if u32::from(first).trailing_zeros() < u32::from(32 - prefix) {
            return Err(
                self.bad(&format!("`{first}` is not the first address of a range of /{prefix}"))
            );
        }
        if !first.is_private() || !Ipv4Addr::from(last).is_private() {
            return Err(self.bad(&format!("`{text}` is not for private use")));
        }
        Ok((first, prefix))
    }

    /// An address and a port to listen on.
    pub(super) fn listen(&self) -> Result<SocketAddr, Error> {
        let text = self.text()?;
        let address = text.strip_prefix("tcp://").and_then(|address| address.parse().ok());
        address.ok_or_else(|| self.bad(&format!("`{text}` is not like `tcp://0.0.0.0:7433`")))
    }

    /// An archive: a URL or a directory.
    pub(super) fn archive(&self) -> Result<String, Error> {
        self.address(&["http://", "https://", "file://", "/"])
    }

    /// A text that begins in one of these ways.
    pub(super) fn address(&self, beginnings: &[&str]) -> Result<String, Error> {
        let text = self.text()?;
        if beginnings.iter().any(|beginning| text.starts_with(beginning)) {
            return Ok(text.trim_end_matches('/').to_owned());
        }
        Err(self.bad(&format!("must begin with one of `{}`", beginnings.join("`, `"))))
    }

    pub(super) fn path(&self) -> Result<PathBuf, Error> {
        let path = PathBuf::from(self.text()?);
        if path.is_absolute() { Ok(path) } else { Err(self.bad("must be an absolute path")) }
    }

    fn quantity(&self, error: &QuantityError) -> Error {
        self.bad(&error.to_string())
    }

    pub(super) fn bad(&self, reason: &str) -> Error {
        Error::BadValue { key: self.written.clone(), reason: reason.to_owned() }
    }

    pub(super) fn wrong_form(&self) -> Error {
        let given = match self.value {
            Value::String(_) => "a text",
            Value::Integer(_) => "a whole number",
            Value::Float(_) => "a number",
            Value::Boolean(_) => "true or false",
            Value::Datetime(_) => "a date",
            Value::Array(_) => "a list",
            Value::Table(_) => "a table",
        };
        Error::WrongForm { key: self.written.clone(), wanted: self.key.form.described(), given }
    }
}
