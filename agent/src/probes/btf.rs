//! The kernel's description of its types (BTF), read where it lies: nothing is made of the 150,000 types that nobody asks for.
//!
//! The crates that read BTF make a tree of all of it first: with one of them the agent took 100 MiB and a second to start.
//! The format is the kernel's `Documentation/bpf/btf.rst`.

use std::ops::Range;

/// Why it isn't one.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum BtfError {
    /// It begins otherwise, or was written by a machine of the other byte order.
    #[error("it is no BTF of this machine's byte order")]
    Magic,
    /// It ends too early, or has a kind of type that this version doesn't know the length of.
    #[error("it is cut off, or newer than numawatch: at byte {0} of its types")]
    Types(usize),
}

const MAGIC: u16 = 0xeb9f;

/// Longer chains of names, qualifiers and pointers than any program's would be a circle.
pub(super) const LONGEST_CHAIN: usize = 64;

/// A type's number; 0 is void.
pub(crate) type Id = u32;

/// Kinds that are asked for; the rest is passed over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// An integer, a truth value or a character.
    Int,
    /// A pointer.
    Pointer,
    /// An array.
    Array,
    /// A structure.
    Struct,
    /// A union.
    Union,
    /// An enumeration of 32 bits.
    Enum,
    /// A structure or union of which only the name is known.
    Forward,
    /// Another name of a type.
    Typedef,
    /// const, volatile, restrict or a tag: nothing of its own.
    Qualifier,
    /// A function, by its prototype.
    Function,
    /// A prototype.
    Prototype,
    /// An enumeration of 64 bits.
    Enum64,
    /// A variable, a section, a floating-point number, or a tag on a declaration.
    Other,
}

/// One type.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Type<'a> {
    /// What it is.
    pub(crate) kind: Kind,
    /// Its name; empty where it has none.
    pub(crate) name: &'a str,
    /// Its size in bytes, or the type that it refers to, by kind.
    pub(crate) size_or_id: u32,
    /// How many members, parameters or enumerators it has.
    count: usize,
    /// Whether its members' offsets carry the sizes of bit fields.
    bit_fields: bool,
    /// What follows.
    rest: &'a [u8],
}

impl Type<'_> {
    /// Whether it has any members.
    pub(crate) const fn has_members(&self) -> bool {
        self.count > 0
    }
}

/// A member, a parameter (without an offset) or an enumerator (its value for a type).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Member<'a> {
    /// Its name; empty where it has none.
    pub(crate) name: &'a str,
    /// Its type, or an enumerator's value.
    pub(crate) type_or_value: u32,
    /// Bits from the structure's start.
    pub(crate) bits: u32,
}

/// See the module's doc.
#[derive(Debug)]
pub(crate) struct Btf {
    data: Vec<u8>,
    strings: Range<usize>,
    /// Where each type begins, from 1 on.
    starts: Vec<u32>,
}

impl Btf {
    /// Finds where each type begins.
    ///
    /// # Errors
    /// See [`BtfError`].
    pub(crate) fn new(data: Vec<u8>) -> Result<Self, BtfError> {
        let magic = data.get(..2).and_then(|b| b.try_into().ok());
        if magic.map(u16::from_ne_bytes) != Some(MAGIC) {
            return Err(BtfError::Magic);
        }
        let header = |at| word(&data, at).map(|word| word as usize);
        let part = |offset, length| {
            let start = header(4)?.checked_add(header(offset)?)?;
            let range = start..start.checked_add(header(length)?)?;
            data.get(range.clone()).map(|_| range)
        };
        let types = part(8, 12).ok_or(BtfError::Types(0))?;
        let strings = part(16, 20).ok_or(BtfError::Types(0))?;
        let mut starts = Vec::new();
        let mut at = types.start;
        while at < types.end {
            let wrong = BtfError::Types(at - types.start);
            let Some(length) = word(&data, at + 4).and_then(length) else {
                return Err(wrong);
            };
            let Ok(start) = u32::try_from(at) else {
                return Err(wrong);
            };
            starts.push(start);
            at += 12 + length;
        }
        if at != types.end {
            return Err(BtfError::Types(at - types.start));
        }
        Ok(Self {
            data,
            strings,
            starts,
        })
    }

    /// All types, by number.
    pub(crate) fn types(&self) -> impl Iterator<Item = (Id, Type<'_>)> {
        (1..)
            .zip(&self.starts)
            .filter_map(|(id, start)| Some((id, self.at(*start)?)))
    }

    /// A type by number; `None` of void, and of a number that there isn't.
    pub(crate) fn get(&self, id: Id) -> Option<Type<'_>> {
        let start = self.starts.get((id as usize).checked_sub(1)?)?;
        self.at(*start)
    }

    /// The same without other names, const and the like.
    pub(crate) fn bare(&self, mut id: Id) -> Option<Type<'_>> {
        for _ in 0..LONGEST_CHAIN {
            let found = self.get(id)?;
            match found.kind {
                Kind::Typedef | Kind::Qualifier => id = found.size_or_id,
                _ => return Some(found),
            }
        }
        None
    }

    fn at(&self, start: u32) -> Option<Type<'_>> {
        let start = start as usize;
        let info = word(&self.data, start + 4)?;
        Some(Type {
            kind: kind(info),
            name: self.string(word(&self.data, start)?),
            size_or_id: word(&self.data, start + 8)?,
            count: (info & 0xffff) as usize,
            bit_fields: info >> 31 != 0,
            rest: self.data.get(start + 12..start + 12 + length(info)?)?,
        })
    }

    /// What is at an offset of the strings; empty where that is none.
    fn string(&self, offset: u32) -> &str {
        let strings = self.data.get(self.strings.clone()).unwrap_or_default();
        let from = strings.get(offset as usize..).unwrap_or_default();
        let end = from.iter().position(|byte| *byte == 0).unwrap_or(0);
        std::str::from_utf8(from.get(..end).unwrap_or_default()).unwrap_or_default()
    }

    /// A structure's or union's members, or an enumeration's enumerators of 32 bits.
    pub(crate) fn members<'a>(&'a self, of: &Type<'a>) -> impl Iterator<Item = Member<'a>> {
        let words = match of.kind {
            Kind::Struct | Kind::Union => 3,
            Kind::Enum | Kind::Prototype => 2,
            _ => 0,
        };
        let (rest, bit_fields, count) = (of.rest, of.bit_fields, of.count);
        (0..if words == 0 { 0 } else { count }).filter_map(move |at| {
            let start = at * words * 4;
            let offset = if words == 3 {
                word(rest, start + 8)?
            } else {
                0
            };
            Some(Member {
                name: self.string(word(rest, start)?),
                type_or_value: word(rest, start + 4)?,
                bits: if bit_fields {
                    offset & 0xff_ffff
                } else {
                    offset
                },
            })
        })
    }

    /// An array's type of elements and their number.
    pub(crate) fn array(of: &Type<'_>) -> Option<(Id, u32)> {
        if of.kind != Kind::Array {
            return None;
        }
        Some((word(of.rest, 0)?, word(of.rest, 8)?))
    }

    /// An integer's bits.
    pub(crate) fn int_bits(of: &Type<'_>) -> Option<u32> {
        (of.kind == Kind::Int).then(|| word(of.rest, 0).map(|word| word & 0xff))?
    }
}

fn word(data: &[u8], at: usize) -> Option<u32> {
    let bytes = data.get(at..at.checked_add(4)?)?;
    Some(u32::from_ne_bytes(bytes.try_into().ok()?))
}

fn kind(info: u32) -> Kind {
    match info >> 24 & 0x1f {
        1 => Kind::Int,
        2 => Kind::Pointer,
        3 => Kind::Array,
        4 => Kind::Struct,
        5 => Kind::Union,
        6 => Kind::Enum,
        7 => Kind::Forward,
        8 => Kind::Typedef,
        9..=11 | 18 => Kind::Qualifier,
        12 => Kind::Function,
        13 => Kind::Prototype,
        19 => Kind::Enum64,
        _ => Kind::Other,
    }
}

/// Bytes that follow a type's first twelve; `None` of a kind that isn't known.
fn length(info: u32) -> Option<usize> {
    let count = (info & 0xffff) as usize;
    Some(match info >> 24 & 0x1f {
        2 | 7..=12 | 16 | 18 => 0,
        1 | 14 | 17 => 4,
        3 => 12,
        4 | 5 | 15 | 19 => count * 12,
        6 | 13 => count * 8,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `struct s { int a; const int b: 3; }`, and an enumeration.
    fn small() -> Vec<u8> {
        let strings = b"\0int\0s\0a\0b\0E\0X\0";
        let types: Vec<u32> = [
            // 1: int, of 32 bits.
            &[1, 1 << 24, 4, 32][..],
            // 2: const int.
            &[0, 10 << 24, 1],
            // 3: the structure, whose second member is a bit field.
            &[5, 1 << 31 | 4 << 24 | 2, 8, 7, 1, 0, 9, 2, 3 << 24 | 32],
            // 4: the enumeration.
            &[11, 6 << 24 | 1, 4, 13, 42],
            // 5: an array of seven.
            &[0, 3 << 24, 0, 1, 1, 7],
        ]
        .concat();
        let bytes = |words: &[u32]| -> Vec<u8> {
            words.iter().flat_map(|word| word.to_ne_bytes()).collect()
        };
        let types = bytes(&types);
        let [of_types, of_strings] =
            [types.len(), strings.len()].map(|length| u32::try_from(length).unwrap());
        let mut data = MAGIC.to_ne_bytes().to_vec();
        data.extend([1, 0]);
        data.extend(bytes(&[24, 0, of_types, of_types, of_strings]));
        data.extend(types);
        data.extend(strings);
        data
    }

    #[test]
    fn types_are_found_by_number_with_their_members() {
        let btf = Btf::new(small()).unwrap();
        let names: Vec<_> = btf.types().map(|(id, t)| (id, t.name)).collect();
        assert_eq!(names, [(1, "int"), (2, ""), (3, "s"), (4, "E"), (5, "")]);
        let structure = btf.get(3).unwrap();
        let members: Vec<_> = btf
            .members(&structure)
            .map(|m| (m.name, m.type_or_value, m.bits))
            .collect();
        assert_eq!(members, [("a", 1, 0), ("b", 2, 32)]);
        assert_eq!(btf.bare(2).unwrap().name, "int");
        assert_eq!(Btf::int_bits(&btf.get(1).unwrap()), Some(32));
        let enumerator = btf.members(&btf.get(4).unwrap()).next().unwrap();
        assert_eq!((enumerator.name, enumerator.type_or_value), ("X", 42));
        assert_eq!(Btf::array(&btf.get(5).unwrap()), Some((1, 7)));
        assert!(btf.get(0).is_none() && btf.get(6).is_none());
    }

    #[test]
    fn what_is_cut_off_or_unknown_is_an_error() {
        let whole = small();
        assert_eq!(
            Btf::new(b"#!/bin/sh".to_vec()).unwrap_err(),
            BtfError::Magic
        );
        for length in 2..whole.len() {
            assert!(Btf::new(whole[..length].to_vec()).is_err(), "{length}");
        }
        let mut newer = whole;
        // The first type's kind.
        newer[24 + 7] = 31;
        assert_eq!(Btf::new(newer).unwrap_err(), BtfError::Types(0));
    }

    #[test]
    fn a_circle_of_names_has_no_end_and_no_type() {
        let mut data = small();
        // const int becomes const of itself.
        data[24 + 16 + 8] = 2;
        assert!(Btf::new(data).unwrap().bare(2).is_none());
    }
}
