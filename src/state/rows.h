/* The byte form of what a checkpoint keeps: explicit, little-endian, with a version in front of each row. A row holds all that
 * a start needs to build its indexes and orders without reading the log; texts and documents stay there. Part of this room
 * alone. */
#ifndef ORBIT_STATE_ROWS_H
#define ORBIT_STATE_ROWS_H

#include "state/internal.h"

/* Of all rows together: another number, and the checkpoint is made anew. */
enum { rows_format = 3 };

/* The tables of views/, in the order of their numbers. */
enum rows_table {
  ROWS_META,
  ROWS_OBJECTS,
  ROWS_BUCKETS,
  ROWS_TASKS,      /* unfinished ones: all of them go to memory */
  ROWS_RECEIPTS,   /* chunks, in the order of the log */
  ROWS_AUDITS,     /* likewise */
  ROWS_ENDED,      /* ended tasks, by acceptance */
  ROWS_IDS,        /* their ids -> acceptance */
  ROWS_QUEUES,     /* queue and acceptance of each */
  ROWS_NAMES,      /* hash of namespace and business key, and acceptance, of each that has one */
  ROWS_ENDS,       /* newest event -> acceptance: who leaves first when the time is over */
  ROWS_IDENTITIES, /* identity and seq of receipts that no task leads to, as far as they are sorted in */
  ROWS_TABLE_COUNT
};
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
  uint64_t receipts, audits;     /* how many entries there are */
  uint64_t named;                /* how many tasks have a business key */
  uint64_t sum;                  /* of rows_hash over objects, buckets, unfinished tasks and audits, modulo 2^64 */
  uint64_t indexed_seq;          /* identities of receipts up to here stand in their index */
  uint64_t indexed;              /* how many receipts that is, with those that tasks lead to */
  uint64_t identities;           /* how many rows the index has of them */
  uint64_t waiting_sum;          /* of rows_hash over the chunks of receipts that are not sorted in, modulo 2^64 */
  uint64_t retained_seq;         /* ended tasks whose newest event is not after this one are gone */
  uint64_t ended;                /* ended tasks ever, those that are gone with them */
  uint64_t gone;                 /* of them, how many rows were removed */
  struct digest_sum ended_sum;   /* what the ended tasks add to the digest of all views */
  struct digest_sum gone_sum;    /* the part of it whose rows were removed */
  struct digest_sum indexed_sum; /* what the indexed receipts add */
  uint8_t genesis[32];           /* digest of the log's genesis */
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

/* Unfinished: key is the task's id. Tasks are made with rising ids, so the order of keys is, all but always, the order of
 * acceptance. Ended: key is the seq of acceptance, and the value begins with the id. */
struct task_row {
  struct task task; /* queue, application: numbers of their objects; handler: number of its bucket row, 0 when it is over */
  struct attempt attempt; /* live_until is lease_until; all zero: none */
  struct id key_id;       /* of its concurrency key; zero: none */
  uint64_t business_hash; /* 0: no business key */
  uint32_t handler_hash;
  uint32_t schedule; /* number of the schedule's object, while the task is unfinished; 0: made by none */
};

enum {
  meta_row_bytes = 4 + 22 * 8 + 32 + 8,
  task_row_fixed_bytes = 1 + 4 + 1 + 5 * 8 + 7 * 8 + 9 * 4 + 2 * 2,
  task_row_attempt_bytes = 3 * 16 + 4 * 8 + 4,
  task_row_bytes_max = task_row_fixed_bytes + task_row_attempt_bytes + 16 + 4 + 8,
  rows_number_bytes = 4,
  ended_row_bytes_max = id_bytes + task_row_bytes_max,
  queue_key_bytes = 4 + 8,
  pair_key_bytes = 8 + 8,
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

/* The same of an ended task. */
size_t ended_row_encode(const struct task_row *row, uint8_t out[ended_row_bytes_max]);
enum status ended_row_decode(struct bytes key, struct bytes value, struct task_row *ret_row);

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
uint64_t seq_key_at(const uint8_t *key);
/* Queue and acceptance; a hash (of a business key, an identity) and a seq. */
void queue_key_encode(uint32_t queue, uint64_t seq, uint8_t out[queue_key_bytes]);
void pair_key_encode(uint64_t first, uint64_t seq, uint8_t out[pair_key_bytes]);

/* Receipts: the first 8 bytes of an identity, and the seq of the event that carries it. Chunks of 16 bytes an entry; audits
 * of 8. */
struct receipt_entry {
  uint64_t identity;
  uint64_t seq;
  bool by_task; /* the history of the task that the request names leads to it: no index holds it */
};
void receipt_entry_encode(const struct receipt_entry *entry, struct buffer *out);
struct receipt_entry receipt_entry_at(struct bytes value, size_t entry);
void audit_entry_encode(uint64_t seq, struct buffer *out);
uint64_t audit_entry_at(struct bytes value, size_t entry);

/* What a row adds to the sum. */
uint64_t rows_hash(enum rows_table table, struct bytes key, struct bytes value);

#endif
