/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Start and end of a pair of processes: see shm_link_pair.h. */
#include "shm_link_pair.h"

#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

static void desc_send(int sock, const struct dev_desc *desc)
{
	union {
		struct cmsghdr hdr;
		char space[CMSG_SPACE(sizeof(desc->fds))];
	} ctl = { .space = { 0 } };
	struct iovec iov = { (void *)desc, sizeof(*desc) };
	struct msghdr msg = { .msg_iov = &iov,
			      .msg_iovlen = 1,
			      .msg_control = &ctl,
			      .msg_controllen = CMSG_SPACE(desc->fd_cnt * sizeof(int)) };
	uint32_t i;

	ctl.hdr.cmsg_level = SOL_SOCKET;
	ctl.hdr.cmsg_type = SCM_RIGHTS;
	ctl.hdr.cmsg_len = CMSG_LEN(desc->fd_cnt * sizeof(int));
	memcpy(CMSG_DATA(&ctl.hdr), desc->fds, desc->fd_cnt * sizeof(int));
	CHECK(sendmsg(sock, &msg, 0) == (ssize_t)sizeof(*desc));
	for (i = 0; i < desc->fd_cnt; i++)
		close(desc->fds[i]);
}

static void desc_recv(int sock, struct dev_desc *desc)
{
	union {
		struct cmsghdr hdr;
		char space[CMSG_SPACE(sizeof(desc->fds))];
	} ctl;
	struct iovec iov = { desc, sizeof(*desc) };
	struct msghdr msg = {
		.msg_iov = &iov, .msg_iovlen = 1, .msg_control = &ctl, .msg_controllen = sizeof(ctl)
	};

	CHECK(recvmsg(sock, &msg, MSG_WAITALL) == (ssize_t)sizeof(*desc));
	CHECK(msg.msg_controllen && ctl.hdr.cmsg_type == SCM_RIGHTS);
	memcpy(desc->fds, CMSG_DATA(&ctl.hdr), desc->fd_cnt * sizeof(int));
}

static void conn_open(struct side *s, struct conn *c, uint64_t ring)
{
	struct dev_desc mine, peer;
	uint32_t i;

	memset(&mine, 0, sizeof(mine));
	CHECK(!shm_link_create(s->dev, ring, &c->link));
	CHECK(!c->link->ops->describe(c->link, &mine));
	if (s->is_child) {
		desc_recv(s->sock, &peer);
		desc_send(s->sock, &mine);
	} else {
		desc_send(s->sock, &mine);
		desc_recv(s->sock, &peer);
	}
	CHECK(!c->link->ops->connect(c->link, &peer));
	for (i = 0; i < peer.fd_cnt; i++)
		close(peer.fds[i]);
	if (s->ahead >= 0) {
		struct shm_link *link = (struct shm_link *)c->link;

		link->ahead_small = link->ahead_large = (uint16_t)(s->ahead / (int)DEV_IMM_UNIT);
		link->base.inband_len = DEV_IMM_UNIT + (uint32_t)s->ahead;
	}
	CHECK(!c->link->ops->attach(c->link));
	c->link->user = c;
}

static void pin(int cpu)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	CHECK(!sched_setaffinity(0, sizeof(set), &set));
}

/* Returns also when the parent has ended, so that a child does not poll for ever. */
static void barrier(struct side *s)
{
	char c = 0;

	CHECK(write(s->sock, &c, 1) == 1);
	if (read(s->sock, &c, 1) != 1)
		exit(1);
}

static void side_open(struct side *s, const struct pair_conf *conf)
{
	struct {
		uint64_t buf;
		pid_t pid;
	} mine, peer;
	uint32_t i;

	CHECK(!shm_dev_open(&s->dev));
	if (conf->tune)
		shm_watch_tune((struct shm_dev *)s->dev, conf->tune);
	s->cnt = conf->cnt;
	s->conns = calloc(s->cnt, sizeof(*s->conns));
	s->buf = mmap(NULL, BUF_LEN, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	CHECK(s->conns && s->buf != MAP_FAILED);
	memset(s->buf, s->is_child, BUF_LEN);
	for (i = 0; i < s->cnt; i++)
		conn_open(s, &s->conns[i], conf->ring);
	memset(&mine, 0, sizeof(mine));
	mine.buf = (uint64_t)(uintptr_t)s->buf;
	mine.pid = getpid();
	CHECK(write(s->sock, &mine, sizeof(mine)) == sizeof(mine));
	CHECK(recv(s->sock, &peer, sizeof(peer), MSG_WAITALL) == sizeof(peer));
	s->peer_buf = peer.buf;
	s->peer_pid = peer.pid;
}

static void side_close(struct side *s)
{
	uint32_t i;

	for (i = 0; i < s->cnt; i++) {
		shm_link_detach(s->conns[i].link);
		shm_link_close(s->conns[i].link);
	}
	shm_dev_close(s->dev);
	munmap(s->buf, BUF_LEN);
	free(s->conns);
	close(s->sock);
}

double pair_run(const struct pair_conf *conf, pair_job_fn job, const void *arg)
{
	struct side s = { .ahead = conf->ahead };
	int sv[2], status;
	double res;
	pid_t pid;

	CHECK(!socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sv));
	fflush(NULL);
	pid = fork();
	CHECK(pid >= 0);
	s.is_child = !pid;
	s.sock = sv[s.is_child];
	close(sv[!s.is_child]);
	if (s.is_child)
		prctl(PR_SET_PDEATHSIG, SIGKILL);
	pin(conf->cpu[s.is_child]);
	side_open(&s, conf);
	barrier(&s);
	res = job(&s, arg);
	barrier(&s);
	side_close(&s);
	if (s.is_child)
		_exit(0);
	CHECK(waitpid(pid, &status, 0) == pid && !status);
	return res;
}
