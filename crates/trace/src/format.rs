//! `format` files of tracefs: where the fields of an event lie.

/// The fields of one event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Format {
    /// Its name, without the system.
    pub name: String,
    /// Value of `common_type` in its records.
    pub id: u16,
    /// Fields, the common ones included, in the file's order.
    pub fields: Vec<Field>,
    /// The format for printing, which has the names of numbers.
    pub print: String,
}

/// One field.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Field {
    /// Its name.
    pub name: String,
    /// From the start of the record.
    pub offset: usize,
    /// Bytes.
    pub size: usize,
    /// Whether a number in it is signed.
    pub signed: bool,
    /// Where its bytes lie.
    pub place: Place,
}

/// Location of a field's bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    /// At its offset.
    Here,
    /// At the place that the field gives (`__data_loc`): offset from the record's start in the lower half, length in
    /// the upper.
    Elsewhere,
    /// The same, with the offset from the end of the field (`__rel_data_loc`).
    Behind,
}

/// A text that is no `format` file.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "the format file has no {missing}; expected one of tracefs such as events/sched/sched_switch/format"
)]
pub struct FormatError {
    missing: &'static str,
}

impl Format {
    /// Reads a `format` file.
    ///
    /// # Errors
    /// It has no name or no ID.
    pub fn parse(text: &str) -> Result<Self, FormatError> {
        let after = |label: &str| text.lines().find_map(|line| line.strip_prefix(label));
        let name = after("name:").ok_or(FormatError { missing: "line `name:`" })?;
        let id = after("ID:")
            .and_then(|id| id.trim().parse().ok())
            .ok_or(FormatError { missing: "line `ID:` with a number below 65536" })?;
        Ok(Self {
            name: name.trim().to_owned(),
            id,
            fields: fields(text),
            print: after("print fmt:").unwrap_or("").trim().to_owned(),
        })
    }

    /// The field of this name.
    #[must_use]
    pub fn field(&self, name: &str) -> Option<&Field> {
        self.fields.iter().find(|field| field.name == name)
    }

    /// Names of a field's values in `__print_symbolic`: pairs as `{ 1, "TIMER" }`.
    #[must_use]
    pub fn names_of(&self, field: &str) -> Vec<(i64, String)> {
        let start = format!("__print_symbolic(REC->{field},");
        let Some((_, rest)) = self.print.split_once(&start) else { return Vec::new() };
        let mut names = Vec::new();
        // Pairs follow until something else does; a name has no quotation mark.
        let mut rest = rest.trim_start();
        while let Some(pair) = rest.strip_prefix('{') {
            let Some((value, more)) = pair.split_once(',') else { break };
            let Some((name, more)) =
                more.trim_start().strip_prefix('"').and_then(|more| more.split_once('"'))
            else {
                break;
            };
            if let Some(value) = number(value.trim()) {
                names.push((value, name.to_owned()));
            }
            rest = more.trim_start_matches([' ', '}', ',']);
        }
        names
    }
}

fn number(text: &str) -> Option<i64> {
    match text.strip_prefix("0x") {
        Some(digits) => i64::from_str_radix(digits, 16).ok(),
        None => text.parse().ok(),
    }
}

/// The fields that a `format` file, `header_page` or `header_event` lists. Lines of another shape are skipped.
pub(super) fn fields(text: &str) -> Vec<Field> {
    text.lines().filter_map(|line| field(line.trim())).collect()
}

/// `field:__data_loc char[] name; offset:12; size:4; signed:0;`, with tabs between the parts.
fn field(line: &str) -> Option<Field> {
    let mut parts = line.strip_prefix("field:")?.split(';').map(str::trim);
    let declaration = parts.next()?;
    let (mut offset, mut size, mut signed) = (None, None, false);
    for part in parts {
        if let Some((label, value)) = part.split_once(':') {
            match label {
                "offset" => offset = value.parse().ok(),
                "size" => size = value.parse().ok(),
                "signed" => signed = value == "1",
                _ => {}
            }
        }
    }
    let place = match declaration.split(' ').next()? {
        "__data_loc" => Place::Elsewhere,
        "__rel_data_loc" => Place::Behind,
        _ => Place::Here,
    };
    let last = declaration.rsplit(' ').next()?;
    let name = last.split('[').next().unwrap_or(last).trim_start_matches('*');
    Some(Field { name: name.to_owned(), offset: offset?, size: size?, signed, place })
}

impl Field {
    /// The number in a record; nothing where the record is too short or the field is none of 1 to 8 bytes.
    #[must_use]
    pub fn integer(&self, record: &[u8]) -> Option<i64> {
        let bytes = record.get(self.offset..self.offset.checked_add(self.size)?)?;
        if bytes.is_empty() || bytes.len() > 8 {
            return None;
        }
        // The sign bit decides about the bytes that fill the rest.
        let negative = self.signed && bytes.last().is_some_and(|byte| byte & 0x80 != 0);
        let mut whole = [if negative { 0xff } else { 0 }; 8];
        whole[..bytes.len()].copy_from_slice(bytes);
        Some(i64::from_le_bytes(whole))
    }

    /// Its bytes in a record, wherever they lie.
    #[must_use]
    pub fn bytes<'a>(&self, record: &'a [u8]) -> Option<&'a [u8]> {
        let here = record.get(self.offset..self.offset.checked_add(self.size)?)?;
        let base = match self.place {
            Place::Here => return Some(here),
            Place::Elsewhere => 0,
            Place::Behind => self.offset + self.size,
        };
        let word = u32::from_le_bytes(here.try_into().ok()?);
        let (offset, length) = ((word & 0xffff) as usize, (word >> 16) as usize);
        record.get(base.checked_add(offset)?..)?.get(..length)
    }

    /// The text in a record up to its first NUL.
    #[must_use]
    pub fn text(&self, record: &[u8]) -> Option<String> {
        let bytes = self.bytes(record)?;
        let end = bytes.iter().position(|byte| *byte == 0).unwrap_or(bytes.len());
        Some(String::from_utf8_lossy(&bytes[..end]).into_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const HANDLER: &str = "name: irq_handler_entry\nID: 225\nformat:\n\
        \tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n\
        \tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n\n\
        \tfield:int irq;\toffset:8;\tsize:4;\tsigned:1;\n\
        \tfield:__data_loc char[] name;\toffset:12;\tsize:4;\tsigned:0;\n\n\
        print fmt: \"irq=%d name=%s\", REC->irq, __get_str(name)\n";

    #[test]
    fn fields_of_an_event() {
        let format = Format::parse(HANDLER).unwrap();
        assert_eq!(
            (format.name.as_str(), format.id, format.fields.len()),
            ("irq_handler_entry", 225, 4)
        );
        let mut record = vec![0; 16];
        record[8..12].copy_from_slice(&(-3_i32).to_le_bytes());
        record[12..16].copy_from_slice(&((5 << 16 | 16) as u32).to_le_bytes());
        record.extend(b"eth0\0\0");
        assert_eq!(format.field("irq").unwrap().integer(&record), Some(-3));
        assert_eq!(format.field("name").unwrap().text(&record).as_deref(), Some("eth0"));
        // A place beyond the record is not read.
        assert_eq!(format.field("name").unwrap().text(&record[..18]), None);
    }

    #[test]
    fn names_of_numbers() {
        let print = r#"print fmt: "vec=%u [action=%s]", REC->vec, __print_symbolic(REC->vec, { 0, "HI" }, { 0x1, "TIMER" }), REC->x"#;
        let format = Format::parse(&format!("name: softirq_entry\nID: 1\n{print}\n")).unwrap();
        assert_eq!(format.names_of("vec"), [(0, "HI".to_owned()), (1, "TIMER".to_owned())]);
        assert_eq!(format.names_of("other"), []);
    }

    #[test]
    fn arrays_and_pointers() {
        let found = fields(
            "\tfield:char prev_comm[16];\toffset:8;\tsize:16;\tsigned:0;\n\tfield:void * func;\toffset:24;\tsize:8;\tsigned:0;",
        );
        assert_eq!(found[0].name, "prev_comm");
        assert_eq!(found[1].name, "func");
    }

    proptest! {
        #[test]
        fn any_text_and_any_record(text in "\\PC*", record in proptest::collection::vec(any::<u8>(), 0..64)) {
            let _ = Format::parse(&text);
            for field in &Format::parse(HANDLER).unwrap().fields {
                let _ = (field.integer(&record), field.bytes(&record), field.text(&record));
            }
        }
    }
}
