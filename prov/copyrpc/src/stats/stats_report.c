/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Implements stats_report.h. */
#include "stats/stats_report.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "stats/stats_print.h"
#include "util/event.h"
#include "util/held.h"
#include "util/job.h"
#include "util/log.h"
#include "util/param.h"
#include "util/stats.h"

static pthread_mutex_t stats_report_lock = PTHREAD_MUTEX_INITIALIZER;
static unsigned stats_report_domains; /* open; guarded by the lock */
static pid_t stats_report_pid;        /* process that opened them */

/* ---- name ---- */

/** Appends `len` bytes to a name. Returns false if they do not fit. */
static bool stats_name_add(char *name, size_t size, size_t *at, const char *text, size_t len)
{
	if (*at + len >= size)
		return false;
	memcpy(name + *at, text, len);
	*at += len;
	name[*at] = '\0';
	return true;
}

/** Writes the value of a conversion. Returns false if there is no such one. */
static bool stats_name_value(char kind, char *text, size_t size)
{
	int rank = util_job_rank();

	switch (kind) {
	case 'r': snprintf(text, size, "%d", rank < 0 ? 0 : rank); return true;
	case 'p': snprintf(text, size, "%d", (int)getpid()); return true;
	case 'h':
		if (gethostname(text, size))
			snprintf(text, size, "unknown");
		text[size - 1] = '\0';
		return true;
	case '%': snprintf(text, size, "%%"); return true;
	default: return false;
	}
}

int stats_report_name(const char *form, char *name, size_t size)
{
	char text[256];
	size_t at = 0, plain;

	if (!*form)
		return -EINVAL;
	while (*form) {
		plain = strcspn(form, "%");
		if (!stats_name_add(name, size, &at, form, plain))
			return -ENAMETOOLONG;
		form += plain;
		if (!*form)
			break;
		if (!stats_name_value(form[1], text, sizeof(text)))
			return -EINVAL;
		if (!stats_name_add(name, size, &at, text, strlen(text)))
			return -ENAMETOOLONG;
		form += 2;
	}
	return 0;
}

/* ---- output ---- */

static void stats_report_warn(const char *name, int err)
{
	UTIL_WARN(FABRIC, "FI_COPYRPC_STATS=%s: no report is written%s%s: %s\n", util_params.stats,
		  name ? " to " : "", name ? name : "",
		  err == EINVAL ? "after % there may be r (rank), h (host), p (process id) or %"
				: strerror(err));
}

/** Opens the file. A FIFO without a reader is an error; it must not stop the process. */
static int stats_report_open_file(const char *name)
{
	int fd = open(name, O_WRONLY | O_CREAT | O_CLOEXEC | O_NONBLOCK | O_NOCTTY, 0666);

	if (fd >= 0)
		fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) & ~O_NONBLOCK);
	return fd;
}

/** Writes all bytes. Returns 0 or an errno. */
static int stats_report_write(int fd, const char *text, size_t len)
{
	ssize_t done;

	while (len) {
		done = write(fd, text, len);
		if (done < 0 && errno != EINTR)
			return errno;
		if (done > 0) {
			text += done;
			len -= (size_t)done;
		}
	}
	return 0;
}

/** Writes all bytes; a reader that has gone or a limit on file sizes is an error and no signal. */
static int stats_report_write_quietly(int fd, const char *text, size_t len)
{
	struct timespec none = { 0 };
	sigset_t signals, old, pending;
	int err;

	sigemptyset(&signals);
	sigaddset(&signals, SIGPIPE);
	sigaddset(&signals, SIGXFSZ);
	sigpending(&pending);
	pthread_sigmask(SIG_BLOCK, &signals, &old);
	err = stats_report_write(fd, text, len);
	/* Leaves what was pending before. */
	sigdelset(&signals, err == EPIPE ? SIGXFSZ : SIGPIPE);
	if ((err == EPIPE && !sigismember(&pending, SIGPIPE)) ||
	    (err == EFBIG && !sigismember(&pending, SIGXFSZ)))
		sigtimedwait(&signals, NULL, &none);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	return err;
}

static int stats_report_to_file(const char *name, const char *text, size_t len)
{
	int fd = stats_report_open_file(name), err;

	if (fd < 0)
		return errno;
	/* other kinds of files have no length */
	if (ftruncate(fd, 0) && errno != EINVAL) {
		err = errno;
		close(fd);
		return err;
	}
	err = stats_report_write_quietly(fd, text, len);
	if (close(fd) && !err)
		err = errno;
	return err;
}

static bool stats_report_is_json(void)
{
	size_t len = strlen(util_params.stats);

	return len >= 5 && !strcmp(util_params.stats + len - 5, ".json");
}

/** Returns the report in memory that the caller frees, or NULL without memory or connections. */
static char *stats_report_text(size_t *len)
{
	const struct copyrpc_stats_page *page = util_stats_page();
	struct stats_view view;
	char *text = NULL;
	FILE *out;

	if (!page || stats_view_copy(&view, page, page->len))
		return NULL;
	out = stats_view_sum_endpoints(&view).connects ? open_memstream(&text, len) : NULL;
	if (out) {
		if (stats_report_is_json()) {
			stats_print_json(out, &view);
			fputc('\n', out);
		} else {
			stats_print_text(out, &view);
		}
		fclose(out);
	}
	stats_view_free(&view);
	return text;
}

static void stats_report_now(void)
{
	char name[PATH_MAX];
	size_t len;
	char *text;
	int err;

	util_held_refresh();
	util_event_save_counters(0);
	text = stats_report_text(&len);
	if (!text)
		return;
	if (!strcmp(util_params.stats, "stderr")) {
		stats_report_write_quietly(STDERR_FILENO, text, len);
	} else if (!stats_report_name(util_params.stats, name, sizeof(name))) {
		err = stats_report_to_file(name, text, len);
		if (err)
			stats_report_warn(name, err);
	}
	free(text);
}

/**
 * Keeps the events of this process in a file beside the report, for one that does not live to write
 * it. Replaces that of an earlier run. A report that goes to no regular file has none.
 */
static void stats_report_keep_events(const char *report)
{
	char name[PATH_MAX + sizeof(STATS_REPORT_EVENTS)];
	struct stat st;
	int fd, err;

	if (stat(report, &st) || !S_ISREG(st.st_mode))
		return;
	snprintf(name, sizeof(name), "%s%s", report, STATS_REPORT_EVENTS);
	unlink(name);
	fd = open(name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
	err = fd < 0 ? errno : util_event_to_file(fd);
	if (err)
		UTIL_WARN(FABRIC, "FI_COPYRPC_STATS=%s: no events are kept in %s: %s\n",
			  util_params.stats, name, strerror(err));
}

/** Warns of a name that cannot be used, or that all ranks of a job share. */
static void stats_report_check(void)
{
	char name[PATH_MAX];
	int err, fd;

	if (!strcmp(util_params.stats, "stderr"))
		return;
	err = -stats_report_name(util_params.stats, name, sizeof(name));
	if (err) {
		stats_report_warn(NULL, err);
		return;
	}
	fd = stats_report_open_file(name);
	if (fd < 0)
		stats_report_warn(name, errno);
	else
		close(fd);
	if (fd >= 0)
		stats_report_keep_events(name);
	if (util_job_rank() >= 0 && !strstr(util_params.stats, "%r") &&
	    !strstr(util_params.stats, "%p"))
		UTIL_WARN_HOST(FABRIC,
			       "FI_COPYRPC_STATS=%s: all ranks write the same file; put %%r into "
			       "its name\n",
			       util_params.stats);
}

/* ---- events ---- */

void stats_report_open(void)
{
	pthread_mutex_lock(&stats_report_lock);
	if (stats_report_pid != getpid()) {
		stats_report_pid = getpid();
		stats_report_domains = 0;
		if (util_params.stats)
			stats_report_check();
	}
	stats_report_domains++;
	pthread_mutex_unlock(&stats_report_lock);
}

void stats_report_close(void)
{
	pthread_mutex_lock(&stats_report_lock);
	if (stats_report_domains && !--stats_report_domains && util_params.stats)
		stats_report_now();
	pthread_mutex_unlock(&stats_report_lock);
}

/* A forked child does not report domains of its parent. */
void stats_report_end(void)
{
	if (pthread_mutex_trylock(&stats_report_lock))
		return;
	if (stats_report_domains && stats_report_pid == getpid() && util_params.stats)
		stats_report_now();
	stats_report_domains = 0;
	pthread_mutex_unlock(&stats_report_lock);
}
