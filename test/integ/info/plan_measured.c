/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Measures what a rank takes: descriptors and rings of a process that is connected to PEERS others
 * of its host. Run by info-plan.
 *
 * usage: plan_measured PEERS [any]
 *
 * Prints "base N peers N rings N sockets N": descriptors before the first peer, with standard ones;
 * those that all peers add; bytes of ring segments mapped, which are those of this process and of
 * its peers; UDP sockets. Endpoints are at loopback, or with `any` at all addresses. The peers
 * share a domain and a queue in another process, so that their end has the same budget and its
 * rings have the same sizes.
 */
#include <dirent.h>
#include <sys/wait.h>
#include <unistd.h>

#include "integ/fab.h"

#define PEERS_MAX 1024
#define PATIENCE  200.0 /* seconds */

static struct fab fab;
static struct fid_ep *eps[PEERS_MAX];
static struct sockaddr_in names[PEERS_MAX];
static char byte;
static bool at_any;

static unsigned count_files(void)
{
	DIR *dir = opendir("/proc/self/fd");
	unsigned cnt = 0;

	FAB_TRUE(dir);
	while (readdir(dir))
		cnt++;
	closedir(dir);
	return cnt - 3; /* ".", "..", and the directory */
}

static unsigned count_udp_sockets(void)
{
	unsigned cnt = 0;

	for (int fd = 0; fd < 4096; fd++) {
		int type = 0, family = 0;
		socklen_t len = sizeof(type);

		if (!getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &len) &&
		    !getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &family, &len))
			cnt += type == SOCK_DGRAM && family == AF_INET;
	}
	return cnt;
}

static unsigned long count_rings(void)
{
	FILE *maps = fopen("/proc/self/maps", "r");
	unsigned long sum = 0, from, to;
	char line[512];

	FAB_TRUE(maps);
	while (fgets(line, sizeof(line), maps))
		if (strstr(line, "memfd:copyrpc-ring") && sscanf(line, "%lx-%lx", &from, &to) == 2)
			sum += to - from;
	fclose(maps);
	return sum;
}

/* Reads `cnt` completions. */
static void complete(unsigned cnt)
{
	double end = fab_seconds() + PATIENCE;
	struct fi_cq_tagged_entry entry;

	while (cnt) {
		ssize_t got = fi_cq_read(fab.cq, &entry, 1);

		FAB_TRUE(got == 1 || got == -FI_EAGAIN);
		FAB_TRUE(fab_seconds() < end);
		cnt -= got == 1;
	}
}

static void open_first(void)
{
	struct sockaddr_in src = { .sin_family = AF_INET };

	src.sin_addr.s_addr = htonl(at_any ? INADDR_ANY : INADDR_LOOPBACK);
	fab_open(&fab, &src, FI_THREAD_SAFE, FI_PROGRESS_MANUAL);
}

/* Opens the peers, writes their names, and receives from the other process until it ends. */
static void be_peers(unsigned cnt, int out, int in)
{
	size_t len = sizeof(names[0]);

	open_first();
	eps[0] = fab.ep;
	for (unsigned i = 1; i < cnt; i++) {
		FAB_CHECK(fi_endpoint(fab.domain, fab.info, &eps[i], NULL));
		FAB_CHECK(fi_ep_bind(eps[i], &fab.av->fid, 0));
		FAB_CHECK(fi_ep_bind(eps[i], &fab.cq->fid, FI_TRANSMIT | FI_RECV));
		FAB_CHECK(fi_enable(eps[i]));
	}
	for (unsigned i = 0; i < cnt; i++) {
		FAB_CHECK(fi_getname(&eps[i]->fid, &names[i], &len));
		FAB_CHECK(fi_trecv(eps[i], &byte, 1, NULL, FI_ADDR_UNSPEC, 1, 0, NULL));
	}
	FAB_TRUE(write(out, names, cnt * sizeof(names[0])) == (ssize_t)(cnt * sizeof(names[0])));
	complete(cnt);
	FAB_TRUE(read(in, &byte, 1) == 0);
	_exit(0);
}

static void read_names(unsigned cnt, int in)
{
	size_t done = 0, len = cnt * sizeof(names[0]);

	while (done < len) {
		ssize_t got = read(in, (char *)names + done, len - done);

		FAB_TRUE(got > 0);
		done += (size_t)got;
	}
}

int main(int argc, char **argv)
{
	unsigned cnt = argc >= 2 ? (unsigned)atoi(argv[1]) : 0, base;
	int there[2], back[2], status;
	fi_addr_t at;

	FAB_TRUE(cnt && cnt <= PEERS_MAX);
	at_any = argc == 3 && !strcmp(argv[2], "any");
	FAB_TRUE(!pipe(there) && !pipe(back));
	if (!fork()) {
		close(there[0]);
		close(back[1]);
		be_peers(cnt, there[1], back[0]);
	}
	close(there[1]);
	close(back[0]);
	read_names(cnt, there[0]);
	open_first();
	base = count_files();
	for (unsigned i = 0; i < cnt; i++) {
		FAB_TRUE(fi_av_insert(fab.av, &names[i], 1, &at, 0, NULL) == 1);
		FAB_CHECK(fi_tsend(fab.ep, &byte, 1, NULL, at, 1, NULL));
		complete(1);
	}
	printf("base %u peers %u rings %lu sockets %u\n", base, count_files() - base, count_rings(),
	       count_udp_sockets());
	fflush(stdout);
	close(back[1]);
	wait(&status);
	FAB_TRUE(WIFEXITED(status) && !WEXITSTATUS(status));
	return 0;
}
