//! Finds the next record behind damage.

use super::records::{self, HEAD};
use super::window::Window;
use mcap::records::op;
use std::io;

/// Records in a row that must fit before a message behind damage is believed.
pub(super) const CHAIN: usize = 3;

/// The next offset from `at` where a record stands: a chunk whose lengths agree, or a message followed by records. What declares its
/// channel may be what is broken, and may come again.
pub(super) fn resync(window: &mut Window<'_>, at: u64, size: u64) -> io::Result<Option<u64>> {
    const STEP: usize = 64 << 10;
    let mut base = at;
    while base < size {
        let bytes = window.at(base, STEP)?.to_vec();
        if bytes.is_empty() {
            break;
        }
        for index in memchr::memchr2_iter(op::MESSAGE, op::CHUNK, &bytes) {
            let offset = base + index as u64;
            // The high bytes of a length are 0; most candidates end here.
            if bytes.get(index + 7..index + HEAD).is_some_and(|high| high != [0, 0]) {
                continue;
            }
            if stands(window, offset, size, CHAIN)? {
                return Ok(Some(offset));
            }
        }
        base += bytes.len() as u64;
    }
    Ok(None)
}

fn stands(window: &mut Window<'_>, at: u64, size: u64, chain: usize) -> io::Result<bool> {
    if at == size || chain == 0 {
        return Ok(true);
    }
    let Some((opcode, len)) = records::head(window.at(at, HEAD)?) else { return Ok(false) };
    let body = at + HEAD as u64;
    let Some(end) = body.checked_add(len).filter(|&end| end <= size) else { return Ok(false) };
    match opcode {
        op::CHUNK => Ok(records::chunk(window.at(body, records::CHUNK_HEAD)?, len).is_some()),
        op::MESSAGE => {
            let fits = records::message(window.at(body, records::MESSAGE.min(len as usize))?).is_some();
            Ok(fits && stands(window, end, size, chain - 1)?)
        }
        opcode => Ok(chain < CHAIN && opcode < 0x80 && records::known(opcode) && stands(window, end, size, chain - 1)?),
    }
}
