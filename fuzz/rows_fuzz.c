/* Fuzzes what stands in a checkpoint: its rows. The first byte says which table;
 * whatever the rest is, it is refused or read within its bounds, and what is read is written back as it was. */
#include <stdlib.h>
#include <string.h>

#include "base/guard.h"
#include "state/rows.h"

static const uint8_t key_bytes[16] = {0, 0, 0, 7, 1};

static void fuzz_meta(struct bytes value) {
  struct meta_row row;
  uint8_t again[meta_row_bytes];
  enum status status = meta_row_decode(value, &row);
  must(status == STATUS_OK || status == STATUS_CORRUPT || status == STATUS_FOREIGN);
  if (status != STATUS_OK) return;
  meta_row_encode(&row, again);
  must(bytes_equal(bytes_of(again, sizeof again), value));
}

static void fuzz_task(struct bytes value) {
  struct task_row row;
  uint8_t again[task_row_bytes_max];
  (void)task_row_accepted_seq(value), (void)task_row_business_hash(value);
  if (task_row_decode(bytes_of(key_bytes, 16), value, &row) != STATUS_OK) return;
  size_t size = task_row_encode(&row, again);
  must(bytes_equal(bytes_of(again, size), value));
  must(task_row_business_hash(value) == row.business_hash);
}

static void object_clear(struct object *object) {
  if (object->kind == OBJECT_CREDENTIAL) free(object->as.credential.queue_ids);
}

/* A yes may be any byte but 0 in the row: what is written for it reads back as the same. */
static void fuzz_object(struct bytes value) {
  struct object object, other;
  struct buffer once, twice;
  if (object_row_decode(value, &object) != STATUS_OK) return;
  buffer_init(&once, 1 << 20);
  buffer_init(&twice, 1 << 20);
  object_row_encode(&object, &once);
  must(!once.failed && object_row_decode(buffer_bytes(&once), &other) == STATUS_OK);
  object_row_encode(&other, &twice);
  must(once.size == value.size && bytes_equal(buffer_bytes(&once), buffer_bytes(&twice)));
  buffer_clear(&once);
  buffer_clear(&twice);
  object_clear(&object);
  object_clear(&other);
}

static void fuzz_bucket(struct bytes value) {
  struct bucket_row row;
  struct buffer again;
  if (bucket_row_decode(bytes_of(key_bytes, rows_number_bytes), value, &row) != STATUS_OK) return;
  buffer_init(&again, 1 << 20);
  bucket_row_encode(&row, &again);
  must(!again.failed && bytes_equal(buffer_bytes(&again), value));
  buffer_clear(&again);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static void (*const readers[])(struct bytes) = {fuzz_meta, fuzz_task, fuzz_object, fuzz_bucket};
  if (size == 0) return 0;
  readers[data[0] % (sizeof readers / sizeof readers[0])](bytes_of(data + 1, size - 1));
  return 0;
}
