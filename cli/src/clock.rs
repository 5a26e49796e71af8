//! Wall-clock times as text: UTC, without a calendar library.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// A point in time to the millisecond, in UTC.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Timestamp {
    unix_milliseconds: u64,
}

impl Timestamp {
    /// The present time; 1970 if the clock is set to before that.
    pub(crate) fn now() -> Timestamp {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or(Duration::ZERO);
        Timestamp { unix_milliseconds: u64::try_from(since.as_millis()).unwrap_or(u64::MAX) }
    }

    /// RFC 3339, as in `2026-11-30T10:14:33.120Z`.
    pub(crate) fn rfc3339(self) -> String {
        let ([year, month, day], [hour, minute, second], millisecond) = self.fields();
        format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{millisecond:03}Z")
    }

    /// The basic format of ISO 8601, as in `20261130T101433Z`: sorts by time and is fit for a file name.
    pub(crate) fn compact(self) -> String {
        let ([year, month, day], [hour, minute, second], _) = self.fields();
        format!("{year:04}{month:02}{day:02}T{hour:02}{minute:02}{second:02}Z")
    }

    fn fields(self) -> ([u64; 3], [u64; 3], u64) {
        let seconds = self.unix_milliseconds / 1000;
        let (days, of_day) = (seconds / 86_400, seconds % 86_400);
        (civil_date(days), [of_day / 3600, of_day / 60 % 60, of_day % 60], self.unix_milliseconds % 1000)
    }
}

/// Year, month and day of a number of days since 1970-01-01, in the Gregorian calendar.
///
/// Counted from 1 March of the year 0, the leap day is the last day of a year, and 400 years are 146,097 days.
fn civil_date(days_since_1970: u64) -> [u64; 3] {
    /// From 0000-03-01 to 1970-01-01.
    const SHIFT: u64 = 719_468;
    let days = days_since_1970 + SHIFT;
    let (era, day_of_era) = (days / 146_097, days % 146_097);
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    // From March on, five months have 153 days.
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
    [era * 400 + year_of_era + u64::from(month <= 2), month, day]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: u64, milliseconds: u64) -> Timestamp {
        Timestamp { unix_milliseconds: seconds * 1000 + milliseconds }
    }

    // Expected values by `date -u -d @SECONDS`.
    #[test]
    fn prints_known_dates() {
        assert_eq!(at(0, 0).rfc3339(), "1970-01-01T00:00:00.000Z");
        assert_eq!(at(951_782_399, 7).rfc3339(), "2000-02-28T23:59:59.007Z");
        assert_eq!(at(951_782_400, 0).rfc3339(), "2000-02-29T00:00:00.000Z");
        assert_eq!(at(1_735_689_599, 999).rfc3339(), "2024-12-31T23:59:59.999Z");
        assert_eq!(at(4_107_542_400, 0).compact(), "21000301T000000Z");
        assert_eq!(at(1_796_033_673, 0).compact(), "20261130T101433Z");
    }
}
