/* The baseline of ring.py: the same exchange on a ring with MPI.
 *
 *   mpicc -O3 -march=native mpi_ring.c -o mpi_ring
 *   mpirun -n 4 --mca btl self,vader mpi_ring BYTES WARMUP ROUNDS     # shared memory
 *   mpirun -n 4 --mca btl self,tcp mpi_ring BYTES WARMUP ROUNDS       # TCP
 *
 * Each process has one row of float32 values. A round sends the row to both neighbours (MPI_Isend),
 * receives their rows (MPI_Irecv), and replaces the row by the average with weights 1/3 in one pass.
 * Receives are posted before sends. Prints the seconds of the slowest process for all timed rounds,
 * and a value that every correct implementation has. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank, peers;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &peers);
  if (argc != 4) {
    fprintf(stderr, "usage: mpi_ring BYTES WARMUP ROUNDS\n");
    MPI_Abort(MPI_COMM_WORLD, 2);
  }
  const int values = atoi(argv[1]) / (int)sizeof(float);
  const int warmup = atoi(argv[2]), rounds = atoi(argv[3]);
  const size_t bytes = ((size_t)values * sizeof(float) + 63) / 64 * 64;
  float* restrict row = aligned_alloc(64, bytes);
  float* restrict left = aligned_alloc(64, bytes);
  float* restrict right = aligned_alloc(64, bytes);
  for (int i = 0; i < values; ++i) row[i] = (float)rank;
  const int before = (rank + peers - 1) % peers, after = (rank + 1) % peers;
  double began = 0;
  for (int t = 0; t < warmup + rounds; ++t) {
    if (t == warmup) {
      MPI_Barrier(MPI_COMM_WORLD);
      began = MPI_Wtime();
    }
    MPI_Request pending[4];
    MPI_Irecv(left, values, MPI_FLOAT, before, 0, MPI_COMM_WORLD, &pending[0]);
    MPI_Irecv(right, values, MPI_FLOAT, after, 1, MPI_COMM_WORLD, &pending[1]);
    MPI_Isend(row, values, MPI_FLOAT, after, 0, MPI_COMM_WORLD, &pending[2]);
    MPI_Isend(row, values, MPI_FLOAT, before, 1, MPI_COMM_WORLD, &pending[3]);
    MPI_Waitall(4, pending, MPI_STATUSES_IGNORE);
    const float third = 1.0f / 3.0f;
    for (int i = 0; i < values; ++i) row[i] = third * (row[i] + left[i] + right[i]);
  }
  const double mine = MPI_Wtime() - began;
  double slowest = 0;
  MPI_Reduce(&mine, &slowest, 1, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
  if (rank == 0) printf("{\"seconds\": %.9f, \"check\": %.9g}\n", slowest, row[0]);
  MPI_Finalize();
  return 0;
}
