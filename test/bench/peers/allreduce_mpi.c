/* OpenMPI's MPI_Allreduce: allreduce_mpi BYTES SECONDS prints the median time of a sum of floats, in ms. A round begins
 * with a barrier and ends when the last process has the sums. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

enum { ROUNDS_MAX = 1 << 20 };

static int order(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    int rank, rounds = 0, more = 1;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    size_t n = strtoull(argv[1], NULL, 10) / sizeof(float);
    double seconds = strtod(argv[2], NULL), *ms = calloc(ROUNDS_MAX, sizeof(*ms)), begun = MPI_Wtime();
    float *from = calloc(n, sizeof(float)), *to = calloc(n, sizeof(float));
    while (more) {
        MPI_Barrier(MPI_COMM_WORLD);
        double t = MPI_Wtime(), mine, last;
        MPI_Allreduce(from, to, (int)n, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
        mine = (MPI_Wtime() - t) * 1000;
        MPI_Reduce(&mine, &last, 1, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
        if (rank == 0) {
            ms[rounds++] = last;
            more = rounds < ROUNDS_MAX && (rounds < 5 || MPI_Wtime() - begun < seconds);
        }
        MPI_Bcast(&more, 1, MPI_INT, 0, MPI_COMM_WORLD);
    }
    qsort(ms, (size_t)rounds, sizeof(*ms), order);
    if (rank == 0)
        printf("%.4f ms\n", ms[rounds / 2]);
    MPI_Finalize();
    return 0;
}
