//! What is written comes back; hostile bytes end in an error.

use cuda_fatbin::write::{Compression, Image, container};
use cuda_fatbin::{Choice, Entry, Error, Kind, choose_ptx, containers, elf, entries, flags, memory};
use proptest::prelude::*;

const TEXT: &[u8] = b"\n.version 8.5\n.target sm_80\n.address_size 64\n\n\n\n\n\n\n// a comment a comment a comment\0";
const ALL: [Compression; 3] = [Compression::Raw, Compression::Lz4, Compression::Zstd];

fn read(bytes: &[u8]) -> Vec<Entry<'_>> {
    entries(bytes).unwrap().map(Result::unwrap).collect()
}

fn arch_of(choice: Choice<'_>) -> Option<u32> {
    match choice {
        Choice::Ptx(entry) => Some(entry.arch),
        _ => None,
    }
}

#[test]
fn every_compression_comes_back() {
    for compression in ALL {
        let image = Image {
            options: " --generate-line-info ",
            ..Image::ptx(80, TEXT)
        }
        .compressed(compression);
        let bytes = container(&[image.clone(), Image { kind: 2, ..image }]);
        let list = read(&bytes);
        assert_eq!((list[0].kind, list[1].kind), (Kind::Ptx, Kind::Cubin));
        assert_eq!((list[0].arch, list[0].version), (80, (8, 5)));
        assert_eq!(list[0].options, b" --generate-line-info ");
        assert_eq!(list[0].ptx().unwrap(), &TEXT[..TEXT.len() - 1]);
        assert_eq!(list[1].payload().unwrap()[..TEXT.len()], *TEXT);
    }
}

#[test]
fn a_section_holds_several_containers_some_empty() {
    let mut section = container(&[]);
    section.extend(container(&[Image::ptx(70, TEXT)]));
    section.extend([0; 24]);
    section.extend(container(&[
        Image::ptx(75, TEXT).compressed(Compression::Lz4),
        Image::ptx(80, TEXT),
    ]));
    let counts: Vec<_> = containers(&section).map(|c| read(c).len()).collect();
    assert_eq!(counts, [0, 1, 2]);
    // One that reaches past the end is left out.
    let cut = &section[..section.len() - 1];
    assert_eq!(containers(cut).count(), 2);
}

#[test]
fn the_best_ptx_is_chosen() {
    let image = |arch, flag| Image {
        flags: flags::ADDRESS_64 | flag,
        ..Image::ptx(arch, TEXT)
    };
    let choose = |images: &[Image<'_>], capability| {
        let bytes = container(images);
        arch_of(choose_ptx(read(&bytes), capability))
    };
    let many = [image(52, 0), image(80, 0), image(90, 0), image(120, 0)];
    assert_eq!(choose(&many, 80), Some(80));
    assert_eq!(choose(&many, 86), Some(80));
    assert_eq!(choose(&many[2..], 80), Some(90));
    assert_eq!(
        choose(&[image(90, flags::ARCHITECTURE_SPECIFIC), image(120, 0)], 80),
        Some(120)
    );
    assert_eq!(choose(&[image(90, flags::ARCHITECTURE_SPECIFIC)], 90), Some(90));

    let specific = container(&[
        image(90, flags::ARCHITECTURE_SPECIFIC),
        image(100, flags::FAMILY_SPECIFIC),
    ]);
    match choose_ptx(read(&specific), 80) {
        Choice::SpecificOnly(list) => assert_eq!(list, ["sm_90a", "sm_100f"]),
        other => panic!("{other:?}"),
    }
    let machine = container(&[Image {
        kind: 2,
        ..image(86, 0)
    }]);
    match choose_ptx(read(&machine), 80) {
        Choice::MachineCodeOnly(list) => assert_eq!(list, ["sm_86"]),
        other => panic!("{other:?}"),
    }
    assert!(matches!(choose_ptx(read(&container(&[])), 80), Choice::Empty));
}

#[test]
fn wrappers_lead_to_their_containers() {
    #[repr(C)]
    struct Wrapper(u32, u32, *const u8, *const *const u8);
    let (own, other) = (container(&[Image::ptx(80, TEXT)]), container(&[]));
    let list = [other.as_ptr(), own.as_ptr(), std::ptr::null()];
    let version_1 = Wrapper(0x4662_43b1, 1, own.as_ptr(), std::ptr::null());
    let version_2 = Wrapper(0x4662_43b1, 2, own.as_ptr(), list.as_ptr());
    let magic = Wrapper(0x4662_43b2, 1, own.as_ptr(), std::ptr::null());
    let null = Wrapper(0x4662_43b1, 1, std::ptr::null(), std::ptr::null());
    // SAFETY: each wrapper and what it points to are live.
    let containers = |w: &Wrapper| unsafe { memory::wrapper((w as *const Wrapper).cast()) };
    assert_eq!(containers(&version_1), Ok(vec![&own[..]]));
    assert_eq!(containers(&version_2), Ok(vec![&own[..], &other[..], &own[..]]));
    assert_eq!(containers(&magic), Err(Error::Magic));
    assert_eq!(containers(&null), Err(Error::Null));
}

#[test]
fn sizes_that_lie_allocate_nothing() {
    for compression in [Compression::Lz4, Compression::Zstd] {
        for size in [0u64, 1, TEXT.len() as u64 + 1, 1 << 29, 1 << 40, u64::MAX] {
            let mut bytes = container(&[Image::ptx(80, TEXT).compressed(compression)]);
            bytes[16 + 56..16 + 64].copy_from_slice(&size.to_le_bytes());
            assert!(read(&bytes)[0].payload().is_err(), "{compression:?} {size}");
        }
    }
    let mut bytes = container(&[Image::ptx(80, TEXT)]);
    bytes[8..16].copy_from_slice(&u64::MAX.to_le_bytes());
    assert_eq!(entries(&bytes).err(), Some(Error::TooLarge));
    assert_eq!(elf::sections(b"nonsense").err(), Some(Error::Magic));
}

fn use_all(bytes: &[u8]) {
    for container in containers(bytes) {
        let list: Vec<_> = entries(container).into_iter().flatten().map_while(Result::ok).collect();
        list.iter()
            .for_each(|e| drop((e.payload(), e.architecture(), e.options.len(), e.name.len())));
        let _ = choose_ptx(list, 80);
    }
    for entry in entries(bytes).into_iter().flatten().flatten() {
        let _ = entry.payload();
    }
    for section in elf::sections(bytes).into_iter().flatten() {
        assert!(section.containers().count() <= bytes.len());
    }
}

proptest! {
    #[test]
    fn damaged_containers_never_panic(which in 0usize..3, at in 0usize..400, value: u8, cut in 0usize..400) {
        let mut bytes = container(&[Image::ptx(80, TEXT).compressed(ALL[which]), Image::ptx(90, TEXT)]);
        let length = bytes.len();
        bytes[at % length] = value;
        use_all(&bytes);
        use_all(&bytes[..length - cut % length]);
    }

    #[test]
    fn arbitrary_bytes_never_panic(mut bytes: Vec<u8>, kind in 0usize..3) {
        use_all(&bytes);
        let magic: &[u8] = [&b"\x7fELF\x02\x01"[..], b"\x50\xed\x55\xba\x01\x00\x10\x00", b""][kind];
        let size = magic.len().min(bytes.len());
        bytes[..size].copy_from_slice(&magic[..size]);
        use_all(&bytes);
    }

    #[test]
    fn any_payload_comes_back(payload: Vec<u8>, which in 0usize..3) {
        let bytes = container(&[Image::ptx(80, &payload).compressed(ALL[which])]);
        let list = read(&bytes);
        prop_assert_eq!(&list[0].payload().unwrap()[..payload.len()], &payload[..]);
    }
}
