/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Cost of a NIC's poll against the number of peers.
 *
 * usage: nic_poll_bench mlx5
 * verbs LINKS [ROUNDS] [-m]
 *
 * Two devices in one thread, LINKS links between them. Each round: one poll that finds nothing, a
 * write on the next of the links in a fixed random order, one poll that finds it. -m raises SIGUSR2
 * before and after the rounds, for insn_count: only instructions count, because times of the device
 * model are not those of a NIC. fabtests/scripts/poll-cost compares 1 link with 1024.
 */
#include <rdma/fi_errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "dev/mlx5/m5.h"
#include "dev/verbs/vb.h"
#include "util/param.h"

#define RING_LEN  4096u
#define WRITE_LEN 64u
#define LINKS_MAX 4096u

struct side {
	struct dev *dev;
	struct dev_link *links[LINKS_MAX];
};

static struct side tx, rx;
static uint64_t tx_pos[LINKS_MAX];

static void must(const char *what, int ret)
{
	if (ret) {
		fprintf(stderr, "nic_poll_bench: %s: %s\n", what, fi_strerror(-ret));
		exit(EXIT_FAILURE);
	}
}

static void side_open(const struct dev_ops *ops, struct side *side, unsigned links)
{
	must("open", ops->open(&side->dev));
	for (unsigned i = 0; i < links; i++)
		must("link_create", ops->link_create(side->dev, RING_LEN, &side->links[i]));
}

static void side_connect(struct side *side, const struct side *to, unsigned links)
{
	static struct dev_desc desc;

	for (unsigned i = 0; i < links; i++) {
		must("describe", to->links[i]->ops->describe(to->links[i], &desc));
		must("connect", side->links[i]->ops->connect(side->links[i], &desc));
	}
}

static void side_attach(struct side *side, unsigned links)
{
	for (unsigned i = 0; i < links; i++)
		must("attach", side->links[i]->ops->attach(side->links[i]));
}

static void side_close(const struct dev_ops *ops, struct side *side, unsigned links)
{
	for (unsigned i = 0; i < links; i++) {
		side->links[i]->ops->detach(side->links[i]);
		side->links[i]->ops->close(side->links[i]);
	}
	ops->close(side->dev);
}

static void write_one(const struct dev_ops *ops, unsigned i)
{
	struct dev_link *link = tx.links[i];
	uint64_t off = tx_pos[i] & (link->tx_len - 1);
	struct dev_event ev;

	memset(link->tx_base + off, 1, WRITE_LEN);
	while (link->ops->write_imm(link, off, WRITE_LEN, WRITE_LEN / DEV_IMM_UNIT))
		ops->poll(tx.dev, &ev);
	tx_pos[i] += WRITE_LEN;
}

/* Polls twice: once in vain, once with a completion. Counted together with the writes. */
static void poll_both(const struct dev_ops *ops, unsigned i)
{
	struct dev_event ev;
	long tries = 0;

	while (!ops->poll(rx.dev, &ev)) {
		if (++tries > 100000000)
			must("waiting for a write", -FI_ETIMEDOUT);
	}
	if (ev.kind != DEV_EV_IMM || ev.link != rx.links[i])
		must("an event of another link", -FI_EOTHER);
}

static void run(const struct dev_ops *ops, unsigned links, unsigned long rounds)
{
	struct dev_event ev;
	unsigned at = 0;

	for (unsigned long round = 0; round < rounds; round++) {
		at = (at * 5 + 3) %
		     links; /* Steps through all links if their number is a power of two. */
		if (ops->poll(rx.dev, &ev))
			must("an event of no write", -FI_EOTHER);
		write_one(ops, at);
		poll_both(ops, at);
	}
}

static void usage(void)
{
	fprintf(stderr, "usage: nic_poll_bench mlx5|verbs LINKS [ROUNDS] [-m]\n");
	exit(2);
}

int main(int argc, char **argv)
{
	bool marks = argc > 4 && !strcmp(argv[4], "-m");
	const struct dev_ops *ops = NULL;
	unsigned long rounds = argc > 3 ? strtoul(argv[3], NULL, 10) : 2048;
	unsigned links = argc > 2 ? (unsigned)strtoul(argv[2], NULL, 10) : 0;

	if (argc > 1 && !strcmp(argv[1], "mlx5"))
		ops = &m5_dev_ops;
	else if (argc > 1 && !strcmp(argv[1], "verbs"))
		ops = &vb_dev_ops;
	if (!ops || !links || links > LINKS_MAX || !rounds)
		usage();
	util_params.rc_max = LINKS_MAX;
	side_open(ops, &tx, links);
	side_open(ops, &rx, links);
	side_connect(&tx, &rx, links);
	side_connect(&rx, &tx, links);
	side_attach(&tx, links);
	side_attach(&rx, links);
	run(ops, links, links); /* Uses each link once: lazy allocations are done. */
	if (marks)
		raise(SIGUSR2);
	run(ops, links, rounds);
	if (marks)
		raise(SIGUSR2);
	side_close(ops, &tx, links);
	side_close(ops, &rx, links);
	printf("%lu rounds\n", rounds);
	return 0;
}
