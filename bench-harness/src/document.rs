//! A place for tables in a document whose other text is written by hand.

use std::path::Path;

/// A place, by its name: what is between `<!-- name: begin -->` and `<!-- name: end -->`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place(pub &'static str);

impl Place {
    /// Puts `tables` into this place of `document`.
    ///
    /// # Errors
    /// A sentence when the two marks are not there, in this order.
    pub fn splice(self, document: &str, tables: &str) -> Result<String, String> {
        let (begin, end) = (format!("<!-- {}: begin -->", self.0), format!("<!-- {}: end -->", self.0));
        let parts = document.split_once(&begin).and_then(|(before, rest)| Some((before, rest.split_once(&end)?.1)));
        let (before, after) = parts.ok_or_else(|| format!("the document has no place `{begin}` … `{end}`"))?;
        Ok(format!("{before}{begin}\n{tables}{end}{after}"))
    }

    /// The document at `path` with `tables` in this place.
    ///
    /// # Errors
    /// As [`Place::splice`], or when the document cannot be read.
    pub fn in_file(self, path: &Path, tables: &str) -> Result<String, String> {
        let error = |message: String| format!("{}: {message}", path.display());
        let document = std::fs::read_to_string(path).map_err(|cause| error(cause.to_string()))?;
        self.splice(&document, tables).map_err(error)
    }

    /// Writes `tables` into the document at `path`, or prints them if there is none.
    ///
    /// # Errors
    /// As [`Place::in_file`], or when the document cannot be written.
    pub fn tell(self, path: Option<&Path>, tables: &str) -> Result<(), String> {
        let Some(path) = path else {
            println!("{tables}");
            return Ok(());
        };
        std::fs::write(path, self.in_file(path, tables)?).map_err(|error| format!("{}: {error}", path.display()))
    }
}

/// How this program was started, as a call of `script` and without the folders of this machine.
#[must_use]
pub fn command_line(script: &str) -> String {
    let words = std::env::args().skip(1).map(|word| match word.rsplit_once('/') {
        Some((before, file)) if before.contains('=') => {
            format!("{}={file}", before.split('=').next().unwrap_or_default())
        }
        Some((_, file)) if word.starts_with('/') => file.to_owned(),
        _ => word,
    });
    std::iter::once(script.to_owned()).chain(words).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_replace_tables_and_nothing_else() {
        let place = Place("test");
        let document = "before\n<!-- test: begin -->\nold\n<!-- test: end -->\nafter\n";
        let new = place.splice(document, "new\n").unwrap();
        assert_eq!(new, document.replace("old", "new"));
        assert_eq!(place.splice(&new, "new\n").unwrap(), new);
        assert!(place.splice("nothing", "new").is_err() && Place("other").splice(document, "new").is_err());
        assert!(place.splice("<!-- test: end --><!-- test: begin -->", "new").is_err());
    }
}
