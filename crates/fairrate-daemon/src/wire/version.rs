//! The agreement on a version of the protocol.

/// The newest version of the protocol. Version 2 has epochs, rates in force and acknowledgments; version 3 has flows
/// with addresses of IPv6.
pub const VERSION: u8 = 3;

/// The oldest version that this program speaks.
pub const LEAST_VERSION: u8 = 2;

/// A range of versions, as an agent offers it in HELLO.
///
/// Its byte is the version alone, or the least one in the upper half and the most in the lower half. A peer of version
/// 2 knows the first form only, and refuses the second with [`Reason::Version`](super::Reason::Version): then the agent
/// connects again and offers its older versions. The allocator answers with the version that it has chosen.
///
/// ```
/// use fairrate_daemon::wire::Versions;
///
/// assert_eq!(Versions::from_byte(0x23).and_then(|of| of.agree(Versions::OURS)), Some(3));
/// assert_eq!(Versions::from_byte(2).and_then(|of| of.agree(Versions::OURS)), Some(2));
/// assert_eq!(Versions::from_byte(1).and_then(|of| of.agree(Versions::OURS)), None);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Versions {
    /// The oldest version, from 1.
    pub least: u8,
    /// The newest version, up to 15.
    pub most: u8,
}

impl Versions {
    /// The versions of this program.
    pub const OURS: Self = Self { least: LEAST_VERSION, most: VERSION };

    /// Returns the byte of HELLO.
    pub fn byte(self) -> u8 {
        if self.least == self.most { self.most } else { self.least << 4 | self.most }
    }

    /// Returns the versions of a byte of HELLO, or `None` if it is the byte of none.
    pub fn from_byte(byte: u8) -> Option<Self> {
        let (least, most) = (byte >> 4, byte & 0xf);
        match (least, most) {
            (_, 0) => None,
            (0, most) => Some(Self { least: most, most }),
            (least, most) => (least <= most).then_some(Self { least, most }),
        }
    }

    /// Returns the newest version that both ranges have, or `None` if there is none.
    pub fn agree(self, other: Self) -> Option<u8> {
        let most = self.most.min(other.most);
        (self.least.max(other.least) <= most).then_some(most)
    }

    /// Returns `true` if it has this version.
    pub fn has(self, version: u8) -> bool {
        (self.least..=self.most).contains(&version)
    }

    /// Returns the range without its newest version, or `None` if there is no other.
    pub fn older(self) -> Option<Self> {
        (self.least < self.most).then(|| Self { most: self.most - 1, ..self })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_byte_is_a_version_or_a_range() {
        let of = |least, most| Some(Versions { least, most });
        assert_eq!(Versions::from_byte(2), of(2, 2));
        assert_eq!(Versions::from_byte(0x23), of(2, 3));
        assert_eq!(Versions::from_byte(0xff), of(15, 15));
        // No version 0, and no range from a version to an older one.
        assert_eq!([0, 0x20, 0x32].map(Versions::from_byte), [None; 3]);
        for byte in 0..=u8::MAX {
            let again = Versions::from_byte(byte).map(|versions| Versions::from_byte(versions.byte()));
            assert!(again.is_none_or(|again| again == Versions::from_byte(byte)), "{byte}");
        }
    }

    #[test]
    fn the_newest_common_version_is_taken() {
        let versions = |least, most| Versions { least, most };
        assert_eq!(versions(2, 3).agree(versions(3, 4)), Some(3));
        assert_eq!(versions(2, 3).agree(versions(2, 2)), Some(2));
        assert_eq!(versions(2, 3).agree(versions(4, 5)), None);
        assert_eq!(versions(2, 3).older(), Some(versions(2, 2)));
        assert_eq!(versions(2, 2).older(), None);
    }
}
