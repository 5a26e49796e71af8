//! Reads one module's symbols and lines and puts together the frames of the addresses in it.

use std::collections::HashMap;
use std::sync::Arc;

use super::Fault;
use super::dbi::{ModuleInfo, Sections};
use super::lines::{Parts, Source};
use super::msf::Msf;
use super::publics::Publics;
use super::strings::Strings;
use super::symbols::{self, Found, Function};
use super::types::Names;
use crate::dwarf::Answer;
use crate::dwarf::fuel::Meter;
use crate::{Frame, Name};

/// What the symbols of a module start with: the number of their form.
const SYMBOLS_C13: u32 = 4;

/// Bytes that can be read in the time of one step.
const BYTES_PER_STEP: usize = 16;

/// What all workers read.
#[derive(Debug)]
pub(super) struct Shared<'m> {
    pub(super) msf: &'m Msf,
    pub(super) sections: &'m Sections,
    pub(super) names: &'m Names<'m>,
    pub(super) publics: Option<&'m Publics<'m>>,
    pub(super) strings: Strings<'m>,
}

/// The addresses in one module.
#[derive(Debug)]
pub(super) struct Task {
    pub(super) info: ModuleInfo,
    /// Which ones they are of all addresses that are looked up.
    pub(super) indices: Vec<usize>,
    /// Ascending.
    pub(super) addresses: Vec<u32>,
}

/// What a module knows about an address.
#[derive(Debug, Default)]
pub(super) struct Known {
    pub(super) answer: Option<Answer>,
    /// Without an answer: where the last function before the address starts, which ends before the address.
    pub(super) before: Option<u32>,
}

/// Looks up the addresses of one module after the other.
#[derive(Debug)]
pub(super) struct Worker<'w> {
    shared: &'w Shared<'w>,
    meter: Meter<'w>,
    /// Paths of files, by where they are in the stream of strings.
    paths: HashMap<u32, Option<Arc<str>>>,
    /// Names of inlined functions by their id.
    inlined: HashMap<u32, Option<Name>>,
    /// Names of the others by their address.
    functions: HashMap<u32, Name>,
}

impl<'w> Worker<'w> {
    pub(super) fn new(shared: &'w Shared<'w>, meter: Meter<'w>) -> Self {
        Worker { shared, meter, paths: HashMap::new(), inlined: HashMap::new(), functions: HashMap::new() }
    }

    pub(super) fn run(&mut self, task: &Task) -> (Vec<Known>, Result<(), Fault>) {
        let read = self.read(&task.info);
        let (bytes, symbols_end, lines_start) = match read {
            Ok(Some(read)) => read,
            Ok(None) => return (Vec::new(), Ok(())),
            Err(fault) => return (Vec::new(), Err(fault)),
        };
        let (lines, mut result) = Parts::split(bytes.get(lines_start..).unwrap_or_default(), &mut self.meter);
        let symbols = bytes.get(4..symbols_end).unwrap_or_default();
        let sections = self.shared.sections;
        let (found, of_symbols) = symbols::find(symbols, sections, &lines.inlinees, &task.addresses, &mut self.meter);
        let (sources, of_lines) = lines.find(sections, &task.addresses, &mut self.meter);
        result = result.and(of_symbols).and(of_lines);
        let mut answers = Vec::with_capacity(found.len());
        for (found, source) in found.into_iter().zip(sources) {
            let before = found.before;
            match self.answer(found, source, &lines) {
                Ok(answer) => answers.push(Known { answer, before }),
                Err(fault) => {
                    result = result.and(Err(fault));
                    break;
                }
            }
        }
        (answers, result)
    }

    /// Symbols and lines of a module, where in the bytes the symbols end, and where the lines begin. `None` when the
    /// module has none.
    fn read(&mut self, info: &ModuleInfo) -> Result<Option<(Vec<u8>, usize, usize)>, Fault> {
        let Some(stream) = info.stream.and_then(|number| self.shared.msf.stream(number)) else { return Ok(None) };
        let symbols_end = info.symbols as usize;
        let lines_start = symbols_end.saturating_add(info.old_lines as usize);
        let size = lines_start.saturating_add(info.lines as usize);
        // Modules do not share streams, but a damaged file may say so.
        self.meter.burn((size / BYTES_PER_STEP) as u64)?;
        let bytes = stream.read(0, size)?;
        let form = bytes.first_chunk().copied().map(u32::from_le_bytes);
        if bytes.is_empty() {
            return Ok(None);
        }
        if form != Some(SYMBOLS_C13) {
            return Err(stream.damaged(0, "symbols in an older form"));
        }
        Ok(Some((bytes, symbols_end, lines_start)))
    }

    /// Puts together the frames of one address. Where a call was inlined, the lines of the function around it tell the
    /// place of the call.
    fn answer(&mut self, found: Found, source: Option<Source>, parts: &Parts<'_>) -> Result<Option<Answer>, Fault> {
        let Some(function) = found.function else { return Ok(None) };
        let mut frames = Vec::with_capacity(found.inlined.len() + 1);
        for inlined in found.inlined.iter().rev() {
            let function = self.inlined_name(inlined.function)?;
            let (file, line) = self.place(inlined.source, parts)?;
            frames.push(Frame { function, file, line, inlined: true });
        }
        let (file, line) = self.place(source, parts)?;
        frames.push(Frame { function: Some(self.function_name(function)?), file, line, inlined: false });
        Ok(Some(Answer { frames, name_is_poor: false }))
    }

    fn place(&mut self, source: Option<Source>, parts: &Parts<'_>) -> Result<(Option<Arc<str>>, u32), Fault> {
        let Some(source) = source else { return Ok((None, 0)) };
        let Some(at) = parts.path(source.file) else { return Ok((None, 0)) };
        if let Some(path) = self.paths.get(&at) {
            return Ok((path.clone(), source.line));
        }
        let path = self.shared.strings.get(at)?.filter(|path| !path.is_empty());
        self.meter.burn(16 + path.as_ref().map_or(0, Vec::len) as u64)?;
        let path: Option<Arc<str>> = path.map(|path| String::from_utf8_lossy(&path).into());
        self.paths.insert(at, path.clone());
        Ok((path, source.line))
    }

    fn inlined_name(&mut self, id: u32) -> Result<Option<Name>, Fault> {
        if let Some(name) = self.inlined.get(&id) {
            return Ok(name.clone());
        }
        let name = self.shared.names.function(id, &mut self.meter)?;
        // What is kept is paid for by its size.
        self.meter.burn(64 + name.as_ref().map_or(0, Vec::len) as u64)?;
        let name = name.map(|name| Name::from_raw(&name));
        self.inlined.insert(id, name.clone());
        Ok(name)
    }

    /// The linker's name if it is a mangled one, which tells the parameters; else that of the symbol.
    fn function_name(&mut self, function: Function) -> Result<Name, Fault> {
        if let Some(name) = self.functions.get(&function.start) {
            return Ok(name.clone());
        }
        let public = match self.shared.publics {
            Some(publics) => publics.at_or_before(function.start, &mut self.meter)?,
            None => None,
        };
        let mut names = public.filter(|public| public.start == function.start).map_or_else(Vec::new, |p| p.names);
        names.retain(|name| is_mangled(name));
        // Functions with the same code may have been folded into one: the name that means the same as the symbol's.
        let own = last_part(&function.name);
        names.sort_by_key(|name| (!contains(name, own), name.len()));
        let raw = names.first().map_or(&function.name[..], Vec::as_slice);
        self.meter.burn(raw.len() as u64)?;
        let name = Name::from_raw(raw);
        self.functions.insert(function.start, name.clone());
        Ok(name)
    }
}

/// Whether a name is mangled: by Visual C++, by Rust, or as other compilers mangle C++.
fn is_mangled(name: &[u8]) -> bool {
    [&b"?"[..], b"_R", b"_Z"].iter().any(|start| name.starts_with(start))
}

/// The last part of a qualified name, without template arguments.
fn last_part(name: &[u8]) -> &[u8] {
    let end = name.iter().position(|&byte| byte == b'<').filter(|&end| end != 0).unwrap_or(name.len());
    let name = name.get(..end).unwrap_or(name);
    let start = name.iter().rposition(|&byte| byte == b':').map_or(0, |colon| colon + 1);
    name.get(start..).unwrap_or(name)
}

fn contains(text: &[u8], part: &[u8]) -> bool {
    !part.is_empty() && text.windows(part.len()).any(|window| window == part)
}
