//! The numbers of a payload.

/// A payload and how far it was read.
#[derive(Clone, Copy)]
pub(super) struct Numbers<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Numbers<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, at: 0 }
    }

    pub(super) fn at(bytes: &'a [u8], at: usize) -> Self {
        Self { bytes, at }
    }

    pub(super) fn position(&self) -> usize {
        self.at
    }

    pub(super) fn is_empty(&self) -> bool {
        self.at >= self.bytes.len()
    }

    pub(super) fn rest(&self) -> &'a [u8] {
        self.bytes.get(self.at..).unwrap_or_default()
    }

    /// Seven bits a byte, lowest first; all but the last have the eighth set. `what` is for the message.
    pub(super) fn number(&mut self, what: &str) -> Result<u64, String> {
        let mut value = 0u64;
        for (place, &byte) in self.rest().iter().enumerate().take(10) {
            let bits = u64::from(byte & 0x7f);
            if place == 9 && bits > 1 {
                return Err(format!("{what} is a number of more than 64 bits"));
            }
            value |= bits << (7 * place);
            if byte < 0x80 {
                self.at += place + 1;
                return Ok(value);
            }
        }
        let short = self.rest().len() < 10;
        Err(if short {
            format!("the block ends in {what}")
        } else {
            format!("{what} is a number of more than 64 bits")
        })
    }

    /// As [`Numbers::number`], in 32 bits.
    pub(super) fn small(&mut self, what: &str) -> Result<u32, String> {
        let value = self.number(what)?;
        u32::try_from(value).map_err(|_| format!("{what} is {value}, more than there can be"))
    }

    fn signed(&mut self, what: &str) -> Result<i64, String> {
        let zigzag = self.number(what)?;
        Ok((zigzag >> 1) as i64 ^ -((zigzag & 1) as i64))
    }

    /// A number as its difference from another one; neither is below 0 or beyond 64 bits.
    pub(super) fn difference(&mut self, from: u64, what: &str) -> Result<u64, String> {
        let difference = self.signed(what)?;
        from.checked_add_signed(difference).ok_or_else(|| format!("{what} is {from} {difference:+}"))
    }

    /// A number as what is missing to another one.
    pub(super) fn difference_down(&mut self, from: u64, what: &str) -> Result<u64, String> {
        let missing = self.signed(what)?;
        let value = i128::from(from) - i128::from(missing);
        u64::try_from(value).map_err(|_| format!("{what} is {value}"))
    }

    /// Addresses may wrap: the kernel's are above 2^63.
    pub(super) fn address(&mut self, from: u64, what: &str) -> Result<u64, String> {
        Ok(from.wrapping_add_signed(self.signed(what)?))
    }

    pub(super) fn bytes(&mut self, length: u64, what: &str) -> Result<&'a [u8], String> {
        let length = usize::try_from(length).ok().filter(|&length| length <= self.rest().len());
        let length = length.ok_or_else(|| format!("the block ends in {what}"))?;
        let bytes = &self.rest()[..length];
        self.at += length;
        Ok(bytes)
    }
}
