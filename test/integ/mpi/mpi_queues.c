/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Message queues of this process as a debugger shows them: the program loads Open MPI's library
 * for debuggers (the message queue interface of MPIR and TotalView), is debugger and process in
 * one, and compares what the library lists with what the program has posted. Types and offsets,
 * which a debugger takes from debugging information, are those of Open MPI's headers.
 *
 * usage: mpirun -n 2 mpi_queues
 */
#include <dlfcn.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "ompi_config.h"

#include "mpi.h"
#include "ompi/communicator/communicator.h"
#include "ompi/datatype/ompi_datatype.h"
#include "ompi/debuggers/msgq_interface.h"
#include "ompi/group/group.h"
#include "ompi/mca/pml/base/pml_base_request.h"
#include "ompi/mca/pml/pml_constants.h"
#include "ompi/mca/topo/topo.h"
#include "opal/class/opal_free_list.h"
#include "opal/class/opal_hash_table.h"
#include "opal/class/opal_pointer_array.h"

#include "integ.h"

/* Types of Open MPI whose headers it does not install as a whole. */
typedef struct {
	mca_pml_base_request_t req_base;
	const void *req_addr;
	size_t req_bytes_packed;
	mca_pml_base_send_mode_t req_send_mode;
} mca_pml_base_send_request_t;

typedef struct {
	mca_pml_base_request_t req_base;
	size_t req_bytes_packed;
} mca_pml_base_recv_request_t;

enum { TAG_SHORT = 7, TAG_PIECES = 8, TAG_LONG = 9 };

#define LONG_BYTES (4 << 20)
#define FOUND_MAX  16

/* Fields that the library asks for, and the sizes of their types. */
#define FIELD(type, field)                                                                         \
	{                                                                                          \
#type, #field, (int)offsetof(type, field), (int)sizeof(type)                       \
	}

static const struct field {
	const char *type, *name;
	int offset, size;
} fields[] = {
	FIELD(opal_list_item_t, opal_list_next),
	FIELD(opal_list_t, opal_list_sentinel),
	FIELD(opal_free_list_item_t, super),
	FIELD(opal_free_list_t, fl_mpool),
	FIELD(opal_free_list_t, fl_allocations),
	FIELD(opal_free_list_t, fl_frag_class),
	FIELD(opal_free_list_t, fl_frag_size),
	FIELD(opal_free_list_t, fl_frag_alignment),
	FIELD(opal_free_list_t, fl_max_to_alloc),
	FIELD(opal_free_list_t, fl_num_per_alloc),
	FIELD(opal_free_list_t, fl_num_allocated),
	FIELD(opal_hash_table_t, ht_table),
	FIELD(opal_hash_table_t, ht_size),
	FIELD(ompi_request_t, req_type),
	FIELD(ompi_request_t, req_status),
	FIELD(ompi_request_t, req_complete),
	FIELD(ompi_request_t, req_state),
	FIELD(ompi_request_t, req_f_to_c_index),
	FIELD(mca_pml_base_request_t, req_addr),
	FIELD(mca_pml_base_request_t, req_count),
	FIELD(mca_pml_base_request_t, req_peer),
	FIELD(mca_pml_base_request_t, req_tag),
	FIELD(mca_pml_base_request_t, req_comm),
	FIELD(mca_pml_base_request_t, req_datatype),
	FIELD(mca_pml_base_request_t, req_proc),
	FIELD(mca_pml_base_request_t, req_sequence),
	FIELD(mca_pml_base_request_t, req_type),
	FIELD(mca_pml_base_request_t, req_pml_complete),
	FIELD(mca_pml_base_send_request_t, req_addr),
	FIELD(mca_pml_base_send_request_t, req_bytes_packed),
	FIELD(mca_pml_base_send_request_t, req_send_mode),
	FIELD(mca_pml_base_recv_request_t, req_bytes_packed),
	FIELD(opal_pointer_array_t, lowest_free),
	FIELD(opal_pointer_array_t, number_free),
	FIELD(opal_pointer_array_t, size),
	FIELD(opal_pointer_array_t, addr),
	FIELD(ompi_communicator_t, c_name),
	FIELD(ompi_communicator_t, c_contextid),
#if OMPI_MAJOR_VERSION >= 5
	FIELD(ompi_communicator_t, c_contextidb),
	FIELD(ompi_communicator_t, c_index),
#endif
	FIELD(ompi_communicator_t, c_my_rank),
	FIELD(ompi_communicator_t, c_local_group),
	FIELD(ompi_communicator_t, c_remote_group),
	FIELD(ompi_communicator_t, c_flags),
	FIELD(ompi_communicator_t, c_f_to_c_index),
	FIELD(ompi_communicator_t, c_topo),
	FIELD(ompi_communicator_t, c_keyhash),
	FIELD(mca_topo_base_module_t, reorder),
	FIELD(mca_topo_base_module_t, mtc),
	FIELD(mca_topo_base_comm_cart_2_2_0_t, ndims),
	FIELD(mca_topo_base_comm_cart_2_2_0_t, dims),
	FIELD(mca_topo_base_comm_cart_2_2_0_t, periods),
	FIELD(mca_topo_base_comm_cart_2_2_0_t, coords),
	FIELD(mca_topo_base_comm_graph_2_2_0_t, nnodes),
	FIELD(mca_topo_base_comm_graph_2_2_0_t, index),
	FIELD(mca_topo_base_comm_graph_2_2_0_t, edges),
	FIELD(mca_topo_base_comm_dist_graph_2_2_0_t, in),
	FIELD(mca_topo_base_comm_dist_graph_2_2_0_t, inw),
	FIELD(mca_topo_base_comm_dist_graph_2_2_0_t, out),
	FIELD(mca_topo_base_comm_dist_graph_2_2_0_t, outw),
	FIELD(mca_topo_base_comm_dist_graph_2_2_0_t, indegree),
	FIELD(mca_topo_base_comm_dist_graph_2_2_0_t, outdegree),
	FIELD(mca_topo_base_comm_dist_graph_2_2_0_t, weighted),
	FIELD(ompi_group_t, grp_proc_count),
	FIELD(ompi_group_t, grp_proc_pointers),
	FIELD(ompi_group_t, grp_my_rank),
	FIELD(ompi_group_t, grp_flags),
	FIELD(ompi_status_public_t, MPI_SOURCE),
	FIELD(ompi_status_public_t, MPI_TAG),
	FIELD(ompi_status_public_t, MPI_ERROR),
	FIELD(ompi_status_public_t, _ucount),
	FIELD(ompi_status_public_t, _cancelled),
	FIELD(ompi_datatype_t, name),
	FIELD(ompi_datatype_t, super),
	FIELD(opal_datatype_t, size),
};

#define FIELD_CNT (sizeof(fields) / sizeof(fields[0]))

static mqs_image_info *image_info;
static mqs_process_info *process_info;

static void put_image_info(mqs_image *image, mqs_image_info *info)
{
	(void)image;
	image_info = info;
}

static mqs_image_info *get_image_info(mqs_image *image)
{
	(void)image;
	return image_info;
}

static void put_process_info(mqs_process *process, mqs_process_info *info)
{
	(void)process;
	process_info = info;
}

static mqs_process_info *get_process_info(mqs_process *process)
{
	(void)process;
	return process_info;
}

static void print_line(const char *line)
{
	fprintf(stderr, "%s", line);
}

static char *no_text(int error)
{
	(void)error;
	return (char *)(uintptr_t) "";
}

static void get_type_sizes(mqs_process *process, mqs_target_type_sizes *sizes)
{
	(void)process;
	*sizes = (mqs_target_type_sizes){ .short_size = sizeof(short),
					  .int_size = sizeof(int),
					  .long_size = sizeof(long),
					  .long_long_size = sizeof(long long),
					  .pointer_size = sizeof(void *),
					  .bool_size = sizeof(bool),
					  .size_t_size = sizeof(size_t) };
}

static int find_symbol(mqs_image *image, char *name, mqs_taddr_t *addr)
{
	void *found = dlsym(RTLD_DEFAULT, name);

	(void)image;
	if (!found)
		return mqs_no_information;
	if (addr)
		*addr = (mqs_taddr_t)(uintptr_t)found;
	return mqs_ok;
}

static int find_function(mqs_image *image, char *name, mqs_lang_code lang, mqs_taddr_t *addr)
{
	(void)lang;
	return find_symbol(image, name, addr);
}

/* Returns a field of the type as the type's handle. */
static mqs_type *find_type(mqs_image *image, char *name, mqs_lang_code lang)
{
	(void)image;
	(void)lang;
	for (size_t i = 0; i < FIELD_CNT; i++)
		if (!strcmp(fields[i].type, name))
			return (mqs_type *)(uintptr_t)&fields[i];
	return NULL;
}

static int field_offset(mqs_type *type, char *name)
{
	const struct field *any = (const struct field *)type;

	for (size_t i = 0; i < FIELD_CNT; i++)
		if (!strcmp(fields[i].type, any->type) && !strcmp(fields[i].name, name))
			return fields[i].offset;
	return -1;
}

static int size_of(mqs_type *type)
{
	return ((const struct field *)type)->size;
}

static int get_global_rank(mqs_process *process)
{
	(void)process;
	return integ_rank();
}

static mqs_image *get_image(mqs_process *process)
{
	return (mqs_image *)process;
}

static int fetch_data(mqs_process *process, mqs_taddr_t addr, int len, void *to)
{
	(void)process;
	memcpy(to, (const void *)(uintptr_t)addr, (size_t)len);
	return mqs_ok;
}

static void target_to_host(mqs_process *process, const void *in, void *out, int len)
{
	(void)process;
	memcpy(out, in, (size_t)len);
}

static const mqs_basic_callbacks basic = {
	.mqs_malloc_fp = malloc,
	.mqs_free_fp = free,
	.mqs_dprints_fp = print_line,
	.mqs_errorstring_fp = no_text,
	.mqs_put_image_info_fp = put_image_info,
	.mqs_get_image_info_fp = get_image_info,
	.mqs_put_process_info_fp = put_process_info,
	.mqs_get_process_info_fp = get_process_info,
};

static const mqs_image_callbacks image_calls = {
	.mqs_get_type_sizes_fp = get_type_sizes,
	.mqs_find_function_fp = find_function,
	.mqs_find_symbol_fp = find_symbol,
	.mqs_find_type_fp = find_type,
	.mqs_field_offset_fp = field_offset,
	.mqs_sizeof_fp = size_of,
};

static const mqs_process_callbacks process_calls = {
	.mqs_get_global_rank_fp = get_global_rank,
	.mqs_get_image_fp = get_image,
	.mqs_fetch_data_fp = fetch_data,
	.mqs_target_to_host_fp = target_to_host,
};

/* Functions of the library. */
static struct {
	void (*setup_basic)(const mqs_basic_callbacks *);
	int (*setup_image)(mqs_image *, const mqs_image_callbacks *);
	int (*image_has)(mqs_image *, char **);
	int (*setup_process)(mqs_process *, const mqs_process_callbacks *);
	int (*process_has)(mqs_process *, char **);
	int (*update_comms)(mqs_process *);
	int (*first_comm)(mqs_process *);
	int (*get_comm)(mqs_process *, mqs_communicator *);
	int (*next_comm)(mqs_process *);
	int (*first_op)(mqs_process *, int);
	int (*next_op)(mqs_process *, mqs_pending_operation *);
} dll;

static mqs_process *const process = (mqs_process *)&dll;

static void load(void *handle, const char *name, void *function)
{
	void *found = dlsym(handle, name);

	INTEG_CHECK(found, "the library has no %s", name);
	memcpy(function, &found, sizeof(found));
}

static void open_library(void)
{
	const char *path = dlsym(RTLD_DEFAULT, "MPIR_dll_name");
	void *handle;
	char *why = NULL;

	INTEG_CHECK(path, "no MPIR_dll_name");
	handle = dlopen(path, RTLD_NOW);
	INTEG_CHECK(handle, "%s: %s", path, dlerror());
	load(handle, "mqs_setup_basic_callbacks", &dll.setup_basic);
	load(handle, "mqs_setup_image", &dll.setup_image);
	load(handle, "mqs_image_has_queues", &dll.image_has);
	load(handle, "mqs_setup_process", &dll.setup_process);
	load(handle, "mqs_process_has_queues", &dll.process_has);
	load(handle, "mqs_update_communicator_list", &dll.update_comms);
	load(handle, "mqs_setup_communicator_iterator", &dll.first_comm);
	load(handle, "mqs_get_communicator", &dll.get_comm);
	load(handle, "mqs_next_communicator", &dll.next_comm);
	load(handle, "mqs_setup_operation_iterator", &dll.first_op);
	load(handle, "mqs_next_operation", &dll.next_op);
	dll.setup_basic(&basic);
	INTEG_CHECK(dll.setup_image(get_image(process), &image_calls) == mqs_ok, "setup_image");
	INTEG_CHECK(dll.image_has(get_image(process), &why) == mqs_ok, "no queues: %s",
		    why ? why : "");
	INTEG_CHECK(dll.setup_process(process, &process_calls) == mqs_ok, "setup_process");
	INTEG_CHECK(dll.process_has(process, &why) == mqs_ok, "no queues: %s", why ? why : "");
}

/* Lists what is pending in MPI_COMM_WORLD. Returns the number. */
static int list_pending(mqs_op_class what, mqs_pending_operation *found)
{
	mqs_communicator comm;
	mqs_pending_operation op;
	int cnt = 0;

	INTEG_CHECK(dll.update_comms(process) == mqs_ok, "update_communicator_list");
	for (int rc = dll.first_comm(process); rc == mqs_ok; rc = dll.next_comm(process)) {
		INTEG_CHECK(dll.get_comm(process, &comm) == mqs_ok, "get_communicator");
		if (strcmp(comm.name, "MPI_COMM_WORLD"))
			continue;
		INTEG_CHECK(dll.first_op(process, what) == mqs_ok, "setup_operation_iterator");
		while (dll.next_op(process, &op) == mqs_ok)
			if (op.status == mqs_st_pending && cnt < FOUND_MAX)
				found[cnt++] = op;
	}
	return cnt;
}

/* Expects one pending operation with these fields; source or destination -1: any; tag -1: any. */
static void expect(const mqs_pending_operation *found, int cnt, const void *buf, int rank, int tag,
		   long len)
{
	int matches = 0;

	for (int i = 0; i < cnt; i++) {
		const mqs_pending_operation *op = &found[i];

		matches += op->buffer == (mqs_taddr_t)(uintptr_t)buf &&
			   (int)op->desired_local_rank == rank &&
			   (tag < 0 ? op->tag_wild : op->desired_tag == tag) &&
			   op->desired_length == len;
	}
	INTEG_CHECK(matches == 1, "%d operations with rank %d, tag %d, %ld bytes among %d", matches,
		    rank, tag, len, cnt);
}

static void receiver(int peer)
{
	static char bytes[100], other[8];
	mqs_pending_operation found[FOUND_MAX];
	double pieces[12];
	MPI_Datatype every_second;
	MPI_Request reqs[3];

	MPI_Type_vector(6, 1, 2, MPI_DOUBLE, &every_second);
	MPI_Type_commit(&every_second);
	INTEG_CHECK(list_pending(mqs_pending_receives, found) == 0, "pending before");
	MPI_Irecv(bytes, 100, MPI_CHAR, peer, TAG_SHORT, MPI_COMM_WORLD, &reqs[0]);
	MPI_Irecv(pieces, 1, every_second, peer, TAG_PIECES, MPI_COMM_WORLD, &reqs[1]);
	INTEG_CHECK(list_pending(mqs_pending_receives, found) == 2, "two receives");
	expect(found, 2, bytes, peer, TAG_SHORT, 100);
	expect(found, 2, pieces, peer, TAG_PIECES, 6 * sizeof(double));
	MPI_Irecv(other, 2, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &reqs[2]);
	INTEG_CHECK(list_pending(mqs_pending_receives, found) == 3, "three receives");
	expect(found, 3, other, -1, -1, 8);
	MPI_Barrier(MPI_COMM_WORLD);
	MPI_Waitall(3, reqs, MPI_STATUSES_IGNORE);
	INTEG_CHECK(list_pending(mqs_pending_receives, found) == 0, "pending after");
	MPI_Type_free(&every_second);
	/* The sender's long message is pending until here. */
	MPI_Barrier(MPI_COMM_WORLD);
}

static void sender(int peer)
{
	mqs_pending_operation found[FOUND_MAX];
	double values[6] = { 0 };
	char text[100] = "";
	int two[2] = { 0 };
	char *bytes = calloc(1, LONG_BYTES);
	MPI_Request req;

	MPI_Barrier(MPI_COMM_WORLD);
	MPI_Send(text, 100, MPI_CHAR, peer, TAG_SHORT, MPI_COMM_WORLD);
	MPI_Send(values, 6, MPI_DOUBLE, peer, TAG_PIECES, MPI_COMM_WORLD);
	MPI_Send(two, 2, MPI_INT, peer, TAG_SHORT, MPI_COMM_WORLD);
	INTEG_CHECK(list_pending(mqs_pending_sends, found) == 0, "sends before");
	MPI_Issend(bytes, LONG_BYTES, MPI_CHAR, peer, TAG_LONG, MPI_COMM_WORLD, &req);
	INTEG_CHECK(list_pending(mqs_pending_sends, found) == 1, "one send");
	expect(found, 1, bytes, peer, TAG_LONG, LONG_BYTES);
	INTEG_CHECK(found[0].actual_length == LONG_BYTES && !found[0].system_buffer,
		    "%ld bytes, system buffer %d", (long)found[0].actual_length,
		    found[0].system_buffer);
	MPI_Barrier(MPI_COMM_WORLD);
	MPI_Wait(&req, MPI_STATUS_IGNORE);
	INTEG_CHECK(list_pending(mqs_pending_sends, found) == 0, "sends after");
	free(bytes);
}

int main(int argc, char **argv)
{
	int peer;

	MPI_Init(&argc, &argv);
	open_library();
	peer = integ_rank() ^ 1;
	if (integ_rank() % 2 == 0) {
		sender(peer);
	} else {
		static char bytes[LONG_BYTES];

		receiver(peer);
		MPI_Recv(bytes, LONG_BYTES, MPI_CHAR, peer, TAG_LONG, MPI_COMM_WORLD,
			 MPI_STATUS_IGNORE);
	}
	integ_done("mpi_queues");
	MPI_Finalize();
	return 0;
}
