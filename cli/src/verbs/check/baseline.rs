//! What was measured at another time.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Read;
use std::path::Path;

use serde::{Deserialize, Serialize};

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
    metrics: BTreeMap<String, Stored>,
}

#[derive(Debug, Deserialize, Serialize)]
struct Stored {
    value: f64,
    /// Standard error.
    error: f64,
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
        if let Some((name, _)) =
            baseline.metrics.iter().find(|(_, stored)| !(stored.value >= 0.0 && stored.error >= 0.0))
        {
            return Err(Failure::new(Code::Input, format!("{place}: {name} is negative")));
        }
        Ok(baseline)
    }

    pub(super) fn of(measured: &Measured) -> Baseline {
        let stored = |name: Name| {
            let Figure { value, error } = measured.figure(name)?;
            Some((name.text().to_owned(), Stored { value, error }))
        };
        Baseline {
            schema: SCHEMA.to_owned(),
            schema_version: VERSION,
            mpp_version: env!("CARGO_PKG_VERSION").to_owned(),
            metrics: Name::ALL.into_iter().filter_map(stored).collect(),
        }
    }

    /// The figures that this version knows.
    pub(super) fn figures(&self) -> impl Iterator<Item = (Name, Figure)> {
        Name::ALL.into_iter().filter_map(|name| {
            let Stored { value, error } = *self.metrics.get(name.text())?;
            Some((name, Figure { value, error }))
        })
    }

    /// As it is written.
    ///
    /// # Errors
    /// None that can happen.
    pub(super) fn text(&self) -> anyhow::Result<String> {
        Ok(serde_json::to_string_pretty(self)? + "\n")
    }
}
