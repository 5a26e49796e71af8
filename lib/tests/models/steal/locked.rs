//! What the owner does under its heap's lock: `settle_pop`, `enter`, the change of the stacks, `leave`.

use super::super::explore::{Bad, Fault, Steps};
use super::owner::At;
use super::state::{BOTTOM, CLASS, FREE, FREE_TOP, Frame, NEVER, POISON, State, TOP, bit};
use super::{Code, Mutant, Steal};

impl Steal {
    /// Steps under the lock.
    pub(super) fn locked(&self, s: &mut State, f: &mut Frame) -> Result<&'static str, Bad> {
        let malloc = f.tries == 0;
        Ok(match f.at {
            At::SettleBottom | At::SettleTop | At::SettleStore | At::Settled => self.settle(s, f),
            At::CloseBottom => {
                s.busy = if self.has(Mutant::BusyNotSet) { 0 } else { CLASS };
                if !self.has(Mutant::NotClosed) {
                    s.store(BOTTOM, POISON);
                }
                f.at = At::CloseLimit;
                "close bottom"
            }
            At::CloseLimit => {
                if !self.has(Mutant::NotClosed) {
                    s.free_limit = 0;
                }
                f.at = match (malloc, f.due) {
                    (true, _) => At::ReadEpoch,
                    (false, true) => At::FlushBlock,
                    (false, false) => At::Fill,
                };
                "close free_limit"
            }
            At::ReadEpoch => {
                f.epoch = s.now;
                f.at = if malloc { At::Event } else { At::OpenBottom };
                "read epoch"
            }
            At::Fill | At::SwapTop | At::RefillTop | At::FlushBlock => self.fill(s, f)?,
            At::Pop => {
                f.at = At::OpenBottom;
                f.block = 0;
                let top = s.load(TOP);
                if top != s.real_bottom {
                    s.store(TOP, top - 1);
                    f.block = s.slot(top - 1);
                    s.claim(f.block)?;
                    self.popped(s)?;
                }
                "pop under the lock"
            }
            At::OpenBottom => {
                let keeps = !(f.tries != 0 && self.has(Mutant::RoomOpensPoison));
                let bottom = if keeps { s.armed(f.epoch) } else { s.armed(s.epoch) };
                s.store(BOTTOM, bottom);
                f.at = At::OpenLimit;
                "open bottom"
            }
            At::OpenLimit => {
                s.free_limit = s.free_base() + self.capacity;
                f.at = At::Unbusy;
                "open free_limit"
            }
            At::Unbusy => {
                s.busy = 0;
                f.at = At::Unlock;
                "not busy"
            }
            At::Unlock => {
                s.drain();
                s.lock = FREE;
                f.at = match (malloc, f.due) {
                    (true, _) => At::Return,
                    (false, true) => At::RoomLock,
                    (false, false) => At::LoadFree,
                };
                if !malloc && !f.due {
                    f.tries = 3;
                }
                "unlock"
            }
            _ => {
                // Not claimed to be new: with signals, the block was checked when it was popped.
                s.program |= bit(f.block);
                f.at = At::Idle;
                "return the block"
            }
        })
    }

    /// `settle_pop`.
    fn settle(&self, s: &mut State, f: &mut Frame) -> &'static str {
        let now = self.code == Code::Now;
        let popped = f.tries == 0 && !self.has(Mutant::CheckFirst);
        // In `make_room`, after the flush, it is not looked again.
        if f.at == At::SettleBottom && f.due && !now {
            f.due = false;
            f.at = At::CloseBottom;
            return "go on with the swap";
        }
        match f.at {
            At::SettleBottom if now => {
                f.bottom = s.real_bottom.max(s.limit);
                f.at = At::SettleTop;
                "settle: what bottom should be"
            }
            At::SettleBottom => {
                f.bottom = s.load(BOTTOM);
                let claimed = s.claimed && !self.has(Mutant::ClaimForgotten);
                let empty = f.bottom != POISON && !claimed && !(popped && self.has(Mutant::UndoAlways));
                if !empty {
                    f.bottom = POISON; // take back one slot
                }
                f.at = if (empty || popped) && !self.has(Mutant::NoUndo) { At::SettleTop } else { At::Settled };
                "settle: load bottom"
            }
            At::SettleTop => {
                f.top = s.load(TOP);
                f.at = if now && f.top >= f.bottom { At::Settled } else { At::SettleStore };
                "settle: load top"
            }
            At::SettleStore => {
                s.store(TOP, if f.bottom == POISON { f.top + 1 } else { f.top.max(f.bottom) });
                f.at = At::Settled;
                "settle: store top"
            }
            _ => {
                s.claimed = false;
                f.due = f.tries != 0 && s.load(TOP) != s.real_bottom; // a flush comes first
                f.at = At::CloseBottom;
                "settled"
            }
        }
    }

    /// Look at the epoch and at the pending sample; every distance may be drawn.
    pub(super) fn event(&self, state: &State, steps: &mut Steps<State>) {
        let depth = state.depth as usize;
        let mut s = *state;
        let epoch = s.frames[depth].epoch;
        s.frames[depth].at = At::Fill;
        s.frames[depth].due = false;
        if s.load(TOP) < s.limit && self.handler_calls == 0 && !s.child {
            return steps.result("event", Err((Fault::Inexact, "more pops than the limit allows")));
        }
        let on = epoch & 1 == 1;
        let draws: &[i8] = if on { &Self::DRAWS } else { &[NEVER] };
        let mut drawn = vec![s];
        if s.epoch != epoch {
            s.epoch = epoch;
            drawn = draws.iter().map(|&d| State { limit: s.load(TOP) - d, drawn: d, since: 0, ..s }).collect();
        }
        for s in drawn {
            if s.load(TOP) != s.limit {
                steps.to("event: none", s);
                continue;
            }
            if on && s.since != s.drawn && self.handler_calls == 0 && !s.child {
                return steps.result("event", Err((Fault::Inexact, "the sampled allocation is not the drawn one")));
            }
            for &d in draws {
                // The pop that follows is this allocation's own.
                let (limit, since) = if on { (s.load(TOP) - 1 - d, -1) } else { (s.load(TOP) - d, 0) };
                steps.to("event: due", State { limit, drawn: d, since, ..s });
            }
        }
    }

    /// Change the stacks: swap, refill, flush, rewind.
    fn fill(&self, s: &mut State, f: &mut Frame) -> Result<&'static str, Bad> {
        let malloc = f.tries == 0;
        Ok(match f.at {
            At::Fill if malloc && s.load(TOP) != s.real_bottom => {
                f.at = At::Pop;
                "not empty"
            }
            At::Fill if s.load(FREE_TOP) > s.free_bottom => {
                if !malloc && s.load(TOP) > s.real_bottom && self.least <= Fault::Lost {
                    return Err((Fault::Lost, "swap throws away cached blocks"));
                }
                s.alloc_base = s.free_base();
                s.real_bottom = s.free_bottom;
                if self.has(Mutant::OpenBeforeTop) {
                    s.store(BOTTOM, s.real_bottom);
                }
                f.at = At::SwapTop;
                "swap: arrays"
            }
            At::Fill if malloc => {
                // The block with the lowest address is popped first.
                let mut blocks: Vec<u8> = (1..=8u8).filter(|&block| s.slab & bit(block) != 0).collect();
                blocks.truncate(s.batch as usize);
                s.batch = (s.batch * 2).min(self.capacity as u8);
                s.slab &= !blocks.iter().map(|&block| bit(block)).sum::<u8>();
                for (i, &block) in blocks.iter().rev().enumerate() {
                    s.store(s.alloc_base as u8 + i as u8, block as i8);
                }
                f.top = s.alloc_base + blocks.len() as i8;
                f.at = At::RefillTop;
                "refill: slots"
            }
            At::Fill => {
                self.rewind(s);
                f.at = At::ReadEpoch;
                "rewind"
            }
            At::SwapTop => {
                s.set_top(s.load(FREE_TOP));
                self.rewind(s);
                f.at = if malloc { At::Pop } else { At::ReadEpoch };
                "swap: tops"
            }
            At::RefillTop => {
                s.real_bottom = s.alloc_base;
                s.set_top(f.top);
                f.at = At::Pop;
                "refill: top"
            }
            _ => self.flush(s, f)?,
        })
    }

    fn rewind(&self, s: &mut State) {
        s.free_bottom = s.free_base();
        s.set_free_top(s.free_base());
    }

    /// One block goes to its slab at a time; the stack is emptied after the last.
    fn flush(&self, s: &mut State, f: &mut Frame) -> Result<&'static str, Bad> {
        if s.load(TOP) < s.real_bottom {
            return Err((Fault::Twice, "a stack has less than no blocks"));
        }
        let block = (s.real_bottom..s.load(TOP)).map(|slot| s.slot(slot)).find(|&block| s.slab & bit(block) == 0);
        if let Some(block) = block {
            s.put(block)?;
            if self.has(Mutant::BusyClearedEarly) {
                s.busy = 0;
            }
            return Ok("flush: a block");
        }
        s.real_bottom = s.alloc_base;
        s.set_top(s.alloc_base);
        f.at = At::ReadEpoch;
        Ok("flush: top")
    }
}
