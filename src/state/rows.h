/* The byte form of what a checkpoint keeps: explicit, little-endian, with a version in front of each row. A row holds all that
 * a start needs to build its indexes and orders without reading the log; texts and documents stay there. Part of this room
 * alone. */
#ifndef ORBIT_STATE_ROWS_H
#define ORBIT_STATE_ROWS_H

#include "state/internal.h"

/* Of all rows together: another number, and the checkpoint is made anew. */
enum { rows_format = 2 };

/* The tables of views/, in the order of their numbers. */
enum rows_table { ROWS_META, ROWS_OBJECTS, ROWS_BUCKETS, ROWS_TASKS, ROWS_RECEIPTS, ROWS_AUDITS, ROWS_TABLE_COUNT };
extern const char *const rows_table_names[ROWS_TABLE_COUNT];
static_assert(ROWS_TABLE_COUNT <= (int)views_tables_max, "the store has room for all tables");

/* Where the checkpoint stands. One row, with a check of its own. */
struct meta_row {
  uint64_t seq;    /* the last event that is folded in; the end of a commit */
  uint64_t chain;  /* of that event */
  int64_t time_us; /* of that event */
  uint64_t
      node_started_seq; /* the newest node.started, 0: none; what it gives back to leases is left to whoever reads their rows */
  int64_t node_started_us;
  uint64_t receipts, audits; /* how many entries there are */
  uint64_t named;            /* how many tasks have a business key */
  uint64_t sum;              /* of rows_hash over all other rows, modulo 2^64 */
  uint8_t genesis[32];       /* digest of the log's genesis */
};

/* A namespace, application, credential, queue, node, schedule or subscription. Key: its number, from 1 on in the order of
 * creation, which is its number in memory. Of struct object, heap and lists are no part of it. */

/* Tasks of one queue with one handler and version, while any is unfinished. Key: a number. */
struct bucket_row {
  uint32_t number;
  uint32_t queue; /* number of its object */
  uint32_t unfinished;
  struct bytes handler, handler_version; /* borrowed */
};

/* Key: the task's id. Tasks are made with rising ids, so the order of keys is, all but always, the order of acceptance. */
struct task_row {
  struct task task;       /* queue, application: numbers of their objects; handler: number of its bucket row, 0 when it is over;
                             live_until       is lease_until */
  struct id key_id;       /* of its concurrency key; zero: none */
  uint64_t business_hash; /* 0: no business key */
  uint32_t handler_hash;
  uint32_t schedule; /* number of the schedule's object, while the task is unfinished; 0: made by none */
};

enum {
  meta_row_bytes = 4 + 9 * 8 + 32 + 8,
  task_row_fixed_bytes = 1 + 4 + 1 + 5 * 8 + 7 * 8 + 9 * 4 + 2 * 2,
  task_row_attempt_bytes = 3 * 16 + 4 * 8 + 4,
  task_row_bytes_max = task_row_fixed_bytes + task_row_attempt_bytes + 16 + 4 + 8,
  rows_number_bytes = 4,
};

void meta_row_encode(const struct meta_row *row, uint8_t out[meta_row_bytes]);
/* FOREIGN: of another format. CORRUPT. */
enum status meta_row_decode(struct bytes value, struct meta_row *ret_row);

/* Returns the number of bytes. */
size_t task_row_encode(const struct task_row *row, uint8_t out[task_row_bytes_max]);
/* Of an encoded row, without reading all of it; 0: it is too short. */
uint64_t task_row_accepted_seq(struct bytes value);
uint64_t task_row_business_hash(struct bytes value); /* likewise */
/* CORRUPT: not exactly what task_row_encode writes. */
enum status task_row_decode(struct bytes key, struct bytes value, struct task_row *ret_row);

/* Appends. */
void object_row_encode(const struct object *object, struct buffer *out);
/* queue_ids of a credential are allocated: they are the object's. CORRUPT: nothing is owned then. */
enum status object_row_decode(struct bytes value, struct object *ret_object);

void bucket_row_encode(const struct bucket_row *row, struct buffer *out);
/* The texts are borrowed from value. */
enum status bucket_row_decode(struct bytes key, struct bytes value, struct bucket_row *ret_row);

/* Keys of numbered rows (objects, buckets), and of receipts and audits (the first seq of the chunk): big-endian, so that they
 * are in order. */
void number_key(uint32_t number, uint8_t out[rows_number_bytes]);
bool number_key_parse(struct bytes key, uint32_t *ret_number);
void seq_key_encode(uint64_t seq, uint8_t out[8]);

/* Receipts: the first 8 bytes of an identity, and the seq of the event that carries it. Chunks of 16 bytes an entry; audits
 * of 8. */
struct receipt_entry {
  uint64_t identity;
  uint64_t seq;
};
void receipt_entry_encode(const struct receipt_entry *entry, struct buffer *out);
struct receipt_entry receipt_entry_at(struct bytes value, size_t entry);
void audit_entry_encode(uint64_t seq, struct buffer *out);
uint64_t audit_entry_at(struct bytes value, size_t entry);

/* What a row adds to the sum. */
uint64_t rows_hash(enum rows_table table, struct bytes key, struct bytes value);

#endif
