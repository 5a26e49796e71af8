//! How many allocations a sampled one stands for.

/// `1 / (1 - exp(-block_size / rate))`: the estimate of a number of blocks is the number of sampled ones times this. Both in bytes.
pub(crate) fn scale(block_size: u64, rate: u64) -> f64 {
    let x = block_size.max(1) as f64 / rate.max(1) as f64;
    if x < 0.5 {
        // 1/2 + coth(x/2)/2, by its series; what is left out is less than 1e-12 of it.
        let square = x * x;
        let series = 1.0 / 12.0
            - square * (1.0 / 720.0 - square * (1.0 / 30_240.0 - square * (1.0 / 1_209_600.0 - square / 47_900_160.0)));
        return 1.0 / x + 0.5 + x * series;
    }
    1.0 / (1.0 - exp_minus(x))
}

/// e^-x for x >= 0.
fn exp_minus(x: f64) -> f64 {
    if x > 40.0 {
        return 0.0; // nothing against 1
    }
    // A sixty-fourth of x is less than 1, where the series is short; then the 64th power.
    let part = x / 64.0;
    let mut sum = 1.0;
    for term in (1..18).rev() {
        sum = 1.0 - sum * part / term as f64;
    }
    (0..6).fold(sum, |power, _| power * power)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_the_formula() {
        for rate in [1u64, 2, 1000, 4096, 65_536, 524_288, 1 << 32] {
            for size in [16u64, 48, 64, 1000, 10_240, 262_144, 262_160, 524_288, 1 << 20, 1 << 24, 1 << 40] {
                let exact = -1.0 / (-(size as f64) / rate as f64).exp_m1();
                let error = scale(size, rate) / exact - 1.0;
                assert!(error.abs() < 1e-12, "{size} {rate}: {error}");
            }
        }
        assert_eq!(scale(1 << 30, 1), 1.0);
    }
}
