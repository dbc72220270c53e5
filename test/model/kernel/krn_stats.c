/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Prints the counters of the process at exit, if the launcher requested it, and tells the program
 * those of the fabric: copyrpc_hca(1).
 *
 * The output follows the program's own, which may still be in a buffer. It is one write, so that
 * the lines of several processes do not mix.
 */
#include "model/fabric/mdl_raw.h"
#include "model/fabric/mdl_segment.h"

#include <stdio.h>
#include <string.h>

#define TEXT_MAX 4096

/* The function is found by its name: dlsym(RTLD_DEFAULT, "copyrpc_hca_counter"). */
__attribute__((visibility("default"))) long long copyrpc_hca_counter(const char *name);

static long long qp_count(const struct mdl_segment *seg)
{
	long long cnt = 0;

	for (uint32_t i = 0; i < MDL_QP_MAX; i++)
		cnt += seg->qp[i].number != 0;
	return cnt;
}

/* Returns the sum of a counter over the ports of all nodes' devices of that number. */
static long long device_count(const struct mdl_segment *seg, enum mdl_count_id id, uint32_t device)
{
	long long cnt = 0;

	for (uint32_t i = 0; i < seg->port_cnt; i++)
		if (i / seg->node_cnt == device)
			cnt += (long long)mdl_count_get(&seg->port[i].count, id);
	return cnt;
}

/* Returns true if `name` is that of the counter, followed by "@mlx5_" and a number. */
static bool names_device(const char *name, const char *counter, uint32_t *device)
{
	static const char infix[] = "@mlx5_";
	size_t len = strlen(counter);
	const char *at;

	if (strncmp(name, counter, len) || strncmp(name + len, infix, strlen(infix)))
		return false;
	at = name + len + strlen(infix);
	if (*at < '0' || *at >= '0' + MDL_DEV_MAX || at[1])
		return false;
	*device = (uint32_t)(*at - '0');
	return true;
}

long long copyrpc_hca_counter(const char *name)
{
	const struct mdl_segment *seg = mdl_self.seg;
	struct mdl_count total = { { 0 } };
	uint32_t device;

	if (!seg)
		return -1;
	if (!strcmp(name, "qps"))
		return qp_count(seg);
	for (int id = 0; id < MDL_CNT_MAX; id++)
		if (names_device(name, mdl_count_name((enum mdl_count_id)id), &device))
			return device_count(seg, (enum mdl_count_id)id, device);
	mdl_count_sum(&total, &seg->retired);
	for (uint32_t slot = 0; slot < MDL_PROC_MAX; slot++)
		if (seg->proc[slot].state != MDL_PROC_FREE)
			mdl_count_sum(&total, &seg->proc[slot].count);
	for (int id = 0; id < MDL_CNT_MAX; id++)
		if (!strcmp(name, mdl_count_name((enum mdl_count_id)id)))
			return (long long)mdl_count_get(&total, (enum mdl_count_id)id);
	return -1;
}

static int put_head(char *text, int used, const char *end)
{
	return used + snprintf(text + used, TEXT_MAX - (size_t)used,
			       "copyrpc_hca: stats%spid=%d%sprogram=%s%snode=%u", end,
			       mdl_self.proc->pid, end, mdl_self.proc->name, end,
			       mdl_self.proc->node);
}

__attribute__((destructor)) static void print_stats(void)
{
	const char *end = mdl_self.config.stats == 2 ? "\n" : " ";
	char text[TEXT_MAX];
	int used = 0;

	if (!mdl_self.proc || !mdl_self.config.stats || mdl_self.proc->pid != MDL_RAW0(getpid))
		return;
	used = put_head(text, used, end);
	for (int id = 0; id < MDL_CNT_MAX && used < TEXT_MAX - 64; id++)
		used += snprintf(text + used, TEXT_MAX - (size_t)used, "%s%s=%llu", end,
				 mdl_count_name((enum mdl_count_id)id),
				 (unsigned long long)mdl_count_get(&mdl_self.proc->count,
								   (enum mdl_count_id)id));
	text[used++] = '\n';
	fflush(stdout);
	(void)MDL_RAW3(write, STDERR_FILENO, text, used);
}
