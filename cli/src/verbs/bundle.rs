//! `mpp bundle`: a profile and the symbols that its addresses need, in one file for another machine.

mod collect;
mod conceal;
mod pseudonyms;
mod runtime_names;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use clap::Args;
use mpp_profile::Profile;
use mpp_profile::formats::bundle::{self, BundledModule, BundledProfile, BundledTimeline, Manifest};
use mpp_profile::formats::pprof;
use mpp_profile::units::{bytes, count};
use mpp_symbolizer::{Quality as Known, StoredSymbols};

use crate::args::{CommonArgs, OutputArgs, SymbolArgs};
use crate::bundle::store;
use crate::exit::{Code, Failure, OrExit};
use crate::progress::with_spinner;
use crate::recording::INDEX;
use crate::{input, message, output, symbols};

use collect::{Collected, Item};
use conceal::Concealer;
use pseudonyms::Pseudonyms;

const EXAMPLES: &str = "\
Examples:
  mpp bundle                              the newest recording below this folder
  mpp bundle mpp-app-1-2 -o app.tar.gz
  mpp top app.tar.gz                      on any machine, without the program
  mpp bundle --strip-source --anonymize   for somebody who may see sizes and shapes, but no names

A bundle holds the profiles, and for each of their addresses functions, files and lines; no code and no
other names. It is a tar archive: `tar tzf` lists it. With --anonymize, names in libc, libstdc++ and Rust's
standard library stay readable; all others become pseudonyms, which differ from bundle to bundle unless
the same --salt is given. Numbers stay as they are.";

/// The flags of `mpp bundle`.
#[derive(Args, Clone, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct BundleArgs {
    /// A heap profile, a recording folder, a bundle, or `-` for standard input [default: the newest recording below
    /// this folder]
    #[arg(value_name = "INPUT")]
    input: Option<PathBuf>,
    /// Pack this process of a recording only [default: all]
    #[arg(long, value_name = "PID", env = "MPP_PID", hide_env_values = true)]
    pid: Option<u32>,
    /// Leave out the names of source files, and lines
    #[arg(long, env = "MPP_STRIP_SOURCE", hide_env_values = true)]
    strip_source: bool,
    /// Write pseudonyms for the names of functions, source files, libraries, the program, its command line, folder and
    /// environment; timelines are left out
    #[arg(long, env = "MPP_ANONYMIZE", hide_env_values = true)]
    anonymize: bool,
    /// Give the same names the same pseudonyms in all bundles that are made with this text; who knows it can test guesses
    #[arg(long, value_name = "TEXT", env = "MPP_SALT", hide_env_values = true)]
    salt: Option<String>,
    #[command(flatten)]
    symbols: SymbolArgs,
    #[command(flatten)]
    output: OutputArgs,
}

/// Runs the verb.
///
/// # Errors
/// If the input cannot be read, or the bundle cannot be written.
pub(crate) fn bundle(args: &BundleArgs, common: CommonArgs) -> Result<(), Failure> {
    if args.salt.is_some() && !args.anonymize {
        return Err(Failure::new(Code::Usage, "--salt is for --anonymize, which is not given: names would stay"));
    }
    let collected = collect::collect(args.input.as_deref(), args.pid, &args.symbols, common)?;
    let concealer = concealer(args)?;
    let mut found = Vec::new();
    let mut profiles = Vec::new();
    with_spinner("looking up functions and lines", common.quiet, || -> Result<(), Failure> {
        let options = collected.stored.clone().options(&args.symbols);
        for item in collected.profiles.iter().chain(&collected.timelines) {
            match mpp_profile::read(&item.content[..], &item.file) {
                Ok(profile) => {
                    store(&profile, &options, &mut found);
                    profiles.push(Some(profile));
                }
                Err(error) if item.shown => return Err(error).or_exit(Code::Input),
                Err(error) => {
                    message::warning(common, format!("left out: {error}"));
                    profiles.push(None);
                }
            }
        }
        Ok(())
    })?;
    let packed = Packed::new(collected, profiles, found, &concealer)?;
    packed.tell(common);
    let content = packed.write()?;
    let path = match args.output.output.as_deref() {
        Some(path) if path == Path::new("-") => return Ok(output::to_stdout(&content)?),
        Some(path) => path.to_owned(),
        None => packed.default_path(),
    };
    output::to_private_file(&path, &content, || args.output.force)?;
    message::note(common, format!("{} of {}", bytes(content.len() as u64), count_of(packed.files.len(), "file")));
    Ok(output::to_stdout(format!("{}\n", path.display()).as_bytes())?)
}

fn concealer(args: &BundleArgs) -> Result<Concealer, Failure> {
    let pseudonyms = match (args.anonymize, &args.salt) {
        (false, _) => None,
        (true, Some(salt)) => Some(Pseudonyms::with_salt(salt.as_bytes())),
        (true, None) => Some(Pseudonyms::random()?),
    };
    Ok(Concealer { strip_source: args.strip_source, pseudonyms })
}

/// What goes into the bundle.
struct Packed {
    /// What the recording or profile is called.
    name: String,
    manifest: Manifest,
    files: Vec<(String, Vec<u8>)>,
    /// Timelines that are not among them.
    left_out: usize,
}

impl Packed {
    fn new(
        collected: Collected,
        profiles: Vec<Option<Profile>>,
        found: Vec<StoredSymbols>,
        concealer: &Concealer,
    ) -> Result<Packed, Failure> {
        let mut packed = Packed {
            name: if concealer.pseudonyms.is_some() { "anonymous".to_owned() } else { collected.name },
            manifest: Manifest {
                source_stripped: concealer.strip_source || collected.source_stripped,
                anonymized: concealer.pseudonyms.is_some() || collected.anonymized,
                pid: collected.pid,
                ..Manifest::new(env!("CARGO_PKG_VERSION"))
            },
            files: Vec::new(),
            left_out: 0,
        };
        let timelines_at = collected.profiles.len();
        let items = collected.profiles.into_iter().chain(collected.timelines);
        for (index, (item, profile)) in items.zip(profiles).enumerate() {
            let Some(profile) = profile else { continue };
            match index < timelines_at {
                true => packed.add_profile(item, profile, concealer)?,
                false => packed.add_timeline(item, concealer),
            }
        }
        if let Some(index) = collected.index {
            let index = concealer.index(index, &packed.manifest.profiles);
            let mut text = serde_json::to_vec_pretty(&index).map_err(anyhow::Error::from)?;
            text.push(b'\n');
            packed.manifest.recording = Some(INDEX.to_owned());
            packed.files.insert(0, (INDEX.to_owned(), text));
        }
        // Names of code in no file are known by their addresses, which mean another thing in another process.
        let processes: BTreeSet<_> = packed.manifest.profiles.iter().map(|profile| profile.pid).collect();
        let is_of_one = |stored: &&StoredSymbols| processes.len() < 2 || stored.path() != Path::new("[perf map]");
        for (number, stored) in found.iter().filter(is_of_one).enumerate() {
            packed.add_symbols(number + 1, &concealer.stored(stored))?;
        }
        Ok(packed)
    }

    fn add_profile(&mut self, item: Item, profile: Profile, concealer: &Concealer) -> Result<(), Failure> {
        let live_bytes = input::live_bytes(&profile);
        let (file, content) = match concealer.profile(&profile) {
            None => (item.file, item.content),
            Some(profile) => {
                let Some(file) = conceal::rewritten_name(&item) else { return Ok(()) };
                let mut content = Vec::new();
                pprof::write_packed(&profile, &mut content).or_exit(Code::Input)?;
                (file, content)
            }
        };
        self.manifest.profiles.push(BundledProfile {
            file: file.clone(),
            pid: item.pid,
            shown: item.shown,
            live_bytes,
        });
        self.files.push((file, content));
        Ok(())
    }

    fn add_timeline(&mut self, item: Item, concealer: &Concealer) {
        match item.pid {
            Some(pid) if concealer.pseudonyms.is_none() => {
                self.manifest.timelines.push(BundledTimeline { file: item.file.clone(), pid });
                self.files.push((item.file, item.content));
            }
            _ => self.left_out += 1,
        }
    }

    fn add_symbols(&mut self, number: usize, stored: &StoredSymbols) -> Result<(), Failure> {
        let file = format!("symbols/{number:04}.sym");
        let mut known: BTreeMap<Known, u64> = BTreeMap::new();
        stored.answers().for_each(|answer| *known.entry(answer.quality()).or_default() += 1);
        let of = |quality| known.get(&quality).copied().unwrap_or_default();
        let (source, ..) = symbols::source(stored.source());
        self.manifest.modules.push(BundledModule {
            file: file.clone(),
            path: stored.path().display().to_string(),
            build_id: stored.build_id().map(symbols::hex),
            source: source.to_owned(),
            with_lines: of(Known::Lines),
            with_name: of(Known::Name),
            unresolved: of(Known::Nothing),
        });
        self.files.push((file, stored.to_bytes().or_exit(Code::Input)?));
        Ok(())
    }

    /// What is in it, and what is not.
    fn tell(&self, common: CommonArgs) {
        let sum = |of: fn(&BundledModule) -> u64| self.manifest.modules.iter().map(of).sum::<u64>();
        message::note(
            common,
            format!(
                "{}, {}; addresses: {} with lines, {} with names only, {} unknown",
                count_of(self.manifest.profiles.len(), "profile"),
                count_of(self.manifest.modules.len(), "module"),
                count(sum(|module| module.with_lines)),
                count(sum(|module| module.with_name)),
                count(sum(|module| module.unresolved))
            ),
        );
        if self.left_out > 0 {
            let timelines = count_of(self.left_out, "timeline");
            message::note(common, format!("{timelines} left out: they would tell names of threads and files"));
        }
    }

    fn write(&self) -> Result<Vec<u8>, Failure> {
        let mut content = Vec::new();
        let files = self.files.iter().map(|(name, content)| (name.as_str(), content.as_slice()));
        bundle::write(&self.manifest, files, &mut content).or_exit(Code::Internal)?;
        Ok(content)
    }

    /// In the current folder, after what is packed.
    fn default_path(&self) -> PathBuf {
        PathBuf::from(format!("{}.bundle.tar.gz", self.name))
    }
}

fn count_of(number: usize, what: &str) -> String {
    let plural = if number == 1 { "" } else { "s" };
    format!("{} {what}{plural}", count(number as u64))
}
