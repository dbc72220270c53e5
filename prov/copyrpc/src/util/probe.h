/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Static probes (USDT) of the provider "copyrpc", for bpftrace, SystemTap and perf. Called by
 * core/, ring/, erpc/ and engine/ where batches, operations and waits are counted.
 *
 * A probe is one nop and a note in the library that names it and its arguments. A tracer replaces
 * the nop while it runs. No argument is computed for a probe: values that the code has in a
 * register or in memory cost nothing. Builds without the system's header for static probes (Debian:
 * systemtap-sdt-dev), or --without-sdt, have none. Those of single operations (UTIL_PROBE_OP) take
 * up to 2 % of a message's instructions, and are in builds with --enable-probes alone.
 *
 * copyrpc_tracing(7) describes the probes and their arguments; test/integ/probes checks that the
 * library has them, and that they are passed as often as the statistics count.
 */
#ifndef UTIL_PROBE_H
#define UTIL_PROBE_H

/** Causes for which something waits: argument of the probe "wait". */
enum util_probe_cause {
	UTIL_PROBE_SPACE = 1,  /* room in the peer's ring, or a slot of the session */
	UTIL_PROBE_CREDIT = 2, /* credit for a response or a packet */
	UTIL_PROBE_QUEUE = 3,  /* room in the send queue of the device */
	UTIL_PROBE_MEMORY = 4, /* memory, or a number for a call */
};

#ifdef UTIL_HAVE_SDT
#include <sys/sdt.h>

#define UTIL_PROBE2(name, a, b)    DTRACE_PROBE2(copyrpc, name, a, b)
#define UTIL_PROBE3(name, a, b, c) DTRACE_PROBE3(copyrpc, name, a, b, c)
#else
#define UTIL_PROBE2(name, a, b)    ((void)(a), (void)(b))
#define UTIL_PROBE3(name, a, b, c) ((void)(a), (void)(b), (void)(c))
#endif

/** Probe of every single operation, which the build has to ask for. */
#ifdef UTIL_HAVE_OP_PROBES
#define UTIL_PROBE_OP(name, a, b, c, d) DTRACE_PROBE4(copyrpc, name, a, b, c, d)
#else
#define UTIL_PROBE_OP(name, a, b, c, d) ((void)0)
#endif

#endif
