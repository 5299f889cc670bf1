//! The scanner of a `Packages` text, which is some fifty megabytes: fields that nobody asks for are
//! passed over by their first letter, and values are copied once.

use super::{
    Error, FIELDS, HEADER, INSTALLED_SIZE, Index, MAGIC, PROVIDE, Priority, RECORD, SHA256, SIZE,
    TRAITS, parse_sha256, word,
};
use crate::relation;
use std::ops::Range;

pub(super) fn parse(text: &str) -> Result<Index, Error> {
    u32::try_from(text.len()).map_err(|_| Error::TooLarge)?;
    let mut builder = Builder::default();
    let mut fields = Fields::default();
    let mut position = 0;
    for line in text.split_inclusive('\n') {
        let start = position;
        position += line.len();
        let line = line.trim_end();
        match line.as_bytes().first() {
            None => builder.add(text, std::mem::take(&mut fields))?,
            Some(b' ' | b'\t') => fields.extend(start + line.len()),
            Some(_) => fields.begin(line, start),
        }
    }
    builder.add(text, fields)?;
    Ok(builder.finish())
}

/// Where the values of the paragraph being read are in the text.
#[derive(Default)]
struct Fields {
    values: [Range<usize>; FIELDS.len()],
    size: Range<usize>,
    sha256: Range<usize>,
    installed_size: Range<usize>,
    essential: Range<usize>,
    priority: Range<usize>,
    multi_arch: Range<usize>,
    seen: bool,
    /// Row of `values` that a continuation line belongs to.
    open: Option<usize>,
}

impl Fields {
    fn begin(&mut self, line: &str, start: usize) {
        self.seen = true;
        self.open = None;
        // Most lines are of fields nobody asks for: one look at the first byte leaves them out.
        if !matches!(
            line.as_bytes()[0],
            b'P' | b'V' | b'A' | b'D' | b'C' | b'B' | b'F' | b'S' | b'I' | b'E' | b'M'
        ) {
            return;
        }
        let Some((name, value)) = line.split_once(':') else { return };
        let begin = start + line.len() - value.trim_start().len();
        let range = begin..start + line.len();
        let slot = match name {
            "Size" => &mut self.size,
            "SHA256" => &mut self.sha256,
            "Installed-Size" => &mut self.installed_size,
            "Essential" => &mut self.essential,
            "Priority" => &mut self.priority,
            "Multi-Arch" => &mut self.multi_arch,
            _ => {
                self.open = FIELDS.iter().position(|field| *field == name);
                match self.open {
                    Some(row) => &mut self.values[row],
                    None => return,
                }
            }
        };
        *slot = range;
    }

    fn extend(&mut self, end: usize) {
        if let Some(row) = self.open {
            self.values[row].end = end;
        }
    }
}

#[derive(Default)]
struct Builder {
    records: Vec<[u32; RECORD]>,
    texts: String,
}

impl Builder {
    fn add(&mut self, text: &str, fields: Fields) -> Result<(), Error> {
        if !fields.seen {
            return Ok(());
        }
        let get = |range: &Range<usize>| &text[range.clone()];
        let mut record = [0; RECORD];
        for (row, range) in fields.values.iter().enumerate() {
            record[2 * row] = self.texts.len() as u32;
            record[2 * row + 1] = range.len() as u32;
            self.texts.push_str(get(range));
        }
        let package = get(&fields.values[0]);
        let missing = |field| Error::Field { package: package.to_owned(), field };
        for row in [0, 1, 2, 8] {
            if fields.values[row].is_empty() {
                return Err(missing(FIELDS[row]));
            }
        }
        let size: u64 = get(&fields.size).parse().map_err(|_| missing("Size"))?;
        record[SIZE] = size as u32;
        record[SIZE + 1] = (size >> 32) as u32;
        let digest = parse_sha256(get(&fields.sha256)).ok_or_else(|| missing("SHA256"))?;
        for (slot, bytes) in record[SHA256..INSTALLED_SIZE].iter_mut().zip(digest.chunks_exact(4)) {
            *slot = word(bytes, 0);
        }
        record[INSTALLED_SIZE] = get(&fields.installed_size).parse().unwrap_or(0);
        record[TRAITS] =
            traits(get(&fields.essential), get(&fields.priority), get(&fields.multi_arch));
        self.records.push(record);
        Ok(())
    }

    fn text(&self, record: &[u32; RECORD], row: usize) -> &str {
        let start = record[2 * row] as usize;
        &self.texts[start..start + record[2 * row + 1] as usize]
    }

    fn finish(mut self) -> Index {
        let mut records = std::mem::take(&mut self.records);
        records.sort_by(|left, right| self.text(left, 0).cmp(self.text(right, 0)));
        let mut provides: Vec<(&str, u32)> = vec![];
        for (number, record) in records.iter().enumerate() {
            let names = relation::relations(self.text(record, 5));
            provides.extend(names.map(|provided| (provided.name, number as u32)));
        }
        provides.sort_by(|left, right| left.0.cmp(right.0));
        let base = self.texts.as_ptr() as usize;
        let words = records.len() * RECORD + provides.len() * PROVIDE;
        let mut bytes = Vec::with_capacity(HEADER + 4 * words + self.texts.len());
        bytes.extend_from_slice(MAGIC);
        let mut push = |word: u32| bytes.extend_from_slice(&word.to_le_bytes());
        push(records.len() as u32);
        push(provides.len() as u32);
        records.iter().flatten().for_each(|&word| push(word));
        for (name, number) in &provides {
            // The name is a piece of `texts`, so its place is the distance to its start.
            push((name.as_ptr() as usize - base) as u32);
            push(name.len() as u32);
            push(*number);
        }
        let texts = bytes.len();
        bytes.extend_from_slice(self.texts.as_bytes());
        Index { packages: records.len(), provides: provides.len(), bytes, texts }
    }
}

fn traits(essential: &str, priority: &str, multi_arch: &str) -> u32 {
    let essential = u32::from(essential == "yes");
    let priority = match priority {
        "required" => Priority::Required,
        "important" => Priority::Important,
        "standard" => Priority::Standard,
        _ => Priority::Optional,
    };
    let multi_arch = match multi_arch {
        "same" => 1,
        "foreign" => 2,
        "allowed" => 3,
        _ => 0,
    };
    essential | (priority as u32) << 8 | multi_arch << 16
}
