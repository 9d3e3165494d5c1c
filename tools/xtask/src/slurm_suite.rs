//! The suite `srun`: the ring exchange under Slurm, in every way of loading the libraries and of binding GPUs.

use std::time::Duration;

use crate::counters::Counters;
use crate::exec::{self, Launcher};
use crate::ring::IPC_IMPORTS;
use crate::setup::Rocr;
use crate::slurm::{Cluster, Load, Options};
use crate::{Result, bench, preload, process, programs};

/// One run of the exchange with two ranks.
struct Case {
    name: String,
    launcher: Launcher,
    options: Options,
    rocr: Rocr,
    /// GPUs that each rank must see.
    visible: u32,
}

/// Runs the cases, each reported to `case` as name and outcome. The cluster ends with the suite, however it ends.
pub fn run(mut case: impl FnMut(String, Result<String>)) -> Result<()> {
    let cluster = Cluster::start()?;
    case(
        "preloaded into srun: nothing changes".into(),
        preload::srun_unchanged(&cluster),
    );
    for one in cases() {
        let outcome = one.run(&cluster);
        case(one.name, outcome);
    }
    Ok(())
}

fn cases() -> Vec<Case> {
    let ring = |name: String, launcher, options| Case {
        name,
        launcher,
        options,
        rocr: Rocr::V612,
        visible: 2,
    };
    let bound = |load, gres: Option<&str>| Options {
        load,
        gres: gres.map(String::from),
        gpus_per_task: None,
    };
    let mut all = Vec::new();
    for load in [Load::Path, Load::Preload, Load::Export] {
        for gres in [None, Some("gpu:2")] {
            let binding = gres.map(|gres| format!(" --gres={gres}")).unwrap_or_default();
            all.push(ring(
                format!("srun --mpi=pmix{binding}, loaded by {load:?}"),
                Launcher::Srun,
                bound(load, gres),
            ));
        }
        // Each task sees a GPU of its own, under number 0 for HSA and by its node's number in CUDA's variable.
        let mut isolated = ring(
            format!("srun --mpi=pmix --gpus-per-task=1, loaded by {load:?}"),
            Launcher::Srun,
            Options {
                gpus_per_task: Some(1),
                ..bound(load, None)
            },
        );
        isolated.visible = 1;
        all.push(isolated);
    }
    let mut older = ring(
        "srun --mpi=pmix --gpus-per-task=1, ROCr 5.2.3".into(),
        Launcher::Srun,
        Options {
            gpus_per_task: Some(1),
            ..Options::default()
        },
    );
    older.rocr = Rocr::V523;
    older.visible = 1;
    all.push(older);
    for (load, gres) in [(Load::Path, None), (Load::Preload, None), (Load::Path, Some("gpu:2"))] {
        let binding = gres.map(|gres| format!(" --gres={gres}")).unwrap_or_default();
        all.push(ring(
            format!("salloc{binding} mpirun, loaded by {load:?}"),
            Launcher::Salloc,
            bound(load, gres),
        ));
    }
    all
}

impl Case {
    fn run(&self, cluster: &Cluster) -> Result<String> {
        let scratch = bench::Scratch::new("srun")?;
        let prefix = scratch.path().join("counters");
        let mut arguments = exec::Arguments::for_command([programs::mpi_cuda("ring_exchange")?]);
        arguments.ranks = 2;
        arguments.rocr = self.rocr.clone();
        arguments.launcher = Some(self.launcher);
        arguments.slurm = self.options.clone();
        arguments.counters = Some(prefix.clone());
        let mut command = exec::command(&arguments, &scratch.path().join("gpu"))?;
        cluster.join(&mut command);
        let outcome = process::run(&mut command, Duration::from_secs(120))?;
        let fail = |what: String| Err(format!("{what} ({})\n{}", outcome.ending(), outcome.tail(30)).into());
        if !outcome.success() || !outcome.output.contains(" 0 wrong: ok") {
            return fail("data not verified".into());
        }
        for rank in 0..2 {
            let device = if self.visible == 1 { 0 } else { rank };
            let line = format!("rank {rank} of 2: device {device} of {}", self.visible);
            if !outcome.output.contains(&line) {
                return fail(format!("no line `{line}`"));
            }
        }
        let importers = Counters::read(&prefix)?.processes_with(IPC_IMPORTS);
        if importers != 2 {
            return fail(format!("{importers} ranks imported memory by IPC"));
        }
        Ok(String::new())
    }
}
