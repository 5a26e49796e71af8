//! Where an allocation happens, as the compiler names it. The plugin compiles this file too.

/// A function, file and line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    /// The path of an item named `marker` inside the function that is meant.
    pub(crate) marker: &'static str,
    /// The source file as the compiler was given it, which is also what the debug information holds.
    pub(crate) file: &'static str,
    /// The line, from 1.
    pub(crate) line: u32,
}

impl Place {
    /// For [`place!`]: `marker` is an item within the function that is meant.
    pub(crate) fn of<Marker>(_marker: &Marker, file: &'static str, line: u32) -> Self {
        Self { marker: std::any::type_name::<Marker>(), file, line }
    }

    /// The full path of the function, without generic arguments.
    ///
    /// The demangled symbol starts with it; what may follow is generic arguments (`::<...>`), parameters, or a hash
    /// (`::h...`). A closure counts as part of the function it stands in, because the two symbol manglings of rustc
    /// write it in different ways.
    pub(crate) fn function(&self) -> &'static str {
        let function = self.marker.strip_suffix("::marker").unwrap_or(self.marker);
        match function.find("::{{closure}}") {
            Some(end) => &function[..end],
            None => function,
        }
    }
}

/// The [`Place`] of this very line. It stands on the line of the allocating call, so the truth cannot drift from the source.
macro_rules! place {
    () => {{
        fn marker() {}
        Place::of(&marker, file!(), line!())
    }};
}
pub(crate) use place;
