# What a change must pass.
check: format lint pure test

# Formatting is as rustfmt has it.
format:
    cargo fmt --check

# No warning, with each heavy library and without. The profile is the build's, so that libraries are compiled once.
lint:
    bash -c 'source <(./handoff env) && cargo clippy --release --all-targets -- -D warnings'

# The pure rooms, without ROS 2, libtorch and MuJoCo: seconds.
pure:
    cargo clippy --no-default-features --all-targets -- -D warnings

# Everything, or the tests whose names contain the arguments.
test *filter:
    ./handoff test {{filter}}

# Changes to the guard that its tests would not see, none but those of which .cargo/mutants.toml says why: hours (needs cargo-mutants).
mutants *args:
    cargo mutants -f 'src/guard/**' {{args}}

# The shell scripts (needs shellcheck on PATH).
shell:
    shellcheck -x handoff .ci/run scripts/*.sh
