//! `mpp config`: which values flags have without being given, and where these come from.

use std::path::Path;

use clap::{Arg, Args, Command, CommandFactory, Subcommand};
use serde::Serialize;

use crate::args::{Cli, CommonArgs, ReportArgs};
use crate::exit::{Code, Failure, OrExit};
use crate::output;
use crate::render::{Cell, Column, Report, Table};
use crate::settings::{self, Settings};

const EXAMPLES: &str = "\
Examples:
  mpp config show              what differs from the built-in defaults
  mpp config show top          all flags of a verb that have a value
  mpp config show --format json | jq '.values[] | select(.origin == \"file\")'

An mpp.toml has the long names of flags as keys, for all verbs or in a table for one:

  names = \"normal\"
  debug-dir = [\"/srv/debug\"]
  [check]
  max-peak = \"200MiB\"

The nearest mpp.toml from the current folder upwards (up to the root of a git repository) counts more than
$XDG_CONFIG_HOME/mpp/mpp.toml, the environment (MPP_LIMIT and so on) more than both, the command line most.";

/// The flags of `mpp config`.
#[derive(Args, Clone, Debug)]
pub(crate) struct ConfigArgs {
    #[command(subcommand)]
    action: Action,
}

#[derive(Clone, Debug, Subcommand)]
enum Action {
    /// Print the values that flags have when they are not given, and where these come from
    #[command(after_help = EXAMPLES)]
    Show(ShowArgs),
}

#[derive(Args, Clone, Debug)]
struct ShowArgs {
    /// A verb, of which all flags with a value are shown [default: all verbs, what differs from the built-in defaults]
    #[arg(value_name = "VERB")]
    verb: Option<String>,
    #[command(flatten)]
    report: ReportArgs,
}

#[derive(Debug, Serialize)]
struct Data<'a> {
    schema: &'static str,
    schema_version: u32,
    mpp_version: &'static str,
    files: Vec<String>,
    values: &'a [Setting],
}

/// A value that a flag has.
#[derive(Debug, Serialize)]
struct Setting {
    verb: String,
    flag: String,
    value: String,
    /// `default`, `file` or `environment`.
    origin: &'static str,
    /// The file or variable.
    #[serde(rename = "where")]
    place: String,
}

/// Runs the verb.
///
/// # Errors
/// If a file is wrong, there is no such verb, or the report cannot be written.
pub(crate) fn config(args: &ConfigArgs, common: CommonArgs) -> Result<(), Failure> {
    let Action::Show(args) = &args.action;
    let settings = Settings::read().or_exit(Code::Usage)?;
    let command = Cli::command();
    settings.apply(command.clone()).or_exit(Code::Usage)?;
    let verbs: Vec<&Command> = match &args.verb {
        Some(name) => {
            let why = || Failure::new(Code::Usage, format!("there is no verb {name}; `mpp help` names them all"));
            vec![command.find_subcommand(name).ok_or_else(why)?]
        }
        None => command.get_subcommands().filter(|verb| !verb.is_hide_set()).collect(),
    };
    let mut values: Vec<Setting> = Vec::new();
    for verb in verbs {
        let flags = settings::flags(verb).chain(settings::flags(&command).filter(|_| args.verb.is_some()));
        values.extend(flags.filter_map(|(flag, argument)| setting(&settings, verb.get_name(), flag, argument)));
    }
    if args.verb.is_none() {
        values.retain(|setting| setting.origin != "default");
    }
    let path = |path: &Path| path.display().to_string();
    let files: Vec<String> = settings.files().map(path).collect();
    let header = match (files.as_slice(), settings::of_user()) {
        ([], Some(user)) => format!("no {} in this project, and none at {}", settings::FILE, user.display()),
        ([], None) => format!("no {} in this project", settings::FILE),
        (files, _) => format!("read: {}", files.join(", ")),
    };
    let footer = match (values.is_empty(), &args.verb) {
        (true, _) => vec!["every flag has its built-in default".to_owned()],
        (false, None) => vec!["all other flags have their built-in defaults (mpp config show VERB)".to_owned()],
        _ => Vec::new(),
    };
    let data = Data {
        schema: "mpp-config",
        schema_version: 1,
        mpp_version: env!("CARGO_PKG_VERSION"),
        files,
        values: &values,
    };
    let escaped = [mpp_profile::text::escaped(&header).to_string()];
    let report = Report { header: &escaped, table: &table(&values), footer: &footer, data: &data };
    output::report(&report, &args.report, common)
}

fn setting(settings: &Settings, verb: &str, flag: &str, argument: &Arg) -> Option<Setting> {
    let set = |value: String, origin, place: String| {
        Some(Setting { verb: verb.to_owned(), flag: flag.to_owned(), value, origin, place })
    };
    let variable = argument.get_env().map(|name| name.to_string_lossy().into_owned());
    if let Some((name, value)) = variable.and_then(|name| Some((name.clone(), std::env::var_os(&name)?))) {
        return set(value.to_string_lossy().into_owned(), "environment", name);
    }
    if let Some((value, path)) = settings.value(Some(verb), flag) {
        return set(settings::words(value).join(" "), "file", path.display().to_string());
    }
    let defaults: Vec<String> =
        argument.get_default_values().iter().map(|value| value.to_string_lossy().into_owned()).collect();
    if defaults.is_empty() { None } else { set(defaults.join(" "), "default", "built in".to_owned()) }
}

fn table(values: &[Setting]) -> Table {
    let columns = ["verb", "flag", "value"].map(|name| Column::new(name, name));
    let more = [Column::new("from", "where"), Column::for_programs("origin")];
    let row = |setting: &Setting| {
        let texts = [&setting.verb, &setting.flag, &setting.value, &setting.place];
        let mut cells: Vec<Cell> = texts.iter().map(|text| Cell::Text(text.to_string())).collect();
        cells.push(Cell::Text(setting.origin.to_owned()));
        cells
    };
    Table { columns: columns.into_iter().chain(more).collect(), rows: values.iter().map(row).collect() }
}
