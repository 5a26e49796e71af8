//! Report lines: one JSON object per line, flushed at once so that a reader can follow.

use std::io::{self, Write};

use serde::Serialize;

/// What the lines of a program are, so that a reader can refuse what it does not know.
#[derive(Clone, Copy, Debug)]
pub struct Schema {
    /// The field `schema` of every line.
    pub name: &'static str,
    /// The field `schema_version` of every line. It rises when a field changes its meaning or goes away.
    pub version: u32,
}

#[derive(Serialize)]
struct Line<'a, Record> {
    schema: &'static str,
    schema_version: u32,
    kind: &'static str,
    #[serde(flatten)]
    record: &'a Record,
}

impl Schema {
    /// Writes `record`, which becomes a JSON object, as one line of this `kind`, and flushes.
    ///
    /// # Errors
    /// When `to` cannot be written, for example a closed pipe.
    pub fn line(self, to: &mut impl Write, kind: &'static str, record: &impl Serialize) -> io::Result<()> {
        serde_json::to_writer(&mut *to, &Line { schema: self.name, schema_version: self.version, kind, record })?;
        to.write_all(b"\n")?;
        to.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_one_flat_object() {
        #[derive(Serialize)]
        struct Record {
            blocks: u64,
        }
        let mut text = Vec::new();
        Schema { name: "test", version: 3 }.line(&mut text, "end", &Record { blocks: 7 }).unwrap();
        assert_eq!(text, b"{\"schema\":\"test\",\"schema_version\":3,\"kind\":\"end\",\"blocks\":7}\n");
    }
}
