//! Prints what is known of every device that works here, and why others don't: `cargo xtask devices`.

use tile_runtime::{Device, Properties, Result, properties};

fn main() -> Result<()> {
    let rows = Device::all().iter().map(Device::properties).collect::<Result<Vec<Properties>>>()?;
    print!("{}", properties::table(&rows));
    for name in ["cuda:0", "hip:0"] {
        if let Err(why) = Device::named(name) {
            println!("{why}");
        }
    }
    println!("`TILE_DEVICE` chooses the device of programs that ask for the best one.");
    Ok(())
}
