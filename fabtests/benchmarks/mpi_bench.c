/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Speed of MPI between two ranks. Uses MPI-1 calls only, so that any library and transport can be
 * compared: blocking ping-pong and windows of MPI_Isend and MPI_Irecv, the shapes of the OSU
 * micro-benchmarks.
 *
 * Run with exactly two ranks: mpirun -n 2 mpi_bench [options]. The environment selects the
 * transport (copyrpc_env, OMPI_MCA_*); the program does not know it. "init" is the time of MPI_Init
 * on rank 0, "first" that of the first round trip, with all lazy initialisation.
 */
#include "bench.h"

#include <mpi.h>
#include <stdlib.h>
#include <unistd.h>

#define TAG_DATA 1
#define TAG_ACK  2

struct mpi_wire {
	struct bench_wire base;
	MPI_Request *tx_reqs, *rx_reqs; /* a window each */
};

static void mpi_pingpong(struct bench_wire *wire, size_t size, long rounds)
{
	int peer = !wire->rank, len = (int)size;

	for (long i = 0; i < rounds; i++) {
		if (wire->rank == 0)
			MPI_Send(wire->tx, len, MPI_CHAR, peer, TAG_DATA, MPI_COMM_WORLD);
		MPI_Recv(wire->rx, len, MPI_CHAR, peer, TAG_DATA, MPI_COMM_WORLD,
			 MPI_STATUS_IGNORE);
		if (wire->rank == 1)
			MPI_Send(wire->tx, len, MPI_CHAR, peer, TAG_DATA, MPI_COMM_WORLD);
	}
}

static void window_send(struct mpi_wire *wire, size_t size, int window)
{
	for (int i = 0; i < window; i++)
		MPI_Isend(wire->base.tx, (int)size, MPI_CHAR, !wire->base.rank, TAG_DATA,
			  MPI_COMM_WORLD, &wire->tx_reqs[i]);
}

static void window_recv(struct mpi_wire *wire, size_t size, int window)
{
	for (int i = 0; i < window; i++)
		MPI_Irecv(wire->base.rx, (int)size, MPI_CHAR, !wire->base.rank, TAG_DATA,
			  MPI_COMM_WORLD, &wire->rx_reqs[i]);
}

static void mpi_stream(struct bench_wire *base, size_t size, int window, long rounds)
{
	struct mpi_wire *wire = (struct mpi_wire *)base;
	int ack = 0;

	for (long i = 0; i < rounds; i++) {
		if (base->rank == 0) {
			window_send(wire, size, window);
			MPI_Waitall(window, wire->tx_reqs, MPI_STATUSES_IGNORE);
			MPI_Recv(&ack, 1, MPI_INT, 1, TAG_ACK, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
		} else {
			window_recv(wire, size, window);
			MPI_Waitall(window, wire->rx_reqs, MPI_STATUSES_IGNORE);
			MPI_Send(&ack, 1, MPI_INT, 0, TAG_ACK, MPI_COMM_WORLD);
		}
	}
}

static void mpi_exchange(struct bench_wire *base, size_t size, int window, long rounds)
{
	struct mpi_wire *wire = (struct mpi_wire *)base;

	for (long i = 0; i < rounds; i++) {
		window_recv(wire, size, window);
		window_send(wire, size, window);
		MPI_Waitall(window, wire->tx_reqs, MPI_STATUSES_IGNORE);
		MPI_Waitall(window, wire->rx_reqs, MPI_STATUSES_IGNORE);
	}
}

static long mpi_agree(struct bench_wire *wire, long value)
{
	MPI_Bcast(&value, 1, MPI_LONG, 0, MPI_COMM_WORLD);
	return value;
}

static uint64_t mpi_sum(struct bench_wire *wire, uint64_t value)
{
	uint64_t total = 0;

	MPI_Reduce(&value, &total, 1, MPI_UINT64_T, MPI_SUM, 0, MPI_COMM_WORLD);
	return total;
}

static void *buffer_alloc(size_t size)
{
	void *buffer = NULL;

	if (posix_memalign(&buffer, 4096, size)) {
		fprintf(stderr, "mpi_bench: no memory for %zu bytes\n", size);
		MPI_Abort(MPI_COMM_WORLD, EXIT_FAILURE);
	}
	return buffer;
}

static void wire_open(struct mpi_wire *wire, const struct bench_conf *conf)
{
	size_t max = bench_conf_max_size(conf), reqs = (size_t)conf->window * sizeof(MPI_Request);

	wire->base = (struct bench_wire){
		.name = "MPI",
		.tx = buffer_alloc(max),
		.rx = buffer_alloc(max),
		.pingpong = mpi_pingpong,
		.stream = mpi_stream,
		.exchange = mpi_exchange,
		.agree = mpi_agree,
		.sum = mpi_sum,
	};
	wire->tx_reqs = buffer_alloc(reqs);
	wire->rx_reqs = buffer_alloc(reqs);
	MPI_Comm_rank(MPI_COMM_WORLD, &wire->base.rank);
}

static void wire_close(struct mpi_wire *wire)
{
	free(wire->base.tx);
	free(wire->base.rx);
	free(wire->tx_reqs);
	free(wire->rx_reqs);
}

static void report_startup(const struct bench_conf *conf, struct mpi_wire *wire, uint64_t init_ns)
{
	uint64_t start;

	start = bench_now_ns();
	mpi_pingpong(&wire->base, 8, 1);
	bench_report_value(conf, &wire->base, "init", 0, "ms", (double)init_ns / 1e6);
	bench_report_value(conf, &wire->base, "first", 0, "us",
			   (double)(bench_now_ns() - start) / 1e3);
}

static int conf_parse(struct bench_conf *conf, int argc, char **argv)
{
	int opt;

	bench_conf_init(conf);
	while ((opt = getopt(argc, argv, BENCH_OPTIONS "h")) != -1) {
		if (opt == 'h' || bench_conf_option(conf, opt, optarg)) {
			fprintf(stderr, "usage: mpirun -n 2 mpi_bench [options]\n" BENCH_USAGE);
			return -1;
		}
	}
	return 0;
}

int main(int argc, char **argv)
{
	struct bench_conf conf;
	struct mpi_wire wire;
	uint64_t start = bench_now_ns();
	int ranks;

	MPI_Init(&argc, &argv);
	start = bench_now_ns() - start;
	MPI_Comm_size(MPI_COMM_WORLD, &ranks);
	if (ranks != 2)
		fprintf(stderr, "mpi_bench: needs 2 ranks, not %d\n", ranks);
	if (ranks != 2 || conf_parse(&conf, argc, argv))
		MPI_Abort(MPI_COMM_WORLD, EXIT_FAILURE);
	wire_open(&wire, &conf);
	report_startup(&conf, &wire, start);
	bench_run(&conf, &wire.base);
	wire_close(&wire);
	bench_conf_free(&conf);
	MPI_Finalize();
	return EXIT_SUCCESS;
}
