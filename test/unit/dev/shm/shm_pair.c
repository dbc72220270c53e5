/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "shm_pair.h"

#include <criterion/criterion.h>
#include <dirent.h>
#include <stddef.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "support/forbid.h"

#define PAIR_OPEN_MAX 1024

static void *devs[PAIR_OPEN_MAX], *links[PAIR_OPEN_MAX];

/* Replaces `from` by `to`: from = NULL adds an entry, to = NULL removes one. */
static void pair_replace(void **list, void *from, void *to)
{
	int i = 0;

	while (list[i] != from)
		cr_assert_lt(++i, PAIR_OPEN_MAX);
	list[i] = to;
}

struct shm_dev *pair_dev(void)
{
	struct dev *dev = NULL;

	cr_assert_eq(shm_dev_ops.open(&dev), 0);
	pair_replace(devs, NULL, dev);
	return (struct shm_dev *)dev;
}

void pair_dev_close(struct shm_dev *dev)
{
	pair_replace(devs, dev, NULL);
	shm_dev_ops.close((struct dev *)dev);
}

void pair_link_close(struct dev_link *link)
{
	pair_replace(links, link, NULL);
	link->ops->detach(link);
	link->ops->close(link);
}

void pair_fini(void)
{
	int i;

	for (i = 0; i < PAIR_OPEN_MAX; i++)
		if (links[i])
			pair_link_close(links[i]);
	for (i = 0; i < PAIR_OPEN_MAX; i++)
		if (devs[i])
			pair_dev_close(devs[i]);
}

struct dev_link *pair_half(struct shm_dev *dev, uint64_t rx_len, struct dev_desc *desc)
{
	struct dev_link *link = NULL;

	memset(desc, 0, sizeof(*desc));
	cr_assert_eq(shm_dev_ops.link_create((struct dev *)dev, rx_len, &link), 0);
	cr_assert_eq(link->ops->describe(link, desc), 0);
	pair_replace(links, NULL, link);
	return link;
}

void pair_desc_close(struct dev_desc *desc)
{
	while (desc->fd_cnt)
		close(desc->fds[--desc->fd_cnt]);
}

void pair_open(struct shm_dev *a, struct transport *la, uint64_t rx_a, struct shm_dev *b,
	       struct transport *lb, uint64_t rx_b)
{
	struct dev_desc da, db;

	memset(la, 0, sizeof(*la));
	memset(lb, 0, sizeof(*lb));
	la->link = pair_half(a, rx_a, &da);
	lb->link = pair_half(b, rx_b, &db);
	cr_assert_eq(la->link->ops->connect(la->link, &db), 0);
	cr_assert_eq(lb->link->ops->connect(lb->link, &da), 0);
	pair_desc_close(&da);
	pair_desc_close(&db);
	cr_assert_eq(la->link->ops->attach(la->link), 0);
	cr_assert_eq(lb->link->ops->attach(lb->link), 0);
	la->link->user = la;
	lb->link->user = lb;
}

void pair_close(struct transport *la, struct transport *lb)
{
	pair_link_close(la->link);
	pair_link_close(lb->link);
}

static void pair_send(int sock, struct dev_desc *desc)
{
	char space[CMSG_SPACE(sizeof(desc->fds))] __attribute__((aligned(8))) = { 0 };
	struct iovec iov = { desc, sizeof(*desc) };
	struct msghdr msg = { .msg_iov = &iov,
			      .msg_iovlen = 1,
			      .msg_control = space,
			      .msg_controllen = CMSG_SPACE(desc->fd_cnt * sizeof(int)) };
	struct cmsghdr *cmsg = CMSG_FIRSTHDR(&msg);

	cmsg->cmsg_level = SOL_SOCKET;
	cmsg->cmsg_type = SCM_RIGHTS;
	cmsg->cmsg_len = CMSG_LEN(desc->fd_cnt * sizeof(int));
	memcpy(CMSG_DATA(cmsg), desc->fds, desc->fd_cnt * sizeof(int));
	cr_assert_eq(sendmsg(sock, &msg, 0), (ssize_t)sizeof(*desc));
}

static void pair_recv(int sock, struct dev_desc *desc)
{
	char space[CMSG_SPACE(sizeof(desc->fds))] __attribute__((aligned(8)));
	struct iovec iov = { desc, sizeof(*desc) };
	struct msghdr msg = { .msg_iov = &iov,
			      .msg_iovlen = 1,
			      .msg_control = space,
			      .msg_controllen = sizeof(space) };

	cr_assert_eq(recvmsg(sock, &msg, MSG_WAITALL), (ssize_t)sizeof(*desc));
	memcpy(desc->fds, CMSG_DATA(CMSG_FIRSTHDR(&msg)), desc->fd_cnt * sizeof(int));
}

void pair_join(struct shm_dev *dev, struct transport *transport, uint64_t rx_len, int sock)
{
	struct dev_desc mine, peer;

	memset(transport, 0, sizeof(*transport));
	transport->link = pair_half(dev, rx_len, &mine);
	transport->link->user = transport;
	pair_send(sock, &mine);
	pair_recv(sock, &peer);
	cr_assert_eq(transport->link->ops->connect(transport->link, &peer), 0);
	pair_desc_close(&mine);
	pair_desc_close(&peer);
	cr_assert_eq(transport->link->ops->attach(transport->link), 0);
}

void pair_write(struct transport *transport, uint32_t imm)
{
	struct dev_link *link = transport->link;
	uint64_t off = transport->tx_pos & (link->tx_len - 1), len = (uint64_t)imm * DEV_IMM_UNIT;

	memset(link->tx_base + off, 0xff, DEV_LINK_WORD_OFF);
	memset(link->tx_base + off + DEV_IMM_UNIT, 0xff, len - DEV_IMM_UNIT);
	cr_assert_eq(link->ops->write_imm(link, off, (uint32_t)len, imm), 0);
	transport->tx_pos += len;
}

bool pair_poll(struct shm_dev *dev, struct dev_event *ev, uint32_t polls)
{
	struct transport *transport;

	while (!shm_dev_ops.poll((struct dev *)dev, ev))
		if (!--polls)
			return false;
	transport = ev->link->user;
	if (ev->kind == DEV_EV_IMM)
		transport->rx_pos += (uint64_t)ev->imm * DEV_IMM_UNIT;
	return true;
}

bool pair_expect(struct shm_dev *dev, struct transport *transport, uint32_t imm, uint32_t polls)
{
	struct dev_event ev;

	return pair_poll(dev, &ev, polls) && ev.link == transport->link && ev.kind == DEV_EV_IMM &&
	       ev.imm == imm;
}

int pair_fd_cnt(void)
{
	DIR *dir = opendir("/proc/self/fd");
	int cnt = 0;

	cr_assert_not_null(dir);
	while (readdir(dir))
		cnt++;
	closedir(dir);
	return cnt;
}

void pair_forbid(int nr, int err)
{
	forbid(nr, err);
}

uint64_t pair_rand(uint64_t *state)
{
	*state ^= *state >> 12;
	*state ^= *state << 25;
	*state ^= *state >> 27;
	return *state * 0x2545f4914f6cdd1dull;
}
