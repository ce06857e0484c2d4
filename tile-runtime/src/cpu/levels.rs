//! Which instructions this machine has.

/// The best instruction set level of this machine, as [`crate::embedded::EmbeddedCode::Cpu`] names it;
/// higher ones first.
pub(crate) fn supported_levels() -> &'static [&'static str] {
    #[cfg(target_arch = "x86_64")]
    {
        let v3 = std::is_x86_feature_detected!("avx2")
            && std::is_x86_feature_detected!("fma")
            && std::is_x86_feature_detected!("f16c")
            && std::is_x86_feature_detected!("bmi2");
        let v4 = v3
            && std::is_x86_feature_detected!("avx512f")
            && std::is_x86_feature_detected!("avx512bw")
            && std::is_x86_feature_detected!("avx512cd")
            && std::is_x86_feature_detected!("avx512dq")
            && std::is_x86_feature_detected!("avx512vl");
        let v2 = std::is_x86_feature_detected!("sse4.2") && std::is_x86_feature_detected!("popcnt");
        match (v4, v3, v2) {
            (true, ..) => &["x86-64-v4", "x86-64-v3", "x86-64-v2"],
            (_, true, _) => &["x86-64-v3", "x86-64-v2"],
            (_, _, true) => &["x86-64-v2"],
            _ => &[],
        }
    }
    #[cfg(not(target_arch = "x86_64"))]
    &[]
}

/// The embedded code that this machine runs, as [`crate::embedded::EmbeddedCode::Cpu`] names it, the best first: that of its
/// levels, and before them that which multiplies pairs, where it can.
pub(crate) fn supported_code() -> impl Iterator<Item = &'static str> {
    let levels = supported_levels();
    let pairs = levels.contains(&"x86-64-v4") && multiplies_pairs();
    pairs.then_some("x86-64-v4-pairs").into_iter().chain(levels.iter().copied())
}

/// Whether the processor multiplies pairs of bf16 and of bytes.
fn multiplies_pairs() -> bool {
    #[cfg(target_arch = "x86_64")]
    {
        std::is_x86_feature_detected!("avx512bf16") && std::is_x86_feature_detected!("avx512vnni")
    }
    #[cfg(not(target_arch = "x86_64"))]
    false
}
