//! The CRC-32 of `.gnu_debuglink`: the one of zlib and Ethernet (polynomial 0x04C11DB7, bits reflected).

/// `TABLES[k][b]`: what byte `b` contributes when `k` more bytes follow it, so that eight bytes cost eight look-ups
/// that do not wait for each other.
static TABLES: [[u32; 256]; 8] = tables();

const fn tables() -> [[u32; 256]; 8] {
    let mut tables = [[0; 256]; 8];
    let mut byte = 0;
    while byte < 256 {
        let mut crc = byte as u32;
        let mut bit = 0;
        while bit < 8 {
            crc = if crc & 1 != 0 { (crc >> 1) ^ 0xEDB8_8320 } else { crc >> 1 };
            bit += 1;
        }
        tables[0][byte] = crc;
        byte += 1;
    }
    let mut k = 1;
    while k < 8 {
        let mut byte = 0;
        while byte < 256 {
            let previous = tables[k - 1][byte];
            tables[k][byte] = (previous >> 8) ^ tables[0][(previous & 0xff) as usize];
            byte += 1;
        }
        k += 1;
    }
    tables
}

/// A checksum being computed.
#[derive(Debug)]
pub(crate) struct Crc32(u32);

impl Default for Crc32 {
    fn default() -> Self {
        Crc32(!0)
    }
}

impl Crc32 {
    /// Takes in the next bytes.
    pub(crate) fn update(&mut self, bytes: &[u8]) {
        let mut crc = self.0;
        let (eights, rest) = bytes.as_chunks::<8>();
        for eight in eights {
            let first = crc.to_le_bytes();
            let mut next = 0;
            for (i, &byte) in eight.iter().enumerate() {
                let byte = if i < 4 { byte ^ first[i] } else { byte };
                next ^= TABLES[7 - i][usize::from(byte)];
            }
            crc = next;
        }
        for &byte in rest {
            crc = (crc >> 8) ^ TABLES[0][((crc as u8) ^ byte) as usize];
        }
        self.0 = crc;
    }

    /// The checksum of all bytes taken in.
    pub(crate) fn finish(self) -> u32 {
        !self.0
    }
}

#[cfg(test)]
mod tests {
    use super::Crc32;

    fn crc(bytes: &[u8]) -> u32 {
        let mut crc = Crc32::default();
        crc.update(bytes);
        crc.finish()
    }

    #[test]
    fn the_published_check_value() {
        assert_eq!(crc(b"123456789"), 0xCBF4_3926);
        assert_eq!(crc(b""), 0);
    }

    #[test]
    fn pieces_of_any_length_give_the_same() {
        let bytes: Vec<u8> = (0..1000u32).map(|i| ((i * i) >> 3) as u8).collect();
        for cut in [0, 1, 7, 8, 9, 500, 1000] {
            let mut in_two = Crc32::default();
            in_two.update(&bytes[..cut]);
            in_two.update(&bytes[cut..]);
            assert_eq!(in_two.finish(), crc(&bytes), "cut at {cut}");
        }
    }
}
