//! Names from the symbol tables of ELF files, for addresses that debug information does not name, or not in full.

use crate::dwarf::Answer;
use crate::elf::Elf;
use crate::elf::plt::{self, Target};
use crate::object::ObjectFile;
use crate::object::symbols::{Symbols, Table};
use crate::{Error, Frame, ModuleReport, Name, Options, SymbolSource};

/// The addresses of a file and what is known of them so far.
struct Look<'l> {
    /// Ascending.
    addresses: &'l [u64],
    answers: &'l mut [Option<Answer>],
    report: &'l mut ModuleReport,
}

/// Gives names from the symbol tables to those of `addresses` (ascending) whose answer has none, or a poor one.
/// `debug_elf` is the separate debug file of `elf`, if there is one.
///
/// Line tables cover the padding between functions too. So where neither the debug information nor a full symbol
/// table knows a function, the line is that of the function before, and is dropped.
pub(crate) fn look_up(
    elf: &Elf<'_>,
    debug_elf: Option<&Elf<'_>>,
    addresses: &[u64],
    answers: &mut [Option<Answer>],
    options: &Options,
    report: &mut ModuleReport,
) {
    let mut look = Look { addresses, answers, report };
    look.stubs(elf);
    let is_complete = look.tables(elf, debug_elf, options);
    if is_complete {
        let has_function = |answer: &mut Answer| answer.frames.iter().any(|frame| frame.function.is_some());
        look.answers.iter_mut().for_each(|answer| *answer = answer.take_if(has_function));
    }
}

/// The same for files of other systems: names from `tables`, the best first, each with what it is called in reports.
pub(crate) fn look_up_in<'f>(
    tables: impl IntoIterator<Item = (&'f dyn ObjectFile, Table, SymbolSource)>,
    addresses: &[u64],
    answers: &mut [Option<Answer>],
    report: &mut ModuleReport,
) {
    let mut look = Look { addresses, answers, report };
    for (file, table, source) in tables {
        if look.poor().next().is_none() {
            break;
        }
        let symbols = look.read(file, table);
        look.table(symbols, source);
    }
}

impl Look<'_> {
    /// All tables, until every address has a good name; says whether one of them should have all functions.
    fn tables(&mut self, elf: &Elf<'_>, debug_elf: Option<&Elf<'_>>, options: &Options) -> bool {
        let symtab = |elf: &Elf<'_>| SymbolSource::Symtab { file: elf.path().to_owned() };
        let mut is_complete = false;
        for elf in debug_elf.into_iter().chain([elf]) {
            if self.poor().next().is_none() {
                return is_complete;
            }
            let symbols = self.read(elf, Table::Full);
            is_complete |= symbols.is_some();
            self.table(symbols, symtab(elf));
        }
        if self.poor().next().is_none() {
            return is_complete;
        }
        let dynamic = self.read(elf, Table::Dynamic);
        let mini = self.noting(elf.mini_debug_info(options)).flatten();
        let mini = mini.as_ref().and_then(|file| self.noting(Elf::read(file)));
        let Some(packed) = mini.as_ref().and_then(|mini| self.read(mini, Table::Full)) else {
            self.table(dynamic, SymbolSource::Dynsym);
            return is_complete;
        };
        // What is in one of them is left out of the other, so only both together tell where a symbol without size ends.
        let all = match dynamic {
            Some(dynamic) => packed.with(dynamic),
            None => packed,
        };
        self.table(Some(all), SymbolSource::MiniDebugInfo);
        true
    }

    fn noting<T>(&mut self, result: Result<T, Error>) -> Option<T> {
        result.map_err(|problem| self.report.problems.push(problem)).ok()
    }

    fn read<'e>(&mut self, file: &'e dyn ObjectFile, table: Table) -> Option<Symbols<'e>> {
        self.noting(file.symbols(table)).flatten()
    }

    /// Indices of the addresses without a name, or with a poor one.
    fn poor(&self) -> impl Iterator<Item = usize> {
        let is_poor = |answer: &Option<Answer>| answer.as_ref().is_none_or(|answer| answer.name_is_poor);
        self.answers.iter().enumerate().filter(move |(_, answer)| is_poor(answer)).map(|(index, _)| index)
    }

    /// Names from one table.
    fn table(&mut self, symbols: Option<Symbols<'_>>, source: SymbolSource) {
        let Some(symbols) = symbols else { return };
        let poor: Vec<usize> = self.poor().collect();
        let wanted: Vec<u64> = poor.iter().map(|&index| self.addresses[index]).collect();
        let mut last: Option<(&[u8], Name)> = None;
        let mut is_used = false;
        for (&index, raw) in poor.iter().zip(symbols.names_of(&wanted)) {
            let Some(raw) = raw else { continue };
            let name = match &last {
                Some((known, name)) if *known == raw => name.clone(),
                _ => Name::from_raw(raw),
            };
            last = Some((raw, name.clone()));
            is_used |= give_name(&mut self.answers[index], name);
        }
        self.note(is_used, source);
    }

    /// Names of stubs: before all tables, some of which have a symbol at the start of the section.
    fn stubs(&mut self, elf: &Elf<'_>) {
        let poor: Vec<usize> = self.poor().collect();
        let wanted: Vec<u64> = poor.iter().map(|&index| self.addresses[index]).collect();
        let targets = match plt::targets(elf, &wanted) {
            Ok(targets) => targets,
            Err(problem) => return self.report.problems.push(problem),
        };
        let mut elsewhere = Vec::new();
        for &(index, target) in &targets {
            match target {
                Target::Name(name) => self.answers[poor[index]] = Some(stub(name)),
                Target::Address(address) => elsewhere.push((address, poor[index])),
            }
        }
        self.note(!targets.is_empty(), SymbolSource::Dynsym);
        if elsewhere.is_empty() {
            return;
        }
        elsewhere.sort_unstable();
        let wanted: Vec<u64> = elsewhere.iter().map(|(address, _)| *address).collect();
        for table in [Table::Full, Table::Dynamic] {
            // What is wrong with the table is told when it is read for names of its own.
            let Some(symbols) = elf.symbols(table).ok().flatten() else { continue };
            for ((_, index), name) in elsewhere.iter().zip(symbols.names_of(&wanted)) {
                if let (answer @ None, Some(name)) = (&mut self.answers[*index], name) {
                    *answer = Some(stub(without_version(name)));
                }
            }
        }
    }

    fn note(&mut self, is_used: bool, source: SymbolSource) {
        if is_used && matches!(self.report.source, SymbolSource::None | SymbolSource::Dynsym) {
            self.report.source = source;
        }
    }
}

/// The answer for an address in the stub of a function.
fn stub(raw: &[u8]) -> Answer {
    let name = Name::from_raw(raw);
    let at_plt = |name: &str| format!("{name}@plt").into();
    let name = Name { raw: at_plt(&name.raw), demangled: at_plt(&name.demangled) };
    let frame = Frame { function: Some(name), ..Frame::default() };
    Answer { frames: vec![frame], name_is_poor: false }
}

/// The name without the version of the interface: `memcpy` for `memcpy@@GLIBC_2.14`.
fn without_version(name: &[u8]) -> &[u8] {
    match name.iter().position(|&byte| byte == b'@') {
        None | Some(0) => name,
        // In names of Visual C++ it ends a part.
        _ if name.starts_with(b"?") => name,
        Some(at) => &name[..at],
    }
}

/// Puts the name of the symbol into the answer if that is an improvement; says whether it was.
fn give_name(answer: &mut Option<Answer>, name: Name) -> bool {
    match answer {
        Some(answer) => {
            answer.name_is_poor = false;
            let Some(frame) = answer.frames.last_mut() else { return false };
            // A symbol that is not mangled says no more than the name in the debug information.
            let is_better = frame.function.is_none() || name.demangled != name.raw;
            if is_better {
                frame.function = Some(name);
            }
            is_better
        }
        None => {
            let frame = Frame { function: Some(name), ..Frame::default() };
            *answer = Some(Answer { frames: vec![frame], name_is_poor: false });
            true
        }
    }
}
