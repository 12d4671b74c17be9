//! A day that is given, not read from a clock, and Python's `strftime` of it.

use std::fmt::Write as _;

use minijinja::Error;

use super::python::invalid;

const MONTHS: [&str; 12] = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
];
/// From Sunday, as `%w` counts.
const DAYS: [&str; 7] = ["Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"];

/// A day of the proleptic Gregorian calendar, at midnight.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Date {
    /// Year, from 1.
    pub year: u16,
    /// Month, 1 to 12.
    pub month: u8,
    /// Day, from 1.
    pub day: u8,
}

impl Date {
    /// Python's `strftime` in the C locale, for the directives of days; times are midnight.
    pub(super) fn format(self, format: &str) -> Result<String, Error> {
        if self.year == 0 || !(1..=12).contains(&self.month) || self.day == 0 || self.day > self.days_in_month() {
            return Err(invalid(format!("{self:?} is not a date")));
        }
        let month = MONTHS[usize::from(self.month) - 1];
        let weekday = DAYS[self.weekday()];
        let mut out = String::new();
        let mut characters = format.chars();
        while let Some(character) = characters.next() {
            if character != '%' {
                out.push(character);
                continue;
            }
            let directive = characters.next().unwrap_or('%');
            let written = match directive {
                'Y' => write!(out, "{}", self.year),
                'y' => write!(out, "{:02}", self.year % 100),
                'm' => write!(out, "{:02}", self.month),
                'd' => write!(out, "{:02}", self.day),
                'j' => write!(out, "{:03}", self.day_of_year()),
                'B' => out.write_str(month),
                'b' => out.write_str(&month[..3]),
                'A' => out.write_str(weekday),
                'a' => out.write_str(&weekday[..3]),
                'w' => write!(out, "{}", self.weekday()),
                'H' | 'M' | 'S' => out.write_str("00"),
                '%' => out.write_char('%'),
                other => return Err(invalid(format!("strftime_now: %{other} is not supported"))),
            };
            written.map_err(|_| invalid("formatting failed"))?;
        }
        Ok(out)
    }

    fn leap(self) -> bool {
        self.year.is_multiple_of(4) && (!self.year.is_multiple_of(100) || self.year.is_multiple_of(400))
    }

    fn days_in_month(self) -> u8 {
        match self.month {
            2 if self.leap() => 29,
            2 => 28,
            4 | 6 | 9 | 11 => 30,
            _ => 31,
        }
    }

    fn day_of_year(self) -> u32 {
        let before: u32 = (1..self.month).map(|month| u32::from(Self { month, ..self }.days_in_month())).sum();
        before + u32::from(self.day)
    }

    fn weekday(self) -> usize {
        let years = u32::from(self.year) - 1;
        // The first of January of year 1 was a Monday.
        let days = years * 365 + years / 4 - years / 100 + years / 400 + self.day_of_year();
        (days % 7) as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `datetime(2024, 2, 29).strftime("%A %a %d %B %b %Y %y %j %w %H:%M:%S %%")`
    #[test]
    fn dates_are_pythons() {
        let date = Date { year: 2024, month: 2, day: 29 };
        assert_eq!(
            date.format("%A %a %d %B %b %Y %y %j %w %H:%M:%S %%").unwrap(),
            "Thursday Thu 29 February Feb 2024 24 060 4 00:00:00 %"
        );
        assert_eq!(Date { year: 2026, month: 11, day: 29 }.format("%a").unwrap(), "Sun");
        assert!(Date { year: 2023, month: 2, day: 29 }.format("%d").is_err());
        assert!(date.format("%Q").is_err());
    }
}
