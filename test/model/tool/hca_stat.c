/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Commands stat and reset of the launcher: print the counters of a fabric while its programs run or
 * after they ended, and remove its files.
 *
 * Output is one line for each process, QP and port, `name=value` separated by blanks, always with
 * all counters.
 */
#include "model/tool/hca_tool.h"
#include "model/fabric/mdl_segment.h"

#include <dirent.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static void put_counters(const struct mdl_count *row)
{
	for (int id = 0; id < MDL_CNT_MAX; id++)
		printf(" %s=%llu", mdl_count_name((enum mdl_count_id)id),
		       (unsigned long long)mdl_count_get(row, (enum mdl_count_id)id));
	putchar('\n');
}

static const char *type_name(uint32_t type)
{
	switch (type) {
	case MDL_QPT_RC: return "rc";
	case MDL_QPT_UC: return "uc";
	case MDL_QPT_DCI: return "dci";
	case MDL_QPT_DCT: return "dct";
	default: return "ud";
	}
}

static void put_qps(const struct mdl_segment *seg)
{
	static const char *const states[] = {
		"reset", "init", "rtr", "rts", "sqd", "sqe", "error"
	};

	for (uint32_t i = 0; i < MDL_QP_MAX; i++) {
		const struct mdl_qp *qp = &seg->qp[i];

		if (!qp->number)
			continue;
		printf("qp=0x%06x pid=%d type=%s state=%s dest=0x%06x", qp->number,
		       seg->proc[qp->proc].pid, type_name(qp->type),
		       qp->state <= MDL_QPS_ERR ? states[qp->state] : "?", qp->dest_qpn);
		put_counters(&qp->count);
	}
}

/* Prints the counters of each port by the number of its node and the name of its device. */
static void put_ports(const struct mdl_segment *seg)
{
	for (uint32_t i = 0; i < seg->port_cnt; i++) {
		printf("port node=%u device=mlx5_%u", i % seg->node_cnt, i / seg->node_cnt);
		put_counters(&seg->port[i].count);
	}
}

int hca_stat(bool qps)
{
	struct mdl_count total = { { 0 } };
	struct mdl_segment *seg;

	if (mdl_segment_map(false)) {
		fprintf(stderr, "copyrpc_hca: there is no fabric \"%s\"\n",
			mdl_config_get()->segment);
		return 1;
	}
	seg = mdl_self.seg;
	mdl_count_sum(&total, &seg->retired);
	for (uint32_t slot = 0; slot < MDL_PROC_MAX; slot++) {
		struct mdl_proc *proc = &seg->proc[slot];
		bool dead;

		if (proc->state == MDL_PROC_FREE)
			continue;
		dead = proc->state == MDL_PROC_DEAD || mdl_pid_is_dead(proc->pid, proc->started);
		printf("process pid=%d program=%s node=%u state=%s", proc->pid, proc->name,
		       proc->node, dead ? "ended" : "running");
		put_counters(&proc->count);
		mdl_count_sum(&total, &proc->count);
	}
	if (qps)
		put_qps(seg);
	put_ports(seg);
	printf("total");
	put_counters(&total);
	return 0;
}

static void remove_tree(const char *path, int depth)
{
	struct dirent *entry;
	struct stat st;
	DIR *dir;

	if (lstat(path, &st))
		return;
	if (S_ISDIR(st.st_mode) && depth < 32 && (dir = opendir(path))) {
		while ((entry = readdir(dir))) {
			char below[4096];

			if (!strcmp(entry->d_name, ".") || !strcmp(entry->d_name, ".."))
				continue;
			if (snprintf(below, sizeof(below), "%s/%s", path, entry->d_name) <
			    (int)sizeof(below))
				remove_tree(below, depth + 1);
		}
		closedir(dir);
	}
	remove(path);
}

void hca_remove(const char *segment_path)
{
	static const char *const suffixes[] = { "", ".sys", ".lock" };
	char path[512];

	for (size_t i = 0; i < sizeof(suffixes) / sizeof(suffixes[0]); i++)
		if (snprintf(path, sizeof(path), "%s%s", segment_path, suffixes[i]) <
		    (int)sizeof(path))
			remove_tree(path, 0);
}

int hca_reset(bool force)
{
	char path[160];
	int user;

	if (!mdl_segment_map(false) && (user = mdl_segment_user(mdl_self.seg)) && !force) {
		fprintf(stderr, "copyrpc_hca: process %d uses fabric \"%s\": end it, or --force\n",
			user, mdl_config_get()->segment);
		return 1;
	}
	if (mdl_segment_path(path, sizeof(path), "") > 0)
		hca_remove(path);
	return 0;
}
