/* What other queues answer, byte by byte: whole, in pieces, and not as their protocols say. */
#include <string.h>

#include "peers/peer.h"
#include "support/support.h"

static const struct row {
  const struct peer *peer;
  bool claim;
  const char *text;
  size_t size;
  enum peer_answer answer;
  size_t used;              /* of a whole answer */
  unsigned count;           /* tasks of a claim */
  const char *id, *payload; /* of the last of them */
#define TEXT(text) text, sizeof(text) - 1
} rows[] = {
    {&peer_redis, false, TEXT("+OK\r\n"), PEER_DONE, 5, 0, NULL, NULL},
    {&peer_redis, false, TEXT(":2\r\n:2\r\n"), PEER_DONE, 4, 0, NULL, NULL},
    {&peer_redis, false, TEXT("$3\r\n1-0\r\n"), PEER_DONE, 9, 0, NULL, NULL},
    {&peer_redis, false, TEXT("$3\r\n1-0\r\n$3\r\n"), PEER_DONE, 9, 0, NULL, NULL},
    {&peer_redis, false, TEXT("*2\r\n$1\r\na\r\n:7\r\n"), PEER_DONE, 15, 0, NULL, NULL},
    {&peer_redis, false, TEXT("-ERR no\r\n"), PEER_BROKEN, 0, 0, NULL, NULL},
    {&peer_redis, true, TEXT("*1\r\n*2\r\n$1\r\nq\r\n*1\r\n*2\r\n$3\r\n1-0\r\n*2\r\n$1\r\nd\r\n$2\r\nxy\r\n"), PEER_DONE, 51, 1,
     "1-0", "xy"},
    {&peer_redis, true,
     TEXT("*1\r\n*2\r\n$1\r\nq\r\n*2\r\n*2\r\n$3\r\n1-0\r\n*2\r\n$1\r\nd\r\n$1\r\nx\r\n*2\r\n$3\r\n1-1\r\n*2\r\n$1\r\nd\r\n$"
          "1\r\ny\r\n"),
     PEER_DONE, 81, 2, "1-1", "y"},
    {&peer_redis, true, TEXT("*2\r\n*2\r\n$1\r\nq\r\n*0\r\n"), PEER_BROKEN, 0, 0, NULL, NULL},
    {&peer_redis, true, TEXT("*1\r\n*2\r\n$1\r\nq\r\n*5\r\n"), PEER_BROKEN, 0, 0, NULL, NULL}, /* more than were asked for */
    {&peer_redis, true, TEXT(":1\r\n"), PEER_BROKEN, 0, 0, NULL, NULL},
    {&peer_beanstalkd, false, TEXT("INSERTED 7\r\n"), PEER_DONE, 12, 0, NULL, NULL},
    {&peer_beanstalkd, false, TEXT("DELETED\r\nDELETED\r\n"), PEER_DONE, 9, 0, NULL, NULL},
    {&peer_beanstalkd, false, TEXT("BURIED 7\r\n"), PEER_BROKEN, 0, 0, NULL, NULL},
    {&peer_beanstalkd, true, TEXT("RESERVED 7 3\r\nabc\r\n"), PEER_DONE, 19, 1, "7", "abc"},
    {&peer_beanstalkd, true, TEXT("RESERVED 7 0\r\n\r\n"), PEER_DONE, 16, 1, "7", ""},
    {&peer_beanstalkd, true, TEXT("TIMED_OUT\r\n"), PEER_BROKEN, 0, 0, NULL, NULL},
    {&peer_beanstalkd, true, TEXT("RESERVED 7 99999999999999999999\r\n"), PEER_BROKEN, 0, 0, NULL, NULL},
#define READY "Z\0\0\0\5I"
#define WIDTHS "T\0\0\0\6\0\2"
#define SLEPT "D\0\0\0\12\0\1\0\0\0\0"
#define ROW(size, id, text_size, text) "D\0\0\0" size "\0\2\0\0\0\1" id "\0\0\0" text_size text
    {&peer_postgres, false, TEXT("C\0\0\0\17INSERT 0 1\0" READY), PEER_DONE, 22, 0, NULL, NULL},
    {&peer_postgres, false, TEXT("R\0\0\0\10\0\0\0\0S\0\0\0\10a\0b\0" READY READY), PEER_DONE, 24, 0, NULL, NULL},
    {&peer_postgres, false, TEXT("E\0\0\0\12SERROR" READY), PEER_BROKEN, 0, 0, NULL, NULL},
    {&peer_postgres, false, TEXT("C\0\0\0\3"), PEER_BROKEN, 0, 0, NULL, NULL}, /* shorter than its own length */
    {&peer_postgres, false, TEXT("C\377\377\377\377"), PEER_BROKEN, 0, 0, NULL, NULL},
    {&peer_postgres, true, TEXT(WIDTHS ROW("\21", "7", "\2", "xy") READY), PEER_DONE, 31, 1, "7", "xy"},
    {&peer_postgres, true, TEXT(WIDTHS ROW("\20", "7", "\1", "x") ROW("\20", "8", "\1", "y") READY), PEER_DONE, 47, 2, "8",
     "y"},
    {&peer_postgres, true, TEXT(WIDTHS SLEPT WIDTHS READY), PEER_DONE, 31, 0, NULL, NULL}, /* it slept, and found none */
    {&peer_postgres, true, TEXT(ROW("\20", "7", "\2", "x")), PEER_BROKEN, 0, 0, NULL, NULL},
    {&peer_postgres, true, TEXT("D\0\0\0\12\0\2\377\377\377\377"), PEER_BROKEN, 0, 0, NULL, NULL}, /* no id */
};
enum { limit = 4 };

static enum peer_answer ask(const struct row *row, size_t size, struct peer_job *jobs, unsigned *ret_count, size_t *ret_used) {
  struct bytes in = bytes_of((const uint8_t *)row->text, size);
  return row->claim ? row->peer->claimed(in, jobs, limit, ret_count, ret_used) : row->peer->answered(in, ret_used);
}

static void answers_are_told_apart(void **state) {
  (void)state;
  for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
    const struct row *row = &rows[i];
    struct peer_job jobs[limit];
    unsigned count = 0;
    size_t used = 0;
    if (ask(row, row->size, jobs, &count, &used) != row->answer) fail_msg("row %zu", i);
    if (row->answer != PEER_DONE) continue;
    assert_int_equal(used, row->used);
    assert_int_equal(count, row->count);
    if (count == 0) continue;
    assert_string_equal(jobs[count - 1].id, row->id);
    assert_true(bytes_equal_text(jobs[count - 1].payload, row->payload));
  }
}

/* Whatever is missing of a whole answer, the rest is waited for. */
static void pieces_are_waited_for(void **state) {
  (void)state;
  for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
    struct peer_job jobs[limit];
    for (size_t size = 0; rows[i].answer == PEER_DONE && size < rows[i].used; size++) {
      unsigned count = 0;
      size_t used = 0;
      if (ask(&rows[i], size, jobs, &count, &used) != PEER_WAIT) fail_msg("row %zu, %zu bytes", i, size);
    }
  }
}

static void requests_are_as_the_protocols_say(void **state) {
  (void)state;
  static const struct peer_job jobs[] = {{.id = "1-0"}, {.id = "1-1"}};
  struct buffer out;
  unsigned answers = 0;
  buffer_init(&out, 4096);
  peer_redis.submit(&out, bytes_text("aabb"), 2, &answers);
  assert_int_equal(answers, 2);
  assert_true(bytes_equal_text(buffer_bytes(&out),
                               "*5\r\n$4\r\nXADD\r\n$1\r\nq\r\n$1\r\n*\r\n$1\r\nd\r\n$2\r\naa\r\n"
                               "*5\r\n$4\r\nXADD\r\n$1\r\nq\r\n$1\r\n*\r\n$1\r\nd\r\n$2\r\nbb\r\n"));
  buffer_reset(&out);
  peer_redis.complete(&out, jobs, 2, &answers);
  assert_int_equal(answers, 2);
  assert_true(bytes_equal_text(buffer_bytes(&out),
                               "*5\r\n$4\r\nXACK\r\n$1\r\nq\r\n$1\r\ng\r\n$3\r\n1-0\r\n$3\r\n1-1\r\n"
                               "*4\r\n$4\r\nXDEL\r\n$1\r\nq\r\n$3\r\n1-0\r\n$3\r\n1-1\r\n"));
  buffer_reset(&out);
  peer_beanstalkd.submit(&out, bytes_text("aabb"), 2, &answers);
  assert_int_equal(answers, 2);
  assert_true(bytes_equal_text(buffer_bytes(&out), "put 0 0 3600 2\r\naa\r\nput 0 0 3600 2\r\nbb\r\n"));
  buffer_reset(&out);
  peer_postgres.submit(&out, bytes_text("aabb"), 2, &answers);
  assert_int_equal(answers, 1);
  static const char submission[] = "Q\0\0\0\36EXECUTE submit('{aa,bb}')";
  assert_int_equal(out.size, sizeof submission);
  assert_memory_equal(out.data, submission, sizeof submission);
  buffer_reset(&out);
  peer_postgres.complete(&out, jobs, 2, &answers);
  assert_int_equal(answers, 1);
  static const char completion[] = "Q\0\0\0\"EXECUTE complete('{1-0,1-1}')";
  assert_int_equal(out.size, sizeof completion);
  assert_memory_equal(out.data, completion, sizeof completion);
  buffer_clear(&out);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(answers_are_told_apart),
      cmocka_unit_test(pieces_are_waited_for),
      cmocka_unit_test(requests_are_as_the_protocols_say),
  };
  return cmocka_run_group_tests_name("peer", tests, NULL, NULL);
}
