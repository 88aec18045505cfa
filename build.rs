//! Lets the program find libtorch and MuJoCo where they were at the build, links CUDA where it is complete, and says which of the
//! messages are there that it can do without.

use std::{env, path::PathBuf};

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rustc-check-cfg=cfg(franka_msgs,simulation_interfaces)");
    #[cfg(feature = "ros")]
    find_messages();
    if env::var_os("CARGO_FEATURE_SIM").is_some()
        && let Some(folder) = folder("MUJOCO_DYNAMIC_LINK_DIR")
    {
        println!("cargo:rustc-link-arg=-Wl,-rpath,{}", folder.display());
    }
    if env::var_os("CARGO_FEATURE_TORCH").is_some()
        && let Some(torch) = folder("LIBTORCH")
    {
        link_torch(&torch);
    }
}

/// The cfgs `franka_msgs` and `simulation_interfaces`, where r2r makes types for the robot's state and for a reset.
#[cfg(feature = "ros")]
fn find_messages() {
    r2r_common::print_cargo_watches();
    let found = r2r_common::get_wanted_messages();
    for (module, name) in [("franka_msgs", "FrankaRobotState"), ("simulation_interfaces", "ResetSimulation")] {
        if found.iter().any(|message| message.module == module && message.name == name) {
            println!("cargo:rustc-cfg={module}");
        }
    }
}

/// The folder that an environment variable names.
fn folder(variable: &str) -> Option<PathBuf> {
    println!("cargo:rerun-if-env-changed={variable}");
    env::var_os(variable).map(PathBuf::from)
}

/// No symbol of libtorch_cuda is named anywhere: without the flag the linker drops it, and torch sees no GPU.
/// PyPI's wheel has it always; it loads only beside cuDNN, in a folder of its own (wheels) or among torch's (archives).
fn link_torch(torch: &std::path::Path) {
    let lib = torch.join("lib");
    println!("cargo:rustc-link-arg=-Wl,-rpath,{}", lib.display());
    println!("cargo:rerun-if-changed={}", lib.join("libtorch.so").display());
    let cudnn =
        [lib.clone(), torch.join("../nvidia/cudnn/lib")].iter().any(|folder| folder.join("libcudnn.so.9").exists());
    if cudnn && lib.join("libtorch_cuda.so").exists() {
        println!("cargo:rustc-link-search=native={}", lib.display());
        println!("cargo:rustc-link-arg=-Wl,--no-as-needed,-ltorch_cuda,--as-needed");
    }
}
