//! CUDA's grids and blocks as HSA's grids and work-groups.

use kernels_ptx_translate::protocol::WarpLayout;

use super::launch::Shape;
use crate::abi::{Error, Result};

/// Work-items of a work-group and of the grid.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Geometry {
    /// Of a work-group.
    pub workgroup: [u16; 3],
    /// Of the whole grid.
    pub grid: [u32; 3],
}

/// The dispatch for a CUDA launch.
///
/// `Paired` keeps the block as it is. `Solo` lays each warp of 32 on a wave of 64, so a block becomes a line of twice the
/// work-items (see `WarpLayout`).
///
/// # Errors
/// LAUNCH_OUT_OF_RESOURCES when the grid has more work-items in one direction than a packet can say (2^32 - 1), or a
/// work-group more than 1024.
pub fn geometry(layout: WarpLayout, shape: &Shape) -> Result<Geometry> {
    let workgroup: [u64; 3] = match layout {
        WarpLayout::Paired => shape.block.map(u64::from),
        WarpLayout::Solo => [shape.threads().div_ceil(32) * 64, 1, 1],
    };
    if workgroup.iter().product::<u64>() > 1024 {
        return Err(Error::LAUNCH_OUT_OF_RESOURCES);
    }
    let mut grid = [0u32; 3];
    for axis in 0..3 {
        let items = u64::from(shape.grid[axis]) * workgroup[axis];
        grid[axis] = u32::try_from(items).map_err(|_| {
            log::error!(
                "a grid of {:?} blocks of {:?} threads has too many work-items for one packet",
                shape.grid,
                shape.block
            );
            Error::LAUNCH_OUT_OF_RESOURCES
        })?;
    }
    Ok(Geometry {
        workgroup: workgroup.map(|items| items as u16),
        grid,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shape(grid: [u32; 3], block: [u32; 3]) -> Shape {
        Shape {
            grid,
            block,
            dynamic_shared: 0,
        }
    }

    #[test]
    fn paired_blocks_keep_their_shape() {
        let found = geometry(WarpLayout::Paired, &shape([3, 4, 5], [32, 8, 2])).unwrap();
        assert_eq!(
            found,
            Geometry {
                workgroup: [32, 8, 2],
                grid: [96, 32, 10]
            }
        );
    }

    #[test]
    fn solo_blocks_are_lines_of_whole_waves() {
        let found = geometry(WarpLayout::Solo, &shape([3, 4, 5], [5, 7, 1])).unwrap();
        assert_eq!(
            found,
            Geometry {
                workgroup: [128, 1, 1],
                grid: [384, 4, 5]
            }
        );
        assert_eq!(
            geometry(WarpLayout::Solo, &shape([1; 3], [513, 1, 1])),
            Err(Error::LAUNCH_OUT_OF_RESOURCES)
        );
        assert!(geometry(WarpLayout::Solo, &shape([1; 3], [512, 1, 1])).is_ok());
    }

    #[test]
    fn grids_beyond_a_packet_are_refused() {
        let huge = shape([0x7fff_ffff, 1, 1], [3, 1, 1]);
        assert_eq!(geometry(WarpLayout::Paired, &huge), Err(Error::LAUNCH_OUT_OF_RESOURCES));
        assert!(geometry(WarpLayout::Paired, &shape([0x7fff_ffff, 1, 1], [2, 1, 1])).is_ok());
    }
}
