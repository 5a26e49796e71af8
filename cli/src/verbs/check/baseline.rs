//! What was measured at another time.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Read;
use std::path::Path;

use serde::{Deserialize, Serialize};
use serde_json::Number;

use super::gates::{Figure, Measured, Name};
use crate::exit::{Code, Failure};

const SCHEMA: &str = "mpp-baseline";
const VERSION: u32 = 1;
/// A baseline has a dozen numbers.
const LARGEST: u64 = 1 << 20;

/// The file that `--write-baseline` writes.
#[derive(Debug, Deserialize, Serialize)]
pub(super) struct Baseline {
    schema: String,
    schema_version: u32,
    mpp_version: String,
    /// Whether it is of a part of the program.
    #[serde(default)]
    pub(super) filtered: bool,
    metrics: BTreeMap<String, Stored>,
}

#[derive(Debug, Deserialize, Serialize)]
struct Stored {
    value: Number,
    /// Standard error.
    error: Number,
}

impl Stored {
    fn figure(&self) -> Option<Figure> {
        let number = |number: &Number| number.as_f64().filter(|number| number.is_finite() && *number >= 0.0);
        Some(Figure { value: number(&self.value)?, error: number(&self.error)? })
    }
}

impl Baseline {
    /// Reads a file.
    ///
    /// # Errors
    /// If it is not there, or is no baseline.
    pub(super) fn read(path: &Path) -> Result<Baseline, Failure> {
        let place = path.display();
        let file = match File::open(path) {
            Ok(file) => file,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                let advice = "make one with `mpp check --write-baseline` from a run that is good";
                return Err(Failure::new(Code::NoPartner, format!("{place}: there is no baseline\n{advice}")));
            }
            Err(error) => return Err(Failure::new(Code::Input, format!("{place}: {error}"))),
        };
        let mut text = String::new();
        let read = file.take(LARGEST).read_to_string(&mut text).map_err(anyhow::Error::from);
        let parsed = read.and_then(|_| Ok(serde_json::from_str::<Baseline>(&text)?));
        let baseline =
            parsed.map_err(|error| Failure::new(Code::Input, format!("{place}: is no baseline: {error}")))?;
        if baseline.schema != SCHEMA || baseline.schema_version > VERSION {
            let why = format!(
                "is \"{}\" version {}; expected \"{SCHEMA}\" up to version {VERSION}",
                baseline.schema, baseline.schema_version
            );
            return Err(Failure::new(Code::Input, format!("{place}: {why}")));
        }
        if let Some((name, _)) = baseline.metrics.iter().find(|(_, stored)| stored.figure().is_none()) {
            return Err(Failure::new(Code::Input, format!("{place}: {name} is negative")));
        }
        Ok(baseline)
    }

    pub(super) fn of(measured: &Measured) -> Baseline {
        let stored = |name: Name| {
            let Figure { value, error } = measured.figure(name)?;
            Some((name.text().to_owned(), Stored { value: name.number(value)?, error: name.number(error)? }))
        };
        Baseline {
            schema: SCHEMA.to_owned(),
            schema_version: VERSION,
            mpp_version: env!("CARGO_PKG_VERSION").to_owned(),
            filtered: measured.filtered,
            metrics: Name::ALL.into_iter().filter_map(stored).collect(),
        }
    }

    /// The figures that this version knows.
    pub(super) fn figures(&self) -> impl Iterator<Item = (Name, Figure)> {
        Name::ALL.into_iter().filter_map(|name| Some((name, self.metrics.get(name.text())?.figure()?)))
    }

    /// The names of figures that it does not know; not escaped.
    pub(super) fn unknown(&self) -> impl Iterator<Item = &str> {
        let is_known = |text: &str| Name::ALL.into_iter().any(|name| name.text() == text);
        self.metrics.keys().map(String::as_str).filter(move |text| !is_known(text))
    }

    /// As it is written.
    ///
    /// # Errors
    /// None that can happen.
    pub(super) fn text(&self) -> anyhow::Result<String> {
        Ok(serde_json::to_string_pretty(self)? + "\n")
    }
}
