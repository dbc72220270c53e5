/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Results and errors of the calls on address vectors and memory regions.
 *
 * Pages: fi_av(3), fi_mr(3) (ERRORS).
 */
#include "common/ft_data.h"
#include "common/ft_op.h"
#include "util/fi_old.h"

#include <arpa/inet.h>
#include <netinet/in.h>

static void begin(struct ft_fab *fab, struct ft *ft, struct ft_want want)
{
	if (ft->opts->type == FI_EP_MSG)
		ft_notrun("connected endpoints have no address vector");
	want.alone = true;
	ft_fab_find(fab, ft, &want);
	ft_fab_domain(fab);
	ft_fab_queues(fab);
}

static void end(struct ft_fab *fab)
{
	fab->ops = ft_ops_open();
	ft_fab_close(fab);
}

static struct sockaddr_in address(unsigned number)
{
	struct sockaddr_in sin = { .sin_family = AF_INET };

	sin.sin_addr.s_addr = htonl(0x7F000001);
	sin.sin_port = htons((uint16_t)(20000 + number));
	return sin;
}

/* ---- address vectors ---- */

static void run_table(struct ft *ft)
{
	struct sockaddr_in in[10], out;
	fi_addr_t addr[10];
	struct ft_fab fab;
	size_t len;

	begin(&fab, ft, (struct ft_want){ .av = FI_AV_TABLE });
	for (unsigned i = 0; i < 10; i++)
		in[i] = address(i);
	FT_ROW(fi_av_insert(fab.av, in, 0, addr, 0, NULL), 0);
	FT_ROW(fi_av_insert(fab.av, in, 4, addr, FI_MORE, NULL), 4);
	FT_ROW(fi_av_insert(fab.av, in + 4, 4, NULL, 0, NULL), 4); /* a table needs no array */
	FT_ROW(fi_av_insert(fab.av, in + 8, 2, addr + 8, 0, NULL), 2);
	for (unsigned i = 0; i < 10; i++) {
		len = sizeof(out);
		FT_CHECK((i >= 4 && i < 8) || addr[i] == i, "address %u has index %llu", i,
			 (unsigned long long)addr[i]);
		FT_ROW(fi_av_lookup(fab.av, i, &out, &len), 0);
		FT_CHECK(out.sin_port == in[i].sin_port, "index %u is another address", i);
	}
	end(&fab);
}

static void run_lookup(struct ft *ft)
{
	struct sockaddr_in in = address(1);
	uint8_t out[64];
	size_t len = 2;
	fi_addr_t addr;
	struct ft_fab fab;

	begin(&fab, ft, (struct ft_want){ 0 });
	FT_RET(fi_av_insert(fab.av, &in, 1, &addr, 0, NULL), 1);
	memset(out, 0xEE, sizeof(out));
	fi_av_lookup(fab.av, addr, out, &len); /* cut; the full length is returned */
	FT_CHECK(len >= sizeof(in) && out[2] == 0xEE, "len %zu, byte behind it %#x", len, out[2]);
	len = sizeof(out);
	FT_REFUSED(fi_av_lookup(fab.av, addr + 1000, out, &len));
	FT_OK(fi_av_remove(fab.av, &addr, 1, 0));
	FT_REFUSED(fi_av_lookup(fab.av, addr, out, &len)); /* invalid until inserted again */
	FT_RET(fi_av_insert(fab.av, &in, 1, &addr, 0, NULL), 1);
	FT_ROW(fi_av_lookup(fab.av, addr, out, &len), 0);
	end(&fab);
}

/* Good addresses are inserted, each bad one is reported. */
static void run_bad(struct ft *ft)
{
	struct sockaddr_in in[3] = { address(1), address(2), address(3) };
	int errors[3] = { -1, -1, -1 };
	fi_addr_t addr[3] = { 7, 7, 7 };
	struct ft_fab fab;

	begin(&fab, ft, (struct ft_want){ 0 });
	in[1].sin_family = 77;
	FT_ROW(fi_av_insert(fab.av, in, 3, addr, FI_SYNC_ERR, errors), 2);
	FT_CHECK(addr[1] == FI_ADDR_NOTAVAIL, "a failed insertion has address %llu",
		 (unsigned long long)addr[1]);
	FT_CHECK(!errors[0] && errors[1] > 0 && !errors[2], "statuses %d, %d, %d", errors[0],
		 errors[1], errors[2]);
	FT_REFUSED(fi_av_insert(fab.av, in, 1, addr, 1ull << 62, NULL));
	FT_REFUSED(fi_av_remove(fab.av, addr, 1, 1)); /* reserved flags */
	end(&fab);
}

static void run_event(struct ft *ft)
{
	struct fi_av_attr attr = { .flags = FI_EVENT };
	struct sockaddr_in in[3] = { address(1), address(2), address(3) };
	struct fi_eq_attr eq_attr = { .wait_obj = FI_WAIT_UNSPEC };
	struct fi_eq_err_entry bad = { 0 };
	struct fi_eq_entry entry = { 0 };
	fi_addr_t addr[3];
	struct fid_eq *eq;
	struct fid_av *av;
	struct ft_fab fab;
	uint32_t event = 0;
	ssize_t ret;

	begin(&fab, ft, (struct ft_want){ 0 });
	FT_OK(fi_av_open(fab.domain, &attr, &av, NULL));
	FT_OK(fi_eq_open(fab.fabric, &eq_attr, &eq, NULL));
	FT_ROW(fi_av_insert(av, in, 1, addr, 0, NULL), -FI_ENOEQ);
	FT_OK(fi_av_bind(av, &eq->fid, 0));
	in[1].sin_family = 77;
	FT_ROW(fi_av_insert(av, in, 3, addr, 0, &fab), 0);
	ret = fi_eq_sread(eq, &event, &entry, sizeof(entry), 10000, 0);
	FT_ROW(ret, -FI_EAVAIL); /* the failed address comes first, with its index */
	FT_CHECK(fi_eq_readerr(eq, &bad, 0) > 0, "no error to read");
	FT_CHECK(bad.fid == &av->fid && bad.context == &fab && bad.data == 1 && bad.err > 0,
		 "data %llu, error %d", (unsigned long long)bad.data, bad.err);
	ret = fi_eq_sread(eq, &event, &entry, sizeof(entry), 10000, 0);
	FT_ROW(ret, sizeof(entry));
	FT_CHECK(event == FI_AV_COMPLETE && entry.fid == &av->fid && entry.context == &fab &&
			 entry.data == 2,
		 "event %u, data %llu", event, (unsigned long long)entry.data);
	FT_ROW(fi_eq_read(eq, &event, &entry, sizeof(entry), 0), -FI_EAGAIN);
	FT_ROW(fi_close(&eq->fid), -FI_EBUSY);
	FT_CLOSE(av);
	FT_CLOSE(eq);
	end(&fab);
}

static void run_text(struct ft *ft)
{
	struct sockaddr_in in = address(0);
	char text[200], cut[200];
	size_t len = sizeof(text), short_len = 5;
	struct ft_fab fab;

	begin(&fab, ft, (struct ft_want){ 0 });
	FT_CHECK(fi_av_straddr(fab.av, &in, text, &len) == text, "not the buffer that was given");
	FT_CHECK(strstr(text, "127.0.0.1") && strstr(text, "20000"), "'%s'", text);
	memset(cut, 0x7E, sizeof(cut));
	fi_av_straddr(fab.av, &in, cut, &short_len);
	FT_CHECK(cut[5] == 0x7E, "written behind a buffer of 5");
	FT_CHECK(short_len > strlen(text), "%zu bytes are needed, it says", short_len);
	end(&fab);
}

/* ---- memory regions ---- */

static void run_regions(struct ft *ft)
{
	struct ft_want want = { .caps = FI_RMA | FI_MSG, .alone = true, .mr_mode = FI_MR_SCALABLE };
	static uint8_t buf[4096];
	struct fid_mr *mr, *other;
	struct ft_fab fab;

	ft_fab_find(&fab, ft, &want);
	ft_fab_domain(&fab);
	ft_fab_queues(&fab);
	FT_OK(fi_mr_reg(fab.domain, buf, sizeof(buf), FI_REMOTE_READ, 0, 5, 0, &mr, &fab));
	FT_ROW(fi_mr_key(mr), 5); /* the application chooses */
	FT_CHECK(mr->fid.context == &fab, "the context is lost");
	FT_ROW(fi_mr_reg(fab.domain, buf, 1, FI_REMOTE_READ, 0, 5, 0, &other, NULL), -FI_ENOKEY);
	FT_REFUSED(fi_mr_reg(fab.domain, buf, 1, FI_REMOTE_READ, 1, 6, 0, &other, NULL));
	FT_REFUSED(fi_mr_reg(fab.domain, buf, 1, FI_REMOTE_READ, 0, 6, 1ull << 62, &other, NULL));
	FT_ROW(fi_close(&fab.domain->fid), -FI_EBUSY);
	FT_CLOSE(mr);
	/* the key is free again */
	FT_OK(fi_mr_reg(fab.domain, buf, 1, FI_REMOTE_READ, 0, 5, 0, &mr, NULL));
	FT_CLOSE(mr);
	for (uint64_t access = 0; access < 64; access++) { /* every combination, also none */
		static const uint64_t bits[] = { FI_SEND,  FI_RECV,        FI_READ,
						 FI_WRITE, FI_REMOTE_READ, FI_REMOTE_WRITE };
		uint64_t flags = 0;

		for (unsigned i = 0; i < FT_CNT(bits); i++)
			flags |= access & 1u << i ? bits[i] : 0;
		FT_OK(fi_mr_reg(fab.domain, buf, sizeof(buf), flags, 0, access, 0, &mr, NULL));
		FT_CLOSE(mr);
	}
	end(&fab);
}

#define ROW(name, function, sentence) FT_CASE(name, function, sentence, .procs = 1)

static const struct ft_case cases[] = {
	ROW("av-table", run_table, "A table gives indices in the order of insertion."),
	ROW("av-lookup", run_lookup, "A short buffer is filled; what was removed is invalid."),
	ROW("av-bad", run_bad, "Failed insertions are FI_ADDR_NOTAVAIL and have a status each."),
	ROW("av-event", run_event, "Asynchronous insertions report failures, then one completion."),
	ROW("av-text", run_text, "Addresses have a text, cut where the buffer ends."),
	ROW("regions", run_regions, "Keys are unique; reserved arguments and flags are refused."),
};

int main(int argc, char **argv)
{
	return ft_main(argc, argv, "What address vectors and memory regions say.", cases,
		       FT_CNT(cases));
}
