/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Options that all programs of this directory share, with the letters of upstream's fabtests where
 * those have the same option.
 *
 * A program with options of its own (the benchmarks) puts FT_OPTIONS in front of them, passes
 * unknown letters to ft_opts_take(), and prints FT_USAGE.
 */
#ifndef FT_OPTS_H
#define FT_OPTS_H

#include <rdma/fabric.h>
#include <rdma/fi_endpoint.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum ft_wait {
	FT_WAIT_SPIN,  /* fi_cq_read */
	FT_WAIT_SREAD, /* fi_cq_sread */
	FT_WAIT_FD,    /* fi_trywait and poll(2) */
};

struct ft_opts {
	const char *provider, *fabric, *domain;
	const char *address;   /* local address of endpoints; NULL: any */
	enum fi_ep_type type;  /* FI_EP_RDM, FI_EP_MSG or FI_EP_DGRAM */
	const char *type_name; /* "rdm", "msg", "dgram" */
	const char *port;      /* port of the endpoint of rank 0; NULL: any */
	const char *talk_port; /* TCP port of the connection between the processes */
	const char *server;    /* host of rank 0; this process is rank 1 */
	bool listen;           /* this process is rank 0, and waits for rank 1 */
	enum ft_wait wait;
	uint64_t seed;
	long iterations; /* 0: the program's own number */
	double seconds;  /* for programs that run for a time; 0: the program's own */
	double limit;    /* seconds that one case may take */
	size_t size;     /* largest message; 0: the program's own */
	bool delivery;   /* FI_DELIVERY_COMPLETE unless the case selects another level */
	bool json, list, help, verbose;
	const char *only; /* selects cases whose names contain it */
};

#define FT_OPTIONS "p:f:d:e:s:B:b:lI:S:c:Uvk:T:t:h"
#define FT_USAGE                                                                                   \
	"  -p PROVIDER     as in FI_PROVIDER (copyrpc)\n"                                          \
	"  -f FABRIC  -d DOMAIN\n"                                                                 \
	"  -e TYPE         rdm, msg or dgram (rdm)\n"                                              \
	"  -s ADDRESS      of this end (127.0.0.1); any: what the provider chooses\n"              \
	"  -B PORT         of rank 0's endpoint (any)\n"                                           \
	"  -c HOW          wait for completions by spin, sread or fd (spin)\n"                     \
	"  -U              FI_DELIVERY_COMPLETE\n"                                                 \
	"  -I N            iterations\n"                                                           \
	"  -S BYTES        largest message\n"                                                      \
	"  -T SECONDS      how long a random run goes on\n"                                        \
	"  --seed N        of a random run (the time)\n"                                           \
	"  -k TEXT         only cases whose names contain it\n"                                    \
	"  -t SECONDS      limit of one case (60)\n"                                               \
	"  -l              rank 1 is on another host: wait for it. There, name this host last\n"   \
	"  -b PORT         for that (47592)\n"                                                     \
	"  -v              say more\n"                                                             \
	"  --list          the cases and what they promise\n"                                      \
	"  --json          a line of JSON for each case\n"                                         \
	"  -h              this text\n"

void ft_opts_init(struct ft_opts *opts);
/** Parses one option. Returns 0, or -1 if it is unknown or its value is not valid. */
int ft_opts_take(struct ft_opts *opts, int letter, const char *arg);
/** Parses a command line: FT_OPTIONS, the long ones, a server's name. Returns 0 or -1. */
int ft_opts_parse(struct ft_opts *opts, int argc, char **argv);

#endif
