//! Addresses of code, each with a number.

use crate::observe::output::Failure;
use crate::observe::room::Room;

/// Addresses in the order of their numbers, which begin with 1, and a hash table of the numbers.
pub(super) struct Locations {
    addresses: Room<usize>,
    /// Numbers, 0 = nothing. A power of two of them, at most half of them in use.
    slots: Room<u32>,
}

const FIRST_SLOTS: usize = 4096;

impl Locations {
    pub(super) fn new() -> Result<Locations, Failure> {
        Ok(Locations { addresses: Room::new(), slots: slots(FIRST_SLOTS)? })
    }

    /// The number of an address.
    pub(super) fn number(&mut self, address: usize) -> Result<u64, Failure> {
        let mut slot = place(address, &self.slots);
        while self.slots[slot] != 0 {
            if self.addresses[self.slots[slot] as usize - 1] == address {
                return Ok(self.slots[slot] as u64);
            }
            slot = (slot + 1) % self.slots.len();
        }
        self.addresses.push(address)?;
        self.slots[slot] = u32::try_from(self.addresses.len()).map_err(|_| Failure::NO_MEMORY)?;
        if self.addresses.len() * 2 > self.slots.len() {
            self.rebuild()?;
        }
        Ok(self.addresses.len() as u64)
    }

    /// All of them; the first has number 1.
    pub(super) fn all(&self) -> &[usize] {
        &self.addresses
    }

    fn rebuild(&mut self) -> Result<(), Failure> {
        let mut larger = slots(self.slots.len() * 2)?;
        for (&address, number) in self.addresses.iter().zip(1..) {
            let mut slot = place(address, &larger);
            while larger[slot] != 0 {
                slot = (slot + 1) % larger.len();
            }
            larger[slot] = number;
        }
        self.slots = larger;
        Ok(())
    }
}

fn slots(count: usize) -> Result<Room<u32>, Failure> {
    // SAFETY: numbers may be zero.
    unsafe { Room::zeroed(count) }
}

/// Where to look first. A multiplicative hash with the golden ratio, whose high bits are the good ones.
fn place(address: usize, slots: &[u32]) -> usize {
    address.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> (usize::BITS - slots.len().trailing_zeros())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_address_has_one_number() {
        let mut locations = Locations::new().unwrap();
        let address = |i: usize| 0x7f00_0000_0000 + i * 16;
        for round in 0..2 {
            for i in 0..20_000 {
                assert_eq!(locations.number(address(i)).unwrap(), i as u64 + 1, "{round}");
            }
        }
        assert_eq!(locations.all().len(), 20_000);
        assert_eq!(locations.all()[77], address(77));
    }
}
