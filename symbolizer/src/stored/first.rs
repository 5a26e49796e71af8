//! What is stored comes first; the files of the process are asked for the rest only.

use super::cache::Cache;
use super::{FileState, Lookup, StoredAnswer, StoredSymbols};
use crate::image::{Image, Place};
use crate::threads::Permits;
use crate::{Error, Identity, ModuleReport, Options, Quality, SymbolSource};

/// One place for each offset of `image`, and where they came from.
///
/// Answers of [`Options::stored`] count first, then those of the cache, then what the files say. Where a stored answer
/// has no line and a file does, the file's counts.
pub(crate) fn symbolize(image: &Image, options: &Options, permits: &Permits) -> (Vec<Place>, ModuleReport) {
    let mut places: Vec<Option<Place>> = vec![None; image.offsets.len()];
    let mut source = SymbolSource::None;
    for stored in options.stored.iter().filter(|stored| is_about(stored, image)) {
        if fill(&mut places, image, stored) && source == SymbolSource::None {
            source = stored_source(stored);
        }
    }
    // More than what is known could be found.
    let is_open = |place: &Option<Place>| place.as_ref().is_none_or(|place| place.quality != Quality::Lines);
    let rest = part(image, &places, is_open);
    let mut report = if rest.offsets.is_empty() {
        report_of(image)
    } else if options.only_stored {
        let is_missing = places.iter().any(Option::is_none);
        let problem = is_missing.then(|| Error::NotStored { path: image.path.clone() });
        ModuleReport { problems: problem.into_iter().collect(), ..report_of(image) }
    } else {
        let (found, report) = with_cache(&rest, options, permits);
        for (offset, found) in rest.offsets.iter().zip(found) {
            let Ok(index) = image.offsets.binary_search(offset) else { continue };
            // Qualities are ordered from the best to the worst.
            if places[index].as_ref().is_none_or(|place| found.quality < place.quality) {
                places[index] = Some(found);
            }
        }
        report
    };
    report.modules.clone_from(&image.modules);
    if report.source == SymbolSource::None {
        report.source = source;
    }
    let unknown = image.offsets.iter().map(|&offset| Place::new(offset, Vec::new()));
    let places: Vec<Place> = places.into_iter().zip(unknown).map(|(place, unknown)| place.unwrap_or(unknown)).collect();
    count(&mut report, &places);
    (places, report)
}

/// A report that says nothing yet.
fn report_of(image: &Image) -> ModuleReport {
    ModuleReport { path: image.path.clone(), wanted_build_id: image.build_id.clone(), ..ModuleReport::default() }
}

fn count(report: &mut ModuleReport, places: &[Place]) {
    let of = |quality| places.iter().filter(|place| place.quality == quality).count();
    report.with_lines = of(Quality::Lines);
    report.with_name = of(Quality::Name);
    report.unresolved = of(Quality::Nothing);
}

/// Whether answers are about the file of an image: by its build id, or by its path where neither has one.
fn is_about(stored: &StoredSymbols, image: &Image) -> bool {
    match (stored.build_id(), image.build_id.as_deref()) {
        (Some(known), Some(wanted)) => known == wanted,
        (None, None) => stored.path() == image.path,
        _ => false,
    }
}

/// Puts in what is stored, where nothing is yet; says whether anything was.
fn fill(places: &mut [Option<Place>], image: &Image, stored: &StoredSymbols) -> bool {
    let mut lookup = Lookup::new(stored);
    let mut any = false;
    for (place, &offset) in places.iter_mut().zip(&image.offsets) {
        if place.is_none()
            && let Some(answer) = lookup.find(offset)
        {
            *place = Some(Place::new(answer.file_address, answer.frames));
            any = true;
        }
    }
    any
}

/// The part of an image that has such places.
fn part(image: &Image, places: &[Option<Place>], is_such: impl Fn(&Option<Place>) -> bool) -> Image {
    let offsets = image.offsets.iter().zip(places).filter(|(_, place)| is_such(place)).map(|(&offset, _)| offset);
    Image {
        path: image.path.clone(),
        build_id: image.build_id.clone(),
        modules: image.modules.clone(),
        mappings: image.mappings.clone(),
        offsets: offsets.collect(),
        by_address: image.by_address,
    }
}

fn stored_source(stored: &StoredSymbols) -> SymbolSource {
    SymbolSource::Stored { origin: Box::new(stored.source().clone()) }
}

/// As [`Image::symbolize`], with what was found for the same file before, if there is a folder for it.
fn with_cache(image: &Image, options: &Options, permits: &Permits) -> (Vec<Place>, ModuleReport) {
    let Some(folder) = &options.cache_dir else { return image.symbolize(options, permits) };
    let cache = Cache::new(folder);
    let here = Here::find(image, options);
    let Some(build_id) = image.build_id.as_ref().or(here.build_id.as_ref()) else {
        return image.symbolize(options, permits);
    };
    let mut places: Vec<Option<Place>> = vec![None; image.offsets.len()];
    let known = cache.load(build_id).filter(|known| here.state.is_none() || known.state == here.state);
    let is_used = known.as_ref().is_some_and(|known| fill(&mut places, image, known));
    let missing = part(image, &places, Option::is_none);
    let (found, mut report) = if missing.offsets.is_empty() {
        (
            Vec::new(),
            ModuleReport { found_build_id: here.build_id.clone(), identity: here.identity, ..report_of(image) },
        )
    } else {
        let (found, report) = missing.symbolize(options, permits);
        if here.state.is_some() && here == Here::find(image, options) {
            keep(&cache, &missing, &found, &report, build_id, here.state);
        }
        (found, report)
    };
    if let (true, SymbolSource::None, Some(known)) = (is_used, &report.source, &known) {
        report.source = stored_source(known);
    }
    let mut found = found.into_iter();
    (places.into_iter().filter_map(|place| place.or_else(|| found.next())).collect(), report)
}

/// The file of an image that is here now, if it is the right one.
#[derive(Debug, Default, PartialEq, Eq)]
struct Here {
    state: Option<FileState>,
    build_id: Option<Vec<u8>>,
    identity: Option<Identity>,
}

impl Here {
    fn find(image: &Image, options: &Options) -> Here {
        let mut report = ModuleReport::default();
        let Some(located) = image.locate(options, &mut report) else { return Here::default() };
        let metadata = std::fs::metadata(located.file.path()).ok();
        let state = metadata.and_then(|metadata| FileState::of(&metadata));
        Here { state, build_id: report.found_build_id, identity: Some(located.identity()) }
    }
}

/// Keeps what was found, if nothing better can ever be found for the same file.
fn keep(
    cache: &Cache<'_>,
    image: &Image,
    found: &[Place],
    report: &ModuleReport,
    build_id: &[u8],
    state: Option<FileState>,
) {
    let is_debug_information = matches!(report.source, SymbolSource::Dwarf { .. } | SymbolSource::Pdb { .. });
    let is_final = is_debug_information && report.problems.is_empty();
    if !is_final || report.found_build_id.as_deref() != Some(build_id) {
        return;
    }
    let answer = |(&offset, place): (&u64, &Place)| StoredAnswer {
        offset,
        file_address: place.file_address,
        frames: place.frames.clone(),
    };
    // A function without a name may be one whose name is in a file that is missing.
    let is_whole = |place: &Place| place.frames.iter().all(|frame| frame.function.is_some());
    let answers = image.offsets.iter().zip(found).filter(|(_, place)| is_whole(place)).map(answer);
    let mut stored = StoredSymbols::new(image.path.clone(), Some(build_id.to_vec()), report.source.clone(), answers);
    stored.state = state;
    let _ = cache.save(&stored);
}

/// After a batch: keeps the cache within its limit, if anything may have come in.
pub(crate) fn trim_cache(options: &Options) {
    if let Some(folder) = &options.cache_dir {
        Cache::new(folder).trim(super::cache::MAX_TOTAL);
    }
}
