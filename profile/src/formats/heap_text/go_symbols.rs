//! Names out of the comments that Go writes below each stack, `# 0x4b798f main.grow+0xaf ./main.go:21` with tabs.
//!
//! The address is the one before the return address. Several lines with one address are a function and what was inlined
//! into it, innermost first.

use std::collections::HashMap;

use crate::model::Frame;

/// More lines than this for one stack are ignored.
const MAX_BLOCK: usize = 4096;

/// Collects the names for addresses.
#[derive(Default)]
pub(super) struct GoSymbols {
    /// Of the stack that is being read.
    block: Vec<(u64, Frame)>,
    known: HashMap<u64, Vec<Frame>>,
}

impl GoSymbols {
    /// Takes a comment line, if it is of this kind.
    pub(super) fn take(&mut self, line: &[u8]) -> bool {
        let Some(symbol) = parse(line) else { return false };
        if self.block.len() < MAX_BLOCK {
            self.block.push(symbol);
        }
        true
    }

    /// The lines for one stack are complete. Addresses that are known from another stack stay as they are.
    pub(super) fn end_block(&mut self) {
        let mut block = std::mem::take(&mut self.block).into_iter().peekable();
        while let Some((address, frame)) = block.next() {
            let mut frames = vec![frame];
            while let Some((_, outer)) = block.next_if(|(next, _)| *next == address) {
                frames.iter_mut().for_each(|inner| inner.inlined = true);
                frames.push(outer);
            }
            self.known.entry(address).or_insert(frames);
        }
    }

    /// The names for the call at this address (the return address less one).
    pub(super) fn find(&self, call: u64) -> Option<&Vec<Frame>> {
        self.known.get(&call)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.known.is_empty()
    }
}

fn parse(line: &[u8]) -> Option<(u64, Frame)> {
    let text = std::str::from_utf8(line.strip_prefix(b"#\t0x")?).ok()?;
    let mut fields = text.split('\t').filter(|field| !field.is_empty());
    let address = u64::from_str_radix(fields.next()?, 16).ok()?;
    let (function, _) = fields.next()?.rsplit_once("+0x")?;
    let (file, line) = fields.next()?.rsplit_once(':')?;
    Some((address, Frame::named(function).at(file, line.parse().ok()?)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_with_one_address_are_inlined_frames() {
        let mut symbols = GoSymbols::default();
        assert!(symbols.take(b"#\t0x10\tmain.inner+0x1\t\t/a b/x.go:3"));
        assert!(symbols.take(b"#\t0x10\tmain.outer+0x1\t\tx.go:9"));
        assert!(symbols.take(b"#\t0x20\tmain.main+0x1\t\tx.go:12"));
        assert!(!symbols.take(b"# runtime.MemStats"));
        assert!(!symbols.take(b"#\t0x20\tmain"));
        symbols.end_block();
        let inner = Frame { inlined: true, ..Frame::named("main.inner").at("/a b/x.go", 3) };
        assert_eq!(symbols.find(0x10), Some(&vec![inner, Frame::named("main.outer").at("x.go", 9)]));
        assert_eq!(symbols.find(0x20).unwrap().len(), 1);
        symbols.take(b"#\t0x20\tother+0x1\tx.go:12");
        symbols.end_block();
        assert_eq!(&*symbols.find(0x20).unwrap()[0].function, "main.main");
    }
}
