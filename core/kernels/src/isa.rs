//! The instruction set in use. The choice changes the speed, not the bits.

use std::sync::OnceLock;

/// Instruction sets with code of their own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Isa {
    /// x86-64 with AVX2 and FMA.
    Avx2,
    /// Anything else: plain Rust with `f32::mul_add`.
    Portable,
}

impl Isa {
    /// Name for provenance and logs.
    pub fn name(self) -> &'static str {
        match self {
            Self::Avx2 => "avx2",
            Self::Portable => "portable",
        }
    }
}

/// The best instruction set of this machine, found once.
pub fn instruction_set() -> Isa {
    static FOUND: OnceLock<Isa> = OnceLock::new();
    *FOUND.get_or_init(|| {
        #[cfg(target_arch = "x86_64")]
        if std::is_x86_feature_detected!("avx2") && std::is_x86_feature_detected!("fma") {
            return Isa::Avx2;
        }
        Isa::Portable
    })
}

/// Compiles one safe body twice, for AVX2 with FMA and for the base target, and picks at run time.
///
/// The body must be plain arithmetic on arrays of lanes: the compiler vectorises it under the wider target and may not
/// reorder floating-point operations under either.
macro_rules! multiversion {
    ($(#[$doc:meta])* $vis:vis fn $name:ident($($arg:ident: $ty:ty),* $(,)?) $body:block) => {
        $(#[$doc])*
        $vis fn $name($($arg: $ty),*) {
            // Always inlined: the body must take the target features of its wrapper.
            #[inline(always)]
            fn body($($arg: $ty),*) $body

            #[cfg(target_arch = "x86_64")]
            {
                #[target_feature(enable = "avx2,fma")]
                fn avx2($($arg: $ty),*) { body($($arg),*) }
                if $crate::instruction_set() == $crate::Isa::Avx2 {
                    // SAFETY: the instruction set was detected on this machine.
                    #[expect(unsafe_code, reason = "calling a function compiled for a detected target feature")]
                    unsafe { avx2($($arg),*) };
                    return;
                }
            }
            body($($arg),*);
        }
    };
}
pub(crate) use multiversion;
