/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A process of another user of this host tries to read and to write registered memory.
 *
 * One process registers memory for remote access under a key that is easy to guess. A second one,
 * with an unprivileged uid, knows its address and tries every path that FI_COPYRPC_PATHS has.
 * Without a job key each attempt must end with -FI_EACCES, at either end: also where this process
 * itself connects to the other user's. A third process, of the same user, must succeed on the same
 * paths.
 *
 * usage: foreign_user [path]...      (as root; exits with 77 otherwise)
 */
#include <grp.h>
#include <signal.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <rdma/fi_rma.h>

#include "integ/fab.h"

#define NOBODY  65534
#define KEY     1
#define SECRET  "the secret"
#define LOOT    "the loot"
#define LIMIT_S 60.0

/** Memory that the processes share. */
struct board {
	struct sockaddr_in addr[2]; /* of the owner of the memory, and of the other */
	int is_open[2];
	int read_err, write_err; /* of the other's attempts; positive */
	int back_err;            /* of the owner's attempt at the other */
	int is_done;
	char loot[32];
};

static struct board *board;
static char memory[4096];

#define LOAD(x)     __atomic_load_n(&(x), __ATOMIC_ACQUIRE)
#define STORE(x, v) __atomic_store_n(&(x), (v), __ATOMIC_RELEASE)

static void become_nobody(void)
{
	FAB_TRUE(!setgroups(0, NULL) && !setgid(NOBODY) && !setuid(NOBODY));
	prctl(PR_SET_PDEATHSIG, SIGKILL);
}

/** Loads the provider, which another user may be unable to read. */
static void load_provider(void)
{
	struct fi_info *info = NULL;

	FAB_CHECK(fi_getinfo(FI_VERSION(1, 17), NULL, NULL, 0, NULL, &info));
	fi_freeinfo(info);
}

static void open_one(struct fab *fab)
{
	struct fi_info *hints = fi_allocinfo();
	struct sockaddr_in any = fab_addr("127.0.0.1", 0);

	hints->caps = FI_TAGGED | FI_RMA;
	hints->ep_attr->type = FI_EP_RDM;
	hints->addr_format = FI_SOCKADDR_IN;
	hints->src_addr = malloc(sizeof(any));
	memcpy(hints->src_addr, &any, sizeof(any));
	hints->src_addrlen = sizeof(any);
	FAB_CHECK(fi_getinfo(FI_VERSION(1, 17), NULL, NULL, 0, hints, &fab->info));
	fi_freeinfo(hints);
	fab_open_found(fab);
}

/** Waits for the completion of the only operation. Returns its error, positive. */
static int outcome(struct fab *fab)
{
	double begin = fab_seconds();
	struct fi_cq_tagged_entry entry;
	int err;

	while (!fab_poll(fab, &entry, &err)) {
		FAB_TRUE(fab_seconds() - begin < LIMIT_S);
		usleep(100);
	}
	return err;
}

static void await_word(struct fab *fab, const int *word)
{
	double begin = fab_seconds();

	while (!LOAD(*word)) {
		if (fab)
			fi_cq_read(fab->cq, NULL, 0); /* progress */
		FAB_TRUE(fab_seconds() - begin < LIMIT_S);
		usleep(100);
	}
}

/** Reads and writes the owner's memory, then stays until the owner has tried it the other way. */
static void run_other(bool is_foreign, const char *path)
{
	struct fab fab = { 0 };
	fi_addr_t to;

	load_provider();
	if (is_foreign)
		become_nobody();
	setenv("FI_COPYRPC_PATHS", path, 1);
	await_word(NULL, &board->is_open[0]);
	open_one(&fab);
	board->addr[1] = fab.addr;
	to = fab_insert(&fab, &board->addr[0]);
	FAB_CHECK(fi_read(fab.ep, board->loot, sizeof(SECRET), NULL, to, 0, KEY, NULL));
	board->read_err = outcome(&fab);
	strcpy(memory, LOOT);
	FAB_CHECK(fi_write(fab.ep, memory, sizeof(LOOT), NULL, to, 64, KEY, NULL));
	board->write_err = outcome(&fab);
	STORE(board->is_open[1], 1);
	await_word(&fab, &board->is_done);
	_exit(0);
}

/** Registers the memory, and at last connects to the other. */
static void run_owner(void)
{
	struct fab fab = { 0 };
	struct fid_mr *mr;
	fi_addr_t to;

	unsetenv("FI_COPYRPC_PATHS");
	open_one(&fab);
	strcpy(memory, SECRET);
	FAB_CHECK(fi_mr_reg(fab.domain, memory, sizeof(memory), FI_REMOTE_READ | FI_REMOTE_WRITE, 0,
			    KEY, 0, &mr, NULL));
	board->addr[0] = fab.addr;
	STORE(board->is_open[0], 1);
	await_word(&fab, &board->is_open[1]);
	to = fab_insert(&fab, &board->addr[1]);
	FAB_CHECK(fi_tsend(fab.ep, memory, 8, NULL, to, 1, NULL));
	board->back_err = outcome(&fab);
	memcpy(board->loot + 16, memory + 64, sizeof(LOOT));
	STORE(board->is_done, 1);
	_exit(0);
}

static pid_t start(void (*run)(void))
{
	pid_t pid = fork();

	FAB_TRUE(pid >= 0);
	if (!pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		run();
	}
	return pid;
}

static const char *path_of_other;
static bool other_is_foreign;

static void run_configured(void)
{
	run_other(other_is_foreign, path_of_other);
}

static void expect(const char *what, int err, int want)
{
	if (err == want)
		return;
	fprintf(stderr, "foreign_user: %s: %s, expected: %s\n", what, fi_strerror(err),
		want ? fi_strerror(want) : "success");
	exit(1);
}

static void try_path(const char *path, bool is_foreign)
{
	bool was_read, was_written;
	pid_t pids[2];
	int status;

	memset(board, 0, sizeof(*board));
	path_of_other = path;
	other_is_foreign = is_foreign;
	pids[0] = start(run_owner);
	pids[1] = start(run_configured);
	for (int i = 0; i < 2; i++)
		FAB_TRUE(waitpid(pids[i], &status, 0) == pids[i] && !status);
	was_read = !strcmp(board->loot, SECRET);
	was_written = !strcmp(board->loot + 16, LOOT);
	expect("read", board->read_err, is_foreign ? FI_EACCES : 0);
	expect("write", board->write_err, is_foreign ? FI_EACCES : 0);
	expect("connection to the other", board->back_err, is_foreign ? FI_EACCES : 0);
	FAB_TRUE(was_read == !is_foreign && was_written == !is_foreign);
	printf("foreign_user: %s: %s user %s\n", path, is_foreign ? "another" : "the same",
	       is_foreign ? "was refused" : "had access");
	fflush(stdout);
}

int main(int argc, char **argv)
{
	static const char *const all[] = { "udp", "shm", "shm,udp" };

	if (geteuid()) {
		printf("foreign_user: skipped: only root can become another user\n");
		return 77;
	}
	board = mmap(NULL, sizeof(*board), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
		     0);
	FAB_TRUE(board != MAP_FAILED);
	for (int i = 0; i < (argc > 1 ? argc - 1 : 3); i++) {
		try_path(argc > 1 ? argv[i + 1] : all[i], true);
		try_path(argc > 1 ? argv[i + 1] : all[i], false);
	}
	return 0;
}
