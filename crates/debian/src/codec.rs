//! Decoders chosen by the ending of a name, as archives and packages use them.
//!
//! Only what Debian writes today is read; an older codec is refused by name, never guessed.

use std::io::{BufRead, BufReader, Read};

/// The name ends in a way that no decoder here is for.
#[derive(Debug, thiserror::Error)]
#[error("`{0}` is compressed in a way that is not supported (xz, zst and gz are)")]
pub struct UnknownCodec(pub String);

/// A reader of the plain bytes of `reader`, which holds what `name` is called.
pub fn decoder<'a>(
    name: &str,
    reader: impl Read + Send + 'a,
) -> Result<Box<dyn Read + Send + 'a>, UnknownCodec> {
    let reader = BufReader::with_capacity(64 * 1024, reader);
    match name.rsplit_once('.').map(|(_, ending)| ending) {
        None | Some("tar") => Ok(Box::new(reader)),
        Some("xz") => Ok(Box::new(liblzma::read::XzDecoder::new_multi_decoder(reader))),
        Some("gz") => Ok(Box::new(flate2::bufread::MultiGzDecoder::new(reader))),
        Some("zst") => zstandard(reader).map_err(|_| UnknownCodec(name.to_owned())),
        Some(_) => Err(UnknownCodec(name.to_owned())),
    }
}

fn zstandard<'a>(reader: impl BufRead + Send + 'a) -> std::io::Result<Box<dyn Read + Send + 'a>> {
    Ok(Box::new(zstd::stream::read::Decoder::with_buffer(reader)?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    fn read(name: &str, bytes: &[u8]) -> String {
        let mut text = String::new();
        decoder(name, bytes).unwrap().read_to_string(&mut text).unwrap();
        text
    }

    #[test]
    fn each_codec_gives_back_the_plain_bytes() {
        let mut gz = flate2::write::GzEncoder::new(vec![], flate2::Compression::fast());
        gz.write_all(b"text").unwrap();
        let mut xz = liblzma::write::XzEncoder::new(vec![], 0);
        xz.write_all(b"text").unwrap();
        assert_eq!(read("Packages", b"text"), "text");
        assert_eq!(read("data.tar", b"text"), "text");
        assert_eq!(read("Packages.gz", &gz.finish().unwrap()), "text");
        assert_eq!(read("Packages.xz", &xz.finish().unwrap()), "text");
        assert_eq!(read("data.tar.zst", &zstd::encode_all(&b"text"[..], 1).unwrap()), "text");
    }

    #[test]
    fn an_unknown_ending_is_refused_by_name() {
        let error = decoder("data.tar.bz2", &b""[..]).err().unwrap();
        assert!(error.to_string().contains("`data.tar.bz2`"), "{error}");
    }
}
