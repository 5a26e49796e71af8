//! `mpp.toml`: values of flags that are not on the command line and not in the environment.
//!
//! Two files are read: that of the project (the nearest `mpp.toml` from the current folder upwards, no further than the folder with
//! `.git`), then that of the user (`$XDG_CONFIG_HOME/mpp/mpp.toml`). A key is the long name of a flag. Above all tables it is for every
//! verb that has the flag; in a table, for the verb of that name, which counts more. The file of the project counts more than the user's.
//!
//! A project may come from strangers. So its file cannot say where files are written, what is executed, or whether servers are asked.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use clap::{Arg, Command};
use toml::{Table, Value};

/// The name of the files.
pub(crate) const FILE: &str = "mpp.toml";
/// More than anybody writes by hand.
const LARGEST: u64 = 1 << 20;
/// Flags that only the user's own file may set.
const OF_THE_USER: &[&str] = &[
    "output",
    "force",
    "open",
    "debuginfod",
    "then",
    "env",
    "junit",
    "sarif",
    "verdict",
    "github",
    "write-baseline",
    "write-suppressions",
];
/// Flags that make no sense in a file.
const NEVER: &[&str] = &["help", "version", "print-env", "pid", "all"];

/// The values from files, strongest first.
#[derive(Debug, Default)]
pub(crate) struct Settings {
    files: Vec<Source>,
}

#[derive(Debug)]
struct Source {
    path: PathBuf,
    table: Table,
    is_of_project: bool,
}

impl Settings {
    /// Reads the files that there are.
    ///
    /// # Errors
    /// If one of them cannot be read or is not TOML.
    pub(crate) fn read() -> anyhow::Result<Settings> {
        let current = std::env::current_dir().ok();
        let project = current.as_deref().and_then(of_project).map(|path| (path, true));
        let user = of_user().filter(|path| path.is_file()).map(|path| (path, false));
        let files = project.into_iter().chain(user);
        Ok(Settings { files: files.map(|(path, is_of_project)| read(path, is_of_project)).collect::<Result<_, _>>()? })
    }

    /// The files that were read.
    pub(crate) fn files(&self) -> impl Iterator<Item = &Path> {
        self.files.iter().map(|file| file.path.as_path())
    }

    /// The value of a flag of a verb (or of all verbs, for `None`), and the file that has it.
    pub(crate) fn value(&self, verb: Option<&str>, flag: &str) -> Option<(&Value, &Path)> {
        self.files.iter().find_map(|file| {
            let of_verb = verb.and_then(|verb| file.table.get(verb)?.as_table()?.get(flag));
            let value = of_verb.or_else(|| file.table.get(flag).filter(|value| !value.is_table()))?;
            Some((value, file.path.as_path()))
        })
    }

    /// The command line with these values as defaults.
    ///
    /// # Errors
    /// If a file names something that is no verb or flag, or may not be set there.
    pub(crate) fn apply(&self, mut command: Command) -> anyhow::Result<Command> {
        self.check(&command)?;
        command = self.set(command, None);
        let verbs: Vec<String> = command.get_subcommands().map(|verb| verb.get_name().to_owned()).collect();
        for verb in verbs {
            command = command.mut_subcommand(&verb, |subcommand| self.set(subcommand, Some(&verb)));
        }
        Ok(command)
    }

    fn set(&self, mut command: Command, verb: Option<&str>) -> Command {
        let flags: Vec<(clap::Id, String)> =
            flags(&command).map(|(flag, argument)| (argument.get_id().clone(), flag.to_owned())).collect();
        for (id, flag) in flags {
            if let Some((value, _)) = self.value(verb, &flag) {
                command = command.mut_arg(id, |argument| argument.default_values(words(value)).required(false));
            }
        }
        command
    }

    fn check(&self, command: &Command) -> anyhow::Result<()> {
        for file in &self.files {
            let place = file.path.display();
            for (key, value) in &file.table {
                match value {
                    Value::Table(of_verb) => {
                        let Some(verb) = command.find_subcommand(key) else {
                            bail!("{place}: [{key}] is no verb of mpp");
                        };
                        for (flag, value) in of_verb {
                            if !has(verb, flag) && !has(command, flag) {
                                bail!("{place}: {flag} in [{key}] is no flag of `mpp {key}` (see `mpp help {key}`)");
                            }
                            file.check_value(flag, value)?;
                        }
                    }
                    value => {
                        if !has(command, key) && !command.get_subcommands().any(|verb| has(verb, key)) {
                            bail!("{place}: {key} is no flag of any verb; names are those of the long flags");
                        }
                        file.check_value(key, value)?;
                    }
                }
            }
        }
        Ok(())
    }
}

impl Source {
    fn check_value(&self, flag: &str, value: &Value) -> anyhow::Result<()> {
        let place = self.path.display();
        if NEVER.contains(&flag) {
            bail!("{place}: {flag} is for the command line only");
        }
        if self.is_of_project && OF_THE_USER.contains(&flag) {
            let own = of_user().map_or_else(|| "your own file".to_owned(), |path| path.display().to_string());
            bail!("{place}: {flag} cannot be set by a project, only by you, in {own}");
        }
        match value {
            Value::Table(_) | Value::Datetime(_) => bail!("{place}: {flag} has to be a text, a number, true or false"),
            Value::Array(list) if list.iter().any(|item| matches!(item, Value::Table(_) | Value::Array(_))) => {
                bail!("{place}: {flag} has to be a list of texts or numbers")
            }
            _ => Ok(()),
        }
    }
}

/// The flags of a command that have a long name, with their names.
pub(crate) fn flags(command: &Command) -> impl Iterator<Item = (&str, &Arg)> {
    command.get_arguments().filter_map(|argument| Some((argument.get_long()?, argument)))
}

fn has(command: &Command, flag: &str) -> bool {
    flags(command).any(|(known, _)| known == flag)
}

/// A value as it would stand on the command line.
pub(crate) fn words(value: &Value) -> Vec<String> {
    match value {
        Value::String(text) => vec![text.clone()],
        Value::Array(list) => list.iter().flat_map(words).collect(),
        Value::Integer(number) => vec![number.to_string()],
        Value::Float(number) => vec![number.to_string()],
        Value::Boolean(is_on) => vec![is_on.to_string()],
        // Refused before.
        Value::Datetime(_) | Value::Table(_) => Vec::new(),
    }
}

/// The nearest file from a folder upwards; not beyond the root of a repository.
fn of_project(folder: &Path) -> Option<PathBuf> {
    for folder in folder.ancestors() {
        let path = folder.join(FILE);
        if path.is_file() {
            return Some(path);
        }
        if folder.join(".git").exists() {
            break;
        }
    }
    None
}

/// The user's file, whether it is there or not.
pub(crate) fn of_user() -> Option<PathBuf> {
    let set = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let folder = set("XDG_CONFIG_HOME").or_else(|| Some(set("HOME")?.join(".config")))?;
    Some(folder.join("mpp").join(FILE))
}

fn read(path: PathBuf, is_of_project: bool) -> anyhow::Result<Source> {
    let mut text = String::new();
    let file = File::open(&path).with_context(|| format!("cannot read {}", path.display()))?;
    let length = file.take(LARGEST + 1).read_to_string(&mut text);
    let length = length.with_context(|| format!("cannot read {}", path.display()))? as u64;
    if length > LARGEST {
        bail!("{}: is larger than 1 MiB", path.display());
    }
    let table = text.parse::<Table>().map_err(|error| {
        let line = error.span().map_or(0, |span| text[..span.start.min(text.len())].matches('\n').count() + 1);
        anyhow::anyhow!("{}:{line}: {}", path.display(), error.message())
    })?;
    Ok(Source { path, table, is_of_project })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings(files: &[(&str, bool)]) -> Settings {
        let source = |(index, &(text, is_of_project)): (usize, &(&str, bool))| Source {
            path: format!("file{index}").into(),
            table: text.parse().expect("TOML"),
            is_of_project,
        };
        Settings { files: files.iter().enumerate().map(source).collect() }
    }

    fn command() -> Command {
        let limit = || Arg::new("limit").long("limit").default_value("20");
        let names = Arg::new("names").long("names").value_delimiter(':').num_args(1..);
        let force = Arg::new("force").long("force").action(clap::ArgAction::SetTrue);
        Command::new("mpp")
            .subcommand(Command::new("top").arg(limit()).arg(names).arg(force))
            .subcommand(Command::new("tree").arg(limit()))
    }

    fn limit(settings: &Settings, arguments: &[&str]) -> String {
        let command = settings.apply(command()).expect("settings");
        let matches = command.try_get_matches_from([&["mpp"], arguments].concat()).expect("arguments");
        matches.subcommand().expect("a verb").1.get_one::<String>("limit").expect("a limit").clone()
    }

    #[test]
    fn the_nearest_counts_most() {
        let both = settings(&[("limit = 7\n[tree]\nlimit = 8", true), ("limit = 9\n[top]\nlimit = 10", false)]);
        assert_eq!(limit(&both, &["top"]), "7");
        assert_eq!(limit(&both, &["tree"]), "8");
        assert_eq!(limit(&both, &["tree", "--limit", "3"]), "3");
        assert_eq!(limit(&settings(&[]), &["tree"]), "20");
        assert_eq!(both.value(Some("top"), "limit").expect("a value").1, Path::new("file0"));
    }

    #[test]
    fn lists_and_switches_are_values() {
        let settings = settings(&[("[top]\nforce = true\nnames = ['a', 'b']", false)]);
        let matches = settings.apply(command()).expect("settings").get_matches_from(["mpp", "top"]);
        let (_, top) = matches.subcommand().expect("a verb");
        assert!(top.get_flag("force"));
        assert_eq!(top.get_many::<String>("names").expect("names").collect::<Vec<_>>(), ["a", "b"]);
    }

    #[test]
    fn mistakes_are_named() {
        for (text, expected) in [
            ("limt = 7", "limt is no flag of any verb"),
            ("[tpo]\nlimit = 7", "[tpo] is no verb"),
            ("[tree]\nnames = 'x'", "names in [tree] is no flag"),
            ("force = true", "force cannot be set by a project"),
            ("[top]\nlimit = [{}]", "list of texts"),
            ("[top]\nlimit = 1979-05-27", "has to be a text"),
        ] {
            let error = settings(&[(text, true)]).apply(command()).expect_err(text).to_string();
            assert!(error.contains(expected), "{error}");
        }
        assert!(settings(&[("force = true", false)]).apply(command()).is_ok());
    }
}
