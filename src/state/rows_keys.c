/* Owns the keys of rows, big-endian so that they sort as their numbers do, and the entries of chunks. */
#include <endian.h>
#include <string.h>

#include "state/rows.h"
#include "state/rows_numbers.h"

void number_key(uint32_t number, uint8_t out[rows_number_bytes]) {
  number = htobe32(number);
  memcpy(out, &number, sizeof number);
}

bool number_key_parse(struct bytes key, uint32_t *ret_number) {
  uint32_t number;
  if (key.size != sizeof number) return false;
  memcpy(&number, key.data, sizeof number);
  *ret_number = be32toh(number);
  return *ret_number != 0;
}

void seq_key_encode(uint64_t seq, uint8_t out[8]) {
  seq = htobe64(seq);
  memcpy(out, &seq, sizeof seq);
}

uint64_t seq_key_at(const uint8_t *key) {
  uint64_t seq;
  memcpy(&seq, key, sizeof seq);
  return be64toh(seq);
}

void queue_key_encode(uint32_t queue, uint64_t seq, uint8_t out[queue_key_bytes]) {
  number_key(queue, out);
  seq_key_encode(seq, out + rows_number_bytes);
}

void pair_key_encode(uint64_t first, uint64_t seq, uint8_t out[pair_key_bytes]) {
  seq_key_encode(first, out);
  seq_key_encode(seq, out + 8);
}

/* Seqs are far below the highest bit. */
static const uint64_t by_task_bit = UINT64_C(1) << 63;

void receipt_entry_encode(const struct receipt_entry *entry, struct buffer *out) {
  uint8_t *start = buffer_reserve(out, 16);
  if (start == NULL) return;
  (void)put_64(put_64(start, entry->identity), entry->seq | (entry->by_task ? by_task_bit : 0));
  buffer_commit(out, 16);
}

struct receipt_entry receipt_entry_at(struct bytes value, size_t entry) {
  const uint8_t *at = value.data + entry * 16;
  uint64_t identity = take_64(&at), seq = take_64(&at);
  return (struct receipt_entry){identity, seq & ~by_task_bit, (seq & by_task_bit) != 0};
}

void audit_entry_encode(uint64_t seq, struct buffer *out) {
  uint8_t *start = buffer_reserve(out, 8);
  if (start == NULL) return;
  (void)put_64(start, seq);
  buffer_commit(out, 8);
}

uint64_t audit_entry_at(struct bytes value, size_t entry) {
  const uint8_t *at = value.data + entry * 8;
  return take_64(&at);
}
