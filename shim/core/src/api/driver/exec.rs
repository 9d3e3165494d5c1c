//! Execution Control: `cuLaunch*`, `cuFunc*`.
