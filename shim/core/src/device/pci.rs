//! PCI bus ids: `cuDeviceGetPCIBusId`, `cuDeviceGetByPCIBusId`.

use super::Device;

/// AMD's vendor id.
pub const AMD: u32 = 0x1002;

/// The bus number.
pub fn bus(device: &Device) -> i32 {
    (device.agent.pci_bdf >> 8 & 0xff) as i32
}

/// The device number on its bus.
pub fn slot(device: &Device) -> i32 {
    (device.agent.pci_bdf >> 3 & 0x1f) as i32
}

/// The function number: the parts of one card differ in it.
pub fn function(device: &Device) -> i32 {
    (device.agent.pci_bdf & 7) as i32
}

/// `0000:c1:00.0`.
pub fn text(device: &Device) -> String {
    format!(
        "{:04x}:{:02x}:{:02x}.{:x}",
        device.agent.pci_domain,
        bus(device),
        slot(device),
        function(device)
    )
}

/// Domain, bus, device, function.
pub type Address = [u32; 4];

/// The address of a device.
pub fn address(device: &Device) -> Address {
    [
        device.agent.pci_domain,
        bus(device) as u32,
        slot(device) as u32,
        function(device) as u32,
    ]
}

/// Parses `domain:bus:device.function`, `bus:device.function` or `domain:bus:device` (recorded: one of domain and function may be
/// missing, not both). Blanks before it and text behind it are ignored. `None` for anything else.
pub fn parse(text: &[u8]) -> Option<Address> {
    let mut rest = text.trim_ascii_start();
    let mut numbers = Vec::new();
    let mut separators = Vec::new();
    while numbers.len() < 4 {
        let digits = rest.iter().take_while(|byte| byte.is_ascii_hexdigit()).count();
        if digits == 0 {
            break;
        }
        let digits_text = core::str::from_utf8(&rest[..digits]).ok()?;
        numbers.push(u32::from_str_radix(digits_text, 16).ok()?);
        rest = &rest[digits..];
        match rest.first() {
            Some(separator @ (b':' | b'.')) if numbers.len() < 4 => {
                separators.push(*separator);
                rest = &rest[1..];
            }
            _ => break,
        }
    }
    separators.truncate(numbers.len().saturating_sub(1));
    match (&numbers[..], &separators[..]) {
        (&[domain, bus, device, function], b"::.") => Some([domain, bus, device, function]),
        (&[bus, device, function], b":.") => Some([0, bus, device, function]),
        (&[domain, bus, device], b"::") => Some([domain, bus, device, 0]),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The strings of the record, for a device at 0000:00:06.0.
    #[test]
    fn ids_parse_as_recorded() {
        let here = Some([0, 0, 6, 0]);
        for (text, expected) in [
            ("0000:00:06.0", here),
            ("00:06.0", here),
            ("0000:00:06", here),
            ("00:06", None),
            ("00000000:00:06.0", here),
            ("0000:ff:00.0", Some([0, 0xff, 0, 0])),
            ("", None),
            ("junk", None),
            ("0000:00:06.0x", here),
            (" 0000:00:06.0", here),
            ("0000:00:06.1", Some([0, 0, 6, 1])),
            ("0:6:0.0", Some([0, 6, 0, 0])),
            ("6:0.0", Some([0, 6, 0, 0])),
            ("GPU-xyz", None),
            ("123456789:0:0.0", None),
        ] {
            assert_eq!(parse(text.as_bytes()), expected, "{text:?}");
        }
    }
}
