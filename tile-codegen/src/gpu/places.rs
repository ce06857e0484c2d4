//! Where in the user's source an instruction comes from, as LLVM's debug locations.

use crate::emit::Ir;
use inkwell::debug_info::{
    AsDIScope, DIFlags, DIFlagsConstants, DISubprogram, DWARFEmissionKind, DWARFSourceLanguage,
    DebugInfoBuilder,
};
use inkwell::module::FlagBehavior;
use tile_ir::Loc;

/// The kernel as a debugger knows it.
pub(super) struct SourcePlaces<'c> {
    builder: DebugInfoBuilder<'c>,
    kernel: DISubprogram<'c>,
}

impl<'c> SourcePlaces<'c> {
    /// The function that is being emitted comes from this file.
    pub(super) fn new(ir: &Ir<'c>, file: &str) -> Self {
        let version = u64::from(inkwell::debug_info::debug_metadata_version());
        let version = ir.context.i32_type().const_int(version, false);
        ir.module.add_basic_value_flag("Debug Info Version", FlagBehavior::Warning, version);
        let file = if file.is_empty() { "kernel" } else { file };
        let (builder, unit) = ir.module.create_debug_info_builder(
            true,
            DWARFSourceLanguage::Rust,
            file,
            ".",
            "tile",
            true,
            "",
            0,
            "",
            DWARFEmissionKind::None,
            0,
            false,
            false,
            "",
            "",
        );
        let (function, file) = (ir.function(), unit.get_file());
        let name = function.get_name().to_string_lossy().into_owned();
        let ty = builder.create_subroutine_type(file, None, &[], DIFlags::ZERO);
        let scope = unit.as_debug_info_scope();
        let kernel =
            builder.create_function(scope, &name, None, file, 0, ty, false, true, 0, DIFlags::ZERO, true);
        function.set_subprogram(kernel);
        let places = SourcePlaces { builder, kernel };
        places.at(ir, Loc::UNKNOWN);
        places
    }

    /// What is emitted from here on comes from this place.
    pub(super) fn at(&self, ir: &Ir<'c>, place: Loc) {
        let scope = self.kernel.as_debug_info_scope();
        let location = self.builder.create_debug_location(ir.context, place.line, place.column, scope, None);
        ir.builder.set_current_debug_location(location);
    }

    /// Everything is emitted.
    pub(super) fn finish(&self, ir: &Ir<'c>) {
        ir.builder.unset_current_debug_location();
        self.builder.finalize();
    }
}
