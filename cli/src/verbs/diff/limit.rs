//! How much more there may be.

use std::str::FromStr;

use mpp_profile::Unit;
use mpp_profile::analysis::diff::{Difference, STANDARD_ERRORS};
use mpp_profile::units::{bytes, count, parse_size, percent};

use crate::exit::Code;
use crate::render::signed;

/// A limit on growth.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Limit {
    /// In bytes or blocks.
    Amount(u64),
    /// In percent of what there was.
    Percent(f64),
}

impl FromStr for Limit {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text.strip_suffix('%') {
            Some(number) => match number.trim().parse::<f64>() {
                Ok(number) if number.is_finite() && number >= 0.0 => Ok(Limit::Percent(number)),
                _ => Err("expected a percentage such as 5%".to_owned()),
            },
            None => parse_size(text).map(Limit::Amount).map_err(|error| format!("{error}, or a percentage such as 5%")),
        }
    }
}

impl Limit {
    /// The exit code if it is not kept for sure, and why.
    pub(super) fn judge(self, difference: &Difference, unit: Unit) -> (Option<Code>, String) {
        let old = difference.old.value(unit);
        let most = match self {
            Limit::Amount(most) => most as f64,
            Limit::Percent(share) => old as f64 * share / 100.0,
        };
        let change = difference.change(unit);
        let error = STANDARD_ERRORS * difference.error;
        let print: fn(u64) -> String = if unit == Unit::Bytes { bytes } else { count };
        let spread = if error > 0.0 { format!(" ± {}", print(error.round() as u64)) } else { String::new() };
        let share = match old {
            0 => "there was nothing".to_owned(),
            _ => format!("{} of what there was", percent(change as f64, old as f64)),
        };
        let what = format!("{}{spread} ({share}); allowed is +{}", signed(change, print), print(most.round() as u64));
        if change as f64 + error <= most {
            (None, format!("passed: {what}"))
        } else if change as f64 - error > most {
            (Some(Code::GateFailed), format!("more than --fail-over allows: {what}"))
        } else {
            (
                Some(Code::Inconclusive),
                format!("inconclusive: {what}\nsample more to tell: mpp run --sample 64KiB, or --mode exact"),
            )
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use mpp_profile::analysis::Sum;

    fn difference(old: u64, new: u64, deviation: f64) -> Difference {
        let sum = |bytes| Sum { bytes, ..Sum::default() };
        Difference { rows: Vec::new(), old: sum(old), new: sum(new), error: deviation, scale: 1.0 }
    }

    #[test]
    fn three_verdicts() {
        let judge = |text: &str, old, new, deviation| {
            text.parse::<Limit>().expect("a limit").judge(&difference(old, new, deviation), Unit::Bytes).0
        };
        assert_eq!(judge("5%", 1000, 1050, 0.0), None);
        assert_eq!(judge("5%", 1000, 1051, 0.0), Some(Code::GateFailed));
        assert_eq!(judge("50", 1000, 1051, 0.0), Some(Code::GateFailed));
        assert_eq!(judge("50", 1000, 1051, 10.0), Some(Code::Inconclusive));
        assert_eq!(judge("50", 1000, 1071, 10.0), Some(Code::GateFailed));
        assert_eq!(judge("50", 1000, 1020, 10.0), None);
        assert_eq!(judge("0", 1000, 900, 10.0), None);
        assert!("5x%".parse::<Limit>().is_err() && "-5%".parse::<Limit>().is_err() && "x".parse::<Limit>().is_err());
    }
}
