//! What of a profile a report shows: the selection flags in the terms of the analysis.

use mpp_profile::analysis::{Group, RuntimeFrames, Sum, View, Weights};
use mpp_profile::{Frame, Location, Metric, Profile, Unit};
use mpp_symbolizer::{NameStyle, demangle, restyle};
use regex::Regex;

use crate::args::{
    CommonArgs, FilterArgs, InputArgs, MetricChoice, NamesChoice, RuntimeChoice, SelectionArgs, SizeRange, SymbolArgs,
    UnitChoice,
};
use crate::exit::{Code, Failure};
use crate::input::{self, Loaded};

/// A profile of which a report shows a part, and how.
#[derive(Debug)]
pub(crate) struct Selected {
    /// The profile with what is selected, and where it came from.
    pub(crate) loaded: Loaded,
    /// How to look at it.
    pub(crate) view: View,
    /// What percentages are of: the profile before it was filtered.
    pub(crate) whole: Sum,
    /// Whether a flag has left anything out.
    pub(crate) filtered: bool,
}

/// Reads and symbolizes what the flags name, and keeps what they select. Every report begins with this.
///
/// # Errors
/// If there is nothing to read, it cannot be read, or it does not have the metric.
pub(crate) fn load(
    input: &InputArgs,
    selection: &SelectionArgs,
    symbols: &SymbolArgs,
    group: Group,
    common: CommonArgs,
) -> Result<Selected, Failure> {
    select(input::load(input, symbols, common)?, selection, group)
}

/// Keeps of a profile what the flags select.
///
/// # Errors
/// If it does not have the metric.
pub(crate) fn select(mut loaded: Loaded, args: &SelectionArgs, group: Group) -> Result<Selected, Failure> {
    let view = view(args, group);
    check_metric(&loaded.profile, view.metric)?;
    let whole = Weights::of(&loaded.profile, view.metric).total();
    let filtered = filter(&mut loaded.profile, &args.filter);
    Ok(Selected { loaded, view, whole, filtered })
}

/// The view that the flags ask for.
fn view(args: &SelectionArgs, group: Group) -> View {
    View {
        metric: metric(args.metric),
        unit: match args.unit {
            UnitChoice::Bytes => Unit::Bytes,
            UnitChoice::Blocks => Unit::Blocks,
        },
        runtime: match args.runtime {
            RuntimeChoice::Collapse => RuntimeFrames::Collapse,
            RuntimeChoice::Show => RuntimeFrames::Show,
            RuntimeChoice::Hide => RuntimeFrames::Hide,
        },
        group,
        inlines: !args.no_inlines,
    }
}

/// The metric that a flag chooses.
pub(crate) fn metric(choice: MetricChoice) -> Metric {
    match choice {
        MetricChoice::Live => Metric::Live,
        MetricChoice::Alloc => Metric::Allocated,
        MetricChoice::Freed => Metric::Freed,
        MetricChoice::Peak => Metric::Peak,
        MetricChoice::Temp => Metric::Temporary,
    }
}

/// Refuses a metric that the profile does not have: a table of zeros would look like an answer.
///
/// # Errors
/// A usage failure.
pub(crate) fn check_metric(profile: &Profile, metric: Metric) -> Result<(), Failure> {
    let (has, why) = match metric {
        Metric::Live => return Ok(()),
        Metric::Allocated | Metric::Freed => (
            profile.has_allocated(),
            "this profile has live memory only: the recorder did not keep what was freed. Leave out --metric",
        ),
        Metric::Peak => (
            profile.has_peak(),
            "this profile does not tell what was live at the peak: the recorder did not keep it. Leave out --metric",
        ),
        Metric::Temporary => (
            profile.has_temporary(),
            "this profile does not tell what was freed at once: the recorder did not keep it. Leave out --metric",
        ),
    };
    if has || profile.samples.is_empty() {
        return Ok(());
    }
    Err(Failure::new(Code::Usage, why))
}

/// Keeps what the flags let through; says whether any of them was given.
pub(crate) fn filter(profile: &mut Profile, args: &FilterArgs) -> bool {
    let FilterArgs { focus, ignore, hide, show_from, thread, size } = args;
    if let Some(SizeRange(least, most)) = *size {
        profile.keep_samples(|_, sample| (least..=most).contains(&sample.block_size));
    }
    if let Some(regex) = thread {
        let wanted: Vec<bool> = profile.threads.iter().map(|thread| regex.is_match(&thread.to_string())).collect();
        profile.keep_samples(|_, sample| sample.thread.is_some_and(|id| wanted.get(id.index()) == Some(&true)));
    }
    let per_stack = |regex: &Regex| -> Vec<bool> {
        let per_location: Vec<bool> =
            profile.locations.iter().map(|location| matches(profile, location, regex)).collect();
        profile.stacks.iter().map(|stack| stack.locations.iter().any(|id| per_location[id.index()])).collect()
    };
    let focused = focus.as_ref().map(per_stack);
    let ignored = ignore.as_ref().map(per_stack);
    profile.keep_samples(|_, sample| {
        let stack = sample.stack.index();
        focused.as_ref().is_none_or(|focused| focused[stack]) && !ignored.as_ref().is_some_and(|ignored| ignored[stack])
    });
    if let Some(regex) = show_from {
        profile.show_from(|profile, location, frame| matches_frame(profile, location, frame, regex));
    }
    if let Some(regex) = hide {
        profile.hide_frames(|profile, location, frame| matches_frame(profile, location, frame, regex));
    }
    size.is_some() || [focus, ignore, show_from, thread].into_iter().any(Option::is_some)
}

/// Whether the file with a location's code, or any function there, is meant.
fn matches(profile: &Profile, location: &Location, regex: &Regex) -> bool {
    let frames = &location.frames;
    matches_frame(profile, location, None, regex)
        || frames.iter().any(|frame| matches_frame(profile, location, Some(frame), regex))
}

/// Whether the file with a location's code, or one function there, is meant.
fn matches_frame(profile: &Profile, location: &Location, frame: Option<&Frame>, regex: &Regex) -> bool {
    let module = profile.module_of(location).is_some_and(|module| regex.is_match(&module.path));
    let is_meant =
        |frame: &Frame| regex.is_match(&frame.function) || frame.file.as_ref().is_some_and(|file| regex.is_match(file));
    module || frame.is_some_and(is_meant)
}

/// How to write the names of functions.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Names<'a> {
    choice: NamesChoice,
    profile: &'a Profile,
}

impl<'a> Names<'a> {
    /// As the flag says; without it, short for people and in full for programs.
    pub(crate) fn new(args: &SelectionArgs, for_programs: bool, profile: &'a Profile) -> Names<'a> {
        let default = if for_programs { NamesChoice::Full } else { NamesChoice::Short };
        Names { choice: args.names.unwrap_or(default), profile }
    }

    /// Short ones.
    pub(crate) fn short(profile: &'a Profile) -> Names<'a> {
        Names { choice: NamesChoice::Short, profile }
    }

    /// The name to show for a function, not escaped. Never empty unless the function's is.
    pub(crate) fn of(&self, function: &str) -> String {
        styled(self.profile.linker_name(function), function, self.choice)
    }
}

/// A function's name in a style, from what the linker has and from the name in full.
pub(crate) fn styled(linker_name: &str, full: &str, choice: NamesChoice) -> String {
    let style = match choice {
        NamesChoice::Raw => return linker_name.to_owned(),
        // Of several functions with one linker's name, the one whose name it is.
        NamesChoice::Full => return full.to_owned(),
        NamesChoice::Normal => NameStyle::Normal,
        NamesChoice::Short => NameStyle::Short,
    };
    let name = if linker_name == full { restyle(full, style) } else { demangle(linker_name, style) };
    name.into_owned()
}
