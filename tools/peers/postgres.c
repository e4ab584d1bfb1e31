/* PostgreSQL as a queue: INSERT; UPDATE of rows that SELECT … FOR UPDATE SKIP LOCKED found; DELETE. Each is a transaction of
 * its own, whose commit is synced before it is answered, together with others that wait then. */
#include <endian.h>
#include <stdio.h>
#include <string.h>

#include "peers/peer.h"

enum { message_head_bytes = 5, protocol_version = 3 << 16, claim_columns = 2 };

/* ---- Messages: a letter, a length that counts itself, and the rest; numbers are big-endian ---- */

static void append_u32(struct buffer *out, uint32_t number) {
  number = htobe32(number);
  buffer_append(out, &number, sizeof number);
}

/* Begins a query, whose text is to follow; returns where its length stands. */
static size_t query_begin(struct buffer *out) {
  buffer_append_char(out, 'Q');
  append_u32(out, 0);
  return out->size - sizeof(uint32_t);
}

static void query_end(struct buffer *out, size_t at) {
  buffer_append_char(out, '\0');
  if (out->failed) return;
  uint32_t size = htobe32((uint32_t)(out->size - at));
  memcpy(out->data + at, &size, sizeof size);
}

static void append_query(struct buffer *out, const char *text) {
  size_t at = query_begin(out);
  buffer_append_text(out, text);
  query_end(out, at);
}

/* Cuts the next message off. */
static enum peer_answer next_message(struct bytes in, size_t *at, char *ret_letter, struct bytes *ret_rest) {
  uint32_t size;
  if (in.size - *at < message_head_bytes) return PEER_WAIT;
  memcpy(&size, in.data + *at + 1, sizeof size);
  size = be32toh(size);
  if (size < sizeof size || size > INT32_MAX) return PEER_BROKEN;
  if (in.size - *at - 1 < size) return PEER_WAIT;
  *ret_letter = (char)in.data[*at];
  *ret_rest = bytes_of(in.data + *at + message_head_bytes, size - sizeof size);
  *at += 1 + (size_t)size;
  return PEER_DONE;
}

/* A column of a row: a length, and as many bytes; -1, which is NULL, has no business here. */
static bool cut_column(struct bytes *rest, struct bytes *ret_column) {
  uint32_t size;
  if (rest->size < sizeof size) return false;
  memcpy(&size, rest->data, sizeof size);
  size = be32toh(size);
  if (rest->size - sizeof size < size) return false;
  *ret_column = bytes_of(rest->data + sizeof size, size);
  *rest = bytes_of(rest->data + sizeof size + size, rest->size - sizeof size - size);
  return true;
}

/* A row of a claim; rows of other widths are those of a pause. */
static enum peer_answer take_row(struct bytes row, struct peer_job *jobs, unsigned limit, unsigned *count) {
  struct bytes id;
  if (row.size < 2) return PEER_BROKEN;
  if (row.data[0] != 0 || row.data[1] != claim_columns) return PEER_DONE;
  row = bytes_of(row.data + 2, row.size - 2);
  if (*count == limit || !cut_column(&row, &id) || id.size >= sizeof jobs->id) return PEER_BROKEN;
  struct peer_job *job = &jobs[*count];
  if (!cut_column(&row, &job->payload)) return PEER_BROKEN;
  (void)snprintf(job->id, sizeof job->id, "%.*s", (int)id.size, (const char *)id.data);
  ++*count;
  return PEER_DONE;
}

/* An answer ends when the server is ready for the next query. */
static enum peer_answer claimed(struct bytes in, struct peer_job *jobs, unsigned limit, unsigned *ret_count, size_t *ret_used) {
  unsigned count = 0;
  char letter = '\0';
  for (size_t at = 0; letter != 'Z'; *ret_used = at) {
    struct bytes rest;
    enum peer_answer answer = next_message(in, &at, &letter, &rest);
    if (answer == PEER_DONE && letter == 'D') answer = take_row(rest, jobs, limit, &count);
    if (answer != PEER_DONE) return answer;
    if (letter == 'E') return PEER_BROKEN;
  }
  *ret_count = count;
  return PEER_DONE;
}

static enum peer_answer answered(struct bytes in, size_t *ret_used) {
  unsigned none;
  return claimed(in, NULL, 0, &none, ret_used);
}

/* ---- Requests ---- */

static void append_startup(struct buffer *out) {
  static const char words[] = "user\0postgres\0database\0postgres\0";
  append_u32(out, (uint32_t)(2 * sizeof(uint32_t) + sizeof words));
  append_u32(out, protocol_version);
  buffer_append(out, words, sizeof words);
}

static void set_up(struct buffer *out, unsigned *ret_answers) {
  append_startup(out);
  append_query(out,
               "CREATE TABLE q(id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, held_at timestamptz, payload text NOT NULL);"
               "CREATE INDEX q_waiting ON q(id) WHERE held_at IS NULL");
  *ret_answers = 2;
}

static void greet(struct buffer *out, unsigned *ret_answers) {
  append_startup(out);
  append_query(out,
               "PREPARE submit(text[]) AS INSERT INTO q(payload) SELECT unnest($1);"
               "PREPARE claim(int) AS UPDATE q SET held_at = now() WHERE id = ANY(ARRAY(SELECT id FROM q"
               " WHERE held_at IS NULL ORDER BY id FOR UPDATE SKIP LOCKED LIMIT $1)) RETURNING id, payload;"
               "PREPARE complete(bigint[]) AS DELETE FROM q WHERE id = ANY($1)");
  *ret_answers = 2;
}

static void submit(struct buffer *out, struct bytes payloads, unsigned count, unsigned *ret_answers) {
  size_t size = payloads.size / count, at = query_begin(out);
  buffer_append_text(out, "EXECUTE submit('{");
  for (unsigned i = 0; i < count; i++) {
    if (i != 0) buffer_append_char(out, ',');
    buffer_append(out, payloads.data + i * size, size);
  }
  buffer_append_text(out, "}')");
  query_end(out, at);
  *ret_answers = 1;
}

static void claim(struct buffer *out, unsigned worker, unsigned count, bool again) {
  size_t at = query_begin(out);
  (void)worker;
  buffer_append_format(out, "%sEXECUTE claim(%u)", again ? "SELECT pg_sleep(0.002);" : "", count);
  query_end(out, at);
}

static void complete(struct buffer *out, const struct peer_job *jobs, unsigned count, unsigned *ret_answers) {
  size_t at = query_begin(out);
  for (unsigned i = 0; i < count; i++) buffer_append_format(out, "%s%s", i != 0 ? "," : "EXECUTE complete('{", jobs[i].id);
  buffer_append_text(out, "}')");
  query_end(out, at);
  *ret_answers = 1;
}

const struct peer peer_postgres = {
    .name = "postgres",
    .promise = "a synced commit before every answer, a claim's too; no retry policy, receipts or audit",
    .batches = true,
    .set_up = set_up,
    .greet = greet,
    .submit = submit,
    .claim = claim,
    .claimed = claimed,
    .complete = complete,
    .answered = answered,
};
