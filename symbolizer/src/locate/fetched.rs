//! Files that debuginfod has, when no place on this machine did.

use super::{Places, check_build_id};
use crate::file::FileData;
use crate::{DebuginfodFile, Error, ModuleReport};

impl Places<'_> {
    /// The file of that kind for a build id: from debuginfod's cache or from a server. Where it was looked for is noted in
    /// `report`; `Err` with what went wrong, if that is more than that nobody has it.
    pub(super) fn fetch(
        &self,
        build_id: &[u8],
        kind: &DebuginfodFile,
        report: &mut ModuleReport,
    ) -> Result<Option<FileData>, Error> {
        let debuginfod = &self.options.debuginfod;
        report.looked_at.extend(debuginfod.places(build_id, kind));
        match debuginfod.find(build_id, kind) {
            Ok(path) => {
                let file = FileData::open(&path, self.options)?;
                // It was checked, but a cache is a folder that others may write to.
                check_build_id(&file, build_id)?;
                Ok(Some(file))
            }
            Err(reason) if reason.is_problem() => Err(Error::NotFetched { module: report.path.clone(), reason }),
            Err(_) => Ok(None),
        }
    }
}
