// The launchers whose environment tells a process what it is: one row each.
#pragma once

namespace gossamer::peer {

/// Environment variables of a launcher. It may leave out the numbers of processes.
struct Launcher {
  const char* rank;        ///< of the process among all
  const char* size;        ///< number of processes
  const char* local_rank;  ///< of the process among those of its machine
  const char* local_size;  ///< number of processes on the machine
};

/// In order of precedence: gossamer launch, torchrun, Open MPI, MPICH, Slurm (srun). Slurm is last,
/// as its job scripts have a rank of their own, 0, which mpirun passes on to all processes.
inline constexpr Launcher kLaunchers[] = {
    {"GOSSAMER_RANK", "GOSSAMER_SIZE", "GOSSAMER_LOCAL_RANK", "GOSSAMER_LOCAL_SIZE"},
    {"RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE"},
    {"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK",
     "OMPI_COMM_WORLD_LOCAL_SIZE"},
    {"PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID", "MPI_LOCALNRANKS"},
    {"SLURM_PROCID", "SLURM_NTASKS", "SLURM_LOCALID", "SLURM_NTASKS_PER_NODE"}};

}  // namespace gossamer::peer
