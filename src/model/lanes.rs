//! Vectors of 8 or 16 floats for the CPU kernels: AVX-512, AVX2 with FMA, or plain Rust, chosen once
//! at run time. Knows nothing of networks, boards or layouts.

use std::fmt;

/// An instruction set the kernels are compiled for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Isa {
    /// Plain Rust, on every machine.
    Portable,
    /// Plain Rust with 16 lanes, for what depends on their number.
    #[cfg(test)]
    Wide,
    /// 8 lanes, fused multiply-add.
    #[cfg(target_arch = "x86_64")]
    Avx2,
    /// 16 lanes.
    #[cfg(target_arch = "x86_64")]
    Avx512,
}

impl Isa {
    /// Every instruction set this machine can run, the slowest first.
    pub fn available() -> Vec<Isa> {
        let mut all = vec![Isa::Portable];
        #[cfg(test)]
        all.push(Isa::Wide);
        #[cfg(target_arch = "x86_64")]
        {
            if is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma") {
                all.push(Isa::Avx2);
                if is_x86_feature_detected!("avx512f") {
                    all.push(Isa::Avx512);
                }
            }
        }
        all
    }

    /// The fastest instruction set of this machine.
    pub fn detect() -> Isa {
        Isa::available().pop().unwrap_or(Isa::Portable)
    }

    /// Runs `kernel` compiled for this instruction set (for `Portable` if the machine lacks it).
    pub(crate) fn run<K: Kernel>(self, kernel: K) {
        match self {
            Isa::Portable => kernel.run(Scalar::<8>),
            #[cfg(test)]
            Isa::Wide => kernel.run(Scalar::<16>),
            #[cfg(target_arch = "x86_64")]
            Isa::Avx2 => match x86::Avx2::new() {
                // SAFETY: the token exists, so the machine has avx2 and fma.
                Some(token) => unsafe { x86::run_avx2(token, kernel) },
                None => kernel.run(Scalar::<8>),
            },
            #[cfg(target_arch = "x86_64")]
            Isa::Avx512 => match x86::Avx512::new() {
                // SAFETY: the token exists, so the machine has avx512f.
                Some(token) => unsafe { x86::run_avx512(token, kernel) },
                None => kernel.run(Scalar::<8>),
            },
        }
    }
}

impl fmt::Display for Isa {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Isa::Portable => "portable",
            #[cfg(test)]
            Isa::Wide => "portable, 16 lanes",
            #[cfg(target_arch = "x86_64")]
            Isa::Avx2 => "avx2",
            #[cfg(target_arch = "x86_64")]
            Isa::Avx512 => "avx512",
        })
    }
}

/// Work written once over [`Lanes`] and compiled for each [`Isa`].
pub(crate) trait Kernel {
    /// Must be `#[inline(always)]`, as must everything it calls, to be compiled with the features.
    fn run<L: Lanes>(self, lanes: L);
}

/// A vector instruction set. A value of the type is proof that the machine has it.
pub(crate) trait Lanes: Copy {
    /// `WIDTH` floats.
    type V: Copy;
    /// 8 or 16.
    const WIDTH: usize;

    /// # Safety
    /// `WIDTH` floats are readable at `p`.
    unsafe fn load(self, p: *const f32) -> Self::V;
    /// # Safety
    /// `WIDTH` floats are writable at `p`.
    unsafe fn store(self, p: *mut f32, v: Self::V);
    fn splat(self, x: f32) -> Self::V;
    fn add(self, a: Self::V, b: Self::V) -> Self::V;
    fn sub(self, a: Self::V, b: Self::V) -> Self::V;
    fn mul(self, a: Self::V, b: Self::V) -> Self::V;
    fn div(self, a: Self::V, b: Self::V) -> Self::V;
    fn min(self, a: Self::V, b: Self::V) -> Self::V;
    /// The larger one; `b` where either is NaN, so that a NaN there is not lost.
    fn max(self, a: Self::V, b: Self::V) -> Self::V;
    /// a·b + c.
    fn mul_add(self, a: Self::V, b: Self::V, c: Self::V) -> Self::V;
    /// c − a·b.
    fn neg_mul_add(self, a: Self::V, b: Self::V, c: Self::V) -> Self::V;
    /// 2ⁿ for the integers n in −126..=127 given as 1.5·2²³ + n.
    fn exp2_biased(self, a: Self::V) -> Self::V;
    /// Asks for the cache line at `p`, which may be any address.
    fn fetch(self, p: *const f32);
    /// Bit i is set if lane i is not zero.
    fn nonzero(self, a: Self::V) -> u64;

    /// eˣ to about 2e-7 relative, x clamped to ±87.
    #[inline(always)]
    fn exp(self, x: Self::V) -> Self::V {
        const MAGIC: f32 = 12_582_912.0; // 1.5·2²³: adding it rounds to an integer
        const LN2_HIGH: f32 = 0.693_359_4; // few bits, so that n·LN2_HIGH is exact
        const LN2_LOW: f32 = -2.121_944_4e-4;
        let x = self.min(self.max(x, self.splat(-87.0)), self.splat(87.0));
        let biased = self.mul_add(x, self.splat(std::f32::consts::LOG2_E), self.splat(MAGIC));
        let n = self.sub(biased, self.splat(MAGIC));
        let r = self.neg_mul_add(n, self.splat(LN2_HIGH), x);
        let r = self.neg_mul_add(n, self.splat(LN2_LOW), r);
        // Minimax polynomial of (eʳ − 1 − r)/r² on ±ln2/2 (Cephes, expf).
        let mut p = self.splat(1.987_569_1e-4);
        for c in [
            1.398_199_9e-3,
            8.333_452e-3,
            4.166_579_6e-2,
            1.666_666_5e-1,
            0.5,
        ] {
            p = self.mul_add(p, r, self.splat(c));
        }
        let r2 = self.mul(r, r);
        let e = self.mul_add(p, r2, self.add(r, self.splat(1.0)));
        self.mul(e, self.exp2_biased(biased))
    }

    /// 1 / (1 + e⁻ˣ).
    #[inline(always)]
    fn sigmoid(self, x: Self::V) -> Self::V {
        let one = self.splat(1.0);
        let e = self.exp(self.sub(self.splat(0.0), x));
        self.div(one, self.add(one, e))
    }
}

/// W floats in plain Rust, which the compiler turns into whatever vectors the target has.
#[derive(Clone, Copy)]
pub(crate) struct Scalar<const W: usize>;

impl<const W: usize> Scalar<W> {
    #[inline(always)]
    fn zip(a: [f32; W], b: [f32; W], f: impl Fn(f32, f32) -> f32) -> [f32; W] {
        std::array::from_fn(|i| f(a[i], b[i]))
    }
}

impl<const W: usize> Lanes for Scalar<W> {
    type V = [f32; W];
    const WIDTH: usize = W;

    #[inline(always)]
    unsafe fn load(self, p: *const f32) -> [f32; W] {
        // SAFETY: the caller vouches for W readable floats; unaligned reads are allowed here.
        unsafe { p.cast::<[f32; W]>().read_unaligned() }
    }
    #[inline(always)]
    unsafe fn store(self, p: *mut f32, v: [f32; W]) {
        // SAFETY: the caller vouches for W writable floats; unaligned writes are allowed here.
        unsafe { p.cast::<[f32; W]>().write_unaligned(v) }
    }
    #[inline(always)]
    fn splat(self, x: f32) -> [f32; W] {
        [x; W]
    }
    #[inline(always)]
    fn add(self, a: [f32; W], b: [f32; W]) -> [f32; W] {
        Self::zip(a, b, |x, y| x + y)
    }
    #[inline(always)]
    fn sub(self, a: [f32; W], b: [f32; W]) -> [f32; W] {
        Self::zip(a, b, |x, y| x - y)
    }
    #[inline(always)]
    fn mul(self, a: [f32; W], b: [f32; W]) -> [f32; W] {
        Self::zip(a, b, |x, y| x * y)
    }
    #[inline(always)]
    fn div(self, a: [f32; W], b: [f32; W]) -> [f32; W] {
        Self::zip(a, b, |x, y| x / y)
    }
    #[inline(always)]
    fn min(self, a: [f32; W], b: [f32; W]) -> [f32; W] {
        Self::zip(a, b, f32::min)
    }
    #[inline(always)]
    fn max(self, a: [f32; W], b: [f32; W]) -> [f32; W] {
        Self::zip(a, b, |x, y| if x > y { x } else { y })
    }
    #[inline(always)]
    fn mul_add(self, a: [f32; W], b: [f32; W], c: [f32; W]) -> [f32; W] {
        std::array::from_fn(|i| a[i] * b[i] + c[i])
    }
    #[inline(always)]
    fn neg_mul_add(self, a: [f32; W], b: [f32; W], c: [f32; W]) -> [f32; W] {
        std::array::from_fn(|i| c[i] - a[i] * b[i])
    }
    #[inline(always)]
    fn exp2_biased(self, a: [f32; W]) -> [f32; W] {
        a.map(|x| f32::from_bits((x.to_bits() << 23).wrapping_add(0x3f80_0000)))
    }
    #[inline(always)]
    fn fetch(self, _: *const f32) {}
    #[inline(always)]
    fn nonzero(self, a: [f32; W]) -> u64 {
        (0..W).fold(0, |bits, i| bits | (u64::from(a[i] != 0.0) << i))
    }
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    use super::{Kernel, Lanes};
    use std::arch::x86_64::*;

    /// Proof of AVX2 and FMA.
    #[derive(Clone, Copy)]
    pub(crate) struct Avx2(());

    impl Avx2 {
        pub(super) fn new() -> Option<Avx2> {
            (is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma"))
                .then_some(Avx2(()))
        }
    }

    /// # Safety
    /// The machine has avx2 and fma.
    #[target_feature(enable = "avx2,fma")]
    pub(super) unsafe fn run_avx2<K: Kernel>(token: Avx2, kernel: K) {
        kernel.run(token);
    }

    // SAFETY (every block in this impl): a value of `Avx2` exists only where the machine has avx2 and
    // fma, and the two memory operations pass their caller's promise on.
    impl Lanes for Avx2 {
        type V = __m256;
        const WIDTH: usize = 8;

        #[inline(always)]
        unsafe fn load(self, p: *const f32) -> __m256 {
            unsafe { _mm256_loadu_ps(p) }
        }
        #[inline(always)]
        unsafe fn store(self, p: *mut f32, v: __m256) {
            unsafe { _mm256_storeu_ps(p, v) }
        }
        #[inline(always)]
        fn splat(self, x: f32) -> __m256 {
            unsafe { _mm256_set1_ps(x) }
        }
        #[inline(always)]
        fn add(self, a: __m256, b: __m256) -> __m256 {
            unsafe { _mm256_add_ps(a, b) }
        }
        #[inline(always)]
        fn sub(self, a: __m256, b: __m256) -> __m256 {
            unsafe { _mm256_sub_ps(a, b) }
        }
        #[inline(always)]
        fn mul(self, a: __m256, b: __m256) -> __m256 {
            unsafe { _mm256_mul_ps(a, b) }
        }
        #[inline(always)]
        fn div(self, a: __m256, b: __m256) -> __m256 {
            unsafe { _mm256_div_ps(a, b) }
        }
        #[inline(always)]
        fn min(self, a: __m256, b: __m256) -> __m256 {
            unsafe { _mm256_min_ps(a, b) }
        }
        #[inline(always)]
        fn max(self, a: __m256, b: __m256) -> __m256 {
            unsafe { _mm256_max_ps(a, b) }
        }
        #[inline(always)]
        fn mul_add(self, a: __m256, b: __m256, c: __m256) -> __m256 {
            unsafe { _mm256_fmadd_ps(a, b, c) }
        }
        #[inline(always)]
        fn neg_mul_add(self, a: __m256, b: __m256, c: __m256) -> __m256 {
            unsafe { _mm256_fnmadd_ps(a, b, c) }
        }
        #[inline(always)]
        fn exp2_biased(self, a: __m256) -> __m256 {
            unsafe {
                let shifted = _mm256_slli_epi32::<23>(_mm256_castps_si256(a));
                _mm256_castsi256_ps(_mm256_add_epi32(shifted, _mm256_set1_epi32(0x3f80_0000)))
            }
        }
        #[inline(always)]
        fn fetch(self, p: *const f32) {
            unsafe { _mm_prefetch::<_MM_HINT_T0>(p.cast()) }
        }
        #[inline(always)]
        fn nonzero(self, a: __m256) -> u64 {
            unsafe {
                let different = _mm256_cmp_ps::<_CMP_NEQ_UQ>(a, _mm256_setzero_ps());
                _mm256_movemask_ps(different) as u8 as u64
            }
        }
    }

    /// Proof of AVX-512F (and of AVX2 and FMA).
    #[derive(Clone, Copy)]
    pub(crate) struct Avx512(());

    impl Avx512 {
        pub(super) fn new() -> Option<Avx512> {
            (is_x86_feature_detected!("avx512f")
                && is_x86_feature_detected!("avx2")
                && is_x86_feature_detected!("fma"))
            .then_some(Avx512(()))
        }
    }

    /// # Safety
    /// The machine has avx512f, avx2 and fma.
    #[target_feature(enable = "avx512f,avx2,fma")]
    pub(super) unsafe fn run_avx512<K: Kernel>(token: Avx512, kernel: K) {
        kernel.run(token);
    }

    // SAFETY (every block in this impl): a value of `Avx512` exists only where the machine has avx512f,
    // and the two memory operations pass their caller's promise on.
    impl Lanes for Avx512 {
        type V = __m512;
        const WIDTH: usize = 16;

        #[inline(always)]
        unsafe fn load(self, p: *const f32) -> __m512 {
            unsafe { _mm512_loadu_ps(p) }
        }
        #[inline(always)]
        unsafe fn store(self, p: *mut f32, v: __m512) {
            unsafe { _mm512_storeu_ps(p, v) }
        }
        #[inline(always)]
        fn splat(self, x: f32) -> __m512 {
            unsafe { _mm512_set1_ps(x) }
        }
        #[inline(always)]
        fn add(self, a: __m512, b: __m512) -> __m512 {
            unsafe { _mm512_add_ps(a, b) }
        }
        #[inline(always)]
        fn sub(self, a: __m512, b: __m512) -> __m512 {
            unsafe { _mm512_sub_ps(a, b) }
        }
        #[inline(always)]
        fn mul(self, a: __m512, b: __m512) -> __m512 {
            unsafe { _mm512_mul_ps(a, b) }
        }
        #[inline(always)]
        fn div(self, a: __m512, b: __m512) -> __m512 {
            unsafe { _mm512_div_ps(a, b) }
        }
        #[inline(always)]
        fn min(self, a: __m512, b: __m512) -> __m512 {
            unsafe { _mm512_min_ps(a, b) }
        }
        #[inline(always)]
        fn max(self, a: __m512, b: __m512) -> __m512 {
            unsafe { _mm512_max_ps(a, b) }
        }
        #[inline(always)]
        fn mul_add(self, a: __m512, b: __m512, c: __m512) -> __m512 {
            unsafe { _mm512_fmadd_ps(a, b, c) }
        }
        #[inline(always)]
        fn neg_mul_add(self, a: __m512, b: __m512, c: __m512) -> __m512 {
            unsafe { _mm512_fnmadd_ps(a, b, c) }
        }
        #[inline(always)]
        fn exp2_biased(self, a: __m512) -> __m512 {
            unsafe {
                let shifted = _mm512_slli_epi32::<23>(_mm512_castps_si512(a));
                _mm512_castsi512_ps(_mm512_add_epi32(shifted, _mm512_set1_epi32(0x3f80_0000)))
            }
        }
        #[inline(always)]
        fn fetch(self, p: *const f32) {
            unsafe { _mm_prefetch::<_MM_HINT_T0>(p.cast()) }
        }
        #[inline(always)]
        fn nonzero(self, a: __m512) -> u64 {
            unsafe { u64::from(_mm512_cmp_ps_mask::<_CMP_NEQ_UQ>(a, _mm512_setzero_ps())) }
        }
    }
}
