/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Findings of copyrpc_info(1), and what its probes share.
 *
 * A probe (info_probes.h) looks at one part of the machine and adds findings to the report, in the
 * order in which a user reads them. info_text.c prints the report for people, info_json.c for
 * programs. Probes do not print.
 *
 * One thread. All memory belongs to the report, and lack of memory ends the program.
 */
#ifndef INFO_INFO_H
#define INFO_INFO_H

#include <stdbool.h>
#include <stddef.h>

/** Verdicts, a worse one is greater. */
enum info_verdict {
	INFO_NOTE,   /* a fact without a judgement */
	INFO_GOOD,   /* nothing to mend */
	INFO_SLOW,   /* programs run, but slower than they could or not over copyrpc */
	INFO_BROKEN, /* programs that select copyrpc fail */
};

struct info_finding {
	enum info_verdict verdict;
	const char *topic; /* part of the machine, a literal */
	const char *id;    /* stable name of the finding, a literal */
	char *text;        /* the fact, and the reason of the verdict */
	char *mend;        /* command or setting that mends it; NULL: none is needed */
};

struct info_report {
	struct info_finding *list;
	size_t cnt;
};

/** Facts that later probes need from earlier ones. */
struct info {
	const char *root; /* directory whose proc and sys are read: "", or that of a test */
	struct info_report report;
	bool provider_hidden; /* a finding says that libfabric cannot load it */
	bool provider_runs;   /* libfabric offers endpoints of copyrpc */
	bool has_rdma;        /* at least one RDMA port is active */
	bool has_dc;          /* the one that copyrpc uses has DC queue pairs */
	char nic[64];         /* RDMA device that copyrpc chooses; empty: none */
	char *mpi_provider;   /* directory in which Open MPI finds the provider, or NULL */
};

/** Adds a finding. */
void info_add(struct info_report *report, enum info_verdict verdict, const char *topic,
	      const char *id, const char *format, ...) __attribute__((format(printf, 5, 6)));

/** Sets what mends the finding that was added last. */
void info_mend(struct info_report *report, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/** Drops all findings behind the first `cnt`. */
void info_drop(struct info_report *report, size_t cnt);

/** Returns the worst verdict of all findings; INFO_GOOD if there is none. */
enum info_verdict info_report_verdict(const struct info_report *report);

/** Returns the finding with this id, or NULL. */
const struct info_finding *info_report_find(const struct info_report *report, const char *id);

void info_report_fini(struct info_report *report);

/** Returns "note", "good", "slow" or "broken". */
const char *info_verdict_name(enum info_verdict verdict);

/** Prints text into new memory. Never returns NULL. */
char *info_print(const char *format, ...) __attribute__((format(printf, 1, 2)));

/** Calls free for a pointer and clears it. */
#define INFO_FREE(pointer)                                                                         \
	do {                                                                                       \
		free(pointer);                                                                     \
		(pointer) = NULL;                                                                  \
	} while (0)

#endif
