//! The addresses of all stacks, each once and with a number.

use crate::observe::output::Failure;
use crate::observe::room::Room;
use crate::observe::sampler::table::mix;

/// Numbers begin with 0, in the order in which addresses came.
pub(super) struct Frames {
    addresses: Room<usize>,
    /// Numbers plus 1, by the hash of the address; 0 = free. As many as a power of two, and at least twice as many as there are addresses.
    slots: Room<u32>,
}

impl Frames {
    const FIRST: usize = 4096;

    pub(super) fn new() -> Result<Frames, Failure> {
        // SAFETY: numbers may be zero.
        Ok(Frames { addresses: Room::new(), slots: unsafe { Room::zeroed(Self::FIRST) }? })
    }

    pub(super) fn all(&self) -> &[usize] {
        &self.addresses
    }

    /// The number of an address.
    pub(super) fn number(&mut self, address: usize) -> Result<u32, Failure> {
        let slot = self.slot(address);
        if self.slots[slot] != 0 {
            return Ok(self.slots[slot] - 1);
        }
        let number = u32::try_from(self.addresses.len()).map_err(|_| Failure::NO_MEMORY)?;
        self.addresses.push(address)?;
        self.slots[slot] = number + 1;
        if self.addresses.len() * 2 > self.slots.len() {
            self.grow()?;
        }
        Ok(number)
    }

    /// The number of an address that has one.
    pub(super) fn find(&self, address: usize) -> Option<u32> {
        self.slots[self.slot(address)].checked_sub(1)
    }

    /// Where an address is, or would be.
    fn slot(&self, address: usize) -> usize {
        let mask = self.slots.len() - 1;
        let mut slot = mix(0, address as u64) as usize & mask;
        while self.slots[slot] != 0 && self.addresses[self.slots[slot] as usize - 1] != address {
            slot = (slot + 1) & mask;
        }
        slot
    }

    fn grow(&mut self) -> Result<(), Failure> {
        // SAFETY: numbers may be zero.
        self.slots = unsafe { Room::zeroed(self.slots.len() * 2) }?;
        for number in 0..self.addresses.len() {
            let slot = self.slot(self.addresses[number]);
            self.slots[slot] = number as u32 + 1;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_address_has_one_number() {
        let mut frames = Frames::new().unwrap();
        for round in 0..2 {
            for i in 0..10_000 {
                assert_eq!(frames.number(i * 16 + 7), Ok(i as u32), "{round}");
            }
        }
        assert_eq!((frames.find(7), frames.find(23), frames.find(8)), (Some(0), Some(1), None));
        assert_eq!((frames.all().len(), frames.all()[9_999]), (10_000, 159_991));
    }
}
