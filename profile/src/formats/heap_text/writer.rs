//! Writes heap_v2 text in this project's dialect.

use std::collections::BTreeMap;
use std::io::Write;

use super::super::maps;
use crate::error::WriteError;
use crate::model::{Amount, Amounts, BuildId, Metric, Profile, Sample, StackEnd};

/// Writes a profile as heap_v2 text. Names and lines of functions are lost; the format has no place for them.
///
/// `stacks_marked` is written when the profile knows of every stack whether it is complete; else nothing can be said of
/// those that are not marked, and complete stacks are read back as unknown.
///
/// # Errors
/// When the output fails; when the profile has names and no addresses, or bytes without numbers of blocks; when it has estimates instead of what was recorded; when a path, comment or reason has a line feed in it or ends in a carriage return; when more is
/// live in a sample than was ever allocated, which readers take for damage.
pub fn write(profile: &Profile, mut output: impl Write) -> Result<(), WriteError> {
    check(profile)?;
    let total = amounts(profile.recorded(Metric::Live), profile.recorded(Metric::Allocated));
    writeln!(output, "heap profile: {total} @ heap_v2/{}", profile.sample_rate.max(1))?;
    for sample in &profile.samples {
        write_sample(profile, sample, &mut output)?;
    }
    write_comments(profile, &mut output)?;
    writeln!(output, "MAPPED_LIBRARIES:")?;
    for module in &profile.modules {
        writeln!(output, "{}", maps::format_line(module))?;
    }
    output.flush()?;
    Ok(())
}

fn write_sample(profile: &Profile, sample: &Sample, output: &mut impl Write) -> std::io::Result<()> {
    let stack = profile.stack(sample.stack);
    write!(output, "{} @", amounts(sample.live, sample.allocated))?;
    for &location in &*stack.locations {
        write!(output, " {:#x}", profile.location(location).address)?;
    }
    writeln!(output)?;
    match &stack.end {
        StackEnd::Truncated(truncation) => writeln!(output, "# stack truncated: {truncation}"),
        StackEnd::Complete | StackEnd::Unknown => Ok(()),
    }
}

/// Comments keep their order; those that state a fact of the profile are made true, or added.
fn write_comments(profile: &Profile, output: &mut impl Write) -> std::io::Result<()> {
    let facts = [
        ("sample_rate", profile.sample_rate.max(1).to_string()),
        ("stacks_marked", u8::from(profile.stacks_marked()).to_string()),
    ];
    writeln!(output, "# mimalloc heap stats")?;
    for (key, fact) in &facts {
        if profile.comment(key).is_none() {
            writeln!(output, "# {key} = {fact}")?;
        }
    }
    for (key, value) in &profile.comments {
        let fact = facts.iter().find(|(name, _)| name == key);
        writeln!(output, "# {key} = {}", fact.map_or(value, |(_, fact)| fact))?;
    }
    let build_ids: BTreeMap<&str, &BuildId> =
        profile.modules.iter().filter_map(|module| Some((module.path.as_str(), module.build_id.as_ref()?))).collect();
    build_ids.into_iter().try_for_each(|(path, id)| writeln!(output, "# build_id {id} {path}"))
}

fn amounts(live: Amount, allocated: Amount) -> String {
    format!("{:>6}: {:>8} [{:>6}: {:>8}]", live.objects, live.bytes, allocated.objects, allocated.bytes)
}

fn check(profile: &Profile) -> Result<(), WriteError> {
    let paths = profile.modules.iter().map(|module| (module.path.as_str(), "a path"));
    let comments = profile.comments.iter().flat_map(|(key, value)| [(key.as_str(), "a comment"), (value, "a comment")]);
    let reasons = profile.stacks.iter().filter_map(|stack| match &stack.end {
        StackEnd::Truncated(truncation) => Some((truncation.reason.as_text(), "a reason")),
        StackEnd::Complete | StackEnd::Unknown => None,
    });
    let inexpressible = |reason| Err(WriteError::Inexpressible { format: "heap_v2 text", reason });
    if profile.amounts == Amounts::Estimated {
        return inexpressible("its amounts are estimates; the format has what was recorded".into());
    }
    if has_bytes_in_no_blocks(profile) {
        return inexpressible("it tells bytes without numbers of blocks".into());
    }
    if profile.has_no_address() {
        return inexpressible("its functions have names and no addresses, and the format has addresses only".into());
    }
    let has_allocated = profile.has_allocated();
    if profile.samples.iter().any(|sample| has_allocated && sample.live.exceeds(sample.allocated)) {
        return inexpressible("more is live than was ever allocated".into());
    }
    match paths.chain(comments).chain(reasons).find(|(text, _)| text.contains('\n') || text.ends_with('\r')) {
        Some((_, what)) => inexpressible(format!("{what} has a line break in it")),
        None => Ok(()),
    }
}

/// Readers take such amounts for damage.
pub(super) fn has_bytes_in_no_blocks(profile: &Profile) -> bool {
    let amounts = profile.samples.iter().flat_map(|sample| [sample.live, sample.allocated]);
    amounts.into_iter().any(|amount| amount.objects == 0 && amount.bytes > 0)
}
